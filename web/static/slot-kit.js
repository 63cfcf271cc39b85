// Pieces of a slot's card: headings, labelled fields with their fault below, buttons, facts.
// They know no slot and send nothing.

import { button, make } from "./dom.js";

let made = 0;
const fresh = (what) => `slot-${what}-${(made += 1)}`;

export const capital = (words) => words.charAt(0).toUpperCase() + words.slice(1);

/** The card's title; whatever asks below it is labelled by it. */
export function heading(card, words) {
  const title = make("h2", "", capital(String(words)));
  title.id = fresh("title");
  card.append(title);
  return title;
}

/** A paragraph, or nothing for empty words. */
export function body(card, words) {
  if (words) card.append(make("p", "slot-text", String(words)));
}

/** A description list of [label, value], labels as they are. */
export function facts(entries) {
  const list = make("dl", "pairs");
  for (const [label, value] of entries)
    list.append(make("dt", "", String(label)), make("dd", "", String(value)));
  return list;
}

export function choices(...buttons) {
  return make("div", "choices", ...buttons);
}

/** Goes last in each question's buttons. */
export function dismissButton(answer) {
  return button("Dismiss", "choice quiet", () => answer.dismiss());
}

/** A form whose submit gives `value()`; the browser's own bubbles stay away, faults are ours. */
export function form(card, title, value, answer) {
  const root = make("form", "slot-form");
  root.noValidate = true;
  root.setAttribute("aria-labelledby", title.id);
  root.addEventListener("submit", (event) => {
    event.preventDefault();
    answer.resolve(value());
  });
  card.append(root);
  return root;
}

export function submitButton(label) {
  const one = make("button", "choice main", label);
  one.type = "submit";
  return one;
}

/** A label, its control, help and a place for its fault. `name` is the path in the answer. */
export function field({ name, label, help, required }, control) {
  control.id = fresh("field");
  control.required = Boolean(required);
  const said = make("label", "", label);
  said.htmlFor = control.id;
  if (required) {
    const must = make("span", "slot-must", " required");
    must.setAttribute("aria-hidden", "true"); // the control says it
    said.append(must);
  }
  const root = make("div", "slot-field", said, control);
  if (control.type === "checkbox") {
    root.classList.add("slot-tick");
    root.prepend(control);
  }
  if (help) {
    const hint = make("p", "slot-help", help);
    hint.id = fresh("help");
    control.setAttribute("aria-describedby", hint.id);
    root.append(hint);
  }
  root.dataset.field = name;
  control.addEventListener("input", () => heal(root));
  return root;
}

/** Show each problem at its field, others at the card's end; the first is where the focus goes. */
export function showFaults(card, problems) {
  clearFaults(card);
  const loose = [];
  const fields = [...card.querySelectorAll("[data-field]")];
  for (const { field: path, message } of problems) {
    const at = fields.find(({ dataset }) => dataset.field === path);
    if (at) mark(at, message);
    else loose.push(path === "value" || path === "" ? message : `${path}: ${message}`);
  }
  if (loose.length) {
    const said = make("p", "slot-fault", loose.join(" "));
    said.setAttribute("role", "alert");
    card.querySelector(".choices")?.before(said);
  }
  const first = card.querySelector("[aria-invalid]");
  (first ?? card.querySelector(".choices button"))?.focus();
}

export function clearFaults(card) {
  for (const one of card.querySelectorAll("[data-field]")) heal(one);
  card.querySelector(".slot-fault")?.remove();
}

function mark(root, message) {
  const fault = make("p", "slot-fault", message);
  fault.id = fresh("fault");
  root.append(fault);
  const control = root.querySelector("input, textarea, select");
  control.setAttribute("aria-invalid", "true");
  const before = control.getAttribute("aria-describedby");
  control.dataset.before = before ?? "";
  control.setAttribute("aria-describedby", [fault.id, before].filter(Boolean).join(" "));
}

function heal(root) {
  const fault = root.querySelector(".slot-fault");
  if (!fault) return;
  fault.remove();
  const control = root.querySelector("input, textarea, select");
  control.removeAttribute("aria-invalid");
  const { before } = control.dataset;
  if (before) control.setAttribute("aria-describedby", before);
  else control.removeAttribute("aria-describedby");
}
