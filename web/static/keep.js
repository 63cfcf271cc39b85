// What a reload may not lose and the server does not tell again: what came over the line, for the
// details and the marks, bounded, in this tab's sessionStorage. It draws no conversation. A new
// call begins empty. Never throws: a browser may forbid storage.

const KEY = "voxglove.conversation";
const MOST = 500;
const MOST_CHARS = 400_000;
const SOON_MS = 400;
const KINDS = new Set([
  "utterance",
  "speech",
  "heard",
  "slot",
  "slot_removed",
  "metric",
  "event",
]);

export class Keep {
  constructor() {
    this.messages = [];
    this.call = null;
    window.addEventListener("pagehide", () => this.save());
  }

  /** What was kept of the call before the reload, oldest first. */
  load() {
    try {
      const kept = JSON.parse(sessionStorage.getItem(KEY));
      this.messages = Array.isArray(kept?.messages) ? kept.messages : [];
      this.call = kept?.call ?? null;
    } catch {
      this.messages = [];
    }
    return [...this.messages];
  }

  clear() {
    this.messages = [];
    this.call = null;
    this.save();
  }

  add(message) {
    if (!KINDS.has(message.t) || message.again) return;
    const last = this.messages.at(-1);
    const grows = message.t === "speech" && last?.t === "speech" && last.turnId === message.turnId;
    if (grows && message.text.startsWith(last.text)) this.messages.pop();
    this.messages.push(message);
    if (this.messages.length > MOST) this.messages.shift();
    this.timer ??= setTimeout(() => this.save(), SOON_MS);
  }

  save() {
    clearTimeout(this.timer);
    this.timer = undefined;
    try {
      let text = this.written();
      while (text.length > MOST_CHARS && this.messages.length > 1) {
        this.messages.splice(0, Math.ceil(this.messages.length / 4));
        text = this.written();
      }
      sessionStorage.setItem(KEY, text);
    } catch {
      // forbidden or full: the conversation is not kept over a reload
    }
  }

  written() {
    return JSON.stringify({ call: this.call, messages: this.messages });
  }
}
