// The agent's display stack: questions with buttons. Unknown renderers are shown generically.

export class Slots {
  /** `answer({t: "resolve" | "reject", …})` sends what a person chose. */
  constructor(root, answer) {
    this.root = root;
    this.answer = answer;
    this.shown = new Map();
  }

  clear() {
    this.root.replaceChildren();
    this.shown.clear();
  }

  show(slot) {
    this.shown.get(slot.id)?.remove();
    const card = document.createElement("article");
    card.className = "slot";
    const draw = slot.renderer === "permission_request" ? permission : generic;
    draw(card, slot.input ?? {}, (message) => this.answer({ id: slot.id, ...message }));
    this.shown.set(slot.id, card);
    this.root.append(card);
  }

  remove(id) {
    this.shown.get(id)?.remove();
    this.shown.delete(id);
  }
}

function permission(card, input, answer) {
  card.append(text("h2", `May the agent use ${String(input.toolName ?? "a tool").replaceAll("_", " ")}?`));
  if (input.toolInput && typeof input.toolInput === "object") card.append(table(input.toolInput));
  card.append(
    choices([
      button("Allow", true, () => answer({ t: "resolve", value: true })),
      button("Deny", false, () => answer({ t: "resolve", value: false })),
    ])
  );
}

const KNOWN = new Set(["title", "question", "message", "text", "options", "choices", "renderer"]);

function generic(card, input, answer) {
  const props = typeof input === "object" && input !== null ? input : { text: String(input) };
  const title = props.title ?? props.question;
  if (title) card.append(text("h2", title));
  const body = props.message ?? props.text;
  if (body) card.append(text("p", body));
  const rest = Object.entries(props).filter(([key]) => !KNOWN.has(key));
  if (rest.length) card.append(table(Object.fromEntries(rest)));
  const options = props.options ?? props.choices ?? [];
  const buttons = options.map((option, index) => {
    const isObject = typeof option === "object" && option !== null;
    const label = isObject ? option.label ?? option.name ?? option.id : option;
    const value = isObject ? option.value ?? option.id ?? label : option;
    return button(label, index === 0, () => answer({ t: "resolve", value }));
  });
  if (!buttons.length) buttons.push(button("OK", true, () => answer({ t: "resolve", value: true })));
  buttons.push(button("Dismiss", false, () => answer({ t: "reject", reason: "dismissed" })));
  card.append(choices(buttons));
}

function table(values) {
  const list = document.createElement("dl");
  for (const [key, value] of Object.entries(values)) {
    const shown = typeof value === "object" ? JSON.stringify(value) : value;
    list.append(text("dt", key.replaceAll("_", " ")), text("dd", shown));
  }
  return list;
}

function choices(buttons) {
  const row = document.createElement("div");
  row.className = "choices";
  row.append(...buttons);
  return row;
}

function button(label, main, press) {
  const made = text("button", label);
  made.type = "button";
  made.className = main ? "choice main" : "choice";
  made.addEventListener("click", press, { once: true });
  return made;
}

function text(tag, words) {
  const made = document.createElement(tag);
  made.textContent = String(words);
  return made;
}
