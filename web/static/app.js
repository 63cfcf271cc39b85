// The page: one button, and what follows from pressing it. Binds the call to the views.

import { AgentView } from "./agent.js";
import { Call, insecure } from "./call.js";
import { Controls } from "./controls.js";
import { Developer, lineName } from "./developer.js";
import { clockTime, download, find, make } from "./dom.js";
import { Inspector } from "./inspector.js";
import { Keep } from "./keep.js";
import { Meters } from "./meters.js";
import { Notice } from "./notice.js";
import { Panel } from "./panel.js";
import { Past } from "./past.js";
import { Slots } from "./slots.js";
import { bindTheme } from "./theme.js";
import { ToolCalls } from "./toolcalls.js";
import { Transcript } from "./transcript.js";
import { Waterfall } from "./waterfall.js";
import { Waveforms } from "./waveforms.js";

const page = document.documentElement;
const IDS = ["talk", "talk-label", "state", "line", "clock", "save-sound", "save-timeline"];
const view = Object.fromEntries(IDS.map((id) => [id, find(id)]));
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
const CONTINUED = "Continued after reload";

let call = null;
let last = null; // the call whose sound can be saved
let continued = false;
const latencies = new Map(); // turn -> how long its answer took, for the notes below answers

const now = () => call?.now() ?? 0;
const keep = new Keep();
const meters = new Meters({ in: find("meter-in"), out: find("meter-out") });
const notices = new Notice(find("notice"));
const notice = (words) => notices.show(words);
const inspector = new Inspector(find("events"), now);
const waterfall = new Waterfall(find("turns"));
const panel = new Panel((name) => name === "events" && inspector.later());
const transcript = new Transcript(find("transcript"), find("empty"), (turn) => {
  panel.show("turns");
  waterfall.show(turn);
});
const tools = new ToolCalls((chip, id) => place(chip, slots.of(id)));
const slots = new Slots(find("slots"), (card) => place(card), {
  send: (message) => call?.send(message),
  asked: (title) => (find("asks").textContent = `The agent shows: ${title}`),
});
const past = new Past({ transcript, tools, slots, place });
const agent = new AgentView(
  { root: find("agent"), strip: find("agent-strip"), said: find("agent-said") },
  { offer: (on) => panel.offer("agent", on), open: () => panel.show("agent") }
);
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
  picture: (url, name) => past.picture(url, name),
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

function place(card, before) {
  const above = before?.isConnected ? before : null;
  if (!above) transcript.breakHere();
  transcript.add(card, above);
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
  for (const each of [transcript, tools, slots, past, agent, waterfall, waves, inspector, keep])
    each.clear();
  latencies.clear();
}

/** What only this page kept over a reload; the conversation itself comes from the server. */
const KEPT = {
  utterance: (message) => waterfall.utterance(message),
  metric: (message) => {
    if (message.name !== "turn_latency") return;
    latencies.set(message.turn, message);
    waterfall.latency(message);
  },
  event: ({ event }) => waves.event(event),
};

/** The provider of a realtime model was lost for a moment; the call was not. */
const reconnected = ({ outage_ms: ms }) => `The model was away for ${(ms / 1000).toFixed(1)} s`;

/** What each message means to the views. */
const SHOW = {
  timeline: drawPast,
  partial: ({ text }) => transcript.heardSoFar(text),
  utterance: (message) => {
    transcript.utterance(message);
    KEPT.utterance(message);
  },
  speech: (message) => transcript.speech(message),
  heard: (message) => transcript.heard(message),
  slot: (message) => slots.show(message),
  slot_removed: ({ id }) => slots.remove(id),
  metric: (message) => {
    KEPT.metric(message);
    if (message.name === "turn_latency") transcript.latency(message);
  },
  event: ({ event, behind }) => {
    KEPT.event({ event });
    agent.event(event);
    if (behind) transcript.reserve(behind, slots.of(event.id));
    if (event.type === "turn") transcript.turn(event);
    else if (event.type === "tool") tools.tool(event);
    else if (event.type === "reconnected" && !event.planned) transcript.rule(reconnected(event));
  },
};

const LIVE = {
  ready,
  state: ({ state }) => {
    continued = false; // all that was before has been told
    showState(state);
  },
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

function drawPast(message) {
  past.draw(message);
  for (const metric of latencies.values()) transcript.latency(metric);
  if (continued) transcript.rule(CONTINUED);
}

function ready({ callId, config, assistantName, inbox = null }) {
  if (keep.call !== null && keep.call !== callId) clear(); // what was kept is another call's
  keep.call = callId;
  slots.renew();
  agent.answers(inbox);
  if (continued) transcript.rule(CONTINUED); // unless what was said is drawn first
  developer.fact("call", callId);
  developer.fact("agent", assistantName);
  if (config) developer.fact("sound", `${config.rate / 1000} kHz, ${config.frame_ms} ms frames`);
}

function restore() {
  for (const message of keep.load()) {
    inspector.add(message, null);
    KEPT[message.t]?.(message);
  }
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
  agent.rest();
  controls.rest();
  meters.rest();
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

function showLevel(side, level) {
  meters.show(side, level);
  const speaking = page.dataset.state === "speaking";
  if ((side === "out") === speaking)
    page.style.setProperty("--level", Math.min(1, level * 6).toFixed(3));
}

function showClock() {
  view.clock.hidden = page.dataset.view === "first";
  if (call) view.clock.textContent = clockTime(now());
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
