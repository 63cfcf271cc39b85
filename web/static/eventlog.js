// What came over the line, newest last, bounded: entries for the inspector, filters, JSONL. Pure.

export const MOST = 4000;

/** Kind -> one line of words. */
const WORDS = {
  vad: ({ event, position }) => `${event}, dated ${(position / 16000).toFixed(2)} s`,
  turn: ({ event, turn, reason, hold_ms: hold, text }) =>
    `${turn ?? "–"} ${event}, ${reason}${hold == null ? "" : `, held ${hold} ms`}: ${text}`,
  response: ({ event, turn, text, heard }) => {
    const words = event === "cut" ? `, heard: ${heard ?? ""}` : text ? `: ${text}` : "";
    return `${turn ?? "–"} ${event}${words}`;
  },
  interruption: ({ event, reason }) => `${event}, ${reason}`,
  tool: ({ event, name, status }) => `${name} ${status ?? event}`,
  reconnected: ({ planned, restored, attempt, outage_ms: ms }) =>
    `${planned ? "moved" : `attempt ${attempt}`} after ${ms} ms, ` +
    `${restored ? "conversation kept" : "conversation told anew"}`,
  line: ({ state }) => state,
  gap: ({ samples }) => `${samples} samples of input never came`,
  metric: ({ name, value, total_ms: total }) =>
    `${name} ${total == null ? value : `${Math.round(total)} ms`}`,
  state: ({ state, muted }) => `${state}${muted && state !== "muted" ? ", muted" : ""}`,
  partial: ({ text }) => text,
  utterance: ({ turnId, text, source }) => `${turnId} (${source}): ${text}`,
  speech: ({ turnId, text }) => `${turnId ?? "–"}: ${text}`,
  heard: ({ turnId, heard, interrupted }) =>
    `${turnId ?? "–"}${interrupted ? " interrupted" : ""}: ${heard}`,
  slot: ({ id, renderer }) => `${id}, ${renderer}`,
  tasks: ({ tasks }) => tasks.map(({ status, content }) => `${status}: ${content}`).join(", "),
  inbox: ({ items }) => items.map(({ status, request }) => `${status}: ${request}`).join(", "),
  compaction: ({ event, status }) => status ?? event,
  timeline: ({ entries, earlier }) => `${entries.length} entries, ${earlier} earlier ones`,
  error: ({ code, message }) => `${code}: ${message}`,
  ready: ({ callId, resumed }) => `${callId}${resumed ? ", taken up again" : ""}`,
  bye: ({ reason }) => reason,
};

export class EventLog {
  constructor() {
    this.clear();
  }

  clear() {
    this.entries = [];
    this.dropped = 0; // older ones that had to make room
    this.count = 0;
    this.types = new Map(); // type -> how many of it are held
    this.lines = []; // the timeline's lines, as they came
  }

  /** `at`: call seconds of arrival, for messages that carry no time of their own. */
  add(message, at) {
    const line = message.t === "event" ? message.event : message;
    const type = message.t === "event" ? line.type : message.t;
    const own = message.t === "event" ? line.t : undefined;
    this.count += 1;
    const entry = {
      n: this.count,
      at: own ?? at,
      type,
      message,
      words: WORDS[type]?.(line) ?? brief(line),
    };
    this.entries.push(entry);
    this.types.set(type, (this.types.get(type) ?? 0) + 1);
    if (message.t === "event" && !message.again) this.lines.push(line);
    if (this.lines.length > 5 * MOST) this.lines.shift();
    if (this.entries.length > MOST) this.drop(this.entries.shift());
    return entry;
  }

  drop({ type }) {
    this.dropped += 1;
    const left = this.types.get(type) - 1;
    if (left) this.types.set(type, left);
    else this.types.delete(type);
  }

  /** Entries of `type` ("" for all) whose JSON holds `text`, whatever its case. */
  matching(type, text) {
    const wanted = text.trim().toLowerCase();
    return this.entries.filter((entry) => matches(entry, type, wanted));
  }

  timeline() {
    return jsonl(this.lines);
  }
}

export function matches(entry, type, wanted) {
  if (type && entry.type !== type) return false;
  if (!wanted) return true;
  entry.text ??= JSON.stringify(entry.message).toLowerCase();
  return entry.text.includes(wanted);
}

export function jsonl(objects) {
  return objects.map((one) => `${JSON.stringify(one)}\n`).join("");
}

function brief(line) {
  const { t, at, type, ...rest } = line;
  const words = JSON.stringify(rest);
  return words.length > 160 ? `${words.slice(0, 159)}…` : words;
}
