// Call seconds, estimated: when things happen here, on the server's input clock. Messages and
// frames come late by a little that varies; the earliest of the last while tells most.

const BUCKETS = 6;
const SERVER_S = 30; // messages are few
const FRAMES_S = 3; // the clock of the sound card may stop, or begin again
const SLEW_S = 0.002; // per frame of 20 ms: waves never jump for a small correction
const JUMP_S = 0.25;

/** The least of what was observed in the last `window` seconds. */
class Least {
  constructor(window) {
    this.bucket = window / BUCKETS;
    this.buckets = []; // [{number, least}]
  }

  observe(at, value) {
    const number = Math.floor(at / this.bucket);
    const last = this.buckets.at(-1);
    if (last?.number === number) last.least = Math.min(last.least, value);
    else this.buckets.push({ number, least: value });
    this.buckets = this.buckets.filter((bucket) => bucket.number > number - BUCKETS);
  }

  get value() {
    return this.buckets.length ? Math.min(...this.buckets.map(({ least }) => least)) : null;
  }
}

const seconds = () => performance.now() / 1000;

export class CallClock {
  constructor() {
    this.server = new Least(SERVER_S); // page seconds at call second 0
    this.frames = new Least(FRAMES_S); // page seconds at sound second 0
    this.guess = null;
    this.last = null;
  }

  /** The line is up. `began`: epoch seconds of call second 0 as this page knew it before. */
  begin(began = null) {
    if (this.guess !== null) return;
    this.guess = began === null ? seconds() : seconds() - (Date.now() / 1000 - began);
  }

  /** The server said something at call second `t`. */
  observe(t) {
    if (typeof t === "number") this.server.observe(seconds(), seconds() - t);
  }

  get offset() {
    return this.server.value ?? this.guess ?? seconds();
  }

  /** Epoch seconds of call second 0. */
  get began() {
    return Date.now() / 1000 - this.now();
  }

  now() {
    return seconds() - this.offset;
  }

  /** Call seconds at which a frame of 20 ms began. `sound`: its end on the clock of the sound card;
   *  `arrived`: when it came here, in page seconds. */
  place(sound, arrived) {
    this.frames.observe(arrived, arrived - sound);
    const wanted = sound + this.frames.value - this.offset - 0.02;
    const next = this.last === null ? wanted : this.last + 0.02;
    const off = wanted - next;
    const slewed = next + Math.max(-SLEW_S, Math.min(SLEW_S, off));
    this.last = Math.abs(off) > JUMP_S ? wanted : slewed;
    return this.last;
  }
}
