// Light, dark or as the system wishes. Runs before the first paint, so that nothing flashes.

import { remember, wish } from "./wishes.js";

const THEMES = ["system", "light", "dark"];
const page = document.documentElement;

let theme = THEMES.includes(wish("theme")) ? wish("theme") : "system";
apply();

function apply() {
  if (theme === "system") delete page.dataset.theme;
  else page.dataset.theme = theme;
  page.dispatchEvent(new Event("themechange"));
}

/** Make `button` go through the themes; `words` is the text that names it. */
export function bindTheme(button, words) {
  const show = () => {
    words.textContent = `Theme: ${theme}`;
    button.title = `Theme: ${theme}`;
  };
  show();
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    remember("theme", theme);
    apply();
    show();
  });
}

/** Calls `redraw` whenever colours change, by this button or by the system. */
export function onColours(redraw) {
  page.addEventListener("themechange", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

/** What the custom property `name` is now, as a colour a canvas understands. */
export function colour(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  probe.hidden = true;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
