// One peer connection of a call: the microphone's track out, the server's voice in, and the
// messages of /ws on one data channel. Opened once, closed once; an ICE restart is a new line with
// the call's token, which is not its matter.

import { lineState, offer, trickle } from "./signals.js";

const GATHER_MS = 1000; // what is found later is sent by itself
const DISCONNECTED_MS = 2000; // a moment of bad radio is no lost line
const BEAT_MS = 500;
const SILENT_BEATS = 6; // the server sends 50 packets a second, always; ICE notices after 6 s
const HANG_UP_MS = 1000;

export function canWebRtc() {
  return typeof RTCPeerConnection === "function" && "addTransceiver" in RTCPeerConnection.prototype;
}

export class WebRtcLine {
  kind = "webrtc";
  lineId = null;

  /** `rtc` as /session gave it. `on.message(object)`, `on.remote(MediaStream)`,
   *  `on.closed({status?, full?, cause, hopeless?})`: none of them after `hangUp` or `abandon`. */
  constructor(rtc, on) {
    this.rtc = rtc;
    this.on = on;
    this.peer = null;
    this.channel = null;
    this.voice = null;
    this.track = null;
    this.late = []; // candidates that were found after the offer was written
    this.packets = { count: 0, missed: 0 };
    this.timers = {};
    this.leaving = new AbortController();
  }

  async open(token) {
    try {
      await this.connect(token);
    } catch (error) {
      // Only a server that was not reached is worth another try.
      const { status, full, message } = error;
      this.lost({ status, full, cause: message, hopeless: status !== 0 });
    }
  }

  async connect(token) {
    const peer = new RTCPeerConnection({
      iceServers: this.rtc.ice_servers ?? [],
      bundlePolicy: "max-bundle",
    });
    this.peer = peer;
    this.voice = peer.addTransceiver(this.track ?? "audio", { direction: "sendrecv" });
    if ("jitterBufferTarget" in this.voice.receiver) this.voice.receiver.jitterBufferTarget = 0;
    this.channel = peer.createDataChannel("events");
    this.channel.onmessage = ({ data }) => this.on?.message(JSON.parse(data));
    this.channel.onclose = () => this.lost({ cause: "the server closed the line" });
    peer.ontrack = ({ track }) => this.on?.remote(new MediaStream([track]));
    peer.onconnectionstatechange = () => this.watch();
    const gathered = this.gather();
    await peer.setLocalDescription(await peer.createOffer());
    await gathered;
    const answer = await offer(
      this.rtc.offer_url,
      { token, sdp: peer.localDescription.sdp },
      this.leaving.signal
    );
    this.lineId = answer.line_id;
    if (!this.on) return;
    await peer.setRemoteDescription({ type: "answer", sdp: answer.sdp });
    for (const candidate of this.late) this.trickle(candidate);
    this.late = null;
  }

  /** Until all candidates are in the offer, or a second has passed. */
  gather() {
    const { peer } = this;
    return new Promise((done) => {
      let written = false;
      const write = () => {
        written = true;
        done();
      };
      setTimeout(write, GATHER_MS);
      peer.onicecandidate = ({ candidate }) => {
        if (written) this.trickle(candidate);
        else if (!candidate) write();
      };
    });
  }

  trickle(candidate) {
    if (this.late && !this.lineId) this.late.push(candidate);
    else if (this.on) trickle(this.rtc.candidate_url, this.lineId, candidate);
  }

  watch() {
    clearTimeout(this.timers.disconnected);
    const state = this.peer.connectionState;
    if (state === "connected") this.timers.beat ??= setInterval(() => this.beat(), BEAT_MS);
    if (state === "failed") this.lost({ cause: "the connection failed" });
    else if (state === "disconnected") {
      const why = { cause: "the connection was lost" };
      this.timers.disconnected = setTimeout(() => this.lost(why), DISCONNECTED_MS);
    }
  }

  /** A line that went dead without a word: packets came, and come no more. */
  async beat() {
    let count = 0;
    for (const found of (await this.voice.receiver.getStats()).values()) {
      if (found.type === "inbound-rtp") count = found.packetsReceived;
    }
    if (count > this.packets.count) this.packets = { count, missed: 0 };
    else if (count) this.packets.missed += 1;
    if (this.packets.missed > SILENT_BEATS) this.lost({ cause: "no sound comes any more" });
  }

  /** Over, by itself. */
  lost(why) {
    const { on } = this;
    this.abandon();
    on?.closed(why);
  }

  /** `{state, cause}` by the server's word; nothing before it has answered. */
  async seenByServer() {
    return this.lineId ? lineState(this.lineId) : {};
  }

  /** Why there is no connection: the server's word, else what can be seen from here. */
  async cause() {
    const { cause } = await this.seenByServer();
    if (cause) return cause;
    if (!this.lineId) return "the server did not answer the offer";
    const state = this.peer.iceConnectionState;
    if (state === "connected" || state === "completed") return "the connection carries no messages";
    const theirs = (this.peer.remoteDescription?.sdp.match(/^a=candidate:/gm) ?? []).length;
    return `ICE: no pair of candidates works (ICE is ${state}; the server offered ${theirs})`;
  }

  send(message) {
    if (this.channel?.readyState === "open") this.channel.send(JSON.stringify(message));
  }

  /** The track carries the sound. */
  sound() {}

  /** Speak with this track from now on; null: with none. */
  microphone(track) {
    this.track = track;
    this.voice?.sender.replaceTrack(track).catch(() => {});
  }

  /** The word has to leave before the connection goes. */
  hangUp() {
    this.send({ t: "hangup" });
    this.on = null;
    if (this.channel?.readyState !== "open") return this.abandon();
    this.channel.onclose = () => this.abandon();
    setTimeout(() => this.abandon(), HANG_UP_MS);
  }

  /** Leave the line; the call waits on the server. */
  abandon() {
    this.on = null;
    clearTimeout(this.timers.disconnected);
    clearInterval(this.timers.beat);
    this.leaving.abort();
    this.peer?.close();
  }
}
