"""A Call that outlives its carriers and ends for good, whatever refuses to."""

from __future__ import annotations

import asyncio
import wave
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.brains import EchoBrain, ScriptedBrain
from tests.support.carriers import BrokenClose, HandCarrier, gone
from voxglove.adapters.transports.fixture import FixtureTransport
from voxglove.media.brain import Interrupt
from voxglove.media.call import Call, CallPolicy
from voxglove.media.errors import MediaValueError
from voxglove.media.events import (
    CallEnded,
    CallEvent,
    EndReason,
    InputGap,
    LineEvent,
    Mode,
    Problem,
    Turn,
    Vad,
)
from voxglove.media.format import AudioFormat
from voxglove.media.frame import AudioFrame
from voxglove.media.line import Line
from voxglove.media.recorder import Recorder
from voxglove.media.transport import CallInfo, CallTransport, Data, Gap, Hangup, LineChanged
from voxglove.media.virtual_loop import VirtualLoop

Sound = NDArray[np.int16]
INFO = CallInfo(call_id="c1")


class Watched:
    """A running call, its timeline, and when it ended."""

    def __init__(self, call: Call, group: asyncio.TaskGroup) -> None:
        self.call = call
        self.events: list[tuple[int, CallEvent]] = []
        self.seconds_to_end: float | None = None
        call.subscribe(lambda at, event: self.events.append((at, event)))
        self.task = group.create_task(call.run())

    def of(self, kind: type[CallEvent]) -> list[CallEvent]:
        return [event for _, event in self.events if type(event) is kind]

    @property
    def states(self) -> list[str]:
        return [event.state for _, event in self.events if isinstance(event, LineEvent)]

    async def ends(self, within_s: float = 2.0) -> EndReason:
        """It ends in time, tells so once and last, and leaves no task."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        reason = await asyncio.wait_for(asyncio.shield(self.task), within_s)
        self.seconds_to_end = loop.time() - began
        assert_closed(self, reason)
        return reason


def assert_closed(watched: Watched, reason: EndReason) -> None:
    assert [type(event) for _, event in watched.events[-2:]] == [LineEvent, CallEnded]
    (ended,) = watched.of(CallEnded)
    assert isinstance(ended, CallEnded) and ended.reason == reason == watched.call.ended
    assert watched.states[-1] == "closed" and watched.states.count("closed") == 1
    left = [task for task in asyncio.all_tasks() if task.get_name().startswith("call.")]
    assert not left


@asynccontextmanager
async def calling(
    brain: ScriptedBrain,
    carrier: CallTransport | None = None,
    policy: CallPolicy | None = None,
    recorder: Recorder | None = None,
) -> AsyncIterator[Watched]:
    call = Call(brain, INFO, policy, recorder=recorder)
    if carrier is not None:
        assert call.attach(carrier) is None
    async with asyncio.TaskGroup() as group:
        watched = Watched(call, group)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        try:
            yield watched
        finally:
            call.hang_up()


def speech(seconds: float, seed: int = 1) -> Sound:
    values = np.random.default_rng(seed).integers(-9_000, 9_000, round(seconds * 16_000))
    return values.astype(np.int16)


def frame(pcm: Sound, rate: int = 16_000) -> AudioFrame:
    return AudioFrame(pcm.tobytes(), AudioFormat(rate))


def recorded(path: Path) -> Sound:
    """Both tracks, shape [samples, 2]."""
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnchannels()) == (16_000, 2)
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, 2)


async def say_two_seconds(line: Line) -> None:
    pcm = speech(2)
    for start in range(0, len(pcm), 320):
        await line.play(1, frame(pcm[start : start + 320]))
    await line.finish(1)
    await line.drain()


# ---- the plain call


async def test_what_is_said_is_heard_and_answered_on_one_clock() -> None:
    pcm = speech(1)
    carrier = FixtureTransport(pcm, hangup_after_s=1.0)
    brain = EchoBrain()
    async with calling(brain, carrier) as watched:
        assert await watched.ends(within_s=3) == "remote_hangup"
    heard = np.frombuffer(brain.heard_pcm, np.int16)
    assert np.array_equal(heard[: len(pcm)], pcm)
    assert [frame.at for frame in brain.frames] == [320 * n for n in range(len(brain.frames))]
    echoed = carrier.heard()
    start = int(np.flatnonzero(echoed)[0])
    assert start == 320 and np.array_equal(echoed[start : start + len(pcm)], pcm)
    assert watched.states == ["attached", "closed"]
    assert brain.signals == [LineChanged("attached")]


async def test_reference_and_recording_agree_with_what_the_person_heard(tmp_path: Path) -> None:
    carrier = FixtureTransport(speech(3, seed=7), hangup_after_s=0.5)
    references: list[tuple[int, Sound]] = []

    class Guarded(ScriptedBrain):
        def hear(self, frame: AudioFrame) -> None:
            super().hear(frame)
            assert self.line is not None
            references.append((frame.at, self.line.reference(frame.at, frame.samples)))

    recorder = Recorder(tmp_path / "call.wav")
    async with calling(Guarded(say_two_seconds), carrier, recorder=recorder) as watched:
        await watched.ends(within_s=5)
    heard = carrier.heard()
    for at, reference in references:
        assert np.array_equal(reference, heard[at : at + 320]), f"far end is off at {at}"
    assert np.count_nonzero(heard) > 31_000
    tracks = recorded(tmp_path / "call.wav")
    assert np.array_equal(tracks[: len(heard), 1], heard[: len(tracks)])
    assert np.array_equal(tracks[:48_000, 0], speech(3, seed=7))


async def test_timeline_counts_at_16_khz_whatever_the_brain_wants() -> None:
    carrier = FixtureTransport(speech(1))
    brain = ScriptedBrain(format=AudioFormat(24_000))
    async with calling(brain, carrier) as watched:
        await asyncio.sleep(1.01)
        assert watched.call.at == 16_000 + 320
        assert brain.frames[-1].end == (16_000 + 320) * 3 // 2
        watched.call.emit(Mode(mode="listening"))
        assert watched.events[-1] == (16_320, Mode(mode="listening"))


async def test_call_with_a_24_khz_brain_is_recorded_in_place(tmp_path: Path) -> None:
    tone = (8_000 * np.sin(np.arange(16_000) * 0.2)).astype(np.int16)
    recorder = Recorder(tmp_path / "call.wav")
    brain = ScriptedBrain(format=AudioFormat(24_000))
    async with calling(brain, FixtureTransport(tone), recorder=recorder):
        await asyncio.sleep(1.2)
    tracks = recorded(tmp_path / "call.wav")
    caller = tracks[2_000:14_000, 0].astype(int)
    errors = [np.abs(caller - tone[2_000 - lag : 14_000 - lag]).max() for lag in (0, 48, 96)]
    assert errors[1] < 100, "once resampled in, the caller is 3 ms late; taping adds nothing"
    slow = Recorder(tmp_path / "8k.wav", rate=8_000)
    with pytest.raises(MediaValueError, match="16000 Hz"):
        Call(brain, INFO, recorder=slow)
    slow.close()


# ---- carriers come and go


@pytest.mark.parametrize("failure", [gone(), KeyError("foreign"), None])
async def test_call_outlives_its_carrier_and_the_answer_goes_on(
    failure: Exception | None,
) -> None:
    first, second = HandCarrier(), HandCarrier()
    async with calling(ScriptedBrain(say_two_seconds), first) as watched:
        await asyncio.sleep(0.1)
        first.advance(1_000)
        if failure is None:
            first.end()
        else:
            first.give(failure)
        await asyncio.sleep(0.5)
        assert watched.states == ["attached", "detached"]
        assert len(first.closed) == 1 and watched.call.transport is None
        at = watched.call.at
        await asyncio.sleep(1)
        assert watched.call.at == at + 16_000, "the input clock froze on a detached line"
        assert watched.call.attach(second) is None
        for _ in range(120):
            await asyncio.sleep(0.02)
            second.advance(320)
        assert np.array_equal(np.concatenate((first.heard, second.heard)), speech(2))
        assert watched.states == ["attached", "detached", "attached"]
    assert second.closed == ["hangup"]


async def test_new_carrier_replaces_a_living_one_which_the_caller_closes() -> None:
    first, second = HandCarrier(), HandCarrier(8_000)
    async with calling(ScriptedBrain(say_two_seconds), first) as watched:
        await asyncio.sleep(0.1)
        first.advance(3_200)
        assert watched.call.attach(second) is first
        assert watched.call.transport is second
        first.give(frame(speech(0.02)), Hangup())
        await asyncio.sleep(1)
        assert watched.call.ended is None, "a carrier that was replaced ended the call"
        assert first.closed == []
        assert watched.call.attach(second) is None
        second.give(Hangup())
        assert await watched.ends() == "remote_hangup"
    assert second.closed == ["remote_hangup"]


async def test_attach_before_run_waits_and_attach_after_the_end_is_handed_back() -> None:
    early, earlier, late = HandCarrier(), HandCarrier(), HandCarrier()
    brain = ScriptedBrain()
    call = Call(brain, INFO)
    assert call.attach(earlier) is None
    assert call.attach(early) is earlier
    async with asyncio.TaskGroup() as group:
        watched = Watched(call, group)
        await asyncio.sleep(0.05)
        assert watched.states == ["attached"]
        call.hang_up()
        await watched.ends()
    assert call.attach(late) is late
    assert early.closed == ["hangup"] and late.closed == []


async def test_stalled_peer_is_detached_not_ended() -> None:
    carrier = FixtureTransport(np.zeros(0, np.int16), write_deadline_s=5.0)
    async with calling(ScriptedBrain(say_two_seconds), carrier) as watched:
        carrier.stall()
        await asyncio.sleep(5.5)
        assert watched.states == ["attached", "detached"]
        assert watched.call.ended is None


class BrokenClock(HandCarrier):
    """Its clock raises for a while, as a library of its vendor's might."""

    broken = False

    def played(self) -> int:
        if self.broken:
            raise KeyError("clock")
        return super().played()


async def test_a_carrier_whose_clock_raises_in_a_hole_ends_no_call() -> None:
    carrier, brain = BrokenClock(), ScriptedBrain()
    async with calling(brain, carrier) as watched:
        carrier.give(frame(speech(0.02)))
        await asyncio.sleep(0.1)
        assert brain.line is not None
        await brain.line.play(1, frame(speech(0.02)))
        carrier.broken = True
        await asyncio.sleep(1)
        carrier.broken = False
        await asyncio.sleep(1)
        assert watched.call.ended is None
        assert [type(event) for _, event in watched.events if isinstance(event, Problem)]
        watched.call.hang_up()
        assert await watched.ends() == "hangup"


async def test_pace_fills_a_mute_carrier_and_tells_the_hole_once() -> None:
    carrier = HandCarrier()
    brain = ScriptedBrain()
    async with calling(brain, carrier) as watched:
        carrier.give(*[frame(speech(0.02)) for _ in range(5)])
        await asyncio.sleep(1.0)
        assert 48 <= len(brain.frames) <= 51
        assert watched.of(InputGap) == []
        carrier.give(frame(speech(0.02)))
        await asyncio.sleep(0.01)
        (gap,) = watched.of(InputGap)
        assert isinstance(gap, InputGap) and 0.85 <= gap.samples / 16_000 <= 1.0
        carrier.give(Gap(640))
        await asyncio.sleep(0.01)


async def test_loop_that_was_held_does_not_double_what_it_held_up() -> None:
    carrier, brain = HandCarrier(), ScriptedBrain()
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    async with calling(brain, carrier) as watched:
        for _ in range(10):
            carrier.give(frame(speech(0.02)))
            await asyncio.sleep(0.02)
        loop.advance(0.5)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        carrier.give(*[frame(speech(0.02)) for _ in range(25)])
        await asyncio.sleep(0.01)
        assert watched.call.at == 35 * 320
        assert brain.heard_pcm == speech(0.02).tobytes() * 35
        assert watched.of(InputGap) == []


async def test_voice_row_098_input_clock_of_a_telephone_does_not_drift() -> None:
    frames = 2 * 60 * 50
    carrier = HandCarrier(input=AudioFormat(8_000))
    brain = ScriptedBrain()
    piece = frame(speech(0.01), 8_000)
    async with calling(brain, carrier) as watched:
        loop, start = asyncio.get_running_loop(), asyncio.get_running_loop().time()
        for n in range(frames):
            carrier.give(piece)
            await asyncio.sleep(start + (n + 1) * 0.02 - loop.time())
        assert watched.call.at == frames * 320
        assert watched.of(InputGap) == []


# ---- limits


@pytest.mark.parametrize(
    ("policy", "attached", "reason", "seconds"),
    [
        (CallPolicy(linger_s=3), False, "linger", 3),
        (CallPolicy(idle_s=5), True, "limit", 5),
        (CallPolicy(max_s=4), True, "limit", 4),
    ],
)
async def test_limits_end_the_call(
    policy: CallPolicy, attached: bool, reason: EndReason, seconds: float
) -> None:
    carrier = FixtureTransport(np.zeros(0, np.int16)) if attached else None
    async with calling(ScriptedBrain(), carrier, policy) as watched:
        assert await watched.ends(within_s=seconds + 2) == reason
        assert watched.seconds_to_end == pytest.approx(seconds, abs=0.2)


async def test_whoever_speaks_is_not_idle_and_whoever_returns_does_not_linger() -> None:
    first = HandCarrier()
    async with calling(ScriptedBrain(), first, CallPolicy(idle_s=5, linger_s=3)) as watched:
        for _ in range(4):
            await asyncio.sleep(2)
            watched.call.emit(Vad(event="start", position=watched.call.at))
        first.end()
        await asyncio.sleep(2.5)
        watched.call.emit(Vad(event="end", position=watched.call.at))
        watched.call.attach(HandCarrier())
        await asyncio.sleep(2)
        assert watched.call.ended is None


@pytest.mark.parametrize("field", ["linger_s", "idle_s", "max_s"])
def test_policy_names_the_limit_it_refuses(field: str) -> None:
    for value in (0, -1.0, float("nan")):
        with pytest.raises(MediaValueError, match=field):
            CallPolicy(**{field: value})


# ---- the end


class SlowRecorder(Recorder):
    async def aclose(self, end: int | None = None) -> None:
        await super().aclose(end)
        await asyncio.sleep(60)


@pytest.mark.parametrize("state", ["fresh", "speaking", "paused", "detached", "listening"])
@pytest.mark.parametrize("trouble", ["none", "carrier", "broken carrier", "brain", "deaf brain"])
async def test_hang_up_ends_everything_within_two_seconds(
    state: str, trouble: str, tmp_path: Path
) -> None:
    carrier = BrokenClose() if trouble == "broken carrier" else HandCarrier()
    carrier.close_takes_s = 60.0 if trouble == "carrier" else 0.0
    brain = ScriptedBrain(
        say_two_seconds if state in ("speaking", "paused", "detached") else None,
        stop_takes_s=60.0 if trouble == "brain" else 0.0,
        deaf_to_cancels=2 if trouble == "deaf brain" and state in ("fresh", "listening") else 0,
    )
    recorder = SlowRecorder(tmp_path / "call.wav") if trouble != "none" else None
    async with calling(brain, carrier, recorder=recorder) as watched:
        if state != "fresh":
            carrier.give(frame(speech(0.02)))
            await asyncio.sleep(0.3)
            carrier.advance(2_000)
        if state == "paused" and brain.line is not None:
            brain.line.pause()
        if state == "detached":
            carrier.give(gone())
            await asyncio.sleep(0.1)
        watched.call.hang_up()
        assert await watched.ends(within_s=2.0) == "hangup"
    assert len(carrier.closed) == 1


async def test_end_by_remote_and_by_the_brain() -> None:
    carrier = FixtureTransport(speech(0.2), hangup_after_s=0)
    async with calling(ScriptedBrain(), carrier) as watched:
        assert await watched.ends() == "remote_hangup"
    async with calling(ScriptedBrain(ends=True), HandCarrier()) as watched:
        assert await watched.ends() == "hangup"


class Overdrawn(RuntimeError):
    code = "ERR_MODEL_QUOTA"


async def _crash(line: Line) -> None:
    await asyncio.sleep(0.1)
    raise ExceptionGroup("brain", [Overdrawn("no quota left")])


async def _own_cancel(line: Line) -> None:
    raise asyncio.CancelledError


async def test_brain_that_crashes_says_why_and_ends_the_call() -> None:
    carrier = HandCarrier()
    async with calling(ScriptedBrain(_crash), carrier) as watched:
        assert await watched.ends() == "error"
        assert watched.of(Problem) == [
            Problem(code="ERR_MODEL_QUOTA", stage="brain", message="no quota left", fatal=True)
        ]
    assert carrier.closed == ["error"]
    async with calling(ScriptedBrain(_own_cancel), HandCarrier()) as watched:
        assert await watched.ends() == "error"


async def test_cancelling_the_run_drains_as_orderly_as_a_hang_up() -> None:
    carrier, brain = HandCarrier(), ScriptedBrain(say_two_seconds)
    async with calling(brain, carrier) as watched:
        await asyncio.sleep(0.2)
        watched.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.shield(watched.task)
        assert_closed(watched, "drain")
    assert carrier.closed == ["drain"] and brain.stopped.is_set()


async def test_hang_up_before_run_and_a_second_run() -> None:
    carrier = HandCarrier()
    call = Call(ScriptedBrain(), INFO)
    call.attach(carrier)
    call.hang_up("drain")
    call.hang_up("error")
    events: list[CallEvent] = []
    call.subscribe(lambda at, event: events.append(event))
    assert await call.run() == "drain"
    assert [type(event) for event in events] == [LineEvent, CallEnded]
    assert carrier.closed == ["drain"]
    with pytest.raises(RuntimeError, match="once"):
        await call.run()


# ---- what must not touch a call


async def test_bad_input_never_ends_a_call() -> None:
    carrier, brain = HandCarrier(), ScriptedBrain()
    async with calling(brain, carrier) as watched:
        carrier.give(frame(speech(0.02), 48_000), Gap(-5))
        await asyncio.sleep(0.05)
        brain.refuses = ValueError("a frame of pure evil")
        carrier.give(*[frame(speech(0.02)) for _ in range(60)])
        await asyncio.sleep(0.05)
        brain.refuses = None
        carrier.give(frame(speech(0.02)), Data({"t": "say"}))
        await asyncio.sleep(0.05)
        assert watched.call.ended is None and watched.states == ["attached"]
        assert brain.signals[-1] == Data({"t": "say"})
        problems = watched.of(Problem)
        assert 1 <= len(problems) <= 3
        assert not any(isinstance(p, Problem) and p.fatal for p in problems)


async def test_broken_sink_is_isolated_and_order_is_the_same_for_all() -> None:
    async with calling(ScriptedBrain(), HandCarrier()) as watched:
        call = watched.call
        seen: list[CallEvent] = []

        def broken(at: int, event: CallEvent) -> None:
            if isinstance(event, Vad):
                call.emit(Mode(mode="listening"))
            raise RuntimeError("sink")

        leave = call.subscribe(broken)
        call.subscribe(lambda at, event: seen.append(event))
        call.emit(Vad(event="start", position=1))
        leave()
        leave()
        call.emit(Vad(event="end", position=2))
        assert [event.type for event in seen] == ["vad", "mode", "vad"]
        assert [event for _, event in watched.events[-3:]] == seen


async def test_nothing_follows_call_ended() -> None:
    async with calling(ScriptedBrain(), HandCarrier()) as watched:
        watched.call.emit(Turn(event="committed", reason="typed", text="hi"))
        watched.call.hang_up()
        await watched.ends()
        watched.call.emit(Mode(mode="idle"))
        (ended,) = watched.of(CallEnded)
        assert watched.events[-1][1] is ended
        assert isinstance(ended, CallEnded) and ended.turns == 1


class BrokenRecorder(Recorder):
    def caller(self, at: int, samples: Sound) -> None:
        raise OSError("disk full")


async def test_recording_that_fails_is_told_once_and_the_call_goes_on(tmp_path: Path) -> None:
    brain = ScriptedBrain(say_two_seconds)
    recorder = BrokenRecorder(tmp_path / "call.wav")
    async with calling(brain, FixtureTransport(speech(1)), recorder=recorder) as watched:
        await asyncio.sleep(3)
        assert len(brain.frames) > 140 and watched.states == ["attached"]
        assert [p.stage for p in watched.of(Problem) if isinstance(p, Problem)] == ["recording"]
    await recorder.aclose()


async def test_commands_need_a_live_call() -> None:
    brain = ScriptedBrain()
    call = Call(brain, INFO)
    with pytest.raises(RuntimeError, match="not running"):
        call.command(Interrupt())
    async with asyncio.TaskGroup() as group:
        watched = Watched(call, group)
        await asyncio.sleep(0)
        await call.command(Interrupt())
        call.hang_up()
        await watched.ends()
    assert brain.commands == [Interrupt()]
    with pytest.raises(RuntimeError, match="not running"):
        call.command(Interrupt())
