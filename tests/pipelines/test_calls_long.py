"""A call that lasts: what brain and call hold does not grow, and a frame costs what it cost.

The caller asks every 12 s, sometimes interrupts, coughs, hums, types or is narrated to, and loses
the carrier now and then. Everything that the call and its brain reach is measured at the same point
of that pattern, early and late; the conversation's history, which grows by design, is the agent's.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

import numpy as np
import pytest

from tests.support.calls import RATE, at
from voxglove.adapters.stt.port import Final, Partial, SttSink
from voxglove.adapters.transports.fixture import Estimate, FixtureTransport
from voxglove.adapters.tts.scripted import ScriptedTts, Timing
from voxglove.core.builder import Glove
from voxglove.core.cancel import CancelToken
from voxglove.core.events import ModelResponseComplete, TextDelta
from voxglove.core.messages import Message
from voxglove.core.model import ModelRequest, ModelResult, Notify
from voxglove.media import brain, events
from voxglove.media.call import Call, CallPolicy
from voxglove.media.errors import TransportError
from voxglove.media.frame import AudioFrame
from voxglove.media.inference import InferencePool, Jobs
from voxglove.media.pcm import Samples
from voxglove.media.transport import CallInfo
from voxglove.media.vad.machine import Slicer, VadConfig, VadMachine
from voxglove.media.vad.port import VadEvent
from voxglove.media.virtual_loop import run_virtual
from voxglove.pipelines.machine import MachineConfig
from voxglove.pipelines.pipeline import PipelineParts, VoicePipeline

OURS = ("voxglove.media", "voxglove.pipelines")
PERIOD = at(12)
ASKS = (at(0.3), at(0.9))
INTERRUPTS = (at(2.0), at(2.7))
REPLY = "alpha bravo charlie delta echo foxtrot golf hotel."


def said(sample: int) -> str | None:
    """What is being said at an input sample; "" is voice without words."""
    turn, place = divmod(sample, PERIOD)
    if ASKS[0] <= place < ASKS[1]:
        return f"Question {turn}?"
    if INTERRUPTS[0] <= place < INTERRUPTS[1]:
        return (None, f"Wait with {turn}?", None, "mm-hm", "")[turn % 5]
    return None


class PatternVad:
    """The frame machine over the pattern."""

    def __init__(self) -> None:
        self._slicer, self._machine = Slicer(), VadMachine(VadConfig())
        self.prob = 0.0

    @property
    def voiced(self) -> bool:
        return self._machine.voiced

    @property
    def pause(self) -> int | None:
        return self._machine.pause

    def process(self, frame: Samples, at: int) -> list[VadEvent]:
        found: list[VadEvent] = []
        for start, _ in self._slicer.feed(frame, at):
            self.prob = 0.0 if said(start) is None else 0.9
            found += self._machine.step(self.prob, start)
        return found

    def duck(self, on: bool) -> None:
        self._machine.duck(on)

    def reset(self) -> None:
        self._machine.reset()
        self._slicer.reset()


class PatternStt:
    """Answers with what the pattern says; holds nothing."""

    name, continuous = "pattern", False

    async def connect(self, sink: SttSink) -> None:
        self._sink = sink
        self._settled = 0

    def send_audio(self, frame: AudioFrame) -> None: ...

    def flush(self, end: int) -> None:
        start = max(self._settled, end - PERIOD // 8)
        asyncio.get_running_loop().call_soon(self._sink, Final(self._text(start, end), start, end))

    def ask(self, end: int) -> None:
        start = max(self._settled, end - PERIOD // 8)
        text = self._text(start, end)
        asyncio.get_running_loop().call_soon(self._sink, Partial(text, start, end))

    def speculate(self, end: int | None) -> None: ...

    def settle(self, end: int) -> None:
        self._settled = end

    async def aclose(self) -> None: ...

    def _text(self, start: int, end: int) -> str:
        heard = dict.fromkeys(text for sample in range(start, end, 320) if (text := said(sample)))
        return " ".join(heard)


class PatternModel:
    name = "pattern"

    def set_system_prompt(self, prompt: str) -> None: ...

    async def prompt(
        self, request: ModelRequest, notify: Notify, token: CancelToken
    ) -> ModelResult:
        for word in REPLY.split(" "):
            notify(TextDelta(text=f"{word} "))
        notify(ModelResponseComplete(text=REPLY))
        return ModelResult(messages=(Message(sender="agent", text=REPLY),))


def census(*roots: object) -> Counter[str]:
    """Elements held in each container that `roots` reach through our own objects, by path."""
    sizes: Counter[str] = Counter()
    seen: set[int] = set()
    todo: list[tuple[str, object]] = [(type(root).__name__, root) for root in roots]
    while todo:
        path, one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray | bytes | bytearray | str):
            sizes[path] += len(one)
        elif isinstance(one, dict):
            sizes[path] += len(one)
            todo += [(f"{path}[]", value) for value in one.values()]
        elif isinstance(one, list | tuple | set | frozenset | deque):
            sizes[path] += len(one)
            todo += [(f"{path}[]", value) for value in one]
        elif any(kind.__module__.startswith(OURS) for kind in type(one).__mro__):
            todo += [(f"{path}.{name}", value) for name, value in _fields(one)]
    return sizes


def _fields(one: object) -> Iterator[tuple[str, object]]:
    yield from getattr(one, "__dict__", {}).items()
    for kind in type(one).__mro__:
        for name in getattr(kind, "__slots__", ()):
            if hasattr(one, name):
                yield name, getattr(one, name)


@dataclass
class Costs:
    """Seconds of CPU that each frame cost."""

    seconds: list[float] = field(default_factory=list)


class Timed(VoicePipeline):
    """Notes what a frame costs."""

    costs: Costs

    def hear(self, frame: AudioFrame) -> None:
        began = time.thread_time()
        super().hear(frame)
        self.costs.seconds.append(time.thread_time() - began)


async def _hold(minutes: float, estimate: Estimate | None) -> tuple[Timed, list[Counter[str]], int]:
    """Run the pattern; the censuses were taken in the quiet before a question, at equal phases."""
    agent = Glove(model=PatternModel()).build()
    pool = InferencePool(1)
    pipeline = Timed(
        PipelineParts(
            agent=agent,
            stt=PatternStt,
            tts=lambda: ScriptedTts(timing=Timing(word_ms=300)),
            vad=PatternVad,
            jobs=Jobs(pool),
        ),
        MachineConfig(detector=False),
    )
    pipeline.costs = Costs()
    call = Call(pipeline, CallInfo(call_id="long"), CallPolicy(max_s=4_000))
    turns = 0

    def count(_: int, event: events.CallEvent) -> None:
        nonlocal turns
        turns += isinstance(event, events.Turn) and event.event == "committed"

    call.subscribe(count)
    call.attach(FixtureTransport(np.zeros(1, np.int16), estimate=estimate))
    taken: list[Counter[str]] = []

    async def live() -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        for period in range(round(minutes * 60 * RATE / PERIOD)):
            await asyncio.sleep(began + period * PERIOD / RATE + 6.0 - loop.time())
            match period % 10:
                case 3:
                    call.command(brain.Narrate("india juliett."))
                case 5:
                    call.command(brain.Say("I type this."))
                case 7:
                    fresh = FixtureTransport(np.zeros(1, np.int16), estimate=estimate)
                    line = call.transport
                    call._lose(line, TransportError("gone"))  # type: ignore[arg-type]
                    call.attach(fresh)
                case 9:
                    await asyncio.sleep(5.9)
                    taken.append(census(call, pipeline))
        call.hang_up()

    async with asyncio.TaskGroup() as group:
        group.create_task(live())
        await call.run()
    pool.close()
    return pipeline, taken, turns


def _check(minutes: float, pipeline: Timed, taken: list[Counter[str]], turns: int) -> None:
    assert turns >= minutes * 5 * 1.15, turns
    first, last = taken[1], taken[-1]
    grown = {path: (first[path], size) for path, size in last.items() if size > first[path] + 4}
    assert not grown


def _check_cost(pipeline: Timed) -> None:
    """A frame costs what it cost. Anything that grew with the call would cost ten times as much
    after an hour; a busy machine may make it twice."""
    costs = pipeline.costs.seconds
    share = len(costs) // 5
    early, late = median(costs[share : 2 * share]), median(costs[-share:])
    assert late <= 3 * early, (early, late)


async def test_eight_minutes_of_calling_hold_no_more_than_the_first_four() -> None:
    _check(8, *await _hold(8, Estimate()))


@pytest.mark.soak
@pytest.mark.parametrize("estimate", [None, Estimate()], ids=["exact", "estimated"])
def test_an_hour_of_three_hundred_turns_holds_no_more_than_the_first_four_minutes(
    estimate: Estimate | None,
) -> None:
    # A soak test's own loop is a real one; an hour is too long for it.
    held = run_virtual(_hold(60, estimate))
    _check(60, *held)
    _check_cost(held[0])
