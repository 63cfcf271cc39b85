// The agent's display stack, inline: a question stands in the conversation with its buttons, and
// stays there as an answered card. Unknown renderers are shown generically.

import { button, make, pairs } from "./dom.js";

export class Slots {
  /** `place(card)` puts a card into the conversation; `on.send({t: "resolve" | "reject", …})`
   *  takes what a person chose, `on.settled(id, said)` what stays of it, `on.asked(title)` hears of
   *  a new question; `hint` is where open questions out of sight are pointed to. */
  constructor(hint, place, on) {
    this.hint = hint;
    this.place = place;
    this.on = on;
    this.cards = new Map(); // id -> {root, open, said}
    this.watch = new IntersectionObserver((seen) => this.look(seen));
    this.unseen = new Set();
  }

  clear() {
    this.cards.clear();
    this.unseen.clear();
    this.watch.disconnect();
    this.point();
  }

  /** The call was attached anew: what is still open is shown again right after this. */
  renew() {
    for (const id of this.cards.keys()) this.remove(id);
  }

  show(slot) {
    const known = this.cards.get(slot.id);
    const root = make("article", slot.renderer in TO_READ ? "slot to-read" : "slot");
    root.tabIndex = -1;
    const card = {
      root,
      open: true,
      words: draw(slot, root, (...chosen) => this.choose(slot.id, ...chosen)),
    };
    root.setAttribute("aria-label", `The agent shows: ${card.words}`);
    if (known?.open || known?.root.isConnected) known.root.replaceWith(root);
    else this.place(root);
    this.cards.set(slot.id, card);
    this.on.asked(card.words);
    if (slot.renderer in TO_READ) return; // nobody waits for it
    this.watch.observe(root);
  }

  /** `message` goes to the server; `said` stays on the card. */
  choose(id, message, said) {
    const held = this.cards.get(id)?.root.contains(document.activeElement);
    this.on.send({ id, ...message });
    this.settle(id, said);
    this.on.settled(id, said);
    if (held) this.cards.get(id).root.focus();
  }

  remove(id) {
    if (this.cards.get(id)?.open) this.settle(id, "No longer asked");
  }

  settle(id, said) {
    const card = this.cards.get(id);
    if (!card?.open) return;
    card.open = false;
    card.root.className = "slot-done";
    card.root.querySelector(".choices")?.remove();
    card.root.append(make("p", "reply", said));
    this.watch.unobserve(card.root);
    this.unseen.delete(card.root);
    this.point();
  }

  look(seen) {
    for (const { target, isIntersecting } of seen) {
      if (isIntersecting || !target.classList.contains("slot")) this.unseen.delete(target);
      else this.unseen.add(target);
    }
    this.point();
  }

  point() {
    const [first] = this.unseen;
    this.hint.replaceChildren();
    if (!first) return;
    const words =
      this.unseen.size === 1
        ? "A question is open above"
        : `${this.unseen.size} questions are open above`;
    this.hint.append(
      button(words, "choice", () => {
        first.scrollIntoView({ block: "center" });
        first.focus();
      })
    );
  }
}

/** Fills `card`, returns its title. `choose(message, said)`. */
function draw(slot, card, choose) {
  const props =
    typeof slot.input === "object" && slot.input !== null ? slot.input : { text: slot.input ?? "" };
  return (RENDERERS[slot.renderer] ?? generic)(card, props, choose);
}

const TO_READ = { show_info_card: info };
const RENDERERS = { permission_request: permission, ...TO_READ };

function permission(card, input, choose) {
  const title = `May the agent use ${String(input.toolName ?? "a tool").replaceAll("_", " ")}?`;
  card.append(make("h2", "", title));
  if (input.toolInput && typeof input.toolInput === "object") card.append(pairs(input.toolInput));
  card.append(
    choices([
      button("Allow", "choice main", () => choose({ t: "resolve", value: true }, "You allowed it")),
      button("Deny", "choice", () => choose({ t: "resolve", value: false }, "You denied it")),
    ])
  );
  return title;
}

const KNOWN = new Set(["title", "question", "message", "text", "options", "choices", "renderer"]);

function heading(card, props) {
  const title = props.title ?? props.question;
  if (title) card.append(make("h2", "", capital(String(title))));
  const body = props.message ?? props.text;
  if (body) card.append(make("p", "", String(body)));
  const rest = Object.entries(props).filter(([key]) => !KNOWN.has(key));
  if (rest.length) card.append(pairs(Object.fromEntries(rest)));
  return String(title ?? body ?? "a card");
}

/** Something to read; nobody waits for an answer. */
function info(card, props, choose) {
  const title = heading(card, props);
  card.append(
    choices([button("Got it", "choice", () => choose({ t: "resolve", value: true }, "Read"))])
  );
  return title;
}

function generic(card, props, choose) {
  const title = heading(card, props);
  const options = props.options ?? props.choices ?? [];
  const buttons = (Array.isArray(options) ? options : []).map((option, index) => {
    const isObject = typeof option === "object" && option !== null;
    const label = isObject ? (option.label ?? option.name ?? option.id) : option;
    const value = isObject ? (option.value ?? option.id ?? label) : option;
    const said = `You answered: ${label}`;
    return button(label, index ? "choice" : "choice main", () =>
      choose({ t: "resolve", value }, said)
    );
  });
  if (!buttons.length) {
    buttons.push(
      button("OK", "choice main", () => choose({ t: "resolve", value: true }, "You said OK"))
    );
  }
  const dismiss = { t: "reject", reason: "dismissed" };
  buttons.push(button("Dismiss", "choice", () => choose(dismiss, "You dismissed it")));
  card.append(choices(buttons));
  return title;
}

function choices(buttons) {
  return make("div", "choices", ...buttons);
}

function capital(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
