// What a person chose and expects to find again: theme, open panel, keys. In localStorage.
// Never throws: a browser may forbid storage, then a wish lasts until the page is closed.

const KEY = "voxglove.wishes";
let wishes = read();

function read() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY));
    return found && typeof found === "object" ? found : {};
  } catch {
    return {};
  }
}

export function wish(name, otherwise) {
  return wishes[name] ?? otherwise;
}

export function remember(name, value) {
  wishes = { ...wishes, [name]: value };
  try {
    localStorage.setItem(KEY, JSON.stringify(wishes));
  } catch {
    // forbidden or full: the wish stays in `wishes`
  }
}
