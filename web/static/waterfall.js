// Where the time of each answer went: parts that sum to the total, each with the setting that owns
// it, and the medians over the call.

import { make } from "./dom.js";

export const PARTS = {
  vad_wait: "silence noticed",
  turn: "end of turn decided",
  stt: "words recognised",
  agent: "first words of the answer",
  tts: "first sound of the answer",
  output: "sound on its way",
};
const MOST = 200;
const TOLERANCE_MS = 1;
const OPEN = 2; // the newest turns show their rows

export class Waterfall {
  constructor(root) {
    this.root = root;
    this.clear();
  }

  clear() {
    this.turns = []; // {turn, total_ms, parts, words}
    this.words = new Map(); // turn -> what the caller said
    this.cards = new Map();
    this.summary = make("div", "medians");
    this.list = make(
      "div",
      "falls",
      make("p", "empty", "Each answer shows here how long you waited for it, and on what.")
    );
    this.root.replaceChildren(this.summary, this.list);
  }

  utterance({ turnId, text }) {
    this.words.set(turnId, text);
    if (this.words.size > MOST) this.words.delete(this.words.keys().next().value);
  }

  latency(metric) {
    if (metric.total_ms == null || !metric.parts?.length) return;
    if (!this.turns.length) this.list.replaceChildren();
    this.turns.push(metric);
    const card = this.card(metric);
    this.cards.set(metric.turn, card);
    this.list.prepend(card);
    [...this.list.children].forEach((one, n) => n === OPEN && (one.open = false));
    if (this.turns.length > MOST) {
      this.cards.delete(this.turns.shift().turn);
      this.list.lastElementChild.remove();
    }
    this.medians();
  }

  /** Bring the card of `turn` into sight. */
  show(turn) {
    const card = this.cards.get(turn);
    if (!card) return;
    card.open = true;
    card.scrollIntoView({ block: "nearest" });
    card.querySelector("summary").focus();
  }

  medians() {
    const names = Object.keys(PARTS).filter((name) => this.turns.some((one) => part(one, name)));
    const values = names.map((name) => ({
      name,
      ms: median(this.turns.map((one) => part(one, name)?.ms ?? 0)),
    }));
    const total = median(this.turns.map((one) => one.total_ms));
    const count = this.turns.length === 1 ? "1 answer" : `${this.turns.length} answers`;
    const list = make("dl", "median-list");
    for (const { name, ms } of values)
      list.append(
        make("dt", "", swatch(name), label(name)),
        make("dd", "", `${Math.round(ms)} ms`)
      );
    this.summary.replaceChildren(
      make(
        "p",
        "median-total",
        make("strong", "", `${Math.round(total)} ms`),
        ` median of ${count}`
      ),
      bar(
        values,
        values.reduce((sum, { ms }) => sum + ms, 0)
      ),
      list
    );
  }

  card(metric) {
    const { turn, total_ms: total, parts } = metric;
    const sum = parts.reduce((all, { ms }) => all + ms, 0);
    const said = this.words.get(turn);
    const title = make(
      "span",
      "fall-title",
      make("b", "", turn == null ? "Greeting" : `Turn ${turn}`),
      said ? ` ${said}` : ""
    );
    const head = make(
      "span",
      "fall-head",
      title,
      make("span", "fall-total", `${Math.round(total)} ms`)
    );
    const card = make(
      "details",
      "fall",
      make("summary", "", head, bar(parts, Math.max(sum, total)))
    );
    card.open = true;
    card.dataset.turn = turn;
    card.append(rows(parts, Math.max(sum, total)));
    const off = sum - total;
    if (Math.abs(off) > TOLERANCE_MS) {
      const far = `${Math.abs(Math.round(off))} ms ${off > 0 ? "more" : "less"} than the total`;
      card.append(make("p", "mismatch", `⚠ The parts sum to ${Math.round(sum)} ms, ${far}.`));
    }
    return card;
  }
}

function bar(parts, total) {
  const made = make("span", "bar-parts");
  made.setAttribute("aria-hidden", "true");
  for (const { name, ms } of parts) {
    const piece = make(
      "span",
      `piece part-${name}`,
      ms / total > 0.13 ? String(Math.round(ms)) : ""
    );
    piece.style.flexGrow = String(Math.max(0, ms));
    piece.title = `${label(name)} ${Math.round(ms)} ms`;
    made.append(piece);
  }
  return made;
}

/** A table whose bars begin where the one above ends. */
function rows(parts, total) {
  const head = make(
    "tr",
    "",
    ...["Part", "Wait", "ms", "Setting"].map((words) => cell("th", words))
  );
  const body = make("tbody", "");
  let before = 0;
  for (const { name, ms, setting } of parts) {
    const step = make("span", `step part-${name}`);
    step.style.marginLeft = `${(100 * before) / total}%`;
    step.style.width = `${Math.max(1, (100 * ms) / total)}%`;
    const wait = make("td", "wait", step);
    wait.setAttribute("aria-hidden", "true");
    const called = cell("th", label(name), "row");
    called.title = PARTS[name] ?? "";
    body.append(
      make(
        "tr",
        "",
        called,
        wait,
        make("td", "ms", String(Math.round(ms))),
        make("td", "", make("code", "", setting))
      )
    );
    before += ms;
  }
  const table = make("table", "rows", make("thead", "hidden", head), body);
  const sum = make(
    "tr",
    "sum",
    cell("th", "sum", "row"),
    make("td", "wait"),
    make("td", "ms", String(Math.round(before))),
    make("td", "", "")
  );
  table.append(make("tfoot", "", sum));
  return table;
}

function cell(tag, words, scope = "col") {
  const made = make(tag, "", words);
  made.scope = scope;
  return made;
}

function swatch(name) {
  const made = make("span", `swatch part-${name}`);
  made.setAttribute("aria-hidden", "true");
  return made;
}

function label(name) {
  return name.replaceAll("_", " ");
}

function part({ parts }, name) {
  return parts.find((one) => one.name === name);
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
