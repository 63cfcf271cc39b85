// 16 kHz PCM16LE to the speaker: a ring of 30 s that knows exactly which sample was played.
// In: {pcm}, {clear: epoch}, {pause: bool}, {reset: epoch}. Out: {report: {epoch, pos, empty},
// level} every 100 ms of sound and when it runs empty, and {cleared: {epoch, pos}}.

import { Resampler } from "./resample.js";

const RATE = 16000;
const RING = 30 * RATE;
const START = 0.04 * RATE; // gathered before sound starts, against jitter
const REPORT = 0.1 * RATE;
const FADE = 64; // samples over which a cut sound dies, so that it does not click

class Player extends AudioWorkletProcessor {
  constructor() {
    super();
    this.ring = new Int16Array(RING);
    this.reset(0);
    this.port.onmessage = ({ data }) => this.take(data);
  }

  reset(epoch) {
    this.epoch = epoch;
    this.pos = 0; // samples played since ready
    this.read = 0;
    this.held = 0;
    this.waited = 0;
    this.paused = false;
    this.running = false;
    this.unreported = 0;
    this.power = 0;
    this.last = 0;
    this.fading = 0;
    this.output = new Resampler(RATE, sampleRate);
    this.ready = new Float32Array(0);
  }

  take(data) {
    if (data.pcm) this.put(new Int16Array(data.pcm));
    else if ("clear" in data) this.clear(data.clear);
    else if ("pause" in data) this.pause(data.pause);
    else if ("reset" in data) this.reset(data.reset);
  }

  put(samples) {
    const taken = Math.min(samples.length, RING - this.held);
    for (let index = 0; index < taken; index += 1) {
      this.ring[(this.read + this.held + index) % RING] = samples[index];
    }
    this.held += taken;
  }

  clear(epoch) {
    this.stop();
    this.held = 0;
    this.paused = false;
    this.port.postMessage({ cleared: { epoch, pos: this.pos } });
    this.epoch = epoch + 1;
  }

  pause(on) {
    if (on) this.stop();
    this.paused = on;
  }

  stop() {
    if (this.running) this.fading = FADE;
    this.running = false;
    this.waited = 0;
  }

  process(_, outputs) {
    const out = outputs[0][0];
    let filled = 0;
    while (filled < out.length) {
      if (!this.ready.length) this.ready = this.output.feed(this.next(128));
      const piece = this.ready.subarray(0, out.length - filled);
      out.set(piece, filled);
      filled += piece.length;
      this.ready = this.ready.subarray(piece.length);
    }
    for (const channel of outputs[0].slice(1)) channel.set(out);
    return true;
  }

  /** The next `count` samples at 16 kHz: sound, a dying sample, or silence. */
  next(count) {
    const samples = new Float32Array(count);
    this.start(count);
    const playing = this.running ? Math.min(count, this.held) : 0;
    for (let index = 0; index < playing; index += 1) {
      samples[index] = this.ring[(this.read + index) % RING] / 32768;
      this.power += samples[index] * samples[index];
    }
    if (playing) this.last = samples[playing - 1];
    this.read = (this.read + playing) % RING;
    this.held -= playing;
    this.pos += playing;
    this.unreported += playing;
    if (this.running && playing < count) this.stop();
    for (let index = playing; index < count && this.fading; index += 1) {
      this.fading -= 1;
      samples[index] = (this.last * this.fading) / FADE;
    }
    const empty = playing > 0 && this.held === 0;
    if (this.unreported >= REPORT || empty) this.report(empty);
    return samples;
  }

  /** Sound starts when enough is gathered, or when no more came for as long. */
  start(count) {
    if (this.running || this.paused || !this.held) return;
    this.waited += count;
    this.running = this.held >= START || this.waited >= START;
  }

  report(empty) {
    const level = Math.sqrt(this.power / Math.max(1, this.unreported));
    this.port.postMessage({ report: { epoch: this.epoch, pos: this.pos }, empty, level });
    this.unreported = 0;
    this.power = 0;
  }
}

registerProcessor("player", Player);
