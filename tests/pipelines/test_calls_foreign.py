"""Parts that break their own contract: a user's model, a vendor's voice, a recogniser, a turn
detector, a store, a log. None of them ends the call, each is told, and what does not need the
part goes on.

Every part here raises an exception that its port does not name (DESIGN 6: a reply's own failure
becomes an event at the reply boundary).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import ClassVar

import pytest

from tests.support.calls import CallScript, Does, Held, Live, Says, SpanVad, at, hold_call
from tests.support.timed import TimedModel, TimedTts, TimedVoice
from voxglove.adapters.models.scripted import Text, say
from voxglove.adapters.stt.port import SttSink
from voxglove.adapters.stt.scripted import ScriptedStt, SttFaults
from voxglove.adapters.tts.port import TtsEvent
from voxglove.adapters.tts.scripted import TtsFaults
from voxglove.core.cancel import CancelToken
from voxglove.core.errors import StoreError
from voxglove.core.messages import Message, MessagePatch
from voxglove.core.model import ModelRequest, ModelResult, Notify
from voxglove.core.stores.memory import MemoryStore
from voxglove.media import brain, events
from voxglove.media.frame import AudioFrame
from voxglove.media.pcm import Samples
from voxglove.media.vad.port import VadEvent
from voxglove.pipelines import vocabulary as voc
from voxglove.pipelines.detectors.port import Decision, TurnQuery

HELLO = Says(0.3, 0.9, "Hello?")
AGAIN = Says(6.0, 6.6, "Again?")
REPLY = "alpha bravo charlie delta."


class Foreign(Exception):
    """Something no port knows."""


def codes(held: Held) -> list[str]:
    """Codes of the problems told, each once, in order."""
    return list(dict.fromkeys(event.code for event in held.of(events.Problem)))


def assert_lives(held: Held, last: str) -> None:
    """The call ended by its own hang-up and said `last` before it."""
    assert held.reason == "hangup", held.told()
    assert held.answers and held.answers[-1].heard == last, held.told()


def says(when: float, text: str) -> Does:
    """Typed at `when` seconds."""
    return Does(when, lambda live: live.command(brain.Say(text)))


# ---- models


class RaisingModel(TimedModel):
    """The first request raises `error`."""

    error: ClassVar[BaseException] = Foreign("the model broke")

    async def prompt(
        self, request: ModelRequest, notify: Notify, token: CancelToken
    ) -> ModelResult:
        if not self.requests:
            self.requests.append(request)
            raise self.error
        return await super().prompt(request, notify, token)


class CancelledModel(RaisingModel):
    error = asyncio.CancelledError("from within")


class GroupModel(RaisingModel):
    error = ExceptionGroup("two", [Foreign("one"), ValueError("two")])


@pytest.mark.parametrize("mind", [RaisingModel, CancelledModel, GroupModel])
async def test_a_model_that_raises_anything_ends_its_answer_only(mind: type[TimedModel]) -> None:
    held = await hold_call(CallScript(caller=[HELLO, AGAIN], model=[REPLY], mind=mind, seconds=10))
    assert_lives(held, REPLY)
    assert codes(held) == ["ERR_GLOVE_REQUEST"]
    thinking = held.when(events.Mode, mode="thinking")
    listening = [t for t, e in held.timeline if isinstance(e, events.Mode)
                 and e.mode == "listening" and t > thinking]  # fmt: skip
    assert listening[0] < at(3), held.told()


# ---- voices


class BrokenTts(TimedTts):
    """Raises where `broken` says."""

    broken = ""

    def _break(self, where: str) -> None:
        if self.broken == where:
            raise Foreign(f"{where} broke")

    async def open(self) -> None:
        self._break("open")
        await super().open()

    def send_text(self, text: str) -> None:
        self._break("send_text")
        super().send_text(text)

    def flush(self) -> None:
        self._break("flush")
        super().flush()

    async def events(self) -> AsyncIterator[TtsEvent]:
        async for event in super().events():
            yield event
            self._break("events")

    async def aclose(self) -> None:
        await super().aclose()
        self._break("aclose")


class BrokenVoice(TimedVoice):
    """The first voices are broken, later ones whole."""

    where = ""
    count = 2

    def __call__(self) -> TimedTts:
        number = len(self.made)
        voice = BrokenTts(timing=self.timing)
        self.made.append(voice)
        if number < self.count:
            voice.broken = self.where
            if self.where == "factory":
                raise Foreign("factory broke")
        return voice


VOICE_PLACES = ["factory", "open", "send_text", "flush", "events"]


@pytest.mark.parametrize("where", VOICE_PLACES)
async def test_a_voice_that_raises_anything_ends_its_answer_only(where: str) -> None:
    # The one made ready ahead of time breaks unnoticed, then the answer's own.
    count = 2 if where in ("factory", "open") else 1
    voice = type("Voice", (BrokenVoice,), {"where": where, "count": count})
    held = await hold_call(
        CallScript(caller=[HELLO, AGAIN], model=[REPLY, REPLY], voice=voice, seconds=10)
    )
    assert_lives(held, REPLY)
    assert codes(held) == ["ERR_TTS_FAILED"], held.told()
    first = next(m for m in held.history if m.sender == "agent")
    assert first.playback == "settled" and first.interrupted, held.told()
    assert "listening" in held.modes[2:], held.modes


@pytest.mark.parametrize("where", VOICE_PLACES)
async def test_a_voice_that_raises_anything_fails_its_narration_only(where: str) -> None:
    voice = type("Voice", (BrokenVoice,), {"where": where, "count": 1})
    held = await hold_call(
        CallScript(
            caller=[AGAIN],
            model=[REPLY],
            voice=voice,
            does=[Does(1.0, lambda live: live.command(brain.Narrate("one two three.")))],
            seconds=10,
        )
    )
    assert_lives(held, REPLY)
    assert codes(held) == ["ERR_TTS_FAILED"], held.told()
    assert held.futures[0].done() and held.futures[0].exception() is not None


async def test_a_voice_that_cannot_be_closed_costs_nothing() -> None:
    voice = type("Voice", (BrokenVoice,), {"where": "aclose", "count": 99})
    held = await hold_call(
        CallScript(caller=[HELLO, AGAIN], model=[REPLY, REPLY], voice=voice, seconds=10)
    )
    assert_lives(held, REPLY)
    assert [answer.heard for answer in held.answers] == [REPLY, REPLY]
    assert codes(held) == []


async def test_a_voice_stalls_also_when_its_text_ended_while_it_was_silent() -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO],
            model=[say("alpha bravo. ", Text("charlie delta.", 1_000))],
            tts_faults={0: TtsFaults(stalls_at=0)},
            seconds=20,
        )
    )
    assert codes(held) == ["ERR_TTS_STALLED"], held.told()
    assert held.modes[-2] == "listening"


async def test_a_cut_does_not_wait_for_a_voice_that_is_silent() -> None:
    """A synthesiser between two pieces of sound neither delays the next answer nor stays open."""
    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(2.0, 2.6, "Stop, something else?")],
            model=[REPLY, "echo."],
            tts_faults={0: TtsFaults(stalls_at=8_000)},
            seconds=8,
        )
    )
    assert_lives(held, "echo.")
    committed = [t for t, e in held.timeline if isinstance(e, events.Turn)
                 and e.event == "committed"]  # fmt: skip
    asked = held.sample(held.model.asked_at[1])
    assert asked - committed[1] < at(0.1), held.told()
    assert held.voices[0].closed


# ---- recognisers and detectors


class BrokenStt(ScriptedStt):
    """Raises where `broken` says, always."""

    broken = ""

    def _break(self, where: str) -> None:
        if self.broken == where:
            raise Foreign(f"{where} broke")

    def send_audio(self, frame: AudioFrame) -> None:
        self._break("send_audio")
        super().send_audio(frame)

    def flush(self, end: int) -> None:
        self._break("flush")
        super().flush(end)

    def ask(self, end: int) -> None:
        self._break("ask")
        super().ask(end)

    def settle(self, end: int) -> None:
        super().settle(end)
        self._break("settle")

    async def aclose(self) -> None:
        await super().aclose()
        self._break("aclose")


@pytest.mark.parametrize("where", ["send_audio", "flush", "ask", "settle", "aclose"])
@pytest.mark.parametrize("continuous", [False, True], ids=["gated", "continuous"])
async def test_a_recogniser_that_raises_anything_leaves_typing_and_time(
    where: str, continuous: bool
) -> None:
    ear = type("Ear", (BrokenStt,), {"broken": where})
    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(1.6, 2.2, "mm-hm")],
            model=[REPLY] * 4,
            ear=ear,
            continuous=continuous,
            does=[says(10.0, "Anyone?")],
            seconds=16,
        )
    )
    assert_lives(held, REPLY)
    assert held.turns[-1] == "Anyone?"
    if where not in ("aclose", "ask", "flush" if continuous else ""):
        assert codes(held) == ["ERR_STT_FAILED"], held.told()
    ticks = [event.at for event in held.log if isinstance(event, voc.Tick)]
    assert len(ticks) >= 16 * 50 - 1


class ReconnectStt(ScriptedStt):
    """Its second and third connect raise something foreign."""

    tried = 0

    async def connect(self, sink: SttSink) -> None:
        self.tried += 1
        if self.tried in (2, 3):
            raise Foreign("the network library broke")
        await super().connect(sink)


async def test_a_recogniser_whose_reconnect_raises_anything_is_tried_again() -> None:
    held = await hold_call(
        CallScript(
            caller=[Says(9.0, 9.6, "Hello?")],
            model=[REPLY],
            ear=ReconnectStt,
            stt_faults=SttFaults(closed_at=at(0.5)),
            continuous=True,
            seconds=13,
        )
    )
    assert_lives(held, REPLY)
    assert "ERR_STT_CONNECTION" in codes(held)


class SlowStt(ScriptedStt):
    """Takes longer to connect than frames are kept for."""

    async def connect(self, sink: SttSink) -> None:
        await asyncio.sleep(7)
        await super().connect(sink)


async def test_a_recogniser_that_connects_slowly_still_gives_a_whole_call() -> None:
    held = await hold_call(
        CallScript(
            caller=[Says(8.0, 8.6, "Hello?")],
            model=[REPLY, "echo."],
            ear=SlowStt,
            does=[Does(12.0, lambda live: live.command(brain.Respond("go on")))],
            seconds=16,
        )
    )
    assert_lives(held, "echo.")
    assert held.modes[0] == "listening"


class BrokenVad(SpanVad):
    """Raises from 1 s on."""

    def process(self, frame: Samples, at: int) -> list[VadEvent]:
        if at >= 16_000:
            raise Foreign("the voice model broke")
        return super().process(frame, at)


async def test_a_voice_detector_that_raises_anything_leaves_typing() -> None:
    held = await hold_call(
        CallScript(model=[REPLY], vad=BrokenVad, does=[says(3.0, "Anyone?")], seconds=8)
    )
    assert_lives(held, REPLY)
    assert codes(held) == ["ERR_VAD"]
    assert len(held.of(events.Problem)) < 10


class BrokenDetector:
    async def decide(self, query: TurnQuery) -> Decision:
        raise Foreign("the turn model broke")


async def test_a_turn_detector_that_raises_anything_falls_back() -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO, AGAIN], model=[REPLY, REPLY], detector=BrokenDetector(), seconds=10
        )
    )
    assert_lives(held, REPLY)
    assert codes(held) == ["ERR_TURN_DETECTOR"]
    reasons = [e.reason for e in held.of(events.Turn) if e.event == "committed"]
    assert reasons == ["fallback:question"] * 2


# ---- stores, displays, logs


class BrokenStore(MemoryStore):
    """Amendments raise."""

    error: ClassVar[Exception] = StoreError("the disk is full")

    async def amend_message(self, message_id: str, patch: MessagePatch) -> Message:
        raise self.error


class ForeignStore(BrokenStore):
    error = Foreign("the driver broke")


@pytest.mark.parametrize("store", [BrokenStore, ForeignStore])
async def test_a_store_that_cannot_amend_is_told_and_the_call_goes_on(
    store: type[MemoryStore],
) -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(2.2, 2.8, "Wait, no?"), AGAIN],
            model=[REPLY, "echo.", REPLY],
            store=store(),
            does=[Does(4.5, lambda live: live.command(brain.Inject("context", "It rains.")))],
            seconds=10,
        )
    )
    assert_lives(held, REPLY)
    assert codes(held) == ["ERR_STORE"]


class AppendStore(MemoryStore):
    """The first message cannot be stored."""

    tried = 0

    async def append_messages(self, messages: object) -> None:
        self.tried += 1
        if self.tried == 1:
            raise Foreign("the driver broke")
        await super().append_messages(messages)  # type: ignore[arg-type]


async def test_a_store_that_cannot_append_fails_that_answer_only() -> None:
    held = await hold_call(
        CallScript(caller=[HELLO, AGAIN], model=[REPLY], store=AppendStore(), seconds=10)
    )
    assert_lives(held, REPLY)
    assert codes(held) == ["ERR_GLOVE_REQUEST"]


async def test_a_display_listener_and_a_sink_that_raise_are_left_alone() -> None:
    def hostile(live: Live) -> None:
        def fail(*_: object) -> None:
            raise Foreign("a page broke")

        live.agent.display.subscribe(fail)
        live.call.subscribe(fail)

    held = await hold_call(
        CallScript(
            caller=[HELLO],
            model=[REPLY],
            does=[
                Does(0.0, hostile),
                Does(0.5, lambda live: live.agent.display.push_and_forget("card", {})),
            ],
            seconds=6,
        )
    )
    assert_lives(held, REPLY)


async def test_a_turn_log_that_cannot_be_written_is_given_up() -> None:
    tried: list[voc.TurnEvent] = []

    def record(event: voc.TurnEvent) -> None:
        tried.append(event)
        raise OSError("no space left on device")

    held = await hold_call(CallScript(caller=[HELLO], model=[REPLY], record=record, seconds=6))
    assert_lives(held, REPLY)
    assert codes(held) == ["ERR_RECORDING"]
    assert len(tried) == 1
