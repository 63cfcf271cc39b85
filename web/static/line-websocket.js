// One WebSocket of a call. Opened once, closed once; who takes the call up again is not its matter.

const FULL_BUFFER = 65536; // two seconds of sound that the network did not take
const HANG_UP = 1000;
const GONE = 3000; // any code but 1000 leaves the call waiting

export class WebSocketLine {
  kind = "websocket";
  lineId = null;

  /** `on.message(object)`, `on.sound(ArrayBuffer)`, `on.closed({code})`: none of them after
   *  `hangUp` or `abandon`. */
  constructor(on) {
    this.on = on;
    this.socket = null;
  }

  open(token) {
    const url = new URL("/ws", location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    url.searchParams.set("token", token);
    this.socket = new WebSocket(url);
    this.socket.binaryType = "arraybuffer";
    this.socket.onmessage = ({ data }) => {
      if (typeof data === "string") this.on?.message(JSON.parse(data));
      else this.on?.sound(data);
    };
    this.socket.onclose = ({ code }) => this.on?.closed({ code });
  }

  get isOpen() {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  send(message) {
    if (this.isOpen) this.socket.send(JSON.stringify(message));
  }

  /** Sound that the network does not take is dropped: late speech helps nobody. */
  sound(pcm) {
    if (this.isOpen && this.socket.bufferedAmount < FULL_BUFFER) this.socket.send(pcm);
  }

  /** The microphone's frames come by `sound`. */
  microphone() {}

  hangUp() {
    this.send({ t: "hangup" });
    this.on = null;
    this.socket?.close(HANG_UP);
  }

  /** Leave the line; the call waits on the server. */
  abandon() {
    this.on = null;
    this.socket?.close(GONE);
  }
}
