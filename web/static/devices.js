// The microphone and the list of devices. Knows no line and no sound graph; its errors carry words
// that help a person.

const WANTED = { echoCancellation: true, noiseSuppression: true, autoGainControl: true };

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
      return new MicrophoneProblem(
        `The microphone does not work here (${error.name}). You can type.`
      );
  }
}

const NOUNS = { audioinput: "Microphone", audiooutput: "Speaker" };

/** `[{deviceId, label}]`. Browsers tell labels only to a page that has a microphone. */
export async function listDevices(kind) {
  const all = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
  return all
    .filter((device) => device.kind === kind && device.deviceId)
    .map(({ deviceId, label }, index) => ({
      deviceId,
      label: label || `${NOUNS[kind]} ${index + 1}`,
    }));
}

export class Microphone {
  /** `on.track(track | null)`: from now on this one; `on.notice(words)`. */
  constructor(on) {
    this.on = on;
    this.track = null;
    this.wanted = null; // the device that a person chose
    this.lost = false;
    this.state = { muted: false, listening: true, closed: false };
  }

  get muted() {
    return this.state.muted;
  }

  set muted(on) {
    this.state.muted = on;
    this.gate();
  }

  /** Whether push-to-talk lets it be heard. */
  set listening(on) {
    this.state.listening = on;
    this.gate();
  }

  gate() {
    if (this.track) this.track.enabled = this.state.listening && !this.state.muted;
  }

  /** Take the device (null: the default one) in place of the one there is, which stays when this
   *  throws. Throws MicrophoneProblem. */
  async open(deviceId = null) {
    const problem = insecure();
    if (problem) throw problem;
    const audio = deviceId ? { ...WANTED, deviceId: { exact: deviceId } } : WANTED;
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ audio });
    } catch (error) {
      throw explain(error);
    }
    const [track] = stream.getAudioTracks();
    if (this.state.closed) return track.stop(); // the call ended while a person was being asked
    this.drop();
    this.wanted = deviceId;
    this.lost = false;
    this.track = track;
    track.addEventListener("ended", () => this.unplugged(track));
    this.gate();
    this.on.track(track);
  }

  /** The device went away by itself. */
  async unplugged(track) {
    if (track !== this.track) return;
    this.drop();
    try {
      await this.open();
      this.on.notice("The microphone was unplugged. The call goes on with the default one.");
    } catch {
      this.lost = true;
      this.on.track(null);
      this.on.notice("The microphone was unplugged, and there is no other. Plug one in, or type.");
    }
  }

  /** One may be back. */
  async devicesChanged() {
    if (!this.lost || !(await listDevices("audioinput")).length) return;
    await this.open().then(
      () => this.on.notice("There is a microphone again."),
      () => {}
    );
  }

  drop() {
    const { track } = this;
    this.track = null;
    track?.stop();
  }

  close() {
    this.state.closed = true;
    this.drop();
  }
}
