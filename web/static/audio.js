// The browser's ears and mouth: microphone frames out, server sound in, on one AudioContext.
// Knows no socket and no page. `Microphone` errors carry words that help a person.

const RATE = 16000;

export class MicrophoneProblem extends Error {}

/** Why there can be no microphone here at all, or null. */
export function insecure() {
  if (window.isSecureContext && navigator.mediaDevices) return null;
  return new MicrophoneProblem(
    "This page is not on a secure connection, so the browser gives it no microphone. " +
      "Open it as http://localhost, or start the server with --tls and open https://. " +
      "You can type meanwhile."
  );
}

function explain(error) {
  switch (error.name) {
    case "NotAllowedError":
    case "SecurityError":
      return new MicrophoneProblem(
        "The microphone was refused. Allow it beside the address bar, hang up and start again. " +
          "You can type meanwhile."
      );
    case "NotFoundError":
    case "OverconstrainedError":
      return new MicrophoneProblem("No microphone was found. Plug one in, or type.");
    case "NotReadableError":
    case "AbortError":
      return new MicrophoneProblem(
        "The microphone is busy: another program uses it. Close that, or type."
      );
    default:
      return new MicrophoneProblem(`The microphone does not work here (${error.name}). You can type.`);
  }
}

export class Audio {
  /** `onFrame(ArrayBuffer)`, `onReport({epoch, pos})`, `onCleared({epoch, pos})`,
   *  `onLevel("in" | "out", 0..1)`. */
  constructor(handlers) {
    this.on = handlers;
    this.context = null;
    this.stream = null;
    this.player = null;
  }

  /** Speaker first, in the press of a button: browsers allow sound only there. */
  async open() {
    this.context = new AudioContext({ sampleRate: RATE, latencyHint: "interactive" });
    await this.startContext();
  }

  async startContext() {
    const context = this.context;
    context.onstatechange = () => {
      if (context.state === "suspended" || context.state === "interrupted") {
        context.resume().catch(() => {});
      }
    };
    await context.resume();
    await context.audioWorklet.addModule("/static/player-worklet.js");
    this.player = new AudioWorkletNode(context, "player", {
      numberOfInputs: 0,
      outputChannelCount: [1],
    });
    this.player.port.onmessage = ({ data }) => this.fromPlayer(data);
    this.player.connect(context.destination);
  }

  fromPlayer(data) {
    if (data.cleared) this.on.onCleared(data.cleared);
    if (data.report) {
      this.on.onReport(data.report);
      this.on.onLevel("out", data.empty ? 0 : data.level);
    }
  }

  /** Raises MicrophoneProblem; sound out works all the same. */
  async listen() {
    const problem = insecure();
    if (problem) throw problem;
    try {
      this.stream = await navigator.mediaDevices.getUserMedia({
        audio: { echoCancellation: true, noiseSuppression: true, autoGainControl: true },
      });
      await this.connectMicrophone();
    } catch (error) {
      throw error instanceof MicrophoneProblem ? error : explain(error);
    }
  }

  async connectMicrophone() {
    let source;
    try {
      source = this.context.createMediaStreamSource(this.stream);
    } catch (error) {
      if (error.name !== "NotSupportedError") throw error;
      // This browser wants one rate for everything: take its own, the worklets resample.
      await this.context.close();
      this.context = new AudioContext({ latencyHint: "interactive" });
      await this.startContext();
      source = this.context.createMediaStreamSource(this.stream);
    }
    await this.context.audioWorklet.addModule("/static/capture-worklet.js");
    const capture = new AudioWorkletNode(this.context, "capture", { numberOfOutputs: 0 });
    capture.port.onmessage = ({ data }) => {
      this.on.onFrame(data.pcm);
      this.on.onLevel("in", data.level);
    };
    source.connect(capture);
  }

  get hasMicrophone() {
    return this.stream !== null;
  }

  /** Muted, the microphone itself falls silent, not only what the server makes of it. */
  mute(on) {
    for (const track of this.stream?.getAudioTracks() ?? []) track.enabled = !on;
  }

  play(pcm) {
    this.player?.port.postMessage({ pcm }, [pcm]);
  }

  clear(epoch) {
    this.player?.port.postMessage({ clear: epoch });
  }

  pause(on) {
    this.player?.port.postMessage({ pause: on });
  }

  reset(epoch) {
    this.player?.port.postMessage({ reset: epoch });
  }

  async close() {
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    if (this.context && this.context.state !== "closed") {
      this.context.onstatechange = null;
      await this.context.close();
    }
  }
}
