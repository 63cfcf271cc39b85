// The page: one button, and what follows from pressing it. Binds line, audio and view.

import { Audio, insecure } from "./audio.js";
import { Line } from "./line.js";
import { Slots } from "./slots.js";
import { Transcript } from "./transcript.js";

const find = (id) => document.getElementById(id);
const page = document.documentElement;
const view = {
  talk: find("talk"),
  label: find("talk-label"),
  state: find("state"),
  line: find("line"),
  notice: find("notice"),
  mute: find("mute"),
  text: find("text"),
  send: find("send"),
};

const WORDS = {
  listening: "Listening",
  thinking: "Thinking …",
  speaking: "Speaking. Talk over it whenever you like.",
  muted: "Muted. You can type.",
};

let call = null; // {line, audio, muted, assistant}

const transcript = new Transcript(find("transcript"), find("empty"));
const slots = new Slots(find("slots"), (message) => call?.line.send(message));

async function start() {
  notice(null);
  transcript.clear();
  slots.clear();
  const audio = new Audio({
    onFrame: (pcm) => call?.line.sound(pcm),
    onReport: (report) => call?.line.send({ t: "playback", ...report }),
    onCleared: (cleared) => call?.line.send({ t: "cleared", ...cleared }),
    onLevel: showLevel,
  });
  const line = new Line({
    onMessage: (message) => take(message),
    onSound: (pcm) => audio.play(pcm),
    onPhase: showPhase,
  });
  call = { line, audio, muted: false, assistant: "the agent" };
  showPhase("connecting", null);
  try {
    await audio.open();
  } catch {
    notice("This browser cannot play sound here. You can read and type.");
  }
  try {
    await audio.listen();
  } catch (problem) {
    notice(problem.message);
  }
  if (call?.audio === audio) await line.begin();
}

function stop() {
  call?.line.hangUp();
}

function finish(words) {
  const ended = call;
  call = null;
  ended?.audio.close();
  transcript.dropPartial();
  slots.clear();
  setMuted(false);
  view.state.textContent = "The call has ended. Press the button to call again.";
  if (words) notice(words);
}

const MESSAGES = {
  ready: ({ assistantName, epoch }) => {
    call.assistant = assistantName;
    call.audio.reset(epoch);
    if (call.muted) call.line.send({ t: "mute", on: true });
    slots.clear();
  },
  state: ({ state }) => showState(state),
  partial: ({ text }) => transcript.heardSoFar(text),
  utterance: (message) => transcript.utterance(message),
  speech: (message) => transcript.speech(message),
  heard: (message) => transcript.heard(message),
  clear: ({ epoch }) => call.audio.clear(epoch),
  pause: () => call.audio.pause(true),
  resume: () => call.audio.pause(false),
  slot: (message) => slots.show(message),
  slot_removed: ({ id }) => slots.remove(id),
  metric: (message) => message.name === "turn_latency" && transcript.latency(message),
  event: ({ event }) => takeEvent(event),
  error: ({ message }) => notice(message),
};

function take(message) {
  if (call) MESSAGES[message.t]?.(message);
}

function takeEvent(event) {
  if (event.type === "turn") transcript.turn(event);
  else if (event.type === "tool") transcript.tool(event);
}

function showPhase(phase, words) {
  page.dataset.phase = phase === "ended" ? "idle" : phase;
  const live = phase === "live";
  const on = live || phase === "lost" || phase === "connecting";
  view.label.textContent = on ? "Hang up" : "Start talking";
  view.line.textContent = {
    connecting: "Connecting …",
    live: "Connected",
    lost: "Reconnecting …",
    ended: "Not connected",
  }[phase];
  for (const control of [view.text, view.send]) control.disabled = !live;
  view.mute.disabled = !live || !call?.audio.hasMicrophone;
  if (phase === "connecting") view.state.textContent = "Connecting …";
  if (phase === "lost") view.state.textContent = "The connection was lost. Reconnecting …";
  if (phase === "ended") {
    delete page.dataset.state;
    finish(words);
  }
}

function showState(state) {
  page.dataset.state = state;
  const deaf = state === "listening" && !call.audio.hasMicrophone;
  view.state.textContent = deaf ? "Type to talk." : WORDS[state] ?? state;
}

function showLevel(side, level) {
  const speaking = page.dataset.state === "speaking";
  if ((side === "out") === speaking) {
    page.style.setProperty("--level", Math.min(1, level * 6).toFixed(3));
  }
}

function notice(words) {
  view.notice.hidden = !words;
  view.notice.textContent = words ?? "";
}

function setMuted(on) {
  if (call) {
    call.muted = on;
    call.audio.mute(on);
    call.line.send({ t: "mute", on });
  }
  view.mute.setAttribute("aria-pressed", String(on));
  view.mute.title = on ? "Unmute the microphone (M)" : "Mute the microphone (M)";
}

view.talk.addEventListener("click", () => (call ? stop() : start()));
view.mute.addEventListener("click", () => call && setMuted(!call.muted));

find("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = view.text.value.trim();
  if (!text || !call) return;
  call.line.send({ t: "say", text });
  view.text.value = "";
});

document.addEventListener("keydown", (event) => {
  if (!call || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") call.line.send({ t: "interrupt" });
  else if (event.key.toLowerCase() === "m" && event.target !== view.text && !view.mute.disabled) {
    setMuted(!call.muted);
  }
});

window.addEventListener("pagehide", () => call?.line.hangUp());

const problem = insecure();
if (problem) notice(problem.message);
