// A bad network for developers, on the WebSocket line: drops and delays frames of sound, never
// messages. (On WebRTC the server does the same to real packets.) Knows no line and no page.

const MAX_WAITING = 200; // frames a way; beyond it the oldest go out at once

export class Impairment {
  constructor() {
    this.set({});
    this.ways = { up: new Way(), down: new Way() };
  }

  /** loss 0..1, burst: mean frames lost in a row, jitter_ms: added delay, down: both ways. */
  set({ loss = 0, burst = 1, jitter_ms = 0, down = false }) {
    this.values = { loss, burst: Math.max(1, burst), jitter_ms, down };
  }

  /** A frame of the microphone: lost, or given to `deliver` in its order. */
  up(pcm, deliver) {
    if (!this.ways.up.loses(this.values)) this.ways.up.pass(pcm, this.values.jitter_ms, deliver);
  }

  /** A message of the server's sound. What is lost becomes silence: positions have to hold. */
  down(pcm, deliver) {
    if (!this.values.down) return this.ways.down.pass(pcm, 0, deliver);
    const kept = this.ways.down.loses(this.values) ? new ArrayBuffer(pcm.byteLength) : pcm;
    this.ways.down.pass(kept, this.values.jitter_ms, deliver);
  }

  /** Forget what waits of the server's sound: it was cleared. */
  flush() {
    this.ways.down.flush();
  }
}

/** One direction: a two-state channel, and a queue that keeps order. */
class Way {
  constructor() {
    this.losing = false;
    this.due = 0;
    this.waiting = new Map(); // timer -> what to deliver
  }

  loses({ loss, burst }) {
    if (loss <= 0) this.losing = false;
    else if (loss >= 1) this.losing = true;
    else if (this.losing) this.losing = Math.random() >= 1 / burst;
    else this.losing = Math.random() < loss / (burst * (1 - loss));
    return this.losing;
  }

  pass(pcm, jitterMs, deliver) {
    const now = performance.now();
    this.due = Math.max(this.due, now + Math.random() * jitterMs);
    if (this.due <= now && !this.waiting.size) return deliver(pcm);
    const timer = setTimeout(() => this.release(timer), this.due - now);
    this.waiting.set(timer, () => deliver(pcm));
    if (this.waiting.size > MAX_WAITING) this.release(this.waiting.keys().next().value);
  }

  /** Timers of one due time may swap: all that is older goes first. */
  release(timer) {
    if (!this.waiting.has(timer)) return;
    for (const [older, deliver] of this.waiting) {
      clearTimeout(older);
      this.waiting.delete(older);
      deliver();
      if (older === timer) return;
    }
  }

  flush() {
    for (const timer of this.waiting.keys()) clearTimeout(timer);
    this.waiting.clear();
    this.due = 0;
  }
}
