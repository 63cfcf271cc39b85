// Draws a Track: two lanes on one axis of call seconds, voiced and unheard spans, marks with words.
// Knows no event and no element but the canvas it was given.

import { drawGlyph, KINDS } from "./marks.js";
import { colour } from "./theme.js";
import { PER_SECOND } from "./track.js";

const TOP = 19; // band of the turn marks
const FOOT = 15; // band of the seconds
const FONT = "11px system-ui, sans-serif";

export class WavePaint {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.colours = {};
    this.size = { width: 0, height: 0 };
    this.spots = []; // {x, mark}: where marks were drawn last
  }

  /** Theme or size changed. */
  refresh() {
    const names = [
      "--ink",
      "--soft",
      "--edge",
      "--card",
      "--sunk",
      "--you",
      "--agent",
      "--stop",
      "--good",
      "--part-turn",
      "--accent",
    ];
    this.colours = Object.fromEntries(names.map((name) => [name, colour(name)]));
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const ratio = window.devicePixelRatio || 1;
    this.size = { width, height };
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  get seconds() {
    return this.size.width / this.scale;
  }

  get scale() {
    return this.size.width < 500 ? 44 : 64; // pixels per second
  }

  /** `end`: call second at the right edge. `picked`: the mark to point out, or null. */
  draw(track, end, picked) {
    const { pen, size } = this;
    if (!size.width) return;
    const from = end - this.seconds;
    pen.clearRect(0, 0, size.width, size.height);
    pen.font = FONT;
    const half = (size.height - TOP - FOOT) / 2;
    const lanes = { in: TOP + half / 2, out: TOP + half * 1.5 };
    const x = (at) => (at - from) * this.scale;
    this.spans(track.voiced, x, lanes.in - half / 2, half, "--you", false, end);
    this.spans(track.unheard, x, lanes.out - half / 2 + 1, half, "--stop", true, end);
    this.axis(x, from, end, lanes);
    this.lane(track, "in", from, end, lanes.in, half / 2 - 6, this.colours["--you"]);
    this.lane(track, "out", from, end, lanes.out, half / 2 - 6, this.colours["--agent"]);
    this.names(lanes, half);
    this.marks(
      track.marks,
      x,
      from,
      end,
      { top: TOP / 2 + 1, in: lanes.in - half / 2 + 8, out: lanes.out + half / 2 - 8 },
      picked
    );
  }

  axis(x, from, end, lanes) {
    const { pen, size, colours } = this;
    pen.fillStyle = colours["--soft"];
    pen.strokeStyle = colours["--edge"];
    pen.lineWidth = 1;
    pen.textAlign = "center";
    pen.textBaseline = "alphabetic";
    const step = this.scale < 60 ? 2 : 1;
    for (let at = Math.max(0, Math.ceil(from / step) * step); at <= end; at += step) {
      const place = Math.round(x(at)) + 0.5;
      line(pen, place, TOP, place, size.height - FOOT);
      const words = `${Math.floor(at / 60)}:${String(at % 60).padStart(2, "0")}`;
      if (place > 14 && place < size.width - 14) pen.fillText(words, place, size.height - 4);
    }
    for (const lane of Object.values(lanes))
      line(pen, 0, Math.round(lane) + 0.5, size.width, Math.round(lane) + 0.5);
  }

  spans(spans, x, top, height, name, hatched, end) {
    const { pen, size, colours } = this;
    for (let n = spans.length - 1; n >= 0; n -= 1) {
      const left = Math.max(0, x(spans[n].from));
      const right = Math.min(size.width, x(spans[n].to ?? end));
      if (right < 0) break;
      if (right <= left) continue;
      pen.save();
      pen.beginPath();
      pen.rect(left, top, right - left, height);
      pen.clip();
      pen.globalAlpha = hatched ? 0.5 : 0.12;
      pen.fillStyle = pen.strokeStyle = colours[name];
      if (hatched) hatch(pen, left, right, top, height);
      else pen.fillRect(left, top, right - left, height);
      pen.restore();
    }
  }

  lane(track, side, from, end, middle, reach, paint) {
    const { pen } = this;
    const width = Math.max(1, this.scale / PER_SECOND);
    pen.fillStyle = paint;
    pen.beginPath();
    const first = Math.max(0, Math.ceil(from * PER_SECOND));
    for (let index = first; index <= end * PER_SECOND; index += 1) {
      const found = track.at(side, index);
      if (!found) continue;
      const high = loud(found[1]) * reach;
      const low = loud(found[0]) * reach;
      const left = (index / PER_SECOND - from) * this.scale;
      pen.rect(left, middle - high, width, Math.max(1, high - low));
    }
    pen.fill();
  }

  names(lanes, half) {
    const { pen, colours } = this;
    pen.textAlign = "left";
    pen.font = "600 11px system-ui, sans-serif";
    for (const [lane, words, name] of [
      ["in", "You", "--you"],
      ["out", "Agent", "--agent"],
    ]) {
      const y = lanes[lane] + (lane === "in" ? half / 2 - 7 : 14 - half / 2); // clear of the marks
      pen.fillStyle = colours["--card"];
      pen.globalAlpha = 0.85;
      pen.fillRect(6, y - 11, pen.measureText(words).width + 10, 15);
      pen.globalAlpha = 1;
      pen.fillStyle = colours[name];
      pen.fillText(words, 11, y);
    }
    pen.font = FONT;
  }

  marks(marks, x, from, end, rows, picked) {
    this.spots = [];
    const inRow = { top: [], in: [], out: [] };
    for (let n = marks.length - 1; n >= 0 && marks[n].at > from - 3; n -= 1) {
      if (marks[n].at > end + 0.5) continue;
      const spot = { x: x(marks[n].at), mark: marks[n] };
      this.spots.push(spot);
      inRow[KINDS[spot.mark.kind].side].unshift(spot);
    }
    this.pen.textAlign = "left";
    for (const [row, spots] of Object.entries(inRow)) this.row(spots, rows[row], picked);
  }

  /** Words stand right of their glyph, else left of it, else nowhere: the tip has them. */
  row(spots, y, picked) {
    let taken = -Infinity;
    spots.forEach(({ x, mark }, n) => {
      const width = this.pen.measureText(mark.word).width;
      const next = spots[n + 1]?.x ?? Infinity;
      this.glyph(mark, x, y, mark === picked);
      if (x + 14 + width < next - 6) this.word(mark.word, x + 8, y, width);
      else if (x - 10 - width > taken) this.word(mark.word, x - 8 - width, y, width);
      taken = x + (x + 14 + width < next - 6 ? 14 + width : 8);
    });
  }

  glyph({ kind }, x, y, picked) {
    const { pen, colours } = this;
    const { side, glyph, colour: name } = KINDS[kind];
    pen.strokeStyle = colours[name];
    if (side !== "in" || picked) {
      pen.globalAlpha = picked ? 1 : 0.6;
      pen.lineWidth = picked ? 2 : 1;
      pen.setLineDash(picked ? [] : [3, 3]);
      line(pen, x, TOP, x, this.size.height - FOOT);
      pen.setLineDash([]);
      pen.globalAlpha = 1;
    }
    pen.fillStyle = colours["--card"];
    pen.fillRect(x - 5, y - 6, 10, 12);
    pen.fillStyle = colours[name];
    drawGlyph(pen, glyph, x, y);
  }

  word(word, x, y, width) {
    const { pen, colours } = this;
    pen.fillStyle = colours["--card"];
    pen.globalAlpha = 0.8;
    pen.fillRect(x - 2, y - 7, width + 4, 14);
    pen.globalAlpha = 1;
    pen.fillStyle = colours["--ink"];
    pen.textBaseline = "middle";
    pen.fillText(word, x, y + 0.5);
    pen.textBaseline = "alphabetic";
  }
}

/** Quiet speech has to be seen too: the root of the amplitude. */
function loud(value) {
  return Math.sign(value) * Math.min(1, Math.sqrt(Math.abs(value)) * 1.15);
}

function line(pen, x1, y1, x2, y2) {
  pen.beginPath();
  pen.moveTo(x1, y1);
  pen.lineTo(x2, y2);
  pen.stroke();
}

function hatch(pen, left, right, top, height) {
  pen.lineWidth = 1.2;
  const start = Math.floor((left - height) / 7) * 7;
  for (let at = start; at < right; at += 7) line(pen, at, top + height, at + height, top);
}
