"""A whole call on the virtual clock: fixture line, scripted ear and voice, a real agent between.

`CallScript` says who speaks when; `hold_call` runs it and gives back everything that can be
asserted: the timeline, what the caller heard, the stored history, the model's requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from voxglove.adapters.models.scripted import Step
from voxglove.adapters.stt.scripted import ScriptedStt, Spoken, SttFaults
from voxglove.adapters.transports.fixture import Estimate, FixtureTransport
from voxglove.adapters.tts.scripted import Timing, TtsFaults
from voxglove.core.agent import Agent
from voxglove.core.builder import Glove
from voxglove.core.config import AgentConfig
from voxglove.core.messages import Message
from voxglove.core.store import Store
from voxglove.core.tool import Tool
from voxglove.media import events
from voxglove.media.brain import Command
from voxglove.media.call import Call, CallPolicy
from voxglove.media.format import PIPELINE, AudioFormat
from voxglove.media.inference import Jobs
from voxglove.media.pcm import Samples
from voxglove.media.transport import CallInfo
from voxglove.media.vad.machine import Slicer, VadConfig, VadMachine
from voxglove.media.vad.port import FRAME, VadEvent
from voxglove.pipelines.commit import TurnConfig
from voxglove.pipelines.detectors.port import TurnDetector
from voxglove.pipelines.machine import MachineConfig, State, initial, step
from voxglove.pipelines.pipeline import PipelineParts, VoicePipeline
from voxglove.pipelines.vocabulary import Effect, TurnEvent

from .hearing import Piece, pieces
from .timed import TimedModel, TimedTts, TimedVoice

RATE = PIPELINE.rate

E = TypeVar("E", bound=events.CallEvent)


def at(seconds: float) -> int:
    """Input samples of `seconds`."""
    return round(seconds * RATE)


class SpanVad:
    """The frame machine over probabilities that a script gives: `prob` inside spans, else none."""

    def __init__(self, spans: Sequence[tuple[int, int, float]]) -> None:
        self._spans = spans
        self._slicer = Slicer()
        self._machine = VadMachine(VadConfig())
        self.prob = 0.0
        self.resets = 0

    @property
    def voiced(self) -> bool:
        return self._machine.voiced

    @property
    def pause(self) -> int | None:
        return self._machine.pause

    def process(self, frame: Samples, at: int) -> list[VadEvent]:
        found: list[VadEvent] = []
        for start, _ in self._slicer.feed(frame, at):
            middle = start + FRAME // 2
            inside = [p for low, high, p in self._spans if low <= middle < high]
            self.prob = max(inside, default=0.0)
            found += self._machine.step(self.prob, start)
        return found

    def duck(self, on: bool) -> None:
        self._machine.duck(on)

    def reset(self) -> None:
        self.resets += 1
        self._machine.reset()
        self._slicer.reset()


@dataclass(frozen=True, slots=True)
class Says:
    """The caller says `text` from `start` to `end` (seconds). `text` "" is voice without words
    (a cough); `voiced=False` is words the detector does not hear."""

    start: float
    end: float
    text: str
    voiced: bool = True
    prob: float = 0.9


@dataclass(frozen=True, slots=True)
class Does:
    """Something done to the running call at `when` seconds of input."""

    when: float
    act: Callable[[Live], object]


@dataclass(slots=True)
class Live:
    """The parts of a running call."""

    call: Call
    brain: VoicePipeline
    agent: Agent
    lines: list[FixtureTransport]
    script: CallScript
    starts: list[int] = field(default_factory=lambda: [0])
    futures: list[asyncio.Future[None]] = field(default_factory=list)

    @property
    def line(self) -> FixtureTransport:
        """The carrier in use."""
        return self.lines[-1]

    def reattach(self, seconds: float, output: AudioFormat | None = None) -> FixtureTransport:
        """Put the caller on a new carrier with `seconds` of silence to say."""
        fresh = FixtureTransport(
            np.zeros(at(seconds), np.int16),
            output=output or self.script.output,
            estimate=self.script.estimate,
        )
        self.lines.append(fresh)
        self.starts.append(self.call.at)
        self.call.attach(fresh)
        return fresh

    def command(self, command: Command) -> asyncio.Future[None]:
        """Give a command and keep its future."""
        done = self.call.command(command)
        self.futures.append(done)
        return done


@dataclass(slots=True, kw_only=True)
class CallScript:
    """One call. Times are seconds of input; `model` are the agent's answers in order."""

    caller: Sequence[Says] = ()
    model: Sequence[Step | str] = ()
    does: Sequence[Does] = ()
    tools: Sequence[Tool] = ()
    seconds: float = 12.0
    continuous: bool = False
    gating: bool = True
    final_ms: float = 100
    partial_ms: float = 60
    stt_faults: SttFaults | None = None
    tts_timing: Timing = field(default_factory=lambda: Timing(word_ms=300))
    tts_faults: dict[int, TtsFaults] = field(default_factory=dict)
    turn: TurnConfig = TurnConfig(acknowledge_after_ms=0)
    detector: TurnDetector | None = None
    output: AudioFormat = PIPELINE
    estimate: Estimate | None = None
    policy: CallPolicy = CallPolicy()
    hang_up: bool = True
    """Hang up when the carrier in use has said all."""
    survivors: asyncio.TaskGroup | None = None
    agent: AgentConfig = AgentConfig()
    ear: Callable[..., ScriptedStt] = ScriptedStt
    voice: type[TimedVoice] = TimedVoice
    mind: type[TimedModel] = TimedModel
    vad: type[SpanVad] = SpanVad
    store: Store | None = None
    sound: Samples | None = None
    """What the microphone hears, in place of silence."""
    jobs: Jobs | None = None
    """Where the ear's model runs."""
    record: Callable[[TurnEvent], None] | None = None
    """Takes the turn events in place of the log."""


@dataclass(slots=True)
class Held:
    """What came of a call."""

    script: CallScript
    timeline: list[tuple[int, events.CallEvent]]
    log: list[TurnEvent]
    lines: list[FixtureTransport]
    agent: Agent
    brain: VoicePipeline
    model: TimedModel
    voice: TimedVoice
    stt: list[ScriptedStt]
    vad: list[SpanVad]
    reason: str
    history: list[Message]
    futures: list[asyncio.Future[None]]
    line_starts: list[int]
    """Input sample at which each carrier began."""
    started: float
    """Loop time of input sample 0."""
    config: MachineConfig
    decoded: dict[int, list[Piece]] = field(default_factory=dict)
    took_to_end: float = 0.0
    """Seconds from the hang-up to the end of `run`."""

    def of(self, kind: type[E]) -> list[E]:
        """Events of one type, in order."""
        return [event for _, event in self.timeline if isinstance(event, kind)]

    def when(self, kind: type[E], **fields: object) -> int:
        """Input sample of the first event of `kind` with these fields."""
        for sample, event in self.timeline:
            if isinstance(event, kind) and all(getattr(event, k) == v for k, v in fields.items()):
                return sample
        raise AssertionError(f"no {kind.__name__} with {fields} in {self.told()}")

    @property
    def modes(self) -> list[str]:
        """The public modes in order."""
        return [event.mode for event in self.of(events.Mode)]

    @property
    def turns(self) -> list[str]:
        """Committed user turns."""
        return [event.text for event in self.of(events.Turn) if event.event == "committed"]

    @property
    def dropped(self) -> list[str]:
        """Why turns were dropped."""
        return [event.reason for event in self.of(events.Turn) if event.event == "dropped"]

    @property
    def answers(self) -> list[events.Transcript]:
        """Final assistant lines of answers."""
        found = self.of(events.Transcript)
        return [one for one in found if one.role == "assistant" and one.source == "speech"]

    def told(self) -> str:
        """The timeline, to read in a failure."""
        lines = [f"{sample / RATE:7.3f} {event}" for sample, event in self.timeline]
        return "\n".join(lines)

    @property
    def line(self) -> FixtureTransport:
        """The first carrier."""
        return self.lines[0]

    def sound(self) -> Samples:
        """What the caller heard on the first carrier, on the input clock at 16 kHz output."""
        return self.line.heard()

    def pieces(self, line: int = 0) -> list[Piece]:
        """What the caller heard, identified by the sound of its words."""
        if line not in self.decoded:
            heard = self.lines[line].heard()
            self.decoded[line] = pieces(heard, self.voices, self.script.tts_timing)
        return self.decoded[line]

    @property
    def voices(self) -> list[TimedTts]:
        """The synthesisers in the order in which they were made."""
        return [voice for voice in self.voice.made if isinstance(voice, TimedTts)]

    def sample(self, time: float) -> int:
        """Input sample of a loop time."""
        return round((time - self.started) * RATE)

    def moves(self) -> list[tuple[int, State, tuple[Effect, ...]]]:
        """(sample, state after, effects) of every event, from the recorded events alone."""
        state = initial(self.config)
        found: list[tuple[int, State, tuple[Effect, ...]]] = []
        for event in self.log:
            state, effects = step(state, event, self.config)
            found.append((event.at, state, effects))
        return found

    def effects(self) -> list[tuple[int, Effect]]:
        """Every effect at its sample, as a replay of the recorded events gives them."""
        return [(sample, effect) for sample, _, effects in self.moves() for effect in effects]

    def roles(self) -> list[tuple[str, str]]:
        """(sender, text) of the stored history."""
        return [(message.sender, message.text) for message in self.history]


async def hold_call(script: CallScript) -> Held:
    """Run `script` to its end and hang up; the virtual clock makes it instant."""
    spoken = [Spoken(at(s.start), at(s.end), s.text) for s in script.caller if s.text]
    spans = [(at(s.start), at(s.end), s.prob) for s in script.caller if s.voiced]
    ears: list[ScriptedStt] = []
    vads: list[SpanVad] = []

    def stt() -> ScriptedStt:
        ears.append(
            script.ear(
                spoken,
                continuous=script.continuous,
                final_ms=script.final_ms,
                partial_ms=script.partial_ms,
                faults=script.stt_faults,
            )
        )
        return ears[-1]

    def vad() -> SpanVad:
        vads.append(script.vad(spans))
        return vads[-1]

    model = script.mind(script.model)
    voice = script.voice(timing=script.tts_timing, faults=script.tts_faults)
    builder = Glove(
        model=model, system_prompt="You are on a call.", config=script.agent, store=script.store
    )
    for tool in script.tools:
        builder.fold(tool)
    agent = builder.build()
    config = MachineConfig(
        turn=script.turn,
        continuous=script.continuous,
        gating=script.gating,
        detector=script.detector is not None,
    )
    log: list[TurnEvent] = []
    parts = PipelineParts(
        agent=agent,
        stt=stt,
        tts=voice,
        vad=vad,
        detector=script.detector,
        jobs=script.jobs,
        echo_guard=False,
        survivors=script.survivors,
    )
    pipeline = VoicePipeline(parts, config, record=script.record or log.append)
    sound = np.zeros(at(script.seconds), np.int16) if script.sound is None else script.sound
    line = FixtureTransport(sound, output=script.output, estimate=script.estimate)
    call = Call(pipeline, CallInfo(call_id="test"), script.policy)
    timeline: list[tuple[int, events.CallEvent]] = []
    call.subscribe(lambda sample, event: timeline.append((sample, event)))
    call.attach(line)
    live = Live(call, pipeline, agent, [line], script)
    started = asyncio.get_running_loop().time()
    reason, took = await _run(live, script)
    return Held(
        script=script,
        timeline=timeline,
        log=log,
        lines=live.lines,
        agent=agent,
        brain=pipeline,
        model=model,
        voice=voice,
        stt=ears,
        vad=vads,
        reason=reason,
        history=list(await agent.store.get_messages()),
        futures=live.futures,
        line_starts=live.starts,
        started=started,
        config=config,
        took_to_end=took,
    )


async def _run(live: Live, script: CallScript) -> tuple[str, float]:
    loop = asyncio.get_running_loop()
    hung_up: list[float] = []

    async def act() -> None:
        start = loop.time()
        for deed in sorted(script.does, key=lambda one: one.when):
            await asyncio.sleep(max(0.0, start + deed.when - loop.time()))
            outcome = deed.act(live)
            if asyncio.iscoroutine(outcome):
                await outcome
        if script.hang_up:
            await live.line.input_done.wait()
            hung_up.append(loop.time())
            live.call.hang_up()

    async with asyncio.TaskGroup() as group:
        actor = group.create_task(act())
        reason = await live.call.run()
        ended = loop.time()
        actor.cancel()
    return reason, ended - hung_up[0] if hung_up else 0.0
