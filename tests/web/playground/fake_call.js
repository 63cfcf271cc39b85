// A Call without a server: tests say what comes over the line and read what the page asked for.
// Served in place of web/static/call.js.

export function insecure() {
  return null;
}

export class Call {
  constructor(on) {
    this.on = on;
    this.asked = []; // [what, ...arguments] in order
    this.seconds = 0;
    this.kind = "webrtc";
    this.muted = false;
    this.hasMicrophone = true;
    window.fakeCall = this;
  }

  static resumable() {
    return sessionStorage.getItem("fake.resumable") === "yes";
  }

  async start(options) {
    this.asked.push(["start", options]);
    this.on.phase("connecting", null);
    await Promise.resolve();
    this.on.phase("live", null);
    this.on.line(this.kind, null);
  }

  /** Frames of `waves`, each [in low, in high, out low, out high], the first at call second 0. */
  play(waves, from = 0, to = waves.length) {
    for (let n = from; n < to; n += 1) {
      const [inLow, inHigh, outLow, outHigh] = waves[n];
      this.on.wave("in", { at: n / 50, min: inLow, max: inHigh, rms: inHigh / 2 });
      this.on.wave("out", { at: n / 50, min: outLow, max: outHigh, rms: outHigh / 2 });
    }
    this.seconds = to / 50;
  }

  hear(...messages) {
    for (const message of messages) {
      if (message.t === "event") this.seconds = Math.max(this.seconds, message.event.t);
      this.on.message(message);
    }
  }

  send(message) {
    this.asked.push(["send", message]);
  }

  hangUp() {
    this.asked.push(["hangUp"]);
    this.on.phase("ended", null);
  }

  mute(on) {
    this.muted = on;
    this.asked.push(["mute", on]);
  }

  talk(down) {
    this.asked.push(["talk", down]);
  }

  setMode(mode) {
    this.asked.push(["setMode", mode]);
  }

  async useDevice(id) {
    this.asked.push(["useDevice", id]);
    return true;
  }

  async devices() {
    return [
      { deviceId: "default", label: "Default" },
      { deviceId: "one", label: "Desk microphone" },
      { deviceId: "two", label: "Headset" },
    ];
  }

  async speakers() {
    return [
      { deviceId: "desk", label: "Desk" },
      { deviceId: "ear", label: "Earphones" },
    ];
  }

  async useSpeaker(id) {
    this.asked.push(["useSpeaker", id]);
    return true;
  }

  async camera(on) {
    this.asked.push(["camera", on]);
    return on;
  }

  async sendImage(file) {
    this.asked.push(["sendImage", file.name]);
    return true;
  }

  impair(setting) {
    this.asked.push(["impair", setting]);
  }

  now() {
    return this.seconds;
  }

  recording() {
    const bytes = new Uint8Array(44 + 4);
    bytes.set(new TextEncoder().encode("RIFF"));
    return new Blob([bytes], { type: "audio/wav" });
  }
}
