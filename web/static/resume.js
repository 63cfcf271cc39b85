// What a reload of the page has to find again: the token of the call, its ICE servers, its clock.
// In sessionStorage: one tab's, gone with it. Never throws: a browser may forbid storage.

const KEY = "voxglove.call";
const OLDEST_MS = 600_000; // no call lingers for longer

function read() {
  try {
    return JSON.parse(sessionStorage.getItem(KEY)) ?? {};
  } catch {
    return {};
  }
}

/** `{token, kind, rtc, began}` or null. */
export function load() {
  const kept = read();
  return kept.token && Date.now() - kept.saved < OLDEST_MS ? kept : null;
}

/** Add `values` to what is kept; with none, only say that the call lived until now. */
export function save(values = {}) {
  try {
    const kept = { ...read(), ...values, saved: Date.now() };
    sessionStorage.setItem(KEY, JSON.stringify(kept));
  } catch {
    // Then a reload ends the call.
  }
}

export function forget() {
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    // Nothing was kept.
  }
}
