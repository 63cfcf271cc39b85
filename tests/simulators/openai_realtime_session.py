"""One connection of the simulated OpenAI realtime model: its script played over the protocol.

`openai_realtime_wire` says what goes out and what is wanted; here it is sent, answers are played in
time, faults strike, and what the client did is written down.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.simulators.openai_realtime_answer import (
    Answer,
    AnswerStopped,
    AnswerWanted,
    EventTaken,
    ItemTaken,
    Refusal,
    Signal,
    SpeechChanged,
    Step,
    TurnTaken,
)
from tests.simulators.openai_realtime_checks import Json, word
from tests.simulators.openai_realtime_config import SAMPLE_RATES
from tests.simulators.openai_realtime_items import Item, call_of
from tests.simulators.openai_realtime_mind import Mind
from tests.simulators.openai_realtime_wire import EXPIRED, RealtimeWire
from tests.simulators.realtime_script import Call, Fault, Point, Reply
from tests.simulators.realtime_server import Gone, Wire

FATAL = {
    *("insufficient_quota", "credit_balance_exhausted", "invalid_api_key"),
    *("account_deactivated", "billing_hard_limit_reached"),
}
"""Errors after which nothing more comes, though the socket stays open: the client must act."""
SERVER_ERROR: Json = {
    "type": "server_error",
    "code": "server_error",
    "message": "The server had an error while processing your request.",
}
TRANSCRIBED = "conversation.item.input_audio_transcription."
UNINTELLIGIBLE = "The audio could not be understood."
TOOL_RUNNING_S = 0.1
PIECE_S = 0.005
"""Between the pieces of a call's arguments."""


@dataclass(slots=True)
class Record:
    """What a session did, for tests to ask about.

    turns        the words heard in each turn of the user's voice
    outputs      tool outputs by call id
    events       client events of good form
    violations   what a good client never does; refusals that only lost a race are in `refusals`
    """

    turns: list[str] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)
    events: list[Json] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)


class Session:
    """One connection: the protocol's half, and the model behind it. `start` are the settings that
    its key brought."""

    def __init__(
        self, socket: Wire, model: str, start: Json, record: Record, chunk_ms: int
    ) -> None:
        self.socket = socket
        self.script = socket.script
        self.record = record
        self.chunk_ms = chunk_ms
        self._answers: list[str] = []
        """Ids of the answers that were begun, in order."""
        self._outputs: set[str] = set()
        """Calls of this connection that have their output."""
        self.protocol = RealtimeWire(
            model,
            number=socket.number,
            silence_ms=self.script.silence_ms,
            total_tokens=self._tokens,
        )
        if start:
            self.protocol.config.update(start, busy=False)
        self.mind = Mind(self.protocol, self.script)
        self._group: asyncio.TaskGroup
        self._turn = asyncio.Lock()
        """Held while frames go out or a fault strikes: their order is the protocol's."""
        self._opened = False
        """The first session.update was taken."""
        self._untold: Item | None = None
        """A turn whose words wait to learn how late they are."""

    async def serve(self, max_session_s: float | None) -> None:
        """Until either side ends it."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                if max_session_s is not None:
                    group.create_task(self.expire(max_session_s))
                self.protocol.begin()
                await self._pump()
                async for frame in self.socket.messages():
                    self.protocol.receive(frame)
                    await self._pump()
                await self._at("closing")
                raise Gone
        except* Gone:
            pass  # the socket is closed, the tasks have ended

    async def expire(self, after_s: float) -> None:
        """End at the session's cap. Raises Gone."""
        await asyncio.sleep(after_s)
        await self.socket.send(self.protocol.error("session_expired", EXPIRED))
        await self.socket.close(1001, EXPIRED)

    async def own_fault(self, fault: Fault) -> None:
        """What only this provider does wrong."""
        if fault.action == "go_away":
            self._group.create_task(self.expire(fault.seconds))
        elif fault.error_code == "session_expired":
            await self.expire(0.0)
        else:
            text = fault.reason or f"The server had an error: {fault.error_code}."
            kind = "server_error" if fault.error_code == "server_error" else "invalid_request_error"
            await self.socket.send(self.protocol.error(fault.error_code, text, kind))
            if fault.error_code in FATAL:
                self.socket.silent.set()

    def _tokens(self, answer: Answer) -> int:
        """The context after an answer; one that was never begun changed nothing."""
        begun = self._answers
        return self.script.tokens(begun.index(answer.id) + 1 if answer.id in begun else len(begun))

    async def _pump(self) -> None:
        """Send and do what waits, in order."""
        async with self._turn:
            waiting: deque[Json | Signal] = deque(self.protocol.take())
            while waiting or self._untold is not None:
                if not waiting:
                    self._tell_words()
                    waiting.extend(self.protocol.take())
                    continue
                entry = waiting.popleft()
                if isinstance(entry, dict):
                    await self.socket.send(entry)
                    await self._sent(word(entry["type"]))
                else:
                    await self._heed(entry)
                    waiting.extend(self.protocol.take())

    async def _at(self, point: Point) -> None:
        async with self._turn:
            await self.socket.at(point)

    async def _sent(self, kind: str) -> None:
        """Faults that strike behind an event."""
        if kind.startswith(TRANSCRIBED) and kind.endswith(("completed", "failed")):
            await self.socket.at("user_words")
        elif kind == "session.updated" and not self._opened:
            self._opened = True
            await self.socket.at("opened")

    async def _heed(self, signal: Signal) -> None:
        """Do what the protocol's half asks for."""
        match signal:
            case EventTaken(event):
                await self._take_event(event)
            case Refusal(code, message, race):
                self.record.refusals.append(code)
                if not race:
                    self.record.violations.append(f"{code}: {message}")
            case Step(loud):
                await self.socket.at("caller_speaking" if loud else "caller_silent")
            case SpeechChanged(speaking=False):
                await self.socket.at("caller_stopped")
            case TurnTaken():
                await self._take_turn(signal)
            case ItemTaken(item):
                await self._take_item(item)
            case AnswerWanted(answer):
                self._start(answer)
            case SpeechChanged() | AnswerStopped():
                pass  # who plays the answer sees that it is over

    async def _take_event(self, event: Json) -> None:
        self.record.events.append(event)
        self.socket.received.append(event)
        if event["type"] == "session.update" and not self._opened:
            await self.socket.at("setup")

    async def _take_turn(self, turn: TurnTaken) -> None:
        text = self.script.read(turn.sound.samples, turn.sound.rate)
        self.mind.hear(turn.item, text)
        self.record.turns.append(text)
        self._tell_words()
        self._untold = turn.item if turn.transcribe else None
        await self.socket.at("turn_taken")

    async def _take_item(self, item: Item) -> None:
        self.mind.notice(item)
        if item.type == "function_call_output":
            call_id, output = call_of(item)
            if call_id in self._outputs:
                self.record.violations.append(f"second output for {call_id}")
            self._outputs.add(call_id)
            self.record.outputs[call_id] = output
            await self.socket.at("tool_answered")
        elif item.role == "user":
            await self.socket.at("text_taken")
        elif item.role == "system":
            await self.socket.at("context_taken")

    def _start(self, answer: Answer) -> None:
        """Think, and let the words of the turn come when the script says."""
        if answer.over:
            return
        self._answers.append(answer.id)
        reply = self.mind.reply(answer)
        if not reply.words_late_s:
            self._tell_words()
        answer.begin()
        late, self._untold = self._untold, None
        if late is not None:
            self._group.create_task(self._tell_late(late, reply.words_late_s))
        self._group.create_task(self._play(answer, reply))

    def _tell_words(self) -> None:
        """The words of the turn that waits for them; sound without any was not understood."""
        item, self._untold = self._untold, None
        if item is not None:
            self._transcribe(item)

    async def _tell_late(self, item: Item, late_s: float) -> None:
        await asyncio.sleep(late_s)
        self._transcribe(item)
        await self._pump()

    def _transcribe(self, item: Item) -> None:
        text = self.mind.words[item.id]
        if text:
            self.protocol.transcribe(item, text, list(_deltas(text)))
        else:
            self.protocol.transcription_failed(item, "audio_unintelligible", UNINTELLIGIBLE)

    async def _play(self, answer: Answer, reply: Reply) -> None:
        """Give an answer, as fast as the script's speed."""
        await self._at("response_started")
        await asyncio.sleep(reply.after_s)
        if reply.text or not reply.calls:
            ends_well = reply.status == "completed" or bool(reply.calls)
            await self._message(answer, reply.text, ends_well)
        for at, call in enumerate(reply.calls, 1):
            whole = reply.status == "completed" or at < len(reply.calls)
            await self._call(answer, call, whole)
        if answer.over:
            return
        match reply.status:
            case "incomplete":
                answer.finish("incomplete", "max_output_tokens")
            case "failed":
                answer.finish("failed", error=SERVER_ERROR)
            case _:
                answer.finish()
        await self._pump()
        await self._at("response_done")
        if reply.calls:
            await self._at("tool_called")
            await asyncio.sleep(TOOL_RUNNING_S)
            await self._at("tool_running")

    async def _call(self, answer: Answer, call: Call, whole: bool) -> None:
        """One function call in two pieces; one of them where the answer ends badly in it."""
        text = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
        answer.call(call.name, call.id)
        answer.arguments(text[: len(text) // 2])
        await self._pump()
        if whole:
            await asyncio.sleep(PIECE_S)
            answer.arguments(text[len(text) // 2 :])
            answer.end_call()
            await self._pump()

    async def _message(self, answer: Answer, text: str, ends_well: bool) -> None:
        """One message, by voice or in writing; left open where the answer ends badly in it."""
        item_id = answer.message()
        self.mind.words[item_id] = text
        await self._pump()
        if answer.text_only:
            for delta in _deltas(text):
                answer.say(delta)
        else:
            await self._at("before_audio")
            await self._speak(answer, text)
        if answer.over or not ends_well:
            return
        answer.end_message()
        await self._pump()
        if not answer.text_only:
            await self._at("audio_done")
        await self._at("item_done")

    async def _speak(self, answer: Answer, text: str) -> None:
        """Chunks of sound, each word told with the chunk it begins in."""
        rate = SAMPLE_RATES[answer.format]
        samples = self.script.speak(text, rate)
        size = rate * self.chunk_ms // 1_000
        words = deque(_deltas(text))
        share = len(samples) / max(1, len(words))
        told = 0
        for start in range(0, len(samples), size):
            while words and told * share < start + size:
                answer.say(words.popleft())
                told += 1
            answer.sound(samples[start : start + size])
            await self._pump()
            await self._at("mid_audio")
            await asyncio.sleep(self.chunk_ms / 1_000 / self.script.speed)
            if answer.over:
                return


def _deltas(text: str) -> Iterator[str]:
    """A text word by word, each with the space before it."""
    for index, one in enumerate(text.split()):
        yield f" {one}" if index else one
