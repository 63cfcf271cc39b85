"""One connection of the simulated Live model: a clock made of audio, and what happens on it.

There are no tasks and no timers: each 100 ms of appended sound are one step, in which the model
hears, speaks, takes what was appended and lets faults strike. Without sound nothing happens, as
with the real one (protocols/openai-live sections 1, 5, 6 and 8).
"""

from __future__ import annotations

import asyncio
import base64
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tests.simulators.gpt_live_ear import FRAME_MS, STEP_MS, Ear, Fragment, Turn, Voice, fragment
from tests.simulators.gpt_live_out import Outgoing, Record, State
from tests.simulators.gpt_live_rules import Json, Refused, part, parts, read, word
from tests.simulators.gpt_live_work import Work, merged
from tests.simulators.openai_realtime_vad import decode, encode
from tests.simulators.realtime_script import Asked, Fault, Reply
from tests.simulators.realtime_server import Gone, Wire
from tests.simulators.tone_words import Samples

USAGE_MS = 15_000
YIELD_MS = 300
"""The model falls silent when the caller has talked over it for so long."""
TOOL_RUNNING_MS = 100
REASONS = frozenset({"expired", "content", "remote_hangup", "connection_lost"})
FATAL = frozenset(
    {
        *("insufficient_quota", "credit_balance_exhausted", "invalid_api_key", "forbidden"),
        *("account_deactivated", "billing_hard_limit_reached"),
    }
)
ACKED = {
    "session.instructions.append": "session.instructions.appended",
    "session.thinking.append": "session.thinking.appended",
    "session.commentary.append": "session.commentary.appended",
}
Backchannel = Callable[[str], bool]


class Session:
    """See the module. `max_session_s` is of its own clock."""

    def __init__(
        self, wire: Wire, record: Record, backchannel: Backchannel, max_session_s: float
    ) -> None:
        self.wire = wire
        self.script = wire.script
        self.record = record
        self._backchannel = backchannel
        self._limit_ms = max_session_s * 1_000
        self._work = Work()
        self.state = State()
        self._out = Outgoing(wire, self.state)
        self._input: Samples = np.zeros(0, np.int16)
        self._ear = Ear(self.script.read, 24_000, self.script.silence_ms)
        self._voice = Voice(self.script.speak, 24_000)

    async def serve(self) -> None:
        """Until either side ends it. Raises Gone."""
        async for frame in self.wire.messages():
            event: Json = {}
            try:
                event = read(frame)
                self.wire.received.append(event)
                await self._take(event)
            except Refused as refused:
                refused.event_id = refused.event_id or word(event.get("event_id")) or None
                await self._refuse(refused)
        await self.wire.at("closing")
        raise Gone

    async def _refuse(self, refused: Refused) -> None:
        self.record.violations.append(f"{refused.code}: {refused.message}")
        await self._out.error(refused, "invalid_request_error")
        if not self._started:
            await self.wire.close(1008, refused.code)

    async def own_fault(self, fault: Fault) -> None:
        """What only this provider does wrong."""
        if fault.action == "go_away":
            # Nothing is announced here: the session expires.
            self.state.expires_at = asyncio.get_running_loop().time() + fault.seconds
        elif fault.error_code in REASONS:
            await self._out.close(fault.error_code, {})
        else:
            code = fault.error_code or "server_error"
            await self._out.error(
                Refused(code, fault.reason or f"Simulated {code}."), "server_error"
            )
            if code in FATAL or not self._started:
                await self.wire.close(1008, code)

    # what the client sends -------------------------------------------------------------------

    @property
    def _started(self) -> bool:
        return bool(self.state.config)

    async def _take(self, event: Json) -> None:
        kind = word(event["type"])
        if kind == "session.start":
            await self._start(event)
            return
        if not self._started:
            raise Refused("session_not_started", "Send session.start first.")
        if kind in ACKED:
            self._check_append(event)
            self.state.appends.append(event)
        elif kind.startswith("response."):
            await self._take_response(kind, event)
        else:
            await self._take_other(kind, event)

    async def _start(self, event: Json) -> None:
        if self._started:
            raise Refused("session_already_started", "The session was started before.")
        await self.wire.at("setup")
        session = dict(part(event, "session"))
        session.setdefault("audio", {"format": {"type": "audio/pcm", "rate": 24_000}})
        if not session.get("delegation"):
            session["delegation"] = {"type": "client"}
        self.record.starts.append(session)
        state = self.state
        state.config = session
        for item in parts(session.get("input")):
            state.history.append((word(item["role"]), word(parts(item["content"])[0]["text"])))
        self._ear = Ear(self.script.read, self._out.rate, self.script.silence_ms)
        self._voice = Voice(self.script.speak, self._out.rate)
        await self._out.send("session.started", event, session=self._out.resource)
        await self.wire.at("opened")

    def _check_append(self, event: Json) -> None:
        known = event["delegation_id"] is None
        if not known and self._out.delegates_to != "client":
            text = "A delegation_id is not accepted with Responses delegation."
            raise Refused("invalid_value", text, "delegation_id")
        if not known and int(word(event["delegation_id"]).removeprefix("dlg_") or 0) not in range(
            1, self._work.delegations + 1
        ):
            raise Refused("invalid_value", "Unknown delegation_id.", "delegation_id")
        if self.state.fixture is not None:
            raise Refused("fixture_active", "A fixture is playing.")

    async def _take_response(self, kind: str, event: Json) -> None:
        if self._out.delegates_to != "responses":
            text = f"{kind} requires Responses delegation."
            raise Refused("invalid_request_error", text)
        if kind == "response.create":
            await self._go_on(self._work.go_on())
            return
        call_id = self._work.take(part(event, "item"))
        if call_id:
            self.record.outputs[call_id] = self._work.results[call_id]
            await self.wire.at("tool_answered")
        else:
            self.state.history.append(("user", self._work.typed))
            await self.wire.at("text_taken")

    async def _take_other(self, kind: str, event: Json) -> None:
        state = self.state
        match kind:
            case "session.input_audio.append":
                await self._hear(base64.b64decode(word(event["audio"])))
            case "session.input_audio.mute" | "session.input_audio.unmute":
                state.muted = kind.endswith(".mute")
                await self._out.send(f"{kind}d", event)
            case "session.update":
                merged(state.config, part(event, "session"))
                await self._out.send("session.updated", event, session=self._out.resource)
            case "session.output_audio.fixture.play":
                await self._play(event)
            case "session.close":
                await self.wire.at("closing")
                await self._out.close("close_requested", event)

    async def _play(self, event: Json) -> None:
        if self.state.fixture is not None:
            raise Refused("fixture_active", "A fixture is playing.")
        sound = np.frombuffer(base64.b64decode(word(event["audio"])), "<i2")
        size = len(sound) * self._out.rate // 24_000
        at = np.linspace(0, len(sound) - 1, size) if size else np.zeros(0)
        self._voice.play(np.interp(at, np.arange(len(sound)), sound).astype(np.int16))
        self.state.fixture = word(event.get("event_id"))
        await self._out.send("session.output_audio.fixture.playing", event)

    # the clock -------------------------------------------------------------------------------

    async def _hear(self, data: bytes) -> None:
        if self._out.format == "audio/pcm" and len(data) % 2:
            raise Refused("invalid_value", "Half a sample.", "audio")
        self._input = np.concatenate([self._input, decode(data, self._out.format)])
        size = self._out.rate * STEP_MS // 1_000
        while len(self._input) >= size:
            block, self._input = self._input[:size], self._input[size:]
            await self._step(np.zeros_like(block) if self._deaf else block)

    @property
    def _deaf(self) -> bool:
        return self.state.muted or self.state.fixture is not None

    async def _step(self, block: Samples) -> None:
        """100 ms go by."""
        state = self.state
        state.clock_ms += STEP_MS
        turn = self._ear.hear(block)
        await self.wire.at("caller_speaking" if self._ear.loud else "caller_silent")
        if turn is not None:
            await self._end_of_turn(turn)
        self._give_way()
        await self._speak()
        if state.clock_ms % FRAME_MS == 0:
            await self._tell("input", self._ear.frame(state.clock_ms))
            await self._tell("output", self._voice.frame(state.clock_ms))
        while state.appends:
            await self._append(state.appends.popleft())
        if state.running_at is not None and state.clock_ms >= state.running_at:
            state.running_at = None
            await self.wire.at("tool_running")
        if state.clock_ms % USAGE_MS == 0:
            await self._out.usage()
        over = asyncio.get_running_loop().time() >= state.expires_at
        if over or state.clock_ms >= self._limit_ms:
            await self._out.close("expired", {})

    async def _end_of_turn(self, turn: Turn) -> None:
        await self.wire.at("caller_stopped")
        self.record.turns.append(turn.text)
        at = math.ceil(self.state.clock_ms / FRAME_MS) * FRAME_MS
        await self._tell("input", fragment(turn.untold, at - FRAME_MS, at))
        self.state.history.append(("user", turn.text))
        await self.wire.at("turn_taken")
        if self._backchannel(turn.text):
            self.record.backchannels.append(turn.text)
        else:
            self._ask(Asked(by="speech", text=turn.text))

    def _give_way(self) -> None:
        """Fall silent for a caller who goes on talking."""
        ear, voice = self._ear, self._voice
        if not voice.speaking or self.state.fixture is not None or ear.spoken_ms < YIELD_MS:
            return
        if ear.loud and not self._backchannel(ear.words):
            voice.stop()
            self.state.due.clear()
            self.record.stopped += 1

    async def _speak(self) -> None:
        """The next 100 ms of the output."""
        state, voice = self.state, self._voice
        await self._begin_due()
        speaking = voice.speaking
        sound = encode(voice.block(), self._out.format)
        delta = base64.b64encode(sound).decode()
        await self.wire.send({"type": "session.output_audio.delta", "delta": delta})
        if speaking:
            await self.wire.at("mid_audio")
        if not speaking or voice.speaking:
            return
        if state.fixture is not None:
            event = {"event_id": state.fixture} if state.fixture else {}
            state.fixture = None
            await self._out.send("session.output_audio.fixture.played", event)
            return
        await self.wire.at("audio_done")
        await self.wire.at("item_done")
        await self.wire.at("response_done")

    async def _begin_due(self) -> None:
        """Say what is to be said now, unless somebody speaks."""
        state = self.state
        if self._voice.speaking or self._ear.speaking or not state.due:
            return
        if state.clock_ms < state.due[0][0]:
            return
        _, reply = state.due.popleft()
        await self.wire.at("response_started")
        if reply.text:
            await self.wire.at("before_audio")
            self.record.said.append(reply.text)
            state.history.append(("assistant", reply.text))
            self._voice.say(reply.text)
        if reply.calls:
            await self._delegate(reply)

    async def _tell(self, channel: str, words: Fragment | None) -> None:
        if words is None:
            return
        times = {"start_ms": words.start_ms, "end_ms": words.end_ms}
        await self._out.send(f"session.{channel}_transcript.delta", {}, delta=words.text, **times)
        if channel == "input":
            await self.wire.at("user_words")

    async def _append(self, event: Json) -> None:
        """Take an appended text at this moment of the session."""
        kind, content = word(event["type"]).split(".")[1], word(event["content"])
        delegation_id = word(event["delegation_id"]) or None
        self.record.appended.append((kind, content, delegation_id))
        at = self.state.clock_ms
        await self._out.send(ACKED[word(event["type"])], event, start_ms=at, end_ms=at)
        self.state.history.append((kind, content))
        if kind != "commentary":
            await self.wire.at("context_taken")
        if kind == "thinking" and delegation_id is None:
            self._ask(Asked(by="context", text=content))
        elif kind == "commentary" and delegation_id is not None:
            self.record.outputs[delegation_id] = content
            await self.wire.at("tool_answered")
            self._ask(Asked(by="results", results={delegation_id: content}))
        elif kind == "commentary":
            self._ask(self._request(content))

    def _request(self, content: str) -> Asked:
        """A commentary is about what was typed if it repeats it."""
        typed, self._work.typed = self._work.typed, ""
        if typed and typed in content:
            return Asked(by="text", text=typed, instruction=content)
        return Asked(by="request", instruction=content)

    # the model -------------------------------------------------------------------------------

    def _ask(self, asked: Asked) -> None:
        """Let the script answer; it is said when its time has come."""
        reply = self._answer(asked)
        if reply.text or reply.calls:
            at = self.state.clock_ms + round(reply.after_s * 1_000)
            self.state.due.append((at, reply))

    def _answer(self, asked: Asked) -> Reply:
        backend = part(self.state.config, "delegation", "responses")
        return self.script.answer(
            replace(
                asked,
                history=tuple(self.state.history),
                instructions=word(self.state.config.get("instructions")),
                tools=tuple(word(tool.get("name")) for tool in parts(backend.get("tools"))),
            )
        )

    async def _delegate(self, reply: Reply) -> None:
        """Give the calls of a reply to the backend, or to the client."""
        clock = self.state.clock_ms
        target = self._out.delegates_to
        for _ in reply.calls if target == "client" else (None,):
            await self._out.put(self._work.delegate(target, clock))
        if target == "responses":
            await self._respond(reply)
        await self.wire.at("tool_called")
        self.state.running_at = clock + TOOL_RUNNING_MS

    async def _respond(self, reply: Reply) -> None:
        tokens = self.script.tokens(self._work.responses + 1)
        for event in self._work.respond(reply, tokens):
            await self._out.put(event)

    async def _go_on(self, results: dict[str, str]) -> None:
        """The backend goes on with the outputs it was given; the voice tells what it says."""
        asked = Asked(by="results", results=results)
        if not results:
            typed, self._work.typed = self._work.typed, ""
            asked = Asked(by="text", text=typed) if typed else Asked(by="request")
        reply = self._answer(asked)
        await self._respond(reply)
        if reply.calls and reply.status == "completed":
            await self.wire.at("tool_called")
            self.state.running_at = self.state.clock_ms + TOOL_RUNNING_MS
        if reply.text and reply.status == "completed":
            at = self.state.clock_ms + round(reply.after_s * 1_000)
            self.state.due.append((at, Reply(text=reply.text)))
