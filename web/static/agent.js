// What the agent is about beside the talk: its plan, what it asked somebody outside, and whether it
// summarises the conversation for itself. In full in a tab of the details; in one line below the
// conversation. Without any of it neither is there.

import { button, make } from "./dom.js";
import { Inbox } from "./inbox.js";

const SIGNS = { pending: "○", in_progress: "◐", completed: "✓" };
const STATES = { pending: "to do", in_progress: "now", completed: "done" };

export class AgentView {
  /** `root` is the tab's panel, `strip` the line below the conversation, `said` what a screen reader
   *  hears of changes. `on.offer(is something to show)`, `on.open()`: a person wants the details. */
  constructor({ root, strip, said }, on) {
    this.strip = strip;
    this.said = said;
    this.on = on;
    this.plan = make("section", "plan");
    this.plan.setAttribute("aria-labelledby", "plan-title");
    this.inbox = new Inbox();
    this.state = make("p", "resting", ...resting());
    root.append(this.state, this.plan, this.inbox.root);
    this.clear();
  }

  clear() {
    this.tasks = [];
    this.compacting = false;
    this.inbox.clear();
    this.said.textContent = "";
    this.draw();
  }

  /** The call is over: nothing is summarised any more. */
  rest() {
    this.compacting = false;
    this.draw();
  }

  /** `path` of the inbox's door, null where this page may not answer. */
  answers(path) {
    this.inbox.answers(path);
  }

  event({ type, ...line }) {
    if (type === "tasks") this.take(line.tasks);
    else if (type === "inbox") this.tell(this.inbox.take(line.items));
    else if (type === "compaction") {
      this.compacting = line.event === "start";
      if (this.compacting) this.tell("Summarising the conversation");
    } else return;
    this.draw();
  }

  take(tasks) {
    const before = now(this.tasks)?.activeForm;
    this.tasks = tasks;
    const doing = now(tasks)?.activeForm;
    if (doing && doing !== before) this.tell(`Plan, ${progress(tasks)}: ${doing}`);
    else if (tasks.length && done(tasks) === tasks.length) this.tell("The plan is done");
  }

  tell(words) {
    if (words) this.said.textContent = words;
  }

  draw() {
    const { tasks, inbox, compacting } = this;
    this.state.hidden = !compacting;
    this.plan.hidden = !tasks.length;
    if (tasks.length) this.plan.replaceChildren(...planned(tasks));
    else this.plan.replaceChildren();
    const something = Boolean(tasks.length || inbox.count || compacting);
    this.on.offer(something);
    this.line();
  }

  line() {
    const { tasks, inbox, compacting } = this;
    const parts = [];
    if (compacting) parts.push(make("span", "resting", ...resting()));
    if (tasks.length && done(tasks) < tasks.length) {
      const doing = now(tasks)?.activeForm ?? "Plan";
      parts.push(this.piece("plan-piece", doing, progress(tasks)));
    }
    if (inbox.waiting) parts.push(this.piece("inbox-piece", "Waiting for an answer", inbox.waiting));
    const had = this.strip.contains(document.activeElement) && document.activeElement.className;
    this.strip.replaceChildren(...parts);
    this.strip.hidden = !parts.length;
    if (had) [...this.strip.children].find(({ className }) => className === had)?.focus();
  }

  piece(name, words, count) {
    const made = button("", `piece-of ${name}`, () => this.on.open());
    made.append(make("span", "doing", words), make("b", "", String(count)));
    return made;
  }
}

function planned(tasks) {
  const title = make("h3", "", "Plan ");
  title.id = "plan-title";
  const count = make("span", "count", progress(tasks));
  count.setAttribute("aria-label", `${done(tasks)} of ${tasks.length} done`);
  title.append(count);
  const bar = make("div", "plan-bar", make("span", ""));
  bar.setAttribute("aria-hidden", "true");
  bar.firstChild.style.width = `${(100 * done(tasks)) / tasks.length}%`;
  return [title, bar, make("ol", "tasks", ...tasks.map(task))];
}

function task({ content, activeForm, status }) {
  const sign = make("span", "sign", SIGNS[status] ?? "○");
  sign.setAttribute("aria-hidden", "true");
  const words = status === "in_progress" ? activeForm : content;
  const state = make("span", "hidden", ` (${STATES[status] ?? status})`);
  const item = make("li", `task ${status}`, sign, make("span", "words-of", words, state));
  if (status === "in_progress") item.setAttribute("aria-current", "step");
  return item;
}

function resting() {
  const dot = make("span", "dot");
  dot.setAttribute("aria-hidden", "true");
  return [dot, make("span", "doing", "Summarising the conversation …")];
}

const now = (tasks) => tasks.find(({ status }) => status === "in_progress");
const done = (tasks) => tasks.filter(({ status }) => status === "completed").length;
const progress = (tasks) => `${done(tasks)}/${tasks.length}`;
