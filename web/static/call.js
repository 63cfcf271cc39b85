// One call as the views see it: sound, line, clock and recording behind one object. Owns the
// microphone and the speaker for as long as the call lives; knows no element of the page.

import { Camera, fitted } from "./camera.js";
import { CallClock } from "./clock.js";
import { Connection } from "./connection.js";
import { insecure, listDevices, Microphone } from "./devices.js";
import { Impairment } from "./impair.js";
import { Tape } from "./recording.js";
import * as kept from "./resume.js";
import { Sound } from "./sound.js";

export { insecure };

const LEVEL_EVERY = 2; // frames of 20 ms
const TALK_TAIL_MS = 120; // a thumb leaves the button before the last sound has left the mouth
const JITTER_BUFFER_MS = 100; // on WebRTC words overtake sound by about so much

export class Call {
  /** All of `on` is optional:
   *  `message(msg)` what the server says; `phase("connecting" | "live" | "lost" | "ended", words)`;
   *  `level("in" | "out", rms 0..1)` 25 times a second; `wave(side, {at, min, max, rms})` for each
   *  20 ms of either side, `at` in call seconds; `line("webrtc" | "websocket", words | null)` which
   *  line carries the call, and why it is another one than was asked for; `devices(list)` when
   *  microphones came or went; `notice(words)` something about sound that a person should know. */
  constructor(on) {
    this.tell = (name, ...values) => on[name]?.(...values);
    this.clock = new CallClock();
    this.tape = new Tape();
    this.impairment = new Impairment();
    this.phase = "idle";
    this.frames = 0;
    this.mode = "open";
    this.talking = false;
    this.sound = new Sound({
      frame: (frame) => this.#frame(frame),
      report: (report) => this.#onWebSocket({ t: "playback", ...report }),
      cleared: (cleared) => this.#onWebSocket({ t: "cleared", ...cleared }),
      blocked: (words) => this.tell("notice", words),
    });
    this.microphone = new Microphone({
      track: (track) => this.#track(track),
      notice: (words) => this.tell("notice", words),
    });
    this.camera_ = new Camera((picture) => this.send({ t: "image", live: true, ...picture }));
    this.connection = new Connection({
      message: (message) => this.#message(message),
      sound: (pcm) => this.impairment.down(pcm, (late) => this.sound.play(late)),
      remote: (stream) => this.sound.connectRemote(stream),
      phase: (phase, words) => this.#phase(phase, words),
      line: (kind, words) => this.tell("line", kind, words),
    });
    this.leaving = new AbortController();
  }

  /** Whether a reload interrupted a call that `start({resume: true})` can take up. */
  static resumable() {
    return kept.load() !== null;
  }

  /** Begin. Call it in the press of a button: browsers allow sound only there. A microphone that
   *  cannot be had is told by `notice`; the call goes on without. */
  async start({ line = "auto", deviceId = null, resume = false } = {}) {
    this.#phase("connecting", null);
    this.#watch();
    try {
      await this.sound.open();
    } catch {
      if (this.phase === "ended") return; // hung up meanwhile
      this.tell("notice", "This browser cannot play sound here. You can read and type.");
    }
    try {
      await this.microphone.open(deviceId);
    } catch (problem) {
      this.tell("notice", problem.message);
    }
    if (this.phase === "ended") return;
    await this.connection.begin({ line, resume });
  }

  send(message) {
    this.connection.send(message);
  }

  hangUp() {
    this.connection.hangUp();
  }

  /** Muted, the microphone itself falls silent, not only what the server makes of it. */
  mute(on) {
    this.microphone.muted = on;
    this.#gate();
    this.send({ t: "mute", on });
  }

  /** "push": the microphone is closed unless `talk(true)`. */
  setMode(mode) {
    this.mode = mode;
    this.#gate();
  }

  /** The talk button went down or up. The microphone closes a moment after it went up. */
  talk(down) {
    clearTimeout(this.tail);
    if (down) {
      if (!this.talking) this.send({ t: "ptt", down: true });
      this.talking = true;
      this.#gate();
    } else if (this.talking) {
      this.tail = setTimeout(() => this.#letGo(), TALK_TAIL_MS);
    }
  }

  #letGo() {
    this.talking = false;
    this.#gate();
    const wait = this.kind === "webrtc" ? JITTER_BUFFER_MS : 0;
    this.tail = setTimeout(() => this.send({ t: "ptt", down: false }), wait);
  }

  #gate() {
    this.microphone.listening = this.mode === "open" || this.talking;
  }

  /** Go on with another microphone; on failure the old one stays. Whether it worked. */
  async useDevice(deviceId) {
    try {
      await this.microphone.open(deviceId);
      return true;
    } catch (problem) {
      this.tell("notice", problem.message);
      return false;
    }
  }

  /** `[{deviceId, label}]` of the microphones. */
  devices() {
    return listDevices("audioinput");
  }

  /** The same of the loudspeakers; empty where the browser does not let one choose. */
  async speakers() {
    return this.sound.canChoose ? listDevices("audiooutput") : [];
  }

  /** Whether it worked. */
  async useSpeaker(deviceId) {
    try {
      await this.sound.useSpeaker(deviceId);
      return true;
    } catch (error) {
      this.tell("notice", `This loudspeaker cannot be used (${error.name}).`);
      return false;
    }
  }

  /** Whether the camera is on now. One picture a second, only the newest counts. */
  async camera(on) {
    try {
      await this.camera_.turn(on);
    } catch (problem) {
      this.tell("notice", problem.message);
    }
    return this.camera_.on;
  }

  /** The camera's MediaStream, to be shown to the person; null while it is off. */
  get preview() {
    return this.camera_.preview;
  }

  /** Show the agent the picture in `file`. Whether it could be read. */
  async sendImage(file) {
    try {
      this.send({ t: "image", ...(await fitted(file)) });
      return true;
    } catch {
      this.tell("notice", "This file is no picture that the browser can read.");
      return false;
    }
  }

  /** Developer's injector: loss 0..1, burst 1..10, jitter_ms 0..300, down: the way back too. */
  impair({ loss = 0, burst = 1, jitter_ms = 0, down = false } = {}) {
    this.impairing = { loss, burst, jitter_ms, down };
    const here = this.kind === "websocket";
    this.impairment.set(here ? this.impairing : {});
    if (!here) this.send({ t: "impair", ...this.impairing });
  }

  /** Call seconds on the server's input clock. */
  now() {
    return this.clock.now();
  }

  /** Stereo 16 kHz WAV of the last 20 minutes: left the microphone, right what was played. */
  recording() {
    return this.tape.blob();
  }

  get kind() {
    return this.connection.kind;
  }

  get muted() {
    return this.microphone.muted;
  }

  get hasMicrophone() {
    return this.microphone.track !== null;
  }

  get token() {
    return this.connection.token;
  }

  #message(message) {
    switch (message.t) {
      case "ready":
        this.impairment.flush();
        this.sound.reset(message.epoch);
        this.#ready(message);
        break;
      case "clear":
        this.impairment.flush();
        this.sound.clear(message.epoch);
        break;
      case "pause":
      case "resume":
        this.sound.pause(message.t === "pause");
        break;
      case "event":
        if (!message.again) this.clock.observe(message.event.t);
        break;
    }
    this.tell("message", message);
  }

  /** A line that was just attached knows nothing of what was set before. */
  #ready({ resumed }) {
    this.clock.begin((resumed && kept.load()?.began) || null);
    kept.save({ began: this.clock.began });
    if (this.muted) this.send({ t: "mute", on: true });
    if (this.talking) this.send({ t: "ptt", down: true });
    if (this.impairing) this.impair(this.impairing);
  }

  #phase(phase, words) {
    if (this.phase === "ended" || (phase === this.phase && !words)) return;
    this.phase = phase;
    if (phase === "ended") this.#close();
    // On WebRTC the context only shows and records; the element may sound without it.
    if (phase === "live" && this.kind === "websocket") this.sound.needed();
    this.tell("phase", phase, words);
  }

  #onWebSocket(message) {
    if (this.kind === "websocket") this.send(message);
  }

  #track(track) {
    this.sound.connectMicrophone(track && new MediaStream([track]));
    this.connection.microphone(track);
  }

  #frame({ seconds, arrived, mic, out, levels }) {
    const at = this.clock.place(seconds, arrived);
    if (this.phase === "live" || this.phase === "lost") this.tape.put(mic, out);
    if (this.kind === "websocket" && this.hasMicrophone) {
      this.impairment.up(mic.buffer, (late) => this.connection.sound(late));
    }
    this.frames += 1;
    for (const side of ["in", "out"]) {
      this.tell("wave", side, { at, ...levels[side] });
      if (this.frames % LEVEL_EVERY === 0) this.tell("level", side, levels[side].rms);
    }
  }

  /** What happens to the page and to the devices, until the call ends. */
  #watch() {
    const until = { signal: this.leaving.signal };
    window.addEventListener("pagehide", () => this.connection.leave(), until);
    const redial = () => this.connection.redial();
    window.addEventListener("pageshow", ({ persisted }) => persisted && redial(), until);
    window.addEventListener("online", redial, until);
    const network = navigator.connection;
    let type = network?.type;
    network?.addEventListener?.(
      "change",
      () => {
        if (network.type !== type) redial();
        type = network.type;
      },
      until
    );
    navigator.mediaDevices?.addEventListener(
      "devicechange",
      async () => {
        this.tell("devices", await this.devices());
        await this.microphone.devicesChanged();
      },
      until
    );
  }

  #close() {
    this.leaving.abort();
    clearTimeout(this.tail);
    this.camera_.turn(false);
    this.microphone.close();
    this.impairment.flush();
    this.sound.close();
  }
}
