// Timeline lines to marks in the picture of the sound: a table, and the glyph of each kind. Pure.

const RATE = 16000;

/** Kind -> side it stands on, glyph, word on the canvas, words of the legend, colour. */
export const KINDS = {
  "vad-start": { side: "in", glyph: "open", word: "voice?", says: "Voice begins", colour: "--you" },
  "vad-confirmed": {
    side: "in",
    glyph: "dot",
    word: "voice",
    says: "Voice confirmed",
    colour: "--you",
  },
  "vad-misfire": {
    side: "in",
    glyph: "ring",
    word: "no voice",
    says: "No voice after all",
    colour: "--soft",
  },
  "vad-end": { side: "in", glyph: "close", word: "end", says: "Voice ends", colour: "--you" },
  turn: { side: "top", glyph: "diamond", word: "turn", says: "End of turn", colour: "--part-turn" },
  "turn-other": {
    side: "top",
    glyph: "hollow",
    word: "turn",
    says: "Turn dropped, corrected, resumed",
    colour: "--part-turn",
  },
  paused: {
    side: "out",
    glyph: "pause",
    word: "paused",
    says: "Barge-in: agent paused",
    colour: "--stop",
  },
  resumed: {
    side: "out",
    glyph: "play",
    word: "resumed",
    says: "False alarm: agent resumed",
    colour: "--good",
  },
  cut: { side: "out", glyph: "cross", word: "cut", says: "Barge-in: answer cut", colour: "--stop" },
  answer: {
    side: "out",
    glyph: "note",
    word: "answer",
    says: "Answer is first heard",
    colour: "--agent",
  },
};

/** The mark of a timeline line, or null: {kind, at (s), word, says, detail}. */
export function toMark(event) {
  const make = MAKERS[event.type];
  return make ? make(event) : null;
}

const MAKERS = {
  vad: ({ event, position, t }) => {
    const kind = `vad-${event}`;
    if (!KINDS[kind]) return null;
    const at = (event === "confirmed" ? t : position / RATE) || t;
    const told = t - position / RATE;
    return mark(
      kind,
      at,
      KINDS[kind].word,
      told > 0.02 ? `noticed after ${Math.round(told * 1000)} ms` : ""
    );
  },
  turn: ({ event, turn, reason, hold_ms: hold, p, t, text }) => {
    const kind = event === "committed" ? "turn" : "turn-other";
    const held = hold == null ? null : `held ${Math.round(hold)} ms`;
    const sure = p == null ? null : `p ${p.toFixed(2)}`;
    const called = turn == null ? "turn" : `turn ${turn}`;
    const word = [`${called}${event === "committed" ? "" : ` ${event}`}`, held, sure];
    const detail = [reason, held, sure, text ? `“${short(text)}”` : null];
    const made = mark(kind, t, word.filter(Boolean).join(" · "), detail.filter(Boolean).join(", "));
    made.says = `T${called.slice(1)} ${event}`;
    return made;
  },
  interruption: ({ event, reason, t }) => {
    if (!KINDS[event]) return null;
    const why = event === "paused" ? "" : `because of ${reason.replaceAll("_", " ")}`;
    return mark(event, t, KINDS[event].word, why);
  },
  response: ({ event, turn, t }) =>
    event === "audio" ? mark("answer", t, turn == null ? "greeting" : `answer ${turn}`, "") : null,
};

function mark(kind, at, word, detail) {
  return { kind, at, word, says: KINDS[kind].says, detail };
}

function short(text) {
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}

/** A glyph about 9 px wide with its middle at x, y. Each differs in shape, not only in colour. */
export function drawGlyph(pen, glyph, x, y, size = 4.5) {
  pen.lineWidth = 1.6;
  pen.beginPath();
  SHAPES[glyph](pen, x, y, size);
}

const SHAPES = {
  open: (pen, x, y, s) => {
    pen.moveTo(x + s * 0.6, y - s);
    pen.lineTo(x - s * 0.4, y - s);
    pen.lineTo(x - s * 0.4, y + s);
    pen.lineTo(x + s * 0.6, y + s);
    pen.stroke();
  },
  close: (pen, x, y, s) => {
    pen.moveTo(x - s * 0.6, y - s);
    pen.lineTo(x + s * 0.4, y - s);
    pen.lineTo(x + s * 0.4, y + s);
    pen.lineTo(x - s * 0.6, y + s);
    pen.stroke();
  },
  dot: (pen, x, y, s) => {
    pen.arc(x, y, s * 0.75, 0, 7);
    pen.fill();
  },
  ring: (pen, x, y, s) => {
    pen.arc(x, y, s * 0.75, 0, 7);
    pen.stroke();
  },
  diamond: (pen, x, y, s) => {
    diamond(pen, x, y, s);
    pen.fill();
  },
  hollow: (pen, x, y, s) => {
    diamond(pen, x, y, s);
    pen.stroke();
  },
  pause: (pen, x, y, s) => {
    pen.rect(x - s * 0.8, y - s, s * 0.6, s * 2);
    pen.rect(x + s * 0.2, y - s, s * 0.6, s * 2);
    pen.fill();
  },
  play: (pen, x, y, s) => {
    pen.moveTo(x - s * 0.7, y - s);
    pen.lineTo(x + s, y);
    pen.lineTo(x - s * 0.7, y + s);
    pen.fill();
  },
  cross: (pen, x, y, s) => {
    pen.moveTo(x - s, y - s);
    pen.lineTo(x + s, y + s);
    pen.moveTo(x + s, y - s);
    pen.lineTo(x - s, y + s);
    pen.stroke();
  },
  note: (pen, x, y, s) => {
    pen.moveTo(x, y - s);
    pen.lineTo(x + s * 0.9, y + s * 0.8);
    pen.lineTo(x - s * 0.9, y + s * 0.8);
    pen.closePath();
    pen.fill();
  },
};

function diamond(pen, x, y, s) {
  pen.moveTo(x, y - s);
  pen.lineTo(x + s, y);
  pen.lineTo(x, y + s);
  pen.lineTo(x - s, y);
  pen.closePath();
}
