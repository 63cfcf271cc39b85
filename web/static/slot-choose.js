// Questions with buttons and boxes: confirm_action, ask_preference, suggest_options, approve_plan,
// permission_request. Each export is a renderer as slot-draw.js describes them.

import { button, make, pairs } from "./dom.js";
import {
  body,
  choices,
  dismissButton,
  field,
  form,
  heading,
  submitButton,
} from "./slot-kit.js";

const labelOf = (options, value) =>
  options.find((option) => option.value === value)?.label ?? String(value);

export const confirm = {
  title: ({ title }) => title,
  ask(card, { title, message, confirm_label: yes, cancel_label: no, danger }, answer) {
    heading(card, title);
    body(card, message);
    card.append(
      choices(
        button(yes, danger ? "choice danger" : "choice main", () => answer.resolve(true)),
        button(no, "choice", () => answer.resolve(false)),
        dismissButton(answer)
      )
    );
  },
  said: (card, { message, confirm_label: yes, cancel_label: no }, value) => {
    body(card, message);
    return `You answered: ${value ? yes : no}`;
  },
};

export const preference = {
  title: ({ question }) => question,
  ask(card, { question, options }, answer) {
    const title = heading(card, question);
    const group = choices(
      ...options.map(({ label, value, description }) => {
        const one = button(label, "choice", () => answer.resolve(value));
        if (description) one.append(make("span", "slot-more", description));
        return one;
      })
    );
    if (options.some(({ description }) => description)) group.classList.add("slot-rows");
    group.setAttribute("role", "group");
    group.setAttribute("aria-labelledby", title.id);
    group.append(dismissButton(answer));
    card.append(group);
  },
  said: (card, { options }, value) => `You chose: ${labelOf(options, value)}`,
};

export const suggest = {
  title: ({ question }) => question,
  ask(card, { question, options, max_choices: most, allow_other: open }, answer) {
    const title = heading(card, question);
    const one = most === 1 && !open;
    const boxes = options.map((option) => box(option, one ? "radio" : "checkbox", title.id));
    const other = make("input", "");
    other.type = "text";
    other.maxLength = 500;
    const value = () => ({
      selected: boxes.filter(({ input }) => input.checked).map(({ input }) => input.value),
      other: open ? other.value : "",
    });
    const root = form(card, title, value, answer);
    const legend = make("legend", "hidden", question);
    root.append(make("fieldset", "slot-options", legend, ...boxes.map((each) => each.root)));
    if (open) root.append(field({ name: "other", label: "Something else" }, other));
    root.append(choices(submitButton("Send"), dismissButton(answer)));
  },
  said(card, { options }, { selected, other }) {
    const words = selected.map((value) => labelOf(options, value));
    if (other) words.push(`“${other}”`);
    return `You chose: ${words.join(", ") || "none of them"}`;
  },
};

function box({ label, value, description }, type, name) {
  const input = make("input", "");
  Object.assign(input, { type, value, name });
  const words = make("span", "", label);
  if (description) words.append(make("span", "slot-more", description));
  return { input, root: make("label", "slot-option", input, words) };
}

export const plan = {
  title: ({ title }) => title,
  ask(card, { title, summary, steps }, answer) {
    const head = heading(card, title);
    body(card, summary);
    card.append(stepList(steps));
    const comment = make("textarea", "");
    comment.rows = 2;
    comment.maxLength = 2000;
    const value = (approved) => ({ approved, comment: comment.value });
    const root = form(card, head, () => value(true), answer);
    root.append(
      field({ name: "comment", label: "Comment, if you like" }, comment),
      choices(
        submitButton("Approve"),
        button("Send back", "choice", () => answer.resolve(value(false))),
        dismissButton(answer)
      )
    );
  },
  said(card, { steps }, { approved, comment }) {
    card.append(stepList(steps));
    const words = approved ? "You approved it" : "You sent it back";
    return comment ? `${words}: “${comment}”` : words;
  },
};

function stepList(steps) {
  return make(
    "ol",
    "slot-steps",
    ...steps.map(({ title, description }) =>
      make("li", "", title, description ? make("span", "slot-more", description) : null)
    )
  );
}

export const permission = {
  title: ({ toolName }) => `May the agent use ${String(toolName ?? "a tool").replaceAll("_", " ")}?`,
  ask(card, props, answer) {
    heading(card, permission.title(props));
    if (isObject(props.toolInput)) card.append(pairs(props.toolInput));
    card.append(
      choices(
        button("Allow", "choice main", () => answer.resolve(true)),
        button("Deny", "choice", () => answer.resolve(false))
      )
    );
  },
  said(card, { toolInput }, value) {
    if (isObject(toolInput)) card.append(pairs(toolInput));
    return value ? "You allowed it" : "You denied it";
  },
};

const isObject = (value) => typeof value === "object" && value !== null;
