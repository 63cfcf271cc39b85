// What went wrong and what to do; several stand below each other, none twice.

import { button, make } from "./dom.js";

const MOST = 3;

export class Notice {
  constructor(root) {
    this.root = root;
  }

  /** Null takes all of them away. */
  show(words) {
    const { root } = this;
    const shown = () => [...root.querySelectorAll("p")];
    if (!words) root.replaceChildren();
    else if (!shown().some(({ textContent }) => textContent === words)) {
      const close = root.querySelector("button") ?? button("Dismiss", "small", () => this.show(null));
      root.append(make("p", "", words), close);
      while (shown().length > MOST) shown()[0].remove();
    }
    root.hidden = !root.childElementCount;
  }
}
