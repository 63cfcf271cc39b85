// Both sides' words as bubbles. Only ever writes text, never markup.

export class Transcript {
  constructor(root, empty) {
    this.root = root;
    this.empty = empty;
    this.partial = null;
    this.users = new Map();
    this.agents = new Map();
    this.tools = new Map();
    this.atEnd = true; // follow new words, unless a person scrolled up
    let before = 0;
    root.addEventListener("scroll", () => {
      const near = root.scrollHeight - root.scrollTop - root.clientHeight < 60;
      if (near) this.atEnd = true;
      else if (root.scrollTop < before) this.atEnd = false;
      before = root.scrollTop;
    });
    new ResizeObserver(() => this.scroll()).observe(root);
  }

  clear() {
    this.root.replaceChildren(this.empty);
    this.partial = null;
    for (const kept of [this.users, this.agents, this.tools]) kept.clear();
  }

  heardSoFar(text) {
    if (!text.trim()) return;
    this.partial ??= this.bubble("user");
    this.partial.root.classList.add("partial");
    this.partial.words.textContent = text;
    this.scroll();
  }

  utterance({ text, turnId }) {
    const bubble = this.users.get(turnId) ?? this.partial ?? this.bubble("user");
    this.partial = null;
    bubble.root.classList.remove("partial");
    bubble.words.textContent = text;
    if (turnId != null) this.users.set(turnId, bubble);
    this.scroll();
  }

  speech({ text, turnId, source }) {
    const bubble = this.agent(turnId);
    const before = bubble.words.textContent;
    bubble.words.textContent =
      before && !text.startsWith(before) ? `${before} ${text}`.replace(/ {2,}/g, " ") : text;
    if (source === "narration") this.agents.delete(turnId);
    this.scroll();
  }

  heard({ turnId, heard, unheard, interrupted }) {
    if (!heard.trim() && !this.agents.has(turnId)) return; // nothing of it was ever shown or said
    const bubble = this.agent(turnId);
    bubble.words.replaceChildren(heard);
    if (interrupted && unheard.trim()) {
      const struck = document.createElement("s");
      struck.textContent = unheard;
      struck.setAttribute("aria-label", `not said: ${unheard}`);
      bubble.words.append(struck);
      bubble.note.textContent = ["you interrupted", bubble.note.textContent].filter(Boolean).join(" · ");
    }
    if (turnId == null) this.agents.delete(turnId); // a greeting: the next one is another
    this.scroll();
  }

  turn({ event, turn, text }) {
    const bubble = this.users.get(turn);
    if (!bubble) {
      if (event === "dropped") this.dropPartial();
    } else if (event === "corrected") bubble.words.textContent = text;
    else if (event === "dropped") bubble.root.classList.add("dropped");
  }

  dropPartial() {
    this.partial?.root.remove();
    this.partial = null;
    if (!this.root.childElementCount) this.root.append(this.empty);
  }

  latency({ turn, total_ms: total, parts = [] }) {
    const bubble = this.agents.get(turn);
    if (!bubble || total == null) return;
    bubble.note.textContent = `answered in ${(total / 1000).toFixed(2)} s`;
    bubble.note.title = parts.map(({ name, ms }) => `${name} ${Math.round(ms)} ms`).join(" · ");
  }

  tool({ event, id, name, status }) {
    let chip = this.tools.get(id);
    if (!chip) {
      chip = document.createElement("div");
      chip.className = "did";
      this.tools.set(id, chip);
      this.add(chip);
    }
    const words = name.replaceAll("_", " ");
    const failed = event === "result" && status !== "success";
    chip.textContent = event === "started" ? `${words} …` : `${words} ${failed ? "✗" : "✓"}`;
    chip.classList.toggle("error", failed);
  }

  agent(turnId) {
    let bubble = this.agents.get(turnId);
    if (!bubble) {
      bubble = this.bubble("agent");
      this.agents.set(turnId, bubble);
    }
    return bubble;
  }

  bubble(side) {
    const root = document.createElement("div");
    root.className = `said ${side}`;
    const who = document.createElement("span");
    who.className = "hidden";
    who.textContent = side === "user" ? "You: " : "Agent: ";
    const words = document.createElement("div");
    words.className = "words";
    const note = document.createElement("div");
    note.className = "note";
    root.append(who, words, note);
    this.add(root);
    return { root, words, note };
  }

  add(element) {
    this.empty.remove();
    this.root.append(element);
    this.scroll();
  }

  scroll() {
    if (this.atEnd) this.root.scrollTop = this.root.scrollHeight;
  }
}
