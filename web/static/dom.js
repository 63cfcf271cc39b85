// Small makers of elements. They only ever write text, never markup.

export const find = (id) => document.getElementById(id);

/** `make("div", "card", "words" | child, …)`; the class may be "". */
export function make(tag, name, ...children) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function button(label, name, press, options) {
  const made = make("button", name, String(label));
  made.type = "button";
  made.addEventListener("click", press, options);
  return made;
}

/** A description list of an object's entries. */
export function pairs(values) {
  const list = make("dl", "pairs");
  for (const [key, value] of Object.entries(values)) {
    const shown = typeof value === "object" ? JSON.stringify(value) : String(value);
    list.append(make("dt", "", key.replaceAll("_", " ")), make("dd", "", shown));
  }
  return list;
}

/** Whether letters typed there are words, or choose something. */
export function takesKeys(element) {
  const words = 'input:not([type="radio"], [type="checkbox"], [type="range"]), textarea, select';
  return element instanceof Element && element.matches(`${words}, [contenteditable]`);
}

/** 75.2 -> "1:15", with tenths "1:15.2". */
export function clockTime(seconds, tenths = false) {
  const units = Math.max(0, Math.floor(seconds * (tenths ? 10 : 1) + 1e-6));
  const whole = Math.floor(units / (tenths ? 10 : 1));
  const words = `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
  return tenths ? `${words}.${units % 10}` : words;
}

export function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Whether the text is on the clipboard now. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const box = make("textarea", "hidden", text);
    const before = document.activeElement;
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy"); // without https there is nothing else
    box.remove();
    before?.focus();
    return done;
  }
}
