"""Random calls: a provider's events in any legal order, a host's orders, slow tools, drops, moves.

The caller's turns are numbers in his samples, so that a connection hears for itself which of them
it was sent; each call, text and result is unique. What was lost and what came twice is known
exactly (DESIGN 5.6, 5.7, 5.8).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.realtime.by_hand import ByHand, HandAdapter, HandConnection, by_hand, unable
from tests.support.vloop import run_virtual
from voxglove.core.live import NO_TRANSCRIPT
from voxglove.core.messages import Message, ToolCall, result_text
from voxglove.core.tool import tool as as_tool
from voxglove.realtime.commands import AppendContext, RequestResponse, SendText, SendToolResults
from voxglove.realtime.events import (
    LOST,
    Audio,
    Interrupted,
    ItemDone,
    ResponseDone,
    ResponseStarted,
    ResponseStatus,
    Resumable,
    ToolCalls,
    ToolsCancelled,
    UserSpeech,
    UserTurn,
    Words,
)

TURN = 24_000 // 5
EXAMPLES = max(150, settings.default.max_examples if settings.default else 0)
"""More only with the soak profile."""
STEPS = (
    "speak", "speak", "speak", "take", "take", "words", "words", "begin", "begin", "sound", "sound",
    "end", "end", "call", "call", "withdraw", "cut_by_user", "handle", "drop", "move", "wait",
    "wait", "pause", "typed", "respond", "interrupt", "stop_speech", "context", "boundary",
)  # fmt: skip
HOSTS = {"speak", "typed", "respond", "interrupt", "stop_speech", "context", "boundary"}


@dataclass
class Mind:
    """What one connection's model knows, and what it is at."""

    wire: HandConnection
    knows: Counter[str]
    taken: dict[int, str] = field(default_factory=dict)
    worded: set[int] = field(default_factory=set)
    begun: set[str] = field(default_factory=set)
    running: str = ""
    item: str = ""
    read: int = 0


@dataclass
class Model:
    """A provider that keeps to the port's rules, and whose next step is drawn; and the host."""

    call: ByHand
    spoken: int = 0
    typed: list[str] = field(default_factory=list)
    waits: list[asyncio.Future[None]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    withdrawn: set[str] = field(default_factory=set)
    minds: dict[int, Mind] = field(default_factory=dict)
    handles: dict[str, Counter[str]] = field(default_factory=dict)
    count: int = 0

    @property
    def mind(self) -> Mind:
        """That of the connection which carries the session; it has read all that it was told."""
        number = self.call.session._run.parts.link.number  # type: ignore[union-attr]
        wire = self.call.adapter.connections[number - 1]
        mind = self.minds.get(number)
        if mind is None:
            handle = wire.setup.resume_handle
            known = Counter(self.handles[handle]) if handle else Counter[str]()
            known.update(_seed(wire.setup.history))
            mind = self.minds[number] = Mind(wire, known)
        for command in wire.commands[mind.read :]:
            if isinstance(command, AppendContext | SendText):
                mind.knows.update(_words(command.text))
            elif isinstance(command, SendToolResults):
                for output in command.outputs:
                    mind.knows.update(_words(output.text))
        mind.read = len(wire.commands)
        return mind

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    async def step(self, kind: str) -> None:
        if kind in ("wait", "pause"):
            await asyncio.sleep(0.2 if kind == "wait" else 2.5)
        elif kind in HOSTS or self.open:
            getattr(self, f"_{kind}")()
            await asyncio.sleep(0.001)

    @property
    def open(self) -> bool:
        return self.call.session.state == "open" and self.mind.wire.is_open

    async def finish(self) -> None:
        """The provider takes, words and answers all there is, until there is no more."""
        still = 0
        for _ in range(60):
            await asyncio.sleep(0.5)
            if not self.open:
                continue
            mind, before = self.mind, self.count
            while self._take():
                pass
            for _ in mind.taken:
                self._words()
            self._end()
            if self._asked() or self.call.session.working:
                self._begin()
                self._end()
            still = 0 if self.count != before or self.call.session.working else still + 1
            if still > 12:
                return
        raise AssertionError("the call never came to rest")

    # ---- the host

    def _speak(self) -> None:
        """A turn of 200 ms, whose samples are its number."""
        self.spoken += 1
        self.waits.append(self.call.session.user_speech(True))
        self.call.session.send_audio(np.full(TURN, self.spoken, np.int16).tobytes())
        self.waits.append(self.call.session.user_speech(False))

    def _typed(self) -> None:
        self.typed.append(self.name("typed"))
        self.waits.append(self.call.session.inject(kind="user", text=self.typed[-1]))

    def _respond(self) -> None:
        self.waits.append(self.call.session.respond("go on"))

    def _interrupt(self) -> None:
        self.call.session.interrupt()

    def _stop_speech(self) -> None:
        self.call.session.stop_speech()

    def _context(self) -> None:
        self.waits.append(self.call.session.inject(kind="context", text=self.name("context")))

    def _boundary(self) -> None:
        self.waits.append(self.call.session.user_speech(True))
        self.waits.append(self.call.session.user_speech(False))

    # ---- the provider

    def _take(self) -> bool:
        """Take the oldest turn in its sound that is not taken."""
        mind = self.mind
        sound = np.frombuffer(bytes(mind.wire.heard), np.int16)
        for turn in range(1, self.spoken + 1):
            places = np.flatnonzero(sound == turn)
            if turn in mind.taken or len(places) < TURN:
                continue
            item = mind.taken[turn] = self.name("item")
            start, end = (round(int(at) / 24) for at in (places[0], places[-1] + 1))
            mind.wire.say(UserSpeech("started", item), UserSpeech("stopped", item))
            mind.wire.say(UserTurn(item, start, end))
            return True
        return False

    def _words(self) -> None:
        mind = self.mind
        for turn, item in mind.taken.items():
            if turn not in mind.worded:
                mind.worded.add(turn)
                mind.wire.say(Words("user", item, f"said{turn}", True))
                return

    def _asked(self) -> list[str]:
        mind = self.mind
        asking = (one for one in mind.wire.commands if isinstance(one, RequestResponse | SendText))
        return [one.request_id for one in asking if one.request_id not in mind.begun]

    def _begin(self) -> None:
        mind = self.mind
        if not mind.running:
            mind.running = self.name("response")
            asked = next(iter(self._asked()), "")
            mind.begun.add(asked)
            mind.wire.say(ResponseStarted(mind.running, asked))

    def _sound(self) -> None:
        mind = self.mind
        if mind.running and not mind.item:
            mind.item = self.name("answer")
            mind.wire.say(Words("assistant", mind.item, f"about {mind.item}"))
        if mind.item:
            mind.wire.say(Audio(mind.item, bytes(24_000)))

    def _end(self, status: ResponseStatus = "completed", reason: str = "") -> None:
        mind = self.mind
        if mind.item:
            mind.wire.say(ItemDone(mind.item))
        if mind.running:
            mind.wire.say(ResponseDone(mind.running, status, reason))
        mind.item = mind.running = ""

    def _call(self) -> None:
        self._begin()
        mind, call_id = self.mind, self.name("call")
        self.calls.append(call_id)
        asked = ToolCall("book", {"word": call_id, "ms": 50 * (self.count % 40)}, call_id)
        mind.wire.say(ToolCalls(mind.running, (asked,)))
        self._end()

    def _withdraw(self) -> None:
        if self.calls:
            self.withdrawn.add(self.calls[-1])
            self.mind.wire.say(ToolsCancelled((self.calls[-1],)))

    def _cut_by_user(self) -> None:
        if self.mind.item:
            self.mind.wire.say(Interrupted(self.mind.item))
            self._end("cancelled")

    def _handle(self) -> None:
        handle = self.name("handle")
        self.handles[handle] = Counter(self.mind.knows)
        self.mind.wire.say(Resumable(handle))

    def _drop(self) -> None:
        self.call.adapter.connect_s = 0.3 * (self.count % 4)
        self._end("cancelled", LOST)
        self.mind.wire.drop()

    def _move(self) -> None:
        run = self.call.session._run
        assert run is not None
        self.call.adapter.connect_s = 0.3 * (self.count % 4)
        run.parts.link.move(0.0)


def _words(text: str) -> list[str]:
    return [word for word in text.split() if word.startswith(("typed", "result_", "context"))]


def _seed(history: tuple[Message, ...]) -> list[str]:
    found = []
    for message in history:
        found += [] if message.is_tool_results else _words(message.text)
        for result in message.tool_results:
            found += _words(result_text(result.result))
    return found


def _valid(history: tuple[Message, ...]) -> None:
    """Each call has its result right behind it, and each result its call (DESIGN 5.7)."""
    waiting: list[str] = []
    for message in history:
        if message.tool_results:
            assert [one.call_id for one in message.tool_results] == waiting
            waiting = []
        assert waiting == []
        waiting = [one.id for one in message.tool_calls]
    assert waiting == []


async def _book(word: str, ms: int) -> str:
    """Book a word, after a while."""
    await asyncio.sleep(ms / 1000)
    return f"result_{word}"


async def _held(steps: list[str], *, resumes: bool) -> None:
    adapter = HandAdapter(unable(resume=resumes))
    async with by_hand(as_tool(name="book")(_book), adapter=adapter) as call:
        model = Model(call)
        for kind in steps:
            await model.step(kind)
        await model.finish()
        run = call.session._run
        assert run is not None
        assert run.parts.floor.gap and not run.parts.asks.open and not call.session.working
        assert all(wait.done() for wait in model.waits)
        assert run.parts.ledger.pending == frozenset()
        knows = model.mind.knows
        assert set(call.problems) <= {"ERR_REALTIME_NO_RESPONSE"}
    messages = await call.agent.store.get_messages()
    said = [one.text for one in messages if one.is_user_turn and not one.text.startswith("typed")]
    known = [text for text in said if text != NO_TRANSCRIPT]
    assert len(said) == model.spoken, said
    assert known == sorted(set(known), key=lambda text: int(text[4:])), said
    typed = [one.text for one in messages if one.text in model.typed]
    assert typed == model.typed
    results = Counter(one.call_id for message in messages for one in message.tool_results)
    assert results == Counter(model.calls)
    finished = {
        str(one.result.data)
        for message in messages
        for one in message.tool_results
        if one.result.status == "success"
    }
    for setup in adapter.setups:
        _valid(setup.history)
    for wire in adapter.connections:
        asked = Counter(
            one.request_id for one in wire.commands if isinstance(one, RequestResponse | SendText)
        )
        assert not asked or max(asked.values()) == 1, asked
    twice = [word for word, count in knows.items() if count > 1]
    assert twice == [] and finished <= set(knows) and set(model.typed) <= set(knows)


FOUND = (
    "speak take move call",
    "speak speak take take call drop",
    "end words boundary sound wait interrupt take withdraw stop_speech call end call stop_speech"
    " sound cut_by_user move context typed handle end typed end respond handle pause cut_by_user"
    " begin move wait",
)
"""Calls that lost or repeated something once."""


@pytest.mark.parametrize("steps", FOUND)
def test_a_call_that_went_wrong_once(steps: str) -> None:
    for resumes in (False, True):
        run_virtual(_held(steps.split(), resumes=resumes))


# No shrinking: bounded time is worth more, and a failing call prints its steps.
@given(steps=st.lists(st.sampled_from(STEPS), max_size=40), resumes=st.booleans())
@settings(max_examples=EXAMPLES, phases=(Phase.explicit, Phase.generate))
def test_a_random_call_loses_and_repeats_nothing(steps: list[str], resumes: bool) -> None:
    run_virtual(_held(steps, resumes=resumes))
