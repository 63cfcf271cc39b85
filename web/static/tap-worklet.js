// Both sides of the call on one clock. Input 0 is the microphone, input 1 what is played; out come,
// for each 20 ms, {seconds (of its end), mic, out, levels: {in, out}}: PCM16 at 16 kHz, and min,
// max and rms of each.

import { Resampler } from "./resample.js";

const RATE = 16000;
const FRAME = 320;
const SILENCE = new Float32Array(128);

class Side {
  constructor() {
    this.resampler = new Resampler(sampleRate, RATE);
    this.waiting = new Float32Array(0);
  }

  feed(channels) {
    const fresh = this.resampler.feed(channels?.length ? mono(channels) : SILENCE);
    const all = new Float32Array(this.waiting.length + fresh.length);
    all.set(this.waiting);
    all.set(fresh, this.waiting.length);
    this.waiting = all;
  }

  /** The next frame as PCM, with its level. */
  take() {
    const pcm = new Int16Array(FRAME);
    let [min, max, power] = [1, -1, 0];
    for (let index = 0; index < FRAME; index += 1) {
      const value = Math.max(-1, Math.min(1, this.waiting[index]));
      pcm[index] = Math.round(value * 32767);
      min = Math.min(min, value);
      max = Math.max(max, value);
      power += value * value;
    }
    this.waiting = this.waiting.slice(FRAME);
    return { pcm, level: { min, max, rms: Math.sqrt(power / FRAME) } };
  }
}

class Tap extends AudioWorkletProcessor {
  constructor() {
    super();
    this.mic = new Side();
    this.out = new Side();
  }

  process(inputs) {
    this.mic.feed(inputs[0]);
    this.out.feed(inputs[1]);
    while (this.mic.waiting.length >= FRAME) {
      const now = (currentFrame + SILENCE.length) / sampleRate;
      const seconds = now - (this.mic.waiting.length - FRAME) / RATE;
      const mic = this.mic.take();
      const out = this.out.take();
      this.port.postMessage(
        { seconds, mic: mic.pcm, out: out.pcm, levels: { in: mic.level, out: out.level } },
        [mic.pcm.buffer, out.pcm.buffer]
      );
    }
    return true;
  }
}

function mono(channels) {
  if (channels.length === 1) return channels[0];
  return channels[0].map((value, index) => (value + channels[1][index]) / 2);
}

registerProcessor("tap", Tap);
