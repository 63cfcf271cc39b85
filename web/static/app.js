// The page: one button, and what follows from pressing it. Binds the call to the views.

import { Call, insecure } from "./call.js";
import { Controls } from "./controls.js";
import { Developer, lineName } from "./developer.js";
import { button, clockTime, download, find, make } from "./dom.js";
import { Inspector } from "./inspector.js";
import { Keep } from "./keep.js";
import { Panel } from "./panel.js";
import { Slots } from "./slots.js";
import { bindTheme } from "./theme.js";
import { ToolCalls } from "./toolcalls.js";
import { Transcript } from "./transcript.js";
import { Waterfall } from "./waterfall.js";
import { Waveforms } from "./waveforms.js";

const page = document.documentElement;
const view = Object.fromEntries(
  ["talk", "talk-label", "state", "line", "clock", "notice", "save-sound", "save-timeline"].map(
    (id) => [id, find(id)]
  )
);
const WORDS = {
  listening: "Listening",
  thinking: "Thinking …",
  speaking: "Speaking. Talk over it any time.",
  muted: "Muted. You can type.",
};
const ADVICE = {
  busy: "Wait a moment and try again.",
  unsendable: "That part of the answer is missing here.",
  ERR_STT_CONNECTION: "The agent may not hear you. You can type meanwhile.",
  ERR_TTS_CONNECTION: "The agent may stay silent. Its words appear below.",
};
const METER_EVERY = 12; // levels between two values for screen readers

let call = null;
let last = null; // the call whose sound can be saved
let continued = false;

const now = () => call?.now() ?? 0;
const keep = new Keep();
const inspector = new Inspector(find("events"), now);
const waterfall = new Waterfall(find("turns"));
const panel = new Panel((name) => name === "events" && inspector.later());
const transcript = new Transcript(find("transcript"), find("empty"), (turn) => {
  panel.show("turns");
  waterfall.show(turn);
});
const tools = new ToolCalls((chip) => place(chip));
const slots = new Slots(find("slots"), (card) => place(card), {
  send: (message) => call?.send(message),
  settled: (id, outcome) => keep.add({ t: "settled", id, outcome }),
  asked: (title) => (find("asks").textContent = `The agent shows: ${title}`),
});
const developer = new Developer(find("developer"), {
  impair: (setting) => call?.impair(setting),
  speaker: (deviceId) => call?.useSpeaker(deviceId),
});
const waves = new Waveforms(
  {
    canvas: find("wave"),
    tip: find("mark-words"),
    legend: find("legend"),
    pause: find("wave-pause"),
    legendButton: find("wave-legend"),
  },
  now
);
const controls = new Controls({
  call: () => call,
  picture: showPicture,
  notice,
  mode: () => call && showState(page.dataset.state),
  read: (on) => transcript.readAloud(on),
  panel: () => page.dataset.view === "work" && panel.open(!panel.isOpen, true),
  sheet: () => {
    if (!panel.isSheet) return false;
    panel.open(false, true);
    return true;
  },
});

function place(card) {
  transcript.breakHere();
  transcript.add(card);
}

async function start({ resume = false } = {}) {
  notice(null);
  if (!resume) clear();
  continued = resume;
  if (resume) page.dataset.view = "work";
  const mine = new Call({
    message: (message) => call === mine && take(message),
    phase: (phase, words) => call === mine && showPhase(phase, words),
    level: showLevel,
    wave: (side, piece) => waves.wave(side, piece),
    line: showLine,
    devices: listDevices,
    notice,
  });
  call = last = mine;
  mine.setMode(controls.mode);
  if (developer.troubled) mine.impair(developer.setting);
  showPhase("connecting", null);
  await mine.start({ line: developer.line, deviceId: controls.device, resume });
  if (call !== mine) return;
  controls.enable(page.dataset.phase === "live");
  await listDevices();
}

async function listDevices(list) {
  await controls.listDevices(list);
  const speakers = (await call?.speakers()) ?? [];
  developer.listSpeakers(speakers);
  const heard = call?.hasMicrophone ? controls.deviceName : "none: type to talk";
  if (call) developer.fact("microphone", heard);
}

function clear() {
  for (const each of [transcript, tools, slots, waterfall, waves, inspector, keep]) each.clear();
}

/** What each message means to the views; the same for one that a reload brings back. */
const SHOW = {
  partial: ({ text }) => transcript.heardSoFar(text),
  utterance: (message) => {
    transcript.utterance(message);
    waterfall.utterance(message);
  },
  speech: (message) => transcript.speech(message),
  heard: (message) => transcript.heard(message),
  slot: (message) => slots.show(message),
  slot_removed: ({ id }) => slots.remove(id),
  metric: (message) => {
    if (message.name !== "turn_latency") return;
    transcript.latency(message);
    waterfall.latency(message);
  },
  event: ({ event }) => {
    waves.event(event);
    if (event.type === "turn") transcript.turn(event);
    else if (event.type === "tool") tools.tool(event);
  },
  settled: ({ id, outcome }) => slots.settle(id, outcome),
  picture: ({ name }) => transcript.picture(null, name),
};

const LIVE = {
  ready,
  state: ({ state }) => showState(state),
  error: (message) => {
    if (slots.refuse(message)) return;
    notice([message.message, ADVICE[message.code]].filter(Boolean).join(" "));
  },
};

function take(message) {
  inspector.add(message);
  keep.add(message);
  (LIVE[message.t] ?? SHOW[message.t])?.(message);
}

function ready({ callId, config, assistantName }) {
  if (keep.call !== null && keep.call !== callId) clear(); // what was kept is another call's
  keep.call = callId;
  slots.renew();
  if (continued) transcript.rule("Continued after reload");
  continued = false;
  developer.fact("call", callId);
  developer.fact("agent", assistantName);
  if (config) developer.fact("sound", `${config.rate / 1000} kHz, ${config.frame_ms} ms frames`);
}

function restore() {
  const kept = keep.load();
  for (const message of kept) {
    if (message.t !== "settled" && message.t !== "picture") inspector.add(message, null);
    SHOW[message.t]?.(message);
  }
  transcript.dropPartial();
}

function showPhase(phase, words) {
  page.dataset.phase = phase === "ended" ? "idle" : phase;
  if (phase === "live") page.dataset.view = "work"; // one that never comes up leaves it as it is
  const on = phase !== "ended";
  view["talk-label"].textContent = on ? "Hang up" : "Start talking";
  showLine(call?.kind, null);
  controls.enable(phase === "live");
  waves.run(phase === "live" || phase === "lost");
  if (phase === "connecting") view.state.textContent = "Connecting …";
  if (phase === "lost") view.state.textContent = "The connection was lost. Reconnecting …";
  if (phase === "ended") finish(words);
  for (const name of ["save-sound", "save-timeline"]) view[name].disabled = phase === "connecting";
  showClock();
}

function finish(words) {
  delete page.dataset.state;
  call = null;
  transcript.dropPartial();
  slots.renew();
  controls.rest();
  for (const side of ["in", "out"]) showMeter(side, 0, true);
  const never = page.dataset.view === "first";
  view.state.textContent = never
    ? "Press the button and speak."
    : "The call has ended. Press the button to call again.";
  if (words) notice(words);
}

function showLine(kind, words) {
  const phase = page.dataset.phase;
  const said = {
    connecting: "Connecting …",
    live: "Connected",
    lost: "Reconnecting …",
    idle: "Not connected",
  }[phase];
  view.line.replaceChildren(said);
  if (phase === "live" && kind) view.line.append(make("span", "more", ` · ${lineName(kind)}`));
  if (call && kind) developer.showLine(kind, words);
  if (words) transcript.rule(words);
}

function showState(state) {
  if (!state) return;
  page.dataset.state = state;
  const { hasMicrophone } = call ?? {};
  const listening = !hasMicrophone
    ? "Type to talk."
    : controls.mode === "push"
      ? "Hold Space to talk."
      : WORDS.listening;
  view.state.textContent = state === "listening" ? listening : (WORDS[state] ?? state);
}

let levels = 0;
function showLevel(side, level) {
  levels += 1;
  showMeter(side, level, levels % METER_EVERY < 2);
  const speaking = page.dataset.state === "speaking";
  if ((side === "out") === speaking)
    page.style.setProperty("--level", Math.min(1, level * 6).toFixed(3));
}

function showMeter(side, level, aloud) {
  const meter = find(`meter-${side}`);
  const shown = Math.min(1, Math.sqrt(level) * 1.8);
  meter.style.setProperty("--fill", shown.toFixed(3));
  if (aloud) meter.setAttribute("aria-valuenow", String(Math.round(shown * 100)));
}

function showClock() {
  view.clock.hidden = page.dataset.view === "first";
  if (call) view.clock.textContent = clockTime(now());
}

function showPicture(url, name) {
  transcript.picture(url, name);
  keep.add({ t: "picture", name });
}

/** What went wrong and what to do; several stand below each other, none twice. */
function notice(words) {
  const { notice: box } = view;
  if (!words) box.replaceChildren();
  else if (![...box.querySelectorAll("p")].some((one) => one.textContent === words)) {
    const close = box.querySelector("button") ?? button("Dismiss", "small", () => notice(null));
    box.append(make("p", "", words), close);
    while (box.querySelectorAll("p").length > 3) box.querySelector("p").remove();
  }
  box.hidden = !box.childElementCount;
}

view.talk.addEventListener("click", () => (call ? call.hangUp() : start()));
view["save-sound"].addEventListener("click", () => last && download(last.recording(), "call.wav"));
view["save-timeline"].addEventListener("click", () => {
  download(
    new Blob([inspector.log.timeline()], { type: "application/x-ndjson" }),
    "timeline.jsonl"
  );
});
setInterval(showClock, 500);
bindTheme(find("theme"), find("theme-words"));

const problem = insecure();
if (problem) notice(problem.message);
if (Call.resumable()) {
  restore();
  start({ resume: true });
}
