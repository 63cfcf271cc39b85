// Questions that are answered in writing: collect_form, text_input. Each export is a renderer as
// slot-draw.js describes them. The server checks what is written; here only what a browser alone
// can see is caught: text in a field for numbers or dates never becomes a value.

import { make } from "./dom.js";
import {
  body,
  choices,
  dismissButton,
  facts,
  field,
  form,
  heading,
  showFaults,
  submitButton,
} from "./slot-kit.js";

const FILLS = { email: "email", tel: "tel" };
const UNREADABLE = {
  number: "Write a number.",
  date: "Write a whole date.",
};

export const collect = {
  title: ({ title }) => title,
  ask(card, { title, description, fields, submit_label: send }, answer) {
    const head = heading(card, title);
    body(card, description);
    const controls = fields.map((each) => [each, control(each)]);
    const value = () =>
      Object.fromEntries(controls.map(([{ name }, input]) => [name, valueOf(input)]));
    const guarded = {
      resolve(filled) {
        const wrong = controls
          .filter(([, input]) => input.validity?.badInput)
          .map(([{ name, type }]) => ({ field: name, message: UNREADABLE[type] }));
        if (wrong.length) showFaults(card, wrong);
        else answer.resolve(filled);
      },
    };
    const root = form(card, head, value, guarded);
    root.append(
      ...controls.map(([each, input]) => field(each, input)),
      choices(submitButton(send ?? "Send"), dismissButton(answer))
    );
  },
  said(card, { fields }, value) {
    card.append(facts(fields.map((each) => [each.label, words(each, value[each.name])])));
    return "You sent this";
  },
};

export const text = {
  title: ({ question }) => question,
  ask(card, { question, placeholder, multiline, max_length: most }, answer) {
    const head = heading(card, question);
    const input = make(multiline ? "textarea" : "input", "");
    if (multiline) input.rows = 3;
    else input.type = "text";
    if (most) input.maxLength = most;
    input.placeholder = placeholder ?? "";
    const root = form(card, head, () => input.value, answer);
    const row = field({ name: "value", label: question }, input);
    row.querySelector("label").className = "hidden"; // the heading says it already
    root.append(row, choices(submitButton("Send"), dismissButton(answer)));
  },
  said: (card, props, value) => `You wrote: ${value}`,
};

function control({ type, placeholder, options, min, max, default: filled }) {
  const input = make(type === "textarea" || type === "select" ? type : "input", "");
  if (type === "select") {
    const entries = options.map(({ label, value }) => entry(label, value));
    input.append(entry("Choose …", ""), ...entries);
  } else if (type === "textarea") input.rows = 3;
  else input.type = type;
  if (type === "number") input.step = "any";
  if (type === "number" || type === "date") Object.assign(input, { min: min ?? "", max: max ?? "" });
  if (FILLS[type]) input.autocomplete = FILLS[type];
  if (placeholder && "placeholder" in input) input.placeholder = placeholder;
  if (type === "checkbox") input.checked = filled === true;
  else if (filled !== null && filled !== undefined) input.value = String(filled);
  return input;
}

function entry(label, value) {
  const one = make("option", "", label);
  one.value = value;
  return one;
}

function valueOf(input) {
  if (input.type === "checkbox") return input.checked;
  if (input.value === "") return null;
  return input.type === "number" ? Number(input.value) : input.value;
}

function words({ type, options }, value) {
  if (type === "checkbox") return value ? "yes" : "no";
  if (value === null || value === undefined || value === "") return "–";
  if (type === "select") return options.find((one) => one.value === value)?.label ?? value;
  return value;
}
