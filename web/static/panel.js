// The details at the side: tabs, open or closed. In narrow windows a sheet from below. A tab that
// has nothing to show is hidden.

import { find } from "./dom.js";
import { remember, wish } from "./wishes.js";

const page = document.documentElement;

export class Panel {
  /** `onShow(name)`: that tab came into sight. */
  constructor(onShow) {
    this.onShow = onShow;
    this.narrow = matchMedia("(max-width: 999px)");
    this.tabs = [...document.querySelectorAll('[role="tab"]')];
    this.toggle = find("panel-toggle");
    this.toggle.addEventListener("click", () => this.open(!this.isOpen, true));
    find("panel-close").addEventListener("click", () => this.open(false, true));
    for (const tab of this.tabs) {
      tab.addEventListener("click", () => this.pick(tab));
      tab.addEventListener("keydown", (event) => this.key(event, tab));
    }
    const wished = this.shown.find((tab) => tab.id === wish("tab"));
    if (wished) this.pick(wished);
    this.open(!this.narrow.matches && wish("panel", true));
    this.narrow.addEventListener("change", () =>
      this.open(!this.narrow.matches && wish("panel", true))
    );
  }

  get isOpen() {
    return page.dataset.panel === "open";
  }

  /** Whether it lies over the conversation. */
  get isSheet() {
    return this.isOpen && this.narrow.matches;
  }

  open(on, byHand = false) {
    page.dataset.panel = on ? "open" : "closed";
    this.toggle.setAttribute("aria-expanded", String(on));
    if (byHand && !this.narrow.matches) remember("panel", on);
    if (on) this.onShow(this.picked.getAttribute("aria-controls"));
    if (byHand) (on ? this.picked : this.toggle).focus();
  }

  get shown() {
    return this.tabs.filter((tab) => !tab.hidden);
  }

  /** Whether tab `name` has something to show. */
  offer(name, on) {
    const tab = find(`tab-${name}`);
    tab.hidden = !on;
    if (!on && tab === this.picked) this.pick(this.shown[0], false);
  }

  get picked() {
    return this.tabs.find((tab) => tab.getAttribute("aria-selected") === "true");
  }

  /** Open it at `name`: "turns", "agent", "events" or "developer". */
  show(name) {
    this.pick(find(`tab-${name}`));
    if (!this.isOpen) this.open(true, true);
  }

  pick(picked, byHand = true) {
    for (const tab of this.tabs) {
      const on = tab === picked;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
      find(tab.getAttribute("aria-controls")).hidden = !on;
    }
    if (byHand) remember("tab", picked.id);
    this.onShow(picked.getAttribute("aria-controls"));
  }

  key(event, tab) {
    const tabs = this.shown;
    const here = tabs.indexOf(tab);
    const last = tabs.length - 1;
    const next = {
      ArrowLeft: here ? here - 1 : last,
      ArrowRight: here < last ? here + 1 : 0,
      Home: 0,
      End: last,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    this.pick(tabs[next]);
    tabs[next].focus();
  }
}
