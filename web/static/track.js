// What the picture of the sound shows: envelopes of both sides, marks, voiced and unheard spans,
// all in call seconds. Pure data, bounded; waveforms.js draws it.

import { toMark } from "./marks.js";

export const PER_SECOND = 50;
const KEPT_S = 1200;
const SIZE = KEPT_S * PER_SECOND;
const MOST_MARKS = 4000;
const MOST_UNHEARD_S = 6;
const MOST_SKIPPED = 2; // places of 20 ms
const SOUNDS = 0.02; // of full scale, from lowest to highest

export class Track {
  constructor() {
    this.clear();
  }

  clear() {
    this.sides = { in: envelope(), out: envelope() };
    this.marks = [];
    this.voiced = []; // {from, to | null}
    this.unheard = []; // {from, to}: estimated, from the text that was not heard
    this.answers = new Map(); // turn -> second of its first sound
    this.pausedAt = null;
    this.last = 0;
  }

  /** A clock that is estimated skips a place now and then: small holes are filled. */
  wave(side, { at, min, max }) {
    const index = Math.round(at * PER_SECOND);
    const here = this.sides[side];
    if (index < 0 || !here) return;
    const skipped = index - here.newest - 1;
    const first = skipped > 0 && skipped <= MOST_SKIPPED ? here.newest + 1 : index;
    for (let each = first; each <= index; each += 1) {
      const place = each % SIZE;
      here.index[place] = each;
      here.low[place] = min;
      here.high[place] = max;
    }
    here.newest = index;
    this.last = Math.max(this.last, at);
  }

  /** The second after which `side` was silent until `to`; `from` when it did not sound since. */
  silentSince(side, from, to) {
    for (let index = Math.floor(to * PER_SECOND); index > from * PER_SECOND; index -= 1) {
      const found = this.at(side, index);
      if (found && found[1] - found[0] > SOUNDS) return (index + 1) / PER_SECOND;
    }
    return from;
  }

  /** [low, high] of the 20 ms at `index`, or null where nothing is known. */
  at(side, index) {
    const here = this.sides[side];
    const place = index % SIZE;
    return here.index[place] === index ? [here.low[place], here.high[place]] : null;
  }

  event(event) {
    this.last = Math.max(this.last, event.t ?? 0);
    if (event.type === "vad") this.voice(event);
    if (event.type === "response") this.answer(event);
    if (event.type === "interruption") this.pause(event);
    const mark = toMark(event);
    if (!mark) return null;
    let place = this.marks.length;
    while (place > 0 && this.marks[place - 1].at > mark.at) place -= 1; // dated back
    this.marks.splice(place, 0, mark);
    if (this.marks.length > MOST_MARKS) this.marks.shift();
    return mark;
  }

  voice({ event, position, t }) {
    const open = this.voiced.at(-1);
    if (event === "start") this.voiced.push({ from: position / 16000, to: null });
    else if (open && open.to === null && event === "end") open.to = position / 16000;
    else if (open && open.to === null && event === "misfire") open.to = t;
    if (this.voiced.length > MOST_MARKS) this.voiced.shift();
  }

  pause({ event, t }) {
    if (event === "paused") this.pausedAt = t;
    if (event === "resumed") this.pausedAt = null;
  }

  answer({ event, turn, t, text, heard }) {
    if (event === "audio") {
      this.pausedAt = null;
      const open = this.unheard.at(-1);
      if (open && open.to > t) open.to = t; // the next answer hides what is left of the old one
      this.answers.set(turn, t);
    }
    if (event !== "cut" || !text || heard == null) return;
    const began = this.answers.get(turn);
    if (began === undefined || text.length <= heard.length) return;
    const from = this.pausedAt === null ? t : this.silentSince("out", this.pausedAt, t);
    const perChar = heard.length > 8 ? (from - began) / heard.length : 0.06;
    const length = Math.min(MOST_UNHEARD_S, perChar * (text.length - heard.length));
    this.unheard.push({ from, to: from + length });
    this.pausedAt = null;
    if (this.unheard.length > MOST_MARKS) this.unheard.shift();
  }
}

function envelope() {
  return {
    newest: -1,
    index: new Int32Array(SIZE).fill(-1),
    low: new Float32Array(SIZE),
    high: new Float32Array(SIZE),
  };
}
