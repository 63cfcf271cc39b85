// Tool calls as chips in the conversation: name, what became of it, how long; inside, the input.

import { make, pairs } from "./dom.js";

const SIGNS = { started: "…", success: "✓", error: "✗", aborted: "■" };
const WORDS = { started: "running", success: "done", error: "failed", aborted: "stopped" };

export class ToolCalls {
  /** `place(element, id)` puts a new chip where the conversation stands, or above what its tool
   *  has shown already. */
  constructor(place) {
    this.place = place;
    this.chips = new Map();
  }

  clear() {
    this.chips.clear();
  }

  tool({ event, id, name, input, status, duration_ms: duration }) {
    const chip = this.chips.get(id) ?? this.make(id, called(name, input));
    const state = event === "started" ? "started" : (status ?? "success");
    chip.root.className = `did ${state}`;
    chip.sign.textContent = SIGNS[state] ?? "?";
    chip.what.textContent =
      (WORDS[state] ?? state) + (duration == null ? "" : ` in ${spent(duration)}`);
    if (input !== undefined && input !== null) chip.inside.replaceChildren(shown(input));
  }

  make(id, name) {
    const sign = make("span", "sign");
    sign.setAttribute("aria-hidden", "true");
    const what = make("span", "what");
    const title = make("span", "name", name);
    const inside = make("div", "inside", make("p", "", "No input."));
    const root = make("details", "did", make("summary", "", sign, title, what), inside);
    const chip = { root, sign, what, inside };
    this.chips.set(id, chip);
    this.place(root, id);
    return chip;
  }
}

/** A sub-agent's run goes by the sub-agent's name; the framework's own tools without its prefix. */
function called(name, input) {
  if (name === "glove_invoke_subagent" && input?.name) return `agent: ${input.name}`;
  return String(name).replace(/^glove_/, "").replaceAll("_", " ");
}

function shown(input) {
  if (typeof input !== "object") return make("p", "", String(input));
  return Object.keys(input).length ? pairs(input) : make("p", "", "No input.");
}

function spent(ms) {
  if (ms < 1) return "under 1 ms";
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
