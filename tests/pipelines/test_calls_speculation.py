"""Speculative recognition on whole calls: the words are the same, only earlier.

The real `WhisperStt` hears a microphone whose every sample says where it was recorded, so that the
model that stands in for Whisper can tell which words it was given. Jobs are frame-clocked: a text
counts 300 ms after it was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from tests.support.calls import RATE, CallScript, Does, Held, Says, hold_call
from tests.support.invariants import check_all
from voxglove.adapters.stt.port import SttEvent, SttSink
from voxglove.adapters.stt.scripted import ScriptedStt, Spoken
from voxglove.adapters.stt.whisper import WhisperStt
from voxglove.media import events
from voxglove.media.brain import Say
from voxglove.media.frame import AudioFrame
from voxglove.media.inference import InferencePool, Jobs
from voxglove.media.pcm import Samples
from voxglove.pipelines.commit import TurnConfig

MARK = RATE // 1000
"""Samples that carry one number: a millisecond."""


def marked(seconds: float) -> Samples:
    """Sound whose samples say at which millisecond they were recorded, beginning with 1."""
    return (1 + np.arange(round(seconds * RATE)) // MARK).astype(np.int16)


class Reader:
    """A model that reads the marks: the words whose middle it was given."""

    def __init__(self, script: Sequence[Spoken]) -> None:
        self._words = [word for one in script for word in one.timed()]
        self.given: list[tuple[int, int]] = []
        """First and last millisecond of each piece of work."""
        self.broken: Callable[[int], bool] = lambda _: False
        """Whether work on audio up to that millisecond fails."""

    def transcribe(self, samples: Samples) -> str:
        heard = {int(one) - 1 for one in np.unique(samples) if one}
        self.given.append((min(heard, default=0), max(heard, default=0)))
        if self.broken(self.given[-1][1]):
            raise RuntimeError("out of memory")
        return " ".join(
            word.text for word in self._words if (word.start + word.end) // 2 // MARK in heard
        )


class AskedEar(ScriptedStt):
    """The real recogniser over `Reader`, where a call test expects a scripted one."""

    def __init__(self, script: Sequence[Spoken], jobs: Jobs, reader: Reader) -> None:
        super().__init__(script)
        self._inner = WhisperStt(reader, jobs)

    async def connect(self, sink: SttSink) -> None:
        def keep(event: SttEvent) -> None:
            self.reported.append(event)
            sink(event)

        await self._inner.connect(keep)

    def send_audio(self, frame: AudioFrame) -> None:
        self._inner.send_audio(frame)

    def flush(self, end: int) -> None:
        self._inner.flush(end)

    def ask(self, end: int) -> None:
        self._inner.ask(end)

    def speculate(self, end: int | None) -> None:
        self._inner.speculate(end)

    def settle(self, end: int) -> None:
        self._inner.settle(end)

    async def aclose(self) -> None:
        await self._inner.aclose()


@pytest.fixture
def pool() -> Iterator[InferencePool]:
    pool = InferencePool(2)
    yield pool
    pool.close()


def spoken(caller: Sequence[Says]) -> list[Spoken]:
    return [Spoken(round(s.start * RATE), round(s.end * RATE), s.text) for s in caller if s.text]


async def hold(
    pool: InferencePool,
    caller: Sequence[Says],
    *,
    ahead: bool = True,
    reader: Reader | None = None,
    **script: object,
) -> tuple[Held, Reader, Jobs]:
    """The call, with or without speculation."""
    reader = reader or Reader(spoken(caller))
    jobs = Jobs(pool)
    held = await hold_call(
        CallScript(
            caller=caller,
            model=["alpha bravo charlie delta echo foxtrot.", *["sure kilo."] * 4],
            sound=marked(7),
            jobs=jobs,
            ear=lambda script, **_: AskedEar(script, jobs, reader),
            turn=TurnConfig(acknowledge_after_ms=0, speculate=ahead),
            **script,  # type: ignore[arg-type]
        )
    )
    assert jobs.statistics().pending == 0 and jobs.statistics().late == 0
    return held, reader, jobs


def told(held: Held) -> list[tuple[str, ...]]:
    """What was said and decided, in order, without when."""
    found: list[tuple[str, ...]] = []
    for event in held.of(events.Transcript):
        found.append((event.role, event.text, str(event.partial), str(event.heard)))
    for turn in held.of(events.Turn):
        found.append((turn.event, turn.text, turn.reason))
    return found


HELLO = Says(0.3, 1.1, "book a table?")


async def test_the_text_is_there_when_the_turn_is_decided(pool: InferencePool) -> None:
    early, reader, _ = await hold(pool, [HELLO])
    late, plain, _ = await hold(pool, [HELLO], ahead=False)
    for held in (early, late):
        check_all(held)
        assert held.turns == ["book a table?"]
    assert told(early) == told(late)
    assert len(reader.given) == len(plain.given) == 1, "read twice"
    assert reader.given == plain.given, "not the same samples"
    saved = late.when(events.Turn, event="committed") - early.when(events.Turn, event="committed")
    assert 80 <= saved * 1000 / RATE <= 120, saved


async def test_speech_that_resumes_at_any_moment_gives_the_same_words(pool: InferencePool) -> None:
    """From before the speculation to after the end of speech: one turn or two, as without it."""
    thrown_away = 0
    for step in range(24):
        gap = 0.06 + 0.008 * step
        caller = [HELLO, Says(1.1 + gap, 2.0 + gap, "for four people?")]
        early, _, jobs = await hold(pool, caller)
        late, _, plain = await hold(pool, caller, ahead=False)
        check_all(early)
        assert early.turns == late.turns, (gap, early.told(), late.told())
        assert " ".join(early.turns) == "book a table? for four people?"
        assert finals(early) == finals(late), (gap, early.told(), late.told())
        more = jobs.statistics().submitted - plain.statistics().submitted
        assert 0 <= more <= 1
        thrown_away += more
    assert thrown_away >= 5


def finals(held: Held) -> list[tuple[str, str]]:
    """The settled lines of both."""
    return [(one.role, one.text) for one in held.of(events.Transcript) if not one.partial]


async def test_a_barge_in_is_decided_no_later_and_cuts_the_same_words(pool: InferencePool) -> None:
    for step in range(12):
        onset = 2.0 + 0.1 * step
        caller = [HELLO, Says(onset, onset + 0.8, "no change it")]
        early, _, _ = await hold(pool, caller)
        late, _, _ = await hold(pool, caller, ahead=False)
        check_all(early)
        assert early.turns == late.turns == ["book a table?", "no change it"], early.told()


async def test_typing_while_it_runs_changes_nothing_of_the_words(pool: InferencePool) -> None:
    for when in (1.24, 1.28, 1.32):
        held, _, _ = await hold(
            pool, [HELLO], does=[Does(when, lambda live: live.command(Say("x")))]
        )
        assert sorted(held.turns) == ["book a table?", "x"], held.told()


@pytest.mark.parametrize("when", [1.20, 1.24, 1.26, 1.30, 1.36, 1.44])
async def test_a_hang_up_while_it_runs_leaves_nothing(pool: InferencePool, when: float) -> None:
    held, _, _ = await hold(pool, [HELLO], does=[Does(when, lambda live: live.call.hang_up())])
    check_all(held)
    assert held.turns == []


async def test_a_failure_while_nobody_asked_is_silent(pool: InferencePool) -> None:
    """The speculation of a pause that was none fails; the end of speech is read as ever."""
    caller = [HELLO, Says(1.24, 2.0, "for four people?")]
    reader = Reader(spoken(caller))
    reader.broken = lambda last_ms: last_ms < 1_300
    held, _, _ = await hold(pool, caller, reader=reader)
    check_all(held)
    assert held.of(events.Problem) == []
    assert held.turns == ["book a table? for four people?"]


async def test_a_failure_of_the_request_is_told_once(pool: InferencePool) -> None:
    reader = Reader(spoken([HELLO]))
    reader.broken = lambda _: True
    held, _, _ = await hold(pool, [HELLO], reader=reader)
    assert [one.code for one in held.of(events.Problem)] == ["ERR_STT_FAILED"]
    assert held.turns == [] and held.dropped == ["no_words"]


async def test_nothing_is_told_of_a_pause(pool: InferencePool) -> None:
    """No words before the end of speech, no request to the model before the turn is committed."""
    held, _, _ = await hold(pool, [HELLO])
    ended = held.when(events.Vad, event="end")
    committed = held.when(events.Turn, event="committed")
    words = [at for at, one in held.timeline if isinstance(one, events.Transcript)]
    assert min(words) > ended
    assert held.sample(held.model.asked_at[0]) >= committed - RATE // 50
