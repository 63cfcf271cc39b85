// The list of everything that came over the line: filter, hold still, read one, copy. Only the rows
// in sight exist as elements, and they are drawn at most once a picture, so a flood costs nothing.

import { button, copy, make } from "./dom.js";
import { EventLog, jsonl, matches, MOST } from "./eventlog.js";

const ROW = 28; // pixels, as in panel.css
const SPARE = 4;

export class Inspector {
  /** `now()`: call seconds. */
  constructor(root, now) {
    this.now = now;
    this.log = new EventLog();
    this.shown = [];
    this.picked = null; // an entry
    this.held = false;
    this.due = false;
    this.atEnd = true;
    this.build(root);
  }

  build(root) {
    this.type = make("select", "field");
    this.type.setAttribute("aria-label", "Only messages of this type");
    this.text = make("input", "field");
    this.text.type = "search";
    this.text.placeholder = "Filter";
    this.text.setAttribute("aria-label", "Only messages that contain this text");
    this.pause = button("Hold still", "small", () => this.hold(!this.held));
    this.pause.setAttribute("aria-pressed", "false");
    this.all = button("Copy all", "small", () => this.copyAll());
    this.counted = make("p", "counted");
    this.counted.setAttribute("role", "status");
    this.counted.setAttribute("aria-live", "off");
    this.space = make("div", "space");
    this.list = make("div", "entries", this.space);
    this.list.tabIndex = 0;
    this.list.setAttribute("role", "listbox");
    this.list.setAttribute("aria-label", "Messages, newest last");
    this.detail = make("pre", "detail");
    this.detail.tabIndex = 0;
    this.detail.setAttribute("aria-label", "The picked message");
    this.one = button("Copy", "small", () => this.copyOne());
    this.close = button("Close", "small", () => this.pick(null));
    this.reading = make(
      "div",
      "reading",
      make("div", "reading-head", this.one, this.close),
      this.detail
    );
    this.reading.hidden = true;
    this.said = make("p", "hidden");
    this.said.setAttribute("role", "status");
    root.append(
      make("div", "filters", this.type, this.text),
      make("div", "tally", this.counted, this.pause, this.all),
      this.list,
      this.reading,
      this.said
    );
    this.bind();
    this.types();
    this.refilter();
  }

  bind() {
    for (const [control, kind] of [
      [this.type, "change"],
      [this.text, "input"],
    ]) {
      control.addEventListener(kind, () => this.refilter());
    }
    this.list.addEventListener("scroll", () => {
      this.atEnd =
        this.list.scrollHeight - this.list.scrollTop - this.list.clientHeight < ROW * 1.5;
      this.later();
    });
    this.list.addEventListener("click", (event) => {
      const row = event.target.closest("[data-place]");
      if (row) this.pick(this.shown[Number(row.dataset.place)]);
    });
    this.list.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.later()).observe(this.list);
  }

  clear() {
    this.log.clear();
    this.hold(false);
    this.pick(null);
    this.refilter();
  }

  add(message, at = this.now()) {
    const entry = this.log.add(message, at);
    if (!this.held) {
      if (matches(entry, this.type.value, this.text.value.trim().toLowerCase()))
        this.shown.push(entry);
      while (this.shown.length && this.shown[0].n <= this.log.dropped) this.shown.shift();
    }
    this.later();
  }

  refilter() {
    this.shown = this.log.matching(this.type.value, this.text.value);
    this.atEnd = true;
    this.later();
  }

  hold(on) {
    this.held = on;
    this.pause.setAttribute("aria-pressed", String(on));
    if (!on) this.refilter();
    this.later();
  }

  later() {
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => {
      this.due = false;
      if (this.list.offsetParent) this.draw();
    });
  }

  draw() {
    this.types();
    const { shown, list, space } = this;
    space.style.height = `${shown.length * ROW}px`;
    if (this.atEnd && !this.picked) list.scrollTop = list.scrollHeight;
    if (this.fresh) this.reveal(shown.indexOf(this.picked));
    this.fresh = false;
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - SPARE);
    const last = Math.min(
      shown.length,
      Math.ceil((list.scrollTop + list.clientHeight) / ROW) + SPARE
    );
    const rows = [];
    for (let place = first; place < last; place += 1) rows.push(this.row(shown[place], place));
    space.replaceChildren(...rows);
    const active = this.picked && rows.find((row) => row.classList.contains("picked"));
    if (active) list.setAttribute("aria-activedescendant", active.id);
    else list.removeAttribute("aria-activedescendant");
    this.counted.textContent = this.count();
  }

  count() {
    const { entries, dropped } = this.log;
    const words = [`${this.shown.length} of ${entries.length} messages`];
    if (this.held) words.push("holding still");
    if (dropped) words.push(`${dropped} older dropped (${MOST} are kept)`);
    return words.join(" · ");
  }

  row(entry, place) {
    const time = make("span", "time", entry.at == null ? "" : entry.at.toFixed(2));
    const row = make(
      "div",
      "entry",
      time,
      make("span", `type type-${entry.type}`, entry.type),
      make("span", "gist", entry.words)
    );
    row.id = `entry-${entry.n}`;
    row.dataset.place = place;
    row.style.top = `${place * ROW}px`;
    row.setAttribute("role", "option");
    row.setAttribute("aria-setsize", this.shown.length);
    row.setAttribute("aria-posinset", place + 1);
    row.setAttribute("aria-selected", String(entry === this.picked));
    row.classList.toggle("picked", entry === this.picked);
    return row;
  }

  /** The choices follow what is there; the chosen one stays. */
  types() {
    const names = [...this.log.types.keys()].sort();
    const key = names.join();
    if (key === this.typesShown) return;
    this.typesShown = key;
    const chosen = this.type.value;
    const made = ["", ...new Set([...names, ...(chosen ? [chosen] : [])])].map((name) => {
      const option = make("option", "", name || "All types");
      option.value = name;
      return option;
    });
    this.type.replaceChildren(...made);
    this.type.value = chosen;
  }

  key(event) {
    const { shown } = this;
    if (!shown.length) return;
    const here = this.picked ? shown.indexOf(this.picked) : shown.length;
    const page = Math.max(1, Math.floor(this.list.clientHeight / ROW) - 1);
    const steps = {
      ArrowUp: -1,
      ArrowDown: 1,
      PageUp: -page,
      PageDown: page,
      Home: -Infinity,
      End: Infinity,
    };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const place = Math.max(0, Math.min(shown.length - 1, here + step));
    this.pick(shown[place]);
  }

  /** Scroll as little as it takes; the list may just have become smaller. */
  reveal(place) {
    const { list } = this;
    const top = place * ROW;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + ROW > list.scrollTop + list.clientHeight)
      list.scrollTop = top + ROW - list.clientHeight;
  }

  pick(entry) {
    const closing = !entry && this.reading.contains(document.activeElement);
    this.picked = entry ?? null;
    this.fresh = Boolean(entry); // not yet scrolled to
    this.reading.hidden = !entry;
    this.detail.textContent = entry ? JSON.stringify(entry.message, null, 2) : "";
    if (closing) this.list.focus();
    this.later();
  }

  async copyOne() {
    if (this.picked)
      this.tell(
        await copy(JSON.stringify(this.picked.message)),
        "The message is on the clipboard",
        this.one,
        "Copy"
      );
  }

  async copyAll() {
    const text = jsonl(this.shown.map(({ message }) => message));
    const count = this.shown.length;
    this.tell(
      await copy(text),
      count === 1 ? "1 message is on the clipboard" : `${count} messages are on the clipboard`,
      this.all,
      "Copy all"
    );
  }

  tell(done, words, control, name) {
    this.said.textContent = done ? words : "The browser did not let this page copy";
    control.textContent = done ? "Copied ✓" : "Not copied ✗";
    setTimeout(() => (control.textContent = name), 1500);
  }
}
