// The browser's ears and mouth on one AudioContext: the microphone and what is played, tapped on
// one clock; server sound of the WebSocket line by a worklet, that of WebRTC by a media element.
// Owns the context and the element; knows no socket and no page.

const RATE = 16000;
const AWAKE_MS = 300;
const PRESSES = ["pointerdown", "keydown"];

export class Sound {
  /** `on.frame({seconds, arrived, mic, out, levels})` each 20 ms; of the worklet's player
   *  `on.report({epoch, pos})` and `on.cleared({epoch, pos})`; `on.blocked(words)` when the browser
   *  wants a press of something first. */
  constructor(on) {
    this.on = on;
    this.context = null;
    this.player = null;
    this.tap = null;
    this.streams = { mic: null, out: null };
    this.sources = { mic: null, out: null };
    this.element = null;
    this.speaker = "";
    this.epoch = 0;
  }

  /** In the press of a button: browsers allow sound only there. */
  async open() {
    await this.start({ sampleRate: RATE, latencyHint: "interactive" });
  }

  async start(options) {
    const context = new AudioContext(options);
    this.context = context;
    context.onstatechange = () => {
      if (context.state === "suspended" || context.state === "interrupted") {
        context.resume().catch(() => {});
      }
    };
    const woken = context.resume().catch(() => {});
    await context.audioWorklet.addModule("/static/player-worklet.js");
    await context.audioWorklet.addModule("/static/tap-worklet.js");
    if (this.context !== context) return; // closed meanwhile
    this.player = new AudioWorkletNode(context, "player", {
      numberOfInputs: 0,
      outputChannelCount: [1],
    });
    this.player.port.onmessage = ({ data }) => this.fromPlayer(data);
    this.tap = new AudioWorkletNode(context, "tap", { numberOfInputs: 2, numberOfOutputs: 0 });
    this.tap.port.onmessage = ({ data }) =>
      this.on.frame({ ...data, arrived: performance.now() / 1000 });
    if (this.speaker) await context.setSinkId?.(this.speaker).catch(() => {});
    this.player.connect(context.destination);
    this.player.connect(this.tap, 0, 1);
    this.reset(this.epoch);
    await Promise.race([woken, new Promise((done) => setTimeout(done, AWAKE_MS))]);
    if (context.state === "suspended") this.wakeByPress();
  }

  /** A page that was loaded without a press may not sound yet: the next press wakes it. */
  wakeByPress() {
    if (this.waking) return;
    this.waking = true;
    const wake = () => {
      this.waking = false;
      for (const kind of PRESSES) window.removeEventListener(kind, wake, true);
      this.context?.resume().catch(() => {});
      this.element?.play().catch(() => {});
    };
    for (const kind of PRESSES) window.addEventListener(kind, wake, true);
  }

  blocked() {
    this.wakeByPress();
    this.on.blocked("The browser holds the sound back. Click anywhere or press a key.");
  }

  /** The context carries this call both ways: say so while it may not run. */
  needed() {
    if (this.context?.state === "suspended") this.blocked();
  }

  fromPlayer(data) {
    if (data.cleared) this.on.cleared(data.cleared);
    if (data.report) this.on.report(data.report);
  }

  /** Hear this MediaStream from now on; null: none. */
  connectMicrophone(stream) {
    return this.connect("mic", stream);
  }

  /** Play this MediaStream of a WebRTC line; null: none. */
  connectRemote(stream) {
    if (stream) {
      // A remote track flows into the graph only while an element plays it as well.
      this.element ??= new window.Audio();
      this.element.srcObject = stream;
      this.element.setSinkId?.(this.speaker).catch(() => {});
      this.element.play().catch(({ name }) => name === "NotAllowedError" && this.blocked());
    } else if (this.element) {
      this.element.srcObject = null;
    }
    return this.connect("out", stream);
  }

  async connect(side, stream) {
    this.sources[side]?.disconnect();
    this.sources[side] = null;
    this.streams[side] = stream;
    if (!stream || !this.tap) return;
    try {
      const source = this.context.createMediaStreamSource(stream);
      source.connect(this.tap, 0, side === "mic" ? 0 : 1);
      this.sources[side] = source;
    } catch (error) {
      if (error.name !== "NotSupportedError") throw error;
      await this.restart();
    }
  }

  /** This browser wants one rate for everything: take its own, the worklets resample. */
  async restart() {
    if (this.context?.sampleRate !== RATE) return;
    this.closeContext();
    await this.start({ latencyHint: "interactive" });
    await this.connect("mic", this.streams.mic);
    await this.connect("out", this.streams.out);
  }

  get canChoose() {
    return "setSinkId" in HTMLMediaElement.prototype;
  }

  /** Throws a DOMException for one that cannot be used. */
  async useSpeaker(deviceId) {
    await this.context?.setSinkId?.(deviceId);
    await this.element?.setSinkId?.(deviceId);
    this.speaker = deviceId;
  }

  play(pcm) {
    this.player?.port.postMessage({ pcm }, [pcm]);
  }

  clear(epoch) {
    this.player?.port.postMessage({ clear: epoch });
  }

  /** Hold what is played, on either line. */
  pause(on) {
    this.player?.port.postMessage({ pause: on });
    if (this.element) this.element.muted = on;
  }

  reset(epoch) {
    this.epoch = epoch;
    this.player?.port.postMessage({ reset: epoch });
    if (this.element) this.element.muted = false;
  }

  closeContext() {
    const { context } = this;
    this.context = this.player = this.tap = null;
    this.sources = { mic: null, out: null };
    if (!context || context.state === "closed") return;
    context.onstatechange = null;
    context.close().catch(() => {});
  }

  close() {
    this.connectRemote(null);
    this.closeContext();
  }
}
