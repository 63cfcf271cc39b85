// Which renderer draws what. A renderer has
//   title(props)               words
//   ask(card, props, answer)   fills the card of an open question; `answer.resolve(value)` and
//                              `answer.dismiss()` are what its controls press
//   said(card, props, value)   fills a finished card below its title, returns the line at its end
// A finished card of a running call and one of history are drawn by the same function.

import { button, make, pairs } from "./dom.js";
import { confirm, permission, plan, preference, suggest } from "./slot-choose.js";
import { body, capital, choices, dismissButton, facts, heading } from "./slot-kit.js";
import { collect, text } from "./slot-write.js";

const KNOWN = new Set(["title", "question", "message", "text", "content", "options", "choices"]);
const SHOWN_OTHERWISE = new Set([...KNOWN, "renderer", "variant", "facts"]);
const BADGES = { success: "Done", warning: "Please note" };

const generic = {
  title: (props) => capital(String(props.title ?? props.question ?? bodyOf(props) ?? "A card")),
  ask(card, props, answer) {
    about(card, props);
    const options = optionsOf(props);
    const buttons = options.map(({ label, value }, at) =>
      button(label, at ? "choice" : "choice main", () => answer.resolve(value))
    );
    if (!buttons.length) buttons.push(button("OK", "choice main", () => answer.resolve(true)));
    card.append(choices(...buttons, dismissButton(answer)));
  },
  said(card, props, value) {
    about(card, props, false);
    const known = optionsOf(props).find((option) => option.value === value);
    if (known) return `You answered: ${known.label}`;
    if (value === true) return "You said OK";
    return `You answered: ${typeof value === "object" ? JSON.stringify(value) : value}`;
  },
};

/** Something to read; nobody waits for an answer. */
const info = {
  reads: true,
  title: generic.title,
  ask(card, props, answer) {
    about(card, props);
    card.append(choices(button("Got it", "choice", () => answer.resolve(true))));
  },
  said(card, props, value) {
    about(card, props, false);
    return value === true ? "Read" : null;
  },
};

const RENDERERS = {
  permission_request: permission,
  mcp_picker: preference,
  confirm_action: confirm,
  ask_preference: preference,
  suggest_options: suggest,
  approve_plan: plan,
  collect_form: collect,
  text_input: text,
  show_info_card: info,
};

/** Whether nobody waits for an answer to it. */
export const isToRead = (renderer) => Boolean(RENDERERS[renderer]?.reads);

/** The card of an open slot, and its title in words. */
export function drawOpen({ renderer, input }, answer) {
  const root = make("article", isToRead(renderer) ? "slot to-read" : "slot");
  const title = attempt(root, renderer, input, (drawer, props) => {
    drawer.ask(root, props, answer);
    return drawer.title(props);
  });
  root.tabIndex = -1;
  root.setAttribute("aria-label", `The agent shows: ${title}`);
  return { root, title };
}

/** A finished card: `render_data` of a tool, {renderer, input, value}, or a slot and what came of
 *  it. `value` null: nobody answered; `words` then say why, as far as it is known. */
export function drawResult({ renderer, input, value = null, words = null }) {
  const root = make("article", "slot-done");
  attempt(root, renderer, input, (drawer, props) => {
    const title = heading(root, drawer.title(props));
    root.setAttribute("aria-label", `The agent showed: ${title.textContent}`);
    const unanswered = words ?? (drawer.reads ? null : "Not answered");
    const open = value === null && !drawer.reads;
    const line = open ? unanswered : (drawer.said(root, props, value) ?? words);
    if (line) root.append(make("p", "reply", line));
  });
  root.tabIndex = -1;
  return root;
}

/** Draw; props that a renderer cannot draw (a tool of somebody else uses its name) go to the
 *  generic one, which draws anything. */
function attempt(root, renderer, input, draw) {
  const props = typeof input === "object" && input !== null ? input : { text: input ?? "" };
  const known = RENDERERS[renderer];
  try {
    return draw(known?.title(props) ? known : generic, props);
  } catch {
    root.replaceChildren();
    return draw(generic, props);
  }
}

function about(card, props, titled = true) {
  const variant = BADGES[props.variant];
  if (titled) {
    const title = props.title ?? props.question;
    if (title) heading(card, title);
  }
  if (variant) card.append(make("p", `slot-badge ${props.variant}`, variant));
  if (titled || props.title || props.question) body(card, bodyOf(props));
  if (Array.isArray(props.facts) && props.facts.length)
    card.append(facts(props.facts.map(({ label, value }) => [label, value])));
  const rest = Object.entries(props).filter(([key]) => !SHOWN_OTHERWISE.has(key));
  if (rest.length) card.append(pairs(Object.fromEntries(rest)));
}

function bodyOf({ message, text: words, content }) {
  return message ?? words ?? content;
}

function optionsOf({ options, choices: others }) {
  const found = options ?? others ?? [];
  return (Array.isArray(found) ? found : []).map((option) => {
    if (typeof option !== "object" || option === null) return { label: option, value: option };
    const label = option.label ?? option.name ?? option.id;
    return { label, value: option.value ?? option.id ?? label };
  });
}
