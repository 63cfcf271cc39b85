// The HTTP part of a call: /session, and the signalling of WebRTC (docs/protocol.md). Fetches, and
// turns refusals into words; keeps nothing.

const NO_WEBRTC_NOW = new Set(["busy", "connecting", "no_line", "no_webrtc"]); // /ws may do

export class Refused extends Error {
  /** `status` 0: the server was not reached. */
  constructor(status, words, code = null) {
    super(words);
    this.status = status;
    this.full = status === 503 && !NO_WEBRTC_NOW.has(code);
  }
}

async function ask(url, options) {
  let answer;
  try {
    answer = await fetch(url, options);
  } catch {
    throw new Refused(0, "The server cannot be reached.");
  }
  const body = answer.status === 204 ? {} : await answer.json().catch(() => ({}));
  if (answer.ok) return body;
  if (answer.status === 503 && !NO_WEBRTC_NOW.has(body.code)) {
    const wait = answer.headers.get("Retry-After") ?? "a few";
    throw new Refused(503, `All lines are busy. Try again in ${wait} seconds.`, body.code);
  }
  const words = body.message ?? `The server answered ${answer.status}.`;
  throw new Refused(answer.status, words, body.code);
}

function post(url, body, signal) {
  return ask(url, { method: "POST", body: JSON.stringify(body), signal });
}

/** `{token, rtc | null}`: leave to begin one call. Throws Refused, as all here. */
export function openSession() {
  return post("/session", {});
}

/** `{sdp, line_id}` of the server's answer. */
export function offer(url, body, signal) {
  return post(url, body, signal);
}

/** One more candidate of ours; null: there are no more. A lost one is no matter. */
export async function trickle(url, lineId, candidate) {
  const { candidate: line = "", sdpMid = null, sdpMLineIndex = null } = candidate ?? {};
  const body = { line_id: lineId, candidate: line, sdpMid, sdpMLineIndex };
  await post(url, body).catch(() => {});
}

/** What the server knows of a line: `{state, cause}`, or nothing. */
export function lineState(lineId) {
  const url = `/rtc/lines/${encodeURIComponent(lineId)}`;
  return ask(url, { signal: AbortSignal.timeout(1000) }).catch(() => ({}));
}
