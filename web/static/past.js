// The conversation as the server tells it whenever a line is attached: what was drawn before gives
// way, and each entry is drawn by the view that draws it live. So nothing stands twice, and a page
// that comes anew sees everything.

import { drawResult } from "./slot-draw.js";

export class Past {
  constructor({ transcript, tools, slots, place }) {
    Object.assign(this, { transcript, tools, slots, place });
  }

  draw({ entries, earlier }) {
    const { transcript } = this;
    const held = document.activeElement;
    const back = transcript.keepPlace();
    transcript.clear();
    this.tools.clear();
    if (earlier) transcript.rule("What was said before this is not shown");
    const answers = group(entries);
    for (const entry of entries) this[entry.kind]?.(entry, answers.get(entry));
    back();
    if (held !== document.activeElement && held?.isConnected) held.focus();
  }

  user({ id, turn, text, original, images = [], source }) {
    const turnId = turn ?? id;
    for (const { name } of images) this.transcript.picture(null, name);
    this.transcript.utterance({ turnId, text, source });
    if (original) this.transcript.turn({ event: "corrected", turn: turnId, text });
  }

  agent_text(entry, answer) {
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
