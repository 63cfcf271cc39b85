// The picture of the sound: scrolls with the call, holds still, reads a mark to mouse and keyboard.

import { clockTime, make } from "./dom.js";
import { drawGlyph, KINDS } from "./marks.js";
import { colour, onColours } from "./theme.js";
import { Track } from "./track.js";
import { WavePaint } from "./wavepaint.js";

const REACH = 12; // pixels around a mark that count as on it
const ROOM = 0.08; // of the picture right of now, for the words of the newest mark
const LABEL_EVERY_S = 1;
const FRAME_MS = 28; // between pictures: half of what a screen can is smooth, and half the work
const CALM_MS = 500; // the same when a person wants no motion

export class Waveforms {
  /** `view`: {canvas, tip, legend, pause, legendButton}; `now()`: call seconds. */
  constructor(view, now) {
    this.view = view;
    this.now = now;
    this.track = new Track();
    this.paint = new WavePaint(view.canvas);
    this.held = null; // call second at the right edge while it holds still
    this.picked = null;
    this.running = false;
    this.labelled = -LABEL_EVERY_S;
    this.drawnAt = 0;
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    new ResizeObserver(() => this.redraw()).observe(view.canvas);
    onColours(() => this.redraw());
    this.bind();
    legend(view.legend);
  }

  bind() {
    const { canvas, pause, legendButton, legend: list } = this.view;
    canvas.addEventListener("pointermove", (event) => this.point(event.offsetX));
    canvas.addEventListener("pointerdown", (event) => this.point(event.offsetX));
    canvas.addEventListener("pointerleave", () => this.pick(null));
    canvas.addEventListener("blur", () => this.pick(null));
    canvas.addEventListener("keydown", (event) => this.key(event));
    pause.addEventListener("click", () => this.hold(this.held === null));
    legendButton.addEventListener("click", () => {
      const open = list.classList.toggle("open");
      legendButton.setAttribute("aria-expanded", String(open));
    });
  }

  clear() {
    this.track.clear();
    this.hold(false);
    this.pick(null);
    this.redraw();
  }

  wave(side, piece) {
    this.track.wave(side, piece);
  }

  event(event) {
    this.track.event(event);
    if (!this.running) this.redraw();
  }

  /** Scroll while a call runs. */
  run(on) {
    if (on === this.running) return;
    this.running = on;
    if (on) requestAnimationFrame((time) => this.frame(time));
    else this.redraw();
  }

  frame(time) {
    if (!this.running) return;
    requestAnimationFrame((next) => this.frame(next));
    if (time - this.drawnAt < (this.calm.matches ? CALM_MS : FRAME_MS)) return;
    this.drawnAt = time;
    this.draw();
  }

  redraw() {
    this.paint.refresh();
    this.draw();
  }

  get end() {
    const now = this.running ? this.now() : this.track.last;
    return this.held ?? Math.max(now + ROOM * this.paint.seconds, this.paint.seconds);
  }

  draw() {
    const end = this.end;
    this.paint.draw(this.track, end, this.picked);
    if (this.picked) this.placeTip();
    if (Math.abs(end - this.labelled) < LABEL_EVERY_S) return;
    this.labelled = end;
    this.view.canvas.setAttribute("aria-label", this.summary(end));
  }

  summary(end) {
    const from = Math.max(0, end - this.paint.seconds);
    const last = this.track.marks.at(-1);
    const to = Math.min(end, this.track.last);
    const seen = `Sound of you and of the agent from ${clockTime(from)} to ${clockTime(to)}.`;
    return last ? `${seen} Last mark: ${words(last)}.` : `${seen} No marks yet.`;
  }

  hold(on) {
    this.held = on ? this.end : null;
    this.view.pause.setAttribute("aria-pressed", String(on));
    if (!this.running) this.redraw();
  }

  point(x) {
    let nearest = null;
    for (const spot of this.paint.spots) {
      const away = Math.abs(spot.x - x);
      if (away <= REACH && (!nearest || away < nearest.away)) nearest = { ...spot, away };
    }
    this.pick(nearest?.mark ?? null);
  }

  key(event) {
    const { marks } = this.track;
    const here = this.picked ? marks.indexOf(this.picked) : marks.length;
    const next = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: marks.length - 1 }[
      event.key
    ];
    if (next === undefined || !marks.length) return;
    event.preventDefault();
    this.pick(marks[Math.max(0, Math.min(marks.length - 1, next))]);
    this.show(this.picked.at);
  }

  /** Hold still with second `at` in the picture. */
  show(at) {
    const { seconds } = this.paint;
    const inside = at > this.end - seconds + 0.3 && at < this.end - 0.1;
    if (!inside) this.held = Math.max(seconds, at + seconds / 2);
    else this.held ??= this.end;
    this.view.pause.setAttribute("aria-pressed", "true");
    this.draw();
  }

  pick(mark) {
    if (mark === this.picked) return;
    this.picked = mark;
    this.view.tip.hidden = !mark;
    this.view.tip.textContent = mark ? words(mark) : "";
    this.draw();
  }

  placeTip() {
    const { tip, canvas } = this.view;
    const x = (this.picked.at - this.end + this.paint.seconds) * this.paint.scale;
    const left = Math.max(6, Math.min(canvas.clientWidth - tip.offsetWidth - 6, x + 10));
    tip.style.transform = `translate(${left}px, ${canvas.clientHeight / 2 - 16}px)`;
  }
}

function words({ says, at, detail }) {
  return `${says} at ${clockTime(at, true)}${detail ? `, ${detail}` : ""}`;
}

function legend(list) {
  const draw = () => {
    list.replaceChildren(
      ...Object.values(KINDS).map((kind) => make("li", "", sample(kind), kind.says)),
      make("li", "", hatched(), "Words that were not heard (length estimated)")
    );
  };
  draw();
  onColours(draw);
}

function sample({ glyph, colour: name }) {
  const { canvas, pen } = smallCanvas();
  pen.strokeStyle = pen.fillStyle = colour(name);
  drawGlyph(pen, glyph, 7, 7, 4.5);
  return canvas;
}

function hatched() {
  const { canvas, pen } = smallCanvas();
  pen.strokeStyle = colour("--stop");
  for (let at = -14; at < 14; at += 5) {
    pen.moveTo(at, 14);
    pen.lineTo(at + 14, 0);
  }
  pen.stroke();
  return canvas;
}

function smallCanvas() {
  const canvas = make("canvas", "");
  canvas.width = canvas.height = 28;
  canvas.setAttribute("aria-hidden", "true");
  const pen = canvas.getContext("2d");
  pen.scale(2, 2);
  return { canvas, pen };
}
