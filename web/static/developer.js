// What a developer sets and sees: which line, trouble on it, the devices, the call's own numbers.

import { make } from "./dom.js";
import { remember, wish } from "./wishes.js";

const LINES = [
  ["auto", "Best there is"],
  ["webrtc", "WebRTC"],
  ["websocket", "WebSocket"],
];
const TROUBLE = [
  { name: "loss", words: "Loss", unit: "%", max: 50, step: 1, scale: 0.01, start: 0 },
  { name: "burst", words: "Burst", unit: "in a row", min: 1, max: 10, step: 1, scale: 1, start: 1 },
  { name: "jitter_ms", words: "Jitter", unit: "ms", max: 300, step: 10, scale: 1, start: 0 },
];
const SETTLE_MS = 200; // a slider on its way says nothing yet

export class Developer {
  /** `impair({loss, burst, jitter_ms, down})` and `speaker(deviceId)` are told to the call. */
  constructor(root, { impair, speaker }) {
    this.impair = impair;
    this.onSpeaker = speaker;
    this.values = Object.fromEntries(TROUBLE.map(({ name, start }) => [name, start]));
    this.facts = make("dl", "pairs facts");
    this.known = {};
    root.append(this.lines(), this.injector(), this.speakers(), group("This call", this.facts));
    this.environment();
  }

  /** What the next call shall use; the address may wish it too: ?line=websocket */
  get line() {
    return this.chosen;
  }

  lines() {
    const asked = new URL(location.href).searchParams.get("line");
    const names = LINES.map(([name]) => name);
    this.chosen = [asked, wish("line")].find((name) => names.includes(name)) ?? "auto";
    const set = fieldset("Line of the next call");
    for (const [name, words] of LINES) {
      const input = make("input", "");
      input.type = "radio";
      input.name = "line";
      input.value = name;
      input.checked = name === this.chosen;
      input.addEventListener("change", () => {
        this.chosen = name;
        remember("line", name);
      });
      set.append(make("label", "check", input, ` ${words}`));
    }
    this.lineWords = make("p", "hint", "No call yet.");
    this.lineWords.setAttribute("role", "status");
    set.append(this.lineWords);
    return set;
  }

  injector() {
    const set = fieldset("Trouble on the line");
    this.sliders = TROUBLE.map((knob) => this.slider(set, knob));
    this.down = make("input", "");
    this.down.type = "checkbox";
    this.down.addEventListener("change", () => this.tell());
    set.append(make("label", "check", this.down, " On the agent's sound too"));
    const reset = make("button", "small", "No trouble");
    reset.type = "button";
    reset.addEventListener("click", () => this.calm());
    this.trouble = make("p", "hint", "Off. Set it to hear how the call survives a bad network.");
    this.trouble.setAttribute("role", "status");
    set.append(make("div", "", reset), this.trouble);
    return set;
  }

  /** Where the agent's voice comes out; only where the browser lets one choose. */
  speakers() {
    this.speaker = make("select", "field");
    this.speaker.addEventListener("change", () => this.onSpeaker(this.speaker.value));
    this.speakerSet = fieldset("Loudspeaker");
    this.speaker.setAttribute("aria-label", "Loudspeaker");
    this.speakerSet.append(this.speaker);
    this.speakerSet.hidden = true;
    return this.speakerSet;
  }

  listSpeakers(list) {
    const options = list.map(({ deviceId, label }, n) => {
      const option = make("option", "", label || `Loudspeaker ${n + 1}`);
      option.value = deviceId;
      return option;
    });
    this.speakerSet.hidden = options.length < 2;
    this.speaker.replaceChildren(...options);
  }

  slider(set, { name, words, unit, min = 0, max, step, start }) {
    const input = make("input", "");
    Object.assign(input, { type: "range", min, max, step, value: start, id: `impair-${name}` });
    const shown = make("output", "", `${start} ${unit}`);
    shown.htmlFor = input.id;
    const label = make("label", "", words);
    label.htmlFor = input.id;
    input.addEventListener("input", () => {
      this.values[name] = Number(input.value);
      shown.textContent = `${input.value} ${unit}`;
      input.setAttribute("aria-valuetext", shown.textContent);
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.tell(), SETTLE_MS);
    });
    set.append(make("div", "slider", label, input, shown));
    return input;
  }

  calm() {
    this.down.checked = false;
    TROUBLE.forEach(({ start }, n) => {
      this.sliders[n].value = start;
      this.sliders[n].dispatchEvent(new Event("input"));
    });
    clearTimeout(this.timer);
    this.tell();
  }

  /** The setting in the call's own units. */
  get setting() {
    const values = TROUBLE.map(({ name, scale }) => [name, this.values[name] * scale]);
    return { ...Object.fromEntries(values), down: this.down.checked };
  }

  get troubled() {
    return this.values.loss > 0 || this.values.jitter_ms > 0;
  }

  tell() {
    const { loss, burst, jitter_ms: jitter } = this.values;
    const where = this.down.checked ? "both ways" : "on your sound";
    const runs = burst > 1 ? ` in runs of ${burst}` : "";
    this.trouble.textContent = this.troubled
      ? `${loss} % lost${runs}, up to ${jitter} ms late, ${where}.`
      : "Off.";
    this.impair(this.setting);
  }

  /** Which line carries the call, and why it is another than the wished one. */
  showLine(kind, words) {
    const why = words ? ` ${words}` : "";
    this.lineWords.textContent = `This call runs over ${lineName(kind)}.${why}`;
    this.fact("line", lineName(kind));
  }

  environment() {
    this.fact(
      "page",
      `${location.origin}, ${isSecureContext ? "secure" : "not secure: no microphone"}`
    );
    this.fact("WebRTC here", "RTCPeerConnection" in window ? "yes" : "no");
    this.fact("screen", `${innerWidth} × ${innerHeight}, ${devicePixelRatio} pixels per point`);
    this.fact("browser", navigator.userAgent);
  }

  fact(name, value) {
    let place = this.known[name];
    if (!place) {
      place = this.known[name] = make("dd", "");
      this.facts.append(make("dt", "", name), place);
    }
    place.textContent = String(value);
  }
}

export function lineName(kind) {
  return { webrtc: "WebRTC", websocket: "WebSocket" }[kind] ?? String(kind);
}

function fieldset(words) {
  return make("fieldset", "group", make("legend", "", words));
}

function group(words, ...children) {
  return make("div", "group", make("h3", "", words), ...children);
}
