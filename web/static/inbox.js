// What the agent asked somebody outside the conversation, and what they answered. Where the server
// lets this page, an answer can be written here; it goes the way every program's answer goes.

import { make } from "./dom.js";

const MOST_PASSED = 5; // answers the agent has taken up that stay in sight
const STATES = { pending: "waiting", resolved: "answered", passed: "passed on to the agent" };

export class Inbox {
  constructor() {
    this.title = make("h3", "", "Inbox ");
    this.title.id = "inbox-title";
    this.counted = make("span", "count");
    this.title.append(this.counted);
    this.list = make("ul", "items");
    this.root = make("section", "inbox", this.title, this.list);
    this.root.setAttribute("aria-labelledby", "inbox-title");
    this.path = null;
    this.clear();
  }

  clear() {
    this.rows = new Map(); // id -> {item, root, …}
    this.list.replaceChildren();
    this.draw();
  }

  answers(path) {
    this.path = path;
    for (const row of this.rows.values()) this.write(row);
  }

  get count() {
    return this.rows.size;
  }

  get waiting() {
    return [...this.rows.values()].filter(({ item }) => item.status === "pending").length;
  }

  /** The inbox as it is now; what a screen reader should hear of it, if anything. */
  take(items) {
    const told = [];
    for (const item of items) {
      const row = this.rows.get(item.id);
      if (!row) {
        this.add(item);
        if (item.status === "pending") told.push(`The agent asks outside: ${item.request}`);
      } else {
        if (item.status === "resolved" && row.item.status === "pending")
          told.push(`Answered: ${item.response}`);
        row.item = item;
        this.write(row);
      }
    }
    const here = new Set(items.map(({ id }) => id));
    for (const [id, row] of this.rows) if (!here.has(id)) this.gone(id, row);
    this.trim();
    this.draw();
    return told.join(". ");
  }

  /** It is not in the inbox any more: the agent took the answer up, or nobody asks any longer. */
  gone(id, row) {
    if (row.item.status === "pending") {
      row.root.remove();
      this.rows.delete(id);
    } else {
      row.item = { ...row.item, status: "passed" };
      this.write(row);
    }
  }

  trim() {
    const passed = [...this.rows].filter(([, { item }]) => item.status === "passed");
    for (const [id, { root }] of passed.slice(0, -MOST_PASSED)) {
      root.remove();
      this.rows.delete(id);
    }
  }

  draw() {
    this.root.hidden = !this.rows.size;
    this.counted.textContent = this.waiting ? `${this.waiting} waiting` : "";
  }

  add(item) {
    const row = { item, state: make("span", "what"), answer: make("p", "answer"), form: null };
    const head = make("p", "item-head", make("span", "tag", item.tag));
    if (item.blocking) head.append(make("span", "blocks", "the agent waits for it"));
    head.append(row.state);
    row.root = make("li", "item", head, make("p", "request", item.request), row.answer);
    this.rows.set(item.id, row);
    this.list.append(row.root);
    this.write(row);
  }

  write(row) {
    const { item } = row;
    row.root.className = `item ${item.status}`;
    row.state.textContent = STATES[item.status] ?? item.status;
    row.answer.textContent = item.response ?? "";
    row.answer.hidden = !item.response;
    const open = this.path !== null && item.status === "pending";
    if (open && !row.form) row.root.append((row.form = this.form(row)));
    if (!open) {
      const held = row.form?.contains(document.activeElement);
      row.form?.remove();
      row.form = null;
      if (held) this.list.closest('[role="tabpanel"]')?.focus();
    }
  }

  form(row) {
    const field = make("input", "field");
    field.required = true;
    field.maxLength = 2000;
    field.placeholder = "Answer for the agent";
    field.setAttribute("aria-label", `Answer to: ${row.item.request}`);
    const send = make("button", "choice main", "Send");
    send.type = "submit";
    const fault = make("p", "slot-fault");
    fault.setAttribute("role", "alert");
    const form = make("form", "item-form", field, send, fault);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      send.disabled = true;
      fault.textContent = (await this.send(row.item.id, field.value)) ?? "";
      send.disabled = false;
    });
    return form;
  }

  /** What went wrong, in words; null when it was taken. The server then says how the inbox is. */
  async send(id, response) {
    try {
      const answer = await fetch(`${this.path}/${encodeURIComponent(id)}/resolve`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ response }),
      });
      const found = await answer.json();
      if (!answer.ok) return `It was not taken: ${found.message}.`;
      return found.resolved ? null : "Somebody answered this before.";
    } catch {
      return "The server cannot be reached. Try again.";
    }
  }
}
