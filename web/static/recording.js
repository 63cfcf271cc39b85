// The last twenty minutes of a call as stereo: left the microphone, right what was played. Both
// come from one audio clock, 20 ms at a time, so they cannot drift apart.

const RATE = 16000;
const BLOCK = 2 * RATE; // one second, interleaved
const BLOCKS = 20 * 60;
const HEADER = 44;

export class Tape {
  constructor() {
    this.blocks = [];
    this.filled = BLOCK; // values of the last block
  }

  /** The same stretch of both sides, as Int16Array. */
  put(left, right) {
    for (let index = 0; index < left.length; index += 1) {
      if (this.filled === BLOCK) this.turn();
      const block = this.blocks.at(-1);
      block[this.filled] = left[index];
      block[this.filled + 1] = right[index];
      this.filled += 2;
    }
  }

  turn() {
    this.blocks.push(new Int16Array(BLOCK));
    if (this.blocks.length > BLOCKS) this.blocks.shift();
    this.filled = 0;
  }

  get seconds() {
    return this.blocks.length ? this.blocks.length - 1 + this.filled / BLOCK : 0;
  }

  /** A WAV file. */
  blob() {
    const whole = this.blocks.slice(0, -1);
    const rest = this.blocks.at(-1)?.slice(0, this.filled) ?? new Int16Array(0);
    const bytes = 2 * (whole.length * BLOCK + rest.length);
    return new Blob([header(bytes), ...whole, rest], { type: "audio/wav" });
  }
}

function header(bytes) {
  const view = new DataView(new ArrayBuffer(HEADER));
  const text = (at, word) => {
    [...word].forEach((letter, index) => view.setUint8(at + index, letter.charCodeAt(0)));
  };
  text(0, "RIFF");
  view.setUint32(4, HEADER - 8 + bytes, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true); // PCM
  view.setUint16(22, 2, true);
  view.setUint32(24, RATE, true);
  view.setUint32(28, RATE * 4, true);
  view.setUint16(32, 4, true);
  view.setUint16(34, 16, true);
  text(36, "data");
  view.setUint32(40, bytes, true);
  return view.buffer;
}
