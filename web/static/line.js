// One call over /ws: begins it, and takes it up again when the socket is lost. Knows no page.

const BACKOFF_MS = [250, 500, 1000, 2000, 4000, 4000, 4000, 4000];
const FULL_BUFFER = 65536; // two seconds of sound that the network did not take
const ENDED = new Map([
  [1000, null],
  [1001, "The server is going down. Call again in a moment."],
  [1008, "The server did not accept this call."],
  [1013, "All lines are busy. Try again in a moment."],
  [4000, "This call goes on in another window."],
  [4001, "The server gave up on this page. Reload it."],
]);

export class Line {
  /** `onMessage(object)`, `onSound(ArrayBuffer)`, `onPhase("connecting" | "live" | "lost" |
   *  "ended", words | null)`. */
  constructor(handlers) {
    this.on = handlers;
    this.socket = null;
    this.token = null;
    this.attempts = 0;
    this.over = false;
    this.bye = null;
  }

  async begin() {
    this.on.onPhase("connecting", null);
    let answer;
    try {
      answer = await fetch("/session", { method: "POST", body: "{}" });
    } catch {
      return this.end("The server cannot be reached.");
    }
    const body = await answer.json().catch(() => ({}));
    if (answer.status === 503) {
      const wait = answer.headers.get("Retry-After") ?? "a few";
      return this.end(`All lines are busy. Try again in ${wait} seconds.`);
    }
    if (!answer.ok) return this.end(body.message ?? `The server answered ${answer.status}.`);
    this.token = body.token;
    this.connect();
  }

  connect() {
    if (this.over) return;
    const url = new URL("/ws", location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    url.searchParams.set("token", this.token);
    const socket = new WebSocket(url);
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => this.take(data);
    socket.onclose = ({ code }) => this.closed(socket, code);
    this.socket = socket;
  }

  take(data) {
    if (typeof data !== "string") return this.on.onSound(data);
    const message = JSON.parse(data);
    if (message.t === "ready") {
      this.token = message.token;
      this.attempts = 0;
      this.on.onPhase("live", null);
    }
    if (message.t === "bye") this.bye = message.reason;
    this.on.onMessage(message);
  }

  closed(socket, code) {
    if (socket !== this.socket || this.over) return;
    if (this.bye || ENDED.has(code)) return this.end(ENDED.get(code) ?? null);
    if (this.attempts >= BACKOFF_MS.length) {
      return this.end("The connection was lost and did not come back.");
    }
    this.on.onPhase("lost", null);
    const wait = BACKOFF_MS[this.attempts] * (0.8 + 0.4 * Math.random());
    this.attempts += 1;
    setTimeout(() => this.connect(), wait);
  }

  end(words) {
    if (this.over) return;
    this.over = true;
    this.on.onPhase("ended", words);
  }

  get open() {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  send(message) {
    if (this.open) this.socket.send(JSON.stringify(message));
  }

  /** Sound that the network does not take is dropped: late speech helps nobody. */
  sound(pcm) {
    if (this.open && this.socket.bufferedAmount < FULL_BUFFER) this.socket.send(pcm);
  }

  hangUp() {
    this.send({ t: "hangup" });
    this.end(null);
    this.socket?.close(1000);
  }
}
