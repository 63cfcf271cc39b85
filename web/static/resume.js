// What a reload of the page has to find again: the token of the call, its ICE servers, its clock.
// In sessionStorage: one tab's, gone with it. Never throws: a browser may forbid storage.

const KEY = "voxglove.call";
const OLDEST_MS = 600_000; // no call lingers for longer

/** `{token, kind, rtc, began}` or null. */
export function load() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEY));
    return kept?.token && Date.now() - kept.saved < OLDEST_MS ? kept : null;
  } catch {
    return null;
  }
}

/** Add `values` to what is kept. */
export function save(values) {
  try {
    const kept = { ...load(), ...values, saved: Date.now() };
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
