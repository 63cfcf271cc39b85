// The agent's display stack, inline: a question stands in the conversation with its controls, and
// stays there as a finished card. What an answer says is drawn once the server took it; one that
// it refuses comes back to the open card, with what was filled in.

import { button } from "./dom.js";
import { drawOpen, drawResult, isToRead } from "./slot-draw.js";
import { clearFaults, showFaults } from "./slot-kit.js";
import { NEAR_END } from "./transcript.js";

export { drawResult } from "./slot-draw.js";

const GONE = { value: null, words: "No longer asked" };
const DISMISSED = { value: null, words: "You dismissed it" };
const OVER = {
  answered: ({ value }) => ({ value }),
  refused: ({ reason }) => (reason === "dismissed" ? DISMISSED : GONE),
};

export class Slots {
  /** `place(card)` puts a card into the conversation; `on.send({t: "resolve" | "reject", …})`
   *  takes what a person chose, `on.asked(title)` hears of a new question; `hint` is where open
   *  questions out of sight are pointed to. */
  constructor(hint, place, on) {
    this.hint = hint;
    this.place = place;
    this.on = on;
    this.cards = new Map(); // id -> {slot, root, asking, open, sent}
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
    // An answer that was under way came through, or its question is one of those.
    for (const [id, card] of this.cards) if (card.open) this.finish(id, card.sent ?? GONE);
  }

  show(slot) {
    const known = this.cards.get(slot.id);
    const same = known && looks(known.slot) === looks(slot);
    const answer = {
      resolve: (value) => this.choose(slot.id, { t: "resolve", value }, { value }),
      dismiss: () => this.choose(slot.id, { t: "reject", reason: "dismissed" }, DISMISSED),
    };
    const card = same ? known : { slot, ...drawOpen(slot, answer) };
    const asking = same ? known.asking : card.root;
    const free = [known?.root, document.body].includes(document.activeElement);
    const back = same && free ? known.held : null;
    if (known?.root.isConnected) {
      if (known.root !== asking) known.root.replaceWith(asking); // else it keeps its focus
    } else {
      this.place(asking);
      requestAnimationFrame(() => fromTop(asking)); // once the conversation has followed it
    }
    this.cards.set(slot.id, { ...card, root: asking, asking, open: true, sent: null, held: null });
    asking.removeAttribute("aria-busy");
    back?.focus();
    if (!same) this.on.asked(card.title);
    if (!isToRead(slot.renderer)) this.watch.observe(asking); // nobody waits for the others
  }

  /** `message` goes to the server; `outcome` is what the card shows when it was taken. */
  choose(id, message, outcome) {
    const card = this.cards.get(id);
    if (!card?.open || card.sent) return;
    clearFaults(card.root);
    card.root.setAttribute("aria-busy", "true");
    card.sent = outcome;
    this.on.send({ id, ...message });
  }

  /** The server did not take an answer. Whether the message was about a card of ours. */
  refuse({ code, id, message, field, problems }) {
    const card = this.cards.get(id);
    if (!card || (code !== "bad_answer" && code !== "unknown_slot")) return false;
    if (code === "unknown_slot") this.finish(id, GONE);
    else if (card.open) {
      card.sent = null;
      card.root.removeAttribute("aria-busy");
      showFaults(card.root, problems ?? [{ field, message }]);
    }
    return true;
  }

  remove(id) {
    const card = this.cards.get(id);
    if (card?.open) this.finish(id, card.sent ?? GONE);
  }

  /** A question that is over, as the server tells it to a page that was attached anew. */
  past(slot) {
    const outcome = OVER[slot.state]?.(slot) ?? GONE;
    const root = done(slot, outcome);
    this.cards.set(slot.id, { slot, root, asking: root, open: false, sent: null });
    this.place(root);
  }

  finish(id, outcome) {
    const card = this.cards.get(id);
    const held = card.root.contains(document.activeElement) ? document.activeElement : null;
    const root = done(card.slot, outcome);
    this.watch.unobserve(card.asking);
    this.unseen.delete(card.asking);
    card.root.replaceWith(root);
    this.cards.set(id, { ...card, root, open: false, sent: null, held });
    if (held) root.focus();
    this.point();
  }

  /** The first card that this tool call showed. */
  of(call) {
    return [...this.cards.values()].find(({ slot }) => slot.tool_call_id === call)?.root ?? null;
  }

  look(seen) {
    for (const { target, isIntersecting } of seen) {
      if (isIntersecting || !target.isConnected) this.unseen.delete(target);
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

/** What makes two slots the same card. */
const looks = ({ renderer, input, strategy }) => JSON.stringify([renderer, input, strategy]);

function done({ renderer, input }, outcome) {
  const silent = outcome === GONE && isToRead(renderer);
  return drawResult({ renderer, input, ...(silent ? {} : outcome) });
}

/** A card that is taller than the conversation's window is shown from its top, not from its end. */
function fromTop(root) {
  const room = root.parentElement;
  if (!room || root !== room.lastElementChild || root.offsetHeight <= room.clientHeight) return;
  // The window may have shrunk since: near the end is at the end.
  if (room.scrollHeight - room.scrollTop - room.clientHeight > NEAR_END) return; // reads above
  room.scrollTop += root.getBoundingClientRect().top - room.getBoundingClientRect().top;
  room.dispatchEvent(new Event("stay")); // at once: a resize in this frame would follow the end
}
