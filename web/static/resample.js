// Streaming sample-rate conversion by a windowed sinc, exact in its rational ratio: it neither
// drifts nor cares how the input is cut. Used inside both worklets; knows nothing of audio nodes.

const ZERO_CROSSINGS = 16;

/** Greatest common divisor. */
function gcd(a, b) {
  return b ? gcd(b, a % b) : a;
}

export class Resampler {
  /** `from` and `to` are whole sample rates in Hz. */
  constructor(from, to) {
    const divisor = gcd(from, to);
    this.step = from / divisor; // input advances `step` / `phases` samples per output sample
    this.phases = to / divisor;
    this.same = from === to;
    if (this.same) return;
    const cutoff = Math.min(1, to / from) * 0.92;
    this.half = Math.ceil(ZERO_CROSSINGS / cutoff);
    this.kernels = Array.from({ length: this.phases }, (_, phase) => this.kernel(phase, cutoff));
    this.history = new Float32Array(2 * this.half);
    this.position = 0; // of the next output, in 1/phases input samples from the history's start
  }

  kernel(phase, cutoff) {
    const taps = new Float32Array(2 * this.half);
    let sum = 0;
    for (let tap = 0; tap < taps.length; tap += 1) {
      const x = tap - this.half + 1 - phase / this.phases;
      const window = 0.5 + 0.5 * Math.cos((Math.PI * x) / this.half);
      const sinc = x === 0 ? 1 : Math.sin(Math.PI * cutoff * x) / (Math.PI * cutoff * x);
      taps[tap] = Math.abs(x) < this.half ? sinc * window : 0;
      sum += taps[tap];
    }
    return taps.map((tap) => tap / sum);
  }

  /** The output that `input` (Float32Array) completes. */
  feed(input) {
    if (this.same) return input;
    const buffer = new Float32Array(this.history.length + input.length);
    buffer.set(this.history);
    buffer.set(input, this.history.length);
    const width = 2 * this.half;
    const out = [];
    for (;;) {
      const first = Math.floor(this.position / this.phases);
      if (first + width > buffer.length) break;
      const kernel = this.kernels[this.position % this.phases];
      let sum = 0;
      for (let tap = 0; tap < width; tap += 1) sum += buffer[first + tap] * kernel[tap];
      out.push(sum);
      this.position += this.step;
    }
    const used = Math.min(Math.floor(this.position / this.phases), buffer.length);
    this.history = buffer.slice(used);
    this.position -= used * this.phases;
    return Float32Array.from(out);
  }
}
