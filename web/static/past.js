// The conversation as the server tells it whenever a line is attached: what was drawn before gives
// way, and each entry is drawn by the view that draws it live. So nothing stands twice, and a page
// that comes anew sees everything.

import { drawResult } from "./slot-draw.js";

const MOST_PICTURES = 20;
const attached = ({ name }) => name !== "camera"; // its frames are no bubbles

export class Past {
  constructor({ transcript, tools, slots, place }) {
    Object.assign(this, { transcript, tools, slots, place });
    this.clear();
  }

  clear() {
    this.shown = []; // pictures that this page sent: the server tells only that there were some
  }

  /** A picture was shown to the agent here. */
  picture(url, name) {
    this.shown = [...this.shown, { url, name }].slice(-MOST_PICTURES);
    this.transcript.picture(url, name);
  }

  draw({ entries, earlier }) {
    const { transcript } = this;
    const held = document.activeElement;
    const back = transcript.keepPlace();
    transcript.clear();
    this.tools.clear();
    if (earlier) transcript.rule("What was said before this is not shown");
    const answers = group(entries);
    const told = entries.flatMap(({ images = [] }) => images.filter(attached));
    const others = Array(Math.max(0, told.length - this.shown.length)).fill({});
    this.pictures = [...others, ...this.shown];
    for (const entry of entries) DRAW[entry.kind]?.(this, entry, answers.get(entry));
    for (const { url, name } of this.pictures) transcript.picture(url, name); // no turn yet
    back();
    if (held !== document.activeElement && held?.isConnected) held.focus();
  }

  user({ id, turn, text, original, images = [], source }) {
    const turnId = turn ?? id;
    for (const { url = null, name } of this.pictures.splice(0, images.filter(attached).length))
      this.transcript.picture(url, name);
    this.transcript.utterance({ turnId, text, source });
    if (original) this.transcript.turn({ event: "corrected", turn: turnId, text });
  }

  agentText(answer) {
    if (!answer) return; // nothing of it was heard
    const { turnId, upTo, last, heard } = answer;
    this.transcript.speech({ turnId, text: upTo });
    if (last && heard) this.transcript.heard({ turnId, ...heard });
  }

  aside({ text, turn = null }) {
    this.transcript.speech({ turnId: turn, text, source: "narration" });
  }

  tool({ id, name, input, status, duration_ms, renderData }) {
    this.tools.tool({ event: "started", id, name, input });
    if (status !== "running") this.tools.tool({ event: "result", id, name, status, duration_ms });
    if (renderData?.renderer) this.place(drawResult(renderData));
  }

  slot(entry) {
    if (entry.state === "open") this.slots.show(entry);
    else this.slots.past(entry);
  }
}

const DRAW = {
  user: (past, entry) => past.user(entry),
  agent_text: (past, entry, answer) => past.agentText(answer),
  aside: (past, entry) => past.aside(entry),
  tool: (past, entry) => past.tool(entry),
  slot: (past, entry) => past.slot(entry),
};

/** Entry -> how far the words of its answer go with it, and what of the answer was heard. Several
 *  messages of one turn are one answer, told as one text. */
function group(entries) {
  const answers = new Map(); // key -> entries
  for (const entry of entries) {
    if (entry.kind !== "agent_text") continue;
    const own = entry.live ? null : entry.id; // the agent's own words of no turn
    const key = entry.turn ?? own;
    answers.set(key, [...(answers.get(key) ?? []), entry]);
  }
  const found = new Map();
  for (const [turnId, parts] of answers) {
    const heard = parts.some(({ live }) => live) ? null : heardOf(parts);
    if (heard && !heard.heard.trim() && !parts.some(({ sounded }) => sounded)) continue;
    parts.forEach((entry, n) => {
      const upTo = joined(parts.slice(0, n + 1).map(({ text }) => text));
      found.set(entry, { turnId, upTo, last: n === parts.length - 1, heard });
    });
  }
  return found;
}

/** As `heard` says it: words that were never spoken count as heard. */
function heardOf(parts) {
  const cut = parts.findIndex(({ unheard }) => unheard);
  const [before, from] = cut < 0 ? [parts, []] : [parts.slice(0, cut), parts.slice(cut)];
  const said = before.map(({ heard, text }) => heard ?? text);
  const [first, ...rest] = from;
  const whole = joined(said);
  const spaced = !whole || /\s$/.test(whole) ? whole : `${whole} `;
  return {
    heard: first ? spaced + (first.heard ?? "") : whole,
    unheard: first ? joined([first.unheard, ...rest.map(({ text }) => text)]) : "",
    interrupted: parts.some(({ interrupted }) => interrupted),
  };
}

function joined(texts) {
  return texts
    .filter(Boolean)
    .reduce((all, text) => (!all || /\s$/.test(all) ? all + text : `${all} ${text}`), "");
}
