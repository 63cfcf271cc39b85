// The conversation in the order it happened: words of both sides as bubbles, and between them the
// cards that others place (tool calls, questions). Only ever writes text, never markup.

import { button, make } from "./dom.js";

export const NEAR_END = 60; // pixels from the end that still count as following
const MOST = 600; // items kept on the page

export class Transcript {
  /** `onLatency(turn)`: a person asked where an answer's time went. */
  constructor(root, empty, onLatency) {
    this.root = root;
    this.empty = empty;
    this.onLatency = onLatency;
    this.atEnd = true; // follow new words, unless a person scrolled up
    this.clear();
    let before = 0;
    root.addEventListener("scroll", () => {
      const near = root.scrollHeight - root.scrollTop - root.clientHeight < NEAR_END;
      if (near) this.atEnd = true;
      else if (root.scrollTop < before) this.atEnd = false;
      before = root.scrollTop;
    });
    root.addEventListener("stay", () => {
      this.atEnd = false; // somebody put what is to be read in place
      before = root.scrollTop;
    });
    new ResizeObserver(() => this.scroll()).observe(root);
  }

  clear() {
    this.root.replaceChildren(this.empty);
    this.partial = null;
    this.users = new Map(); // turn -> bubble
    this.agents = new Map(); // turn -> {parts: [{bubble, from}], text, heardTo}
    this.late = new Map(); // turn -> the time of an answer whose words come after its sound
    this.speaking = null; // the agent's last turn that was written
    this.atEnd = true;
  }

  heardSoFar(text) {
    if (!text.trim()) return;
    if (!this.partial) {
      this.partial = this.bubble("user");
      this.partial.root.classList.add("partial");
    }
    this.partial.words.textContent = text;
    this.scroll();
  }

  utterance({ text, turnId, source }) {
    const bubble = this.users.get(turnId) ?? this.partial ?? this.bubble("user");
    this.partial = null;
    settled(bubble);
    bubble.root.classList.remove("partial");
    bubble.words.textContent = text;
    if (source === "typed") note(bubble, "typed");
    if (turnId != null) this.users.set(turnId, bubble);
    this.scroll();
  }

  /** A picture the caller showed; `url` is a data: address, null where the page has it no more. */
  picture(url, name) {
    const bubble = this.bubble("user");
    if (url) {
      const image = make("img", "");
      image.src = url;
      image.alt = `Picture you showed: ${name}`;
      image.onload = () => this.scroll();
      bubble.words.append(image);
    } else bubble.words.textContent = name ? `[picture: ${name}]` : "[picture]";
    note(bubble, "shown to the agent");
  }

  speech({ text, turnId, source }) {
    const agent = this.agent(turnId);
    const { text: before } = agent;
    const goesOn = !before || text.startsWith(before);
    agent.text = goesOn ? text : `${before} ${text}`.replace(/ {2,}/g, " ");
    this.write(agent);
    if (source === "narration") this.forget(turnId);
  }

  heard({ turnId, heard, unheard, interrupted }) {
    if (!heard.trim() && !this.agents.has(turnId)) return; // nothing of it was ever shown or said
    const agent = this.agent(turnId);
    const struck = interrupted && unheard.trim();
    agent.text = struck ? heard + unheard : heard;
    agent.heardTo = struck ? heard.length : null;
    for (const part of agent.parts) if (part.bubble) settled(part.bubble);
    this.write(agent);
    if (struck) note(agent.parts.at(-1).bubble, "you interrupted");
    if (turnId == null) this.forget(turnId); // a greeting: the next one is another
  }

  /** A card of another view came in between: what the agent says now stands below it. */
  breakHere() {
    const { speaking } = this;
    if (!speaking?.text) return;
    const last = speaking.parts.at(-1);
    if (speaking.text.length > last.from)
      speaking.parts.push({ bubble: null, from: speaking.text.length });
  }

  /** A tool was called after the first `chars` of an answer whose words do not sound yet: they
   *  will stand above what is placed now, and above `before`. */
  reserve({ turnId, chars }, before = null) {
    const agent = this.agent(turnId);
    const last = agent.parts.at(-1);
    if (chars <= Math.max(agent.text.length, last.from)) return;
    if (!last.bubble) {
      last.bubble = this.bubble("agent", before);
      last.bubble.root.hidden = true;
    }
    agent.parts.push({ bubble: null, from: chars });
  }

  write(agent) {
    const { parts, text, heardTo } = agent;
    parts.forEach((part, n) => {
      const to = Math.min(parts[n + 1]?.from ?? text.length, text.length);
      if (!part.bubble && to <= part.from) return;
      part.bubble ??= this.bubble("agent");
      part.bubble.root.hidden = to <= part.from;
      const border = heardTo === null ? to : Math.max(part.from, Math.min(to, heardTo));
      const said = text.slice(part.from, border);
      part.bubble.words.replaceChildren(n ? said.trimStart() : said);
      if (border < to) part.bubble.words.append(unsaid(text.slice(border, to)));
    });
    this.speaking = agent;
    if (this.late.has(agent.turn)) this.latency(this.late.get(agent.turn));
    this.scroll();
  }

  turn({ event, turn, reason, text }) {
    const bubble = this.users.get(turn);
    if (event === "committed" && reason !== "typed" && this.partial) {
      this.users.set(turn, this.partial); // its words may come later: answers stand below it
      this.partial = null;
      return;
    }
    if (!bubble) {
      if (event === "dropped") this.dropPartial();
    } else if (event === "corrected") {
      bubble.words.textContent = text;
      note(bubble, "corrected");
    } else if (event === "dropped") {
      bubble.root.classList.add("dropped");
      note(bubble, "not a turn after all");
    }
  }

  dropPartial() {
    this.partial?.root.remove();
    this.partial = null;
    if (!this.root.childElementCount) this.root.append(this.empty);
  }

  latency(message) {
    const { turn, total_ms: total, parts = [] } = message;
    const bubble = this.agents.get(turn)?.parts[0].bubble;
    if (total == null) return;
    if (!bubble) {
      this.late.set(turn, message);
      return;
    }
    this.late.delete(turn);
    const made = button(`answered in ${(total / 1000).toFixed(2)} s`, "", () =>
      this.onLatency(turn)
    );
    made.title = parts.map(({ name, ms }) => `${name} ${Math.round(ms)} ms`).join(" · ");
    bubble.note.prepend(make("span", "", made));
    this.scroll();
  }

  /** Whether screen readers read final words. Off at first: the agent speaks aloud already. */
  readAloud(on) {
    this.root.setAttribute("aria-live", on ? "polite" : "off");
  }

  /** A line across the conversation. */
  rule(words) {
    this.add(make("p", "rule", words));
  }

  agent(turnId) {
    let agent = this.agents.get(turnId);
    if (!agent) {
      agent = { turn: turnId, parts: [{ bubble: null, from: 0 }], text: "", heardTo: null };
      this.agents.set(turnId, agent);
    }
    return agent;
  }

  forget(turnId) {
    this.agents.delete(turnId);
    this.speaking = null;
  }

  bubble(side, before = null) {
    const who = make("span", "hidden", side === "user" ? "You: " : "Agent: ");
    const words = make("div", "words");
    const notes = make("div", "note");
    const root = make("div", `said ${side}`, who, words, notes);
    root.setAttribute("aria-live", "off"); // words that grow would be read again and again
    this.add(root, before);
    return { root, words, note: notes };
  }

  /** Place `element` above `before`, else at the end, above words that are still growing. */
  add(element, before = null) {
    this.empty.remove();
    if (before?.parentNode === this.root) before.before(element);
    else if (this.partial && !element.classList.contains("user")) this.partial.root.before(element);
    else this.root.append(element);
    if (this.root.childElementCount > MOST) this.root.firstElementChild.remove();
    this.scroll();
  }

  /** Before everything is drawn anew: what brings a person back to where they read. */
  keepPlace() {
    const { atEnd } = this;
    const { scrollTop } = this.root;
    return () => {
      this.atEnd = atEnd;
      if (!atEnd) this.root.scrollTop = scrollTop;
      this.scroll();
    };
  }

  scroll() {
    if (this.atEnd) this.root.scrollTop = this.root.scrollHeight;
  }
}

function note(bubble, words) {
  const known = [...bubble.note.children].some((child) => child.textContent === words);
  if (!known) bubble.note.append(make("span", "", words));
}

/** Its words are final: a screen reader may read what is written next. */
function settled(bubble) {
  bubble.root.removeAttribute("aria-live");
}

function unsaid(text) {
  const struck = make("s", "", text);
  struck.setAttribute("aria-label", `not said: ${text}`);
  return struck;
}
