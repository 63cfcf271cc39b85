// Microphone to 20 ms frames of 16 kHz PCM16LE. Posts {pcm: ArrayBuffer, level: 0..1}.

import { Resampler } from "./resample.js";

const RATE = 16000;
const FRAME = 320;

class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.resampler = new Resampler(sampleRate, RATE);
    this.frame = new Int16Array(FRAME);
    this.filled = 0;
    this.power = 0;
  }

  process(inputs) {
    const channels = inputs[0];
    if (!channels.length) return true;
    for (const value of this.resampler.feed(mono(channels))) {
      const limited = Math.max(-1, Math.min(1, value));
      this.frame[this.filled] = Math.round(limited * 32767);
      this.power += limited * limited;
      this.filled += 1;
      if (this.filled === FRAME) this.emit();
    }
    return true;
  }

  emit() {
    const pcm = this.frame.buffer;
    this.port.postMessage({ pcm, level: Math.sqrt(this.power / FRAME) }, [pcm]);
    this.frame = new Int16Array(FRAME);
    this.filled = 0;
    this.power = 0;
  }
}

function mono(channels) {
  if (channels.length === 1) return channels[0];
  return channels[0].map((value, index) => (value + channels[1][index]) / 2);
}

registerProcessor("capture", Capture);
