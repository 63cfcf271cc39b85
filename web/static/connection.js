// The line of a call, and its way back: chooses WebRTC or WebSocket, takes the call up again when
// the line is lost, goes over to WebSocket when WebRTC does not come up. Owns the one line there
// is; knows no sound and no page.

import { canWebRtc, WebRtcLine } from "./line-webrtc.js";
import { WebSocketLine } from "./line-websocket.js";
import * as kept from "./resume.js";
import { openSession } from "./signals.js";

const BACKOFF_MS = [250, 500, 1000, 2000, 4000, 4000, 4000, 4000];
const RTC_MS = 9000; // then WebSocket: the server holds a call that waits for 30 s
const ASK_MS = 1500; // the server knows first that a line cannot come up
const RESUME_ATTEMPTS = 3; // of a call that may have ended while the page was loaded
const ENDED = new Map([
  [1000, null],
  [1001, "The server is going down. Call again in a moment."],
  [1008, "The server did not accept this call."],
  [1013, "All lines are busy. Try again in a moment."],
  [4000, "This call goes on in another window."],
  [4001, "The server gave up on this page. Reload it."],
]);
const BYE = { replaced: ENDED.get(4000), drain: ENDED.get(1001) };
const OVER = "The call has ended meanwhile.";

export class Connection {
  /** `on.message(object)`, `on.sound(ArrayBuffer)`, `on.remote(MediaStream | null)`,
   *  `on.phase(phase, words)`, `on.line(kind, words)`: see Call. */
  constructor(on) {
    this.on = on;
    this.line = null;
    this.track = null;
    this.call = { token: null, kind: null, rtc: null, resumed: false };
    this.timers = { retry: null, rtc: null, ask: null };
    this.attempts = 0;
    this.told = null; // the kind that `on.line` told last
    this.up = false;
    this.wasUp = false;
    this.bye = null;
    this.over = false;
  }

  get kind() {
    return this.call.kind;
  }

  get token() {
    return this.call.token;
  }

  /** Begin a call, or take up the one that a reload left. */
  async begin({ line, resume }) {
    const old = resume ? kept.load() : null;
    if (old) this.call = { token: old.token, kind: old.kind, rtc: old.rtc ?? null, resumed: true };
    else {
      try {
        const { token, rtc } = await openSession();
        this.call = { token, kind: null, rtc: rtc ?? null, resumed: false };
      } catch (refused) {
        return this.end(refused.message);
      }
    }
    if (!this.over) this.choose(line);
  }

  choose(line) {
    const { rtc, kind, resumed } = this.call;
    const can = rtc && canWebRtc();
    const wanted = line === "auto" && resumed ? kind : line;
    this.call.kind = can && wanted !== "websocket" ? "webrtc" : "websocket";
    if (line === "webrtc" && !can) {
      const who = rtc ? "This browser" : "This server";
      this.tellLine(`${who} has no WebRTC. The call goes over WebSocket.`);
    }
    this.dial();
  }

  tellLine(words) {
    if (!words && this.told === this.kind) return;
    this.told = this.kind;
    this.on.line(this.kind, words);
  }

  /** A new line in place of the one there is. */
  dial() {
    if (this.over) return;
    clearTimeout(this.timers.retry);
    this.up = false;
    this.line?.abandon();
    this.on.remote(null);
    const mine = (take) => (value) => line === this.line && !this.over && take(value);
    const on = {
      message: mine((message) => this.take(message)),
      sound: mine((pcm) => this.on.sound(pcm)),
      remote: mine((stream) => this.on.remote(stream)),
      closed: mine((why) => this.closed(why)),
    };
    const line = this.kind === "webrtc" ? new WebRtcLine(this.call.rtc, on) : new WebSocketLine(on);
    line.microphone(this.track);
    this.line = line;
    if (this.kind === "webrtc") this.expect(line);
    line.open(this.token);
  }

  /** WebRTC has a time to come up, counted from the loss: the call must live until then. */
  deadline() {
    this.timers.rtc ??= setTimeout(() => this.giveUpRtc(this.line), RTC_MS);
  }

  expect(line) {
    this.deadline();
    clearInterval(this.timers.ask);
    this.timers.ask = setInterval(async () => {
      const { state, cause } = await line.seenByServer();
      if (state === "closed" && line === this.line) this.giveUpRtc(line, cause);
    }, ASK_MS);
  }

  expectNothing() {
    clearTimeout(this.timers.rtc);
    clearInterval(this.timers.ask);
    this.timers.rtc = this.timers.ask = null;
  }

  /** The network changed: whatever was there, a new line now. */
  redial() {
    if (!this.line || this.over) return;
    this.attempts = 0;
    this.on.phase("lost", null);
    this.dial();
  }

  take(message) {
    if (message.t === "ready") this.live(message);
    if (message.t === "bye") this.bye = message.reason;
    this.on.message(message);
    if (message.t === "bye" && this.kind === "webrtc") this.end(BYE[this.bye] ?? null);
  }

  live({ token }) {
    this.up = this.wasUp = true;
    this.call.token = token;
    this.call.resumed = false;
    this.attempts = 0;
    this.expectNothing();
    kept.save({ token, kind: this.kind, rtc: this.call.rtc });
    this.tellLine(null);
    this.on.phase("live", null);
  }

  closed({ code, status, full, cause, hopeless }) {
    this.up = false;
    if (this.bye || ENDED.has(code)) return this.end(ENDED.get(code) ?? BYE[this.bye] ?? null);
    if (status === 401) return this.end(OVER);
    if (full && !this.wasUp) return this.end(cause);
    if (hopeless) return this.fallBack(cause);
    if (this.kind === "webrtc" && !this.wasUp && status !== 0) return this.giveUpRtc(this.line);
    this.retry();
  }

  retry() {
    const { resumed } = this.call;
    if (this.attempts >= (resumed ? RESUME_ATTEMPTS : BACKOFF_MS.length)) {
      return this.end(resumed ? OVER : "The connection was lost and did not come back.");
    }
    if (this.wasUp) this.on.phase("lost", null);
    const wait = BACKOFF_MS[this.attempts] * (0.8 + 0.4 * Math.random());
    this.attempts += 1;
    clearInterval(this.timers.ask);
    if (this.kind === "webrtc") this.deadline();
    this.timers.retry = setTimeout(() => this.dial(), wait);
  }

  /** WebRTC had its time, or its end is known: find out why, and go on without. */
  async giveUpRtc(line, known = null) {
    this.expectNothing();
    clearTimeout(this.timers.retry);
    const cause = known ?? (await line.cause());
    if (line === this.line && !this.up && !this.over) this.fallBack(cause);
  }

  fallBack(cause) {
    this.expectNothing();
    this.call.kind = "websocket";
    this.attempts = 0;
    this.tellLine(`WebRTC failed: ${cause}. Going on over WebSocket.`);
    this.dial();
  }

  end(words) {
    if (this.over) return;
    this.over = true;
    clearTimeout(this.timers.retry);
    this.expectNothing();
    kept.forget();
    this.line?.abandon();
    this.on.remote(null);
    this.on.phase("ended", words);
  }

  send(message) {
    this.line?.send(message);
  }

  sound(pcm) {
    this.line?.sound(pcm);
  }

  microphone(track) {
    this.track = track;
    this.line?.microphone(track);
  }

  /** The page goes away: the call waits for it. */
  leave() {
    clearTimeout(this.timers.retry);
    this.expectNothing();
    if (this.wasUp) kept.save();
    this.line?.abandon();
  }

  hangUp() {
    const { line, up } = this;
    this.line = null; // it still has to say so
    line?.hangUp();
    if (line && !up) this.hangUpBySocket();
    this.end(null);
  }

  /** Without a line the call would wait on the server for one: a socket only to say it. */
  hangUpBySocket() {
    const message = ({ t }) => t === "ready" && socket.hangUp();
    const socket = new WebSocketLine({ message, sound() {}, closed() {} });
    socket.open(this.token);
  }
}
