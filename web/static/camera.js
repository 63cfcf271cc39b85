// Pictures for the agent: the camera, one a second, or a file; scaled until they fit one message.

const EVERY_MS = 1000;
const MAX_BYTES = 48_000; // a message holds 64 KiB of text, and base64 makes four of three
const SIDES = [1024, 768, 512, 384, 256, 128];
const QUALITIES = [0.85, 0.7, 0.5, 0.35];

/** `{mime, data}` of a JPEG of at most 48 kB. `source`: a file, a blob or a playing video. */
export async function fitted(source) {
  const picture = await createImageBitmap(source);
  try {
    for (const side of SIDES) {
      const canvas = drawn(picture, side);
      for (const quality of QUALITIES) {
        const blob = await canvas.convertToBlob({ type: "image/jpeg", quality });
        if (blob.size <= MAX_BYTES) return { mime: "image/jpeg", data: await base64(blob) };
      }
    }
  } finally {
    picture.close();
  }
  throw new Error("the picture does not fit");
}

function drawn(picture, side) {
  const scale = Math.min(1, side / Math.max(picture.width, picture.height));
  const size = (length) => Math.max(1, Math.round(length * scale));
  const canvas = new OffscreenCanvas(size(picture.width), size(picture.height));
  const context = canvas.getContext("2d");
  context.fillStyle = "white"; // JPEG knows nothing transparent
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  return canvas;
}

async function base64(blob) {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  const pieces = [];
  for (let at = 0; at < bytes.length; at += 8190) {
    pieces.push(btoa(String.fromCharCode(...bytes.subarray(at, at + 8190))));
  }
  return pieces.join("");
}

export class Camera {
  /** `take({mime, data})` is called for each picture. */
  constructor(take) {
    this.take = take;
    this.stream = null;
    this.timer = null;
  }

  get on() {
    return this.stream !== null;
  }

  /** The camera's MediaStream for a preview, or null. */
  get preview() {
    return this.stream;
  }

  /** Throws an Error with words for a person when there is none. */
  async turn(on) {
    if (!on) return this.stop();
    if (this.on) return;
    try {
      this.stream = await navigator.mediaDevices.getUserMedia({
        video: { width: { ideal: 640 }, frameRate: { ideal: 5 } },
      });
    } catch (error) {
      throw new Error(
        error.name === "NotAllowedError"
          ? "The camera was refused. Allow it beside the address bar."
          : `The camera does not work here (${error.name}).`
      );
    }
    const [track] = this.stream.getVideoTracks();
    track.onended = () => this.stop();
    this.video = document.createElement("video");
    this.video.muted = true;
    this.video.playsInline = true;
    this.video.srcObject = this.stream;
    await this.video.play();
    this.shoot();
  }

  /** One picture now, the next a second later: never two at once. */
  async shoot() {
    const { video } = this;
    if (video.readyState >= HTMLMediaElement.HAVE_CURRENT_DATA) {
      const picture = await fitted(video).catch(() => null);
      if (picture && this.on) this.take(picture);
    }
    if (this.on && this.video === video) this.timer = setTimeout(() => this.shoot(), EVERY_MS);
  }

  stop() {
    clearTimeout(this.timer);
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    this.stream = null;
    if (this.video) this.video.srcObject = null;
  }
}
