// How loud each side is: a bar for eyes, now and then a number for screen readers.

const ALOUD_EVERY = 12; // levels

export class Meters {
  /** `bars`: {in, out}. */
  constructor(bars) {
    this.bars = bars;
    this.count = 0;
  }

  show(side, level) {
    this.count += 1;
    this.set(side, level, this.count % ALOUD_EVERY < 2);
  }

  rest() {
    for (const side of Object.keys(this.bars)) this.set(side, 0, true);
  }

  set(side, level, aloud) {
    const bar = this.bars[side];
    const shown = Math.min(1, Math.sqrt(level) * 1.8);
    bar.style.setProperty("--fill", shown.toFixed(3));
    if (aloud) bar.setAttribute("aria-valuenow", String(Math.round(shown * 100)));
  }
}
