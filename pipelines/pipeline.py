"""The cascade brain: VAD, speech-to-text, an agent and text-to-speech on one line.

A `VoicePipeline` implements media's Brain port. It is the plumbing between the turn machine, which
decides, and the parts that hear and speak: events in, effects out, in the order they happen. Its
tasks live in one TaskGroup inside `run` (owner: the call's brain task).
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from ..adapters.errors import AdapterError
from ..adapters.stt.port import Closed, Final, Partial, Problem, SpeechToText, SttEvent, SttFactory
from ..adapters.tts.port import TtsFactory
from ..core.agent import Agent
from ..core.display import DisplayChange
from ..core.events import SubscriberEvent, ToolSettledIdle
from ..core.requests import Wake
from ..core.turn_queue import Hold
from ..media import brain as port
from ..media import events as call
from ..media.echo import EchoGuard
from ..media.errors import MediaValueError
from ..media.format import PIPELINE, AudioFormat
from ..media.frame import AudioFrame
from ..media.gate import SpeechGate
from ..media.inference import Jobs
from ..media.lifetime import bounded, stop
from ..media.line import Line
from ..media.pcm import rms
from ..media.transport import Image, LineChanged, LineState, Signal
from ..media.vad.port import Vad
from . import vocabulary as voc
from .acknowledge import Acknowledgements
from .commands import Commands, event_of
from .detectors.port import TurnDetector
from .effects import Effects
from .listen import Ear, Part
from .machine import MachineConfig, initial, quiet_below, step
from .parts import Parts, Spawn
from .speaker import Speaker
from .state import State

log = logging.getLogger(__name__)

EARLY_FRAMES = 250
"""Frames kept while the recogniser connects: 5 s."""

REVIVE_S = (1.0, 2.0, 4.0, 8.0, 15.0)
"""Waits before a recogniser that closed is connected again; the last one repeats (spec/voice 7)."""

UNWIND_S = 0.2
"""What the brain's own tasks get to end by themselves. A user's detector or model that goes on
after its cancellation is cancelled again: a group alone would wait for it (DESIGN 5.10)."""


class BrainFailed(Exception):
    """The brain could not start; `code` is a wire code of spec/voice 10."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineParts:
    """What a pipeline is made of. `stt`, `tts` are factories: one recogniser per run, one
    synthesiser per response. `jobs` is None when nothing of it infers locally."""

    agent: Agent
    stt: SttFactory
    tts: TtsFactory
    vad: Callable[[], Vad] | None
    detector: TurnDetector | None = None
    jobs: Jobs | None = None
    preroll_ms: int = 800
    echo_guard: bool = True
    survivors: asyncio.TaskGroup | None = None
    """Where un-abortable tools end when the call is over (the server's group)."""


@dataclass(slots=True)
class _Early:
    """What came while the recogniser connected: the newest frames, and where the line stood."""

    frames: deque[AudioFrame] = field(default_factory=lambda: deque(maxlen=EARLY_FRAMES))
    line: LineState | None = None


@dataclass(slots=True)
class _Run:
    """One life on a line."""

    line: Line
    spawn: Spawn
    ear: Ear
    effects: Effects
    commands: Commands
    tasks: set[asyncio.Task[None]]
    inbox: deque[voc.TurnEvent] = field(default_factory=deque)
    busy: bool = False


Recorder = Callable[[voc.TurnEvent], None]


class VoicePipeline:
    """See the module. `record` gets every event fed to the machine, in order (`--record`).

    Raises MediaValueError where `config` says something else of the parts than they are: the
    machine would wait for answers that nobody gives.
    """

    name = "cascade"

    def __init__(
        self,
        parts: PipelineParts,
        config: MachineConfig | None = None,
        *,
        record: Recorder | None = None,
    ) -> None:
        self._made_of = parts
        self._config = config or MachineConfig(detector=parts.detector is not None)
        _agree("detector", self._config.detector, parts.detector is not None)
        self._record = record
        self._running = False
        self._run: _Run | None = None
        self._early = _Early()
        self._at = 0
        self.state: State = initial(self._config)
        self._judged: State | None = None
        """The state that `_quiet_below` was found for."""
        self._quiet_below = 0.0

    @property
    def input_format(self) -> AudioFormat:
        """16 kHz mono."""
        return PIPELINE

    # ---- the Brain port

    async def run(self, line: Line) -> None:
        """See media.brain.Brain. Raises BrainFailed (ERR_STT_CONNECTION) when the recogniser
        cannot be reached; nothing is left then, and `run` may be called again."""
        if self._running:
            raise RuntimeError("the pipeline runs already: one pipeline serves one line at a time")
        self._running = True
        # The input of an earlier life ended somewhere else, and may have gone on after it.
        self._early, self._at = _Early(), 0
        try:
            stt = self._made_of.stt()
            _agree("continuous", self._config.continuous, stt.continuous)
            try:
                await self._connect(stt)
                await self._live(line, stt)
            finally:
                await bounded("recogniser", stt.aclose())
        finally:
            self._running = False

    def hear(self, frame: AudioFrame) -> None:
        """One frame through the whole ear, in this order: inference results due now, what was
        played, what the voice did, what the recogniser gets, the tick (DESIGN 3)."""
        run = self._run
        if run is None:
            self._early.frames.append(frame)
            return
        samples = frame.array()
        self._at = frame.at + len(samples)
        if self._made_of.jobs is not None:
            self._made_of.jobs.tick(self._at)
        for progress in run.line.progress():
            if not run.effects.answers.on_progress(progress):
                run.effects.narrations.on_progress(progress)
        for notice in run.ear.notice(frame.at, samples):
            if notice.kind != "echo":
                run.line.emit(call.Vad(event=notice.kind, position=notice.position))
            self._feed(voc.Voice(self._at, notice.kind, notice.position))
        run.ear.forward(frame, samples)
        if self.state is not self._judged:
            self._judged, self._quiet_below = self.state, quiet_below(self.state, self._config)
        # Most ticks would leave the machine as it is: those are not made at all, nor is the level
        # measured that they would carry. A log gets every one.
        if self._record is not None or not run.ear.prob < self._quiet_below:
            self._feed(voc.Tick(self._at, run.ear.prob, rms(samples)))

    def signal(self, signal: Signal) -> None:
        """The line's other words."""
        if isinstance(signal, Image):
            self._see(signal)
        elif not isinstance(signal, LineChanged):
            return
        elif self._run is None:
            self._early.line = signal.state
        else:
            self._feed(voc.LineMoved(self._at, signal.state))

    def command(self, command: port.Command) -> asyncio.Future[None]:
        """See media.brain.Brain. The future fails with SpeechFailed for a narration whose voice
        failed, and is cancelled with the call."""
        run = self._run
        if run is None:
            raise RuntimeError("the pipeline is not running: commands need a live call")
        number, done = run.commands.add(getattr(command, "text", ""))
        self._feed(event_of(command, number, self._at))
        return done

    # ---- inside

    async def _connect(self, stt: SpeechToText) -> None:
        try:
            await stt.connect(self._on_stt)
        except AdapterError as error:
            raise BrainFailed("ERR_STT_CONNECTION", str(error)) from error

    async def _live(self, line: Line, stt: SpeechToText) -> None:
        agent = self._made_of.agent
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(agent.running(self._made_of.survivors))
            hold = await stack.enter_async_context(agent.turn_queue.hold("call"))
            stack.callback(agent.display.subscribe(self._on_display, answers=False))
            agent.add_subscriber(self)
            stack.callback(agent.remove_subscriber, self)
            async with asyncio.TaskGroup() as group:
                run = self._assemble(line, stt, group, hold)
                try:
                    hold.on_wake(self._on_wake)
                    self._begin(run)
                    await asyncio.get_running_loop().create_future()
                finally:
                    await self._end(run)

    def _assemble(
        self, line: Line, stt: SpeechToText, group: asyncio.TaskGroup, hold: Hold
    ) -> _Run:
        made = self._made_of
        vad = None if made.vad is None or self._config.turn.manual else made.vad()
        gate = SpeechGate(preroll_ms=made.preroll_ms) if self._config.gating else None
        echo = EchoGuard(line.reference) if made.echo_guard else None
        speculate = self._config.turn.speculate
        ear = Ear(stt, vad, gate, self._part_broken, echo, lambda: line.unplayed, speculate)
        tasks: set[asyncio.Task[None]] = set()

        def spawn(coro: Coroutine[None, None, None]) -> asyncio.Task[None]:
            task = group.create_task(coro)
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            return task

        turn = self._config.turn
        phrases = turn.acknowledgements if turn.acknowledge_after_ms else ()
        acknowledgements = Acknowledgements(phrases, made.tts)
        if phrases:
            spawn(acknowledgements.render())
        parts = Parts(
            line=line,
            agent=made.agent,
            hold=hold,
            ear=ear,
            speaker=Speaker(made.tts, spawn),
            acknowledgements=acknowledgements,
            detector=made.detector,
            feed=self._feed,
            spawn=spawn,
            now=lambda: self._at,
        )
        commands = Commands()
        return _Run(line, parts.spawn, ear, Effects(parts, commands), commands, tasks)

    def _begin(self, run: _Run) -> None:
        self.state = initial(self._config)
        self._run = run
        run.effects.set_muted(self.state.muted)
        early, self._early = self._early, _Early()
        if early.line is not None:
            self._feed(voc.LineMoved(self._at, early.line))
        for frame in early.frames:
            self.hear(frame)

    async def _end(self, run: _Run) -> None:
        """Silence, history, commands: everything of this life is over."""
        self._feed(voc.LineMoved(self._at, "closed"))
        run.effects.answers.close()
        self._run = None
        run.commands.cancel()
        if self._made_of.jobs is not None:
            self._made_of.jobs.cancel()
        await run.effects.aclose()
        await stop(tuple(run.tasks), patience_s=UNWIND_S)

    def _feed(self, event: voc.TurnEvent) -> None:
        """Give the machine an event and carry out what it asks. What an effect reports at once
        waits its turn behind the event it came from."""
        run = self._run
        if run is None:
            return
        run.inbox.append(event)
        if run.busy:
            return
        run.busy = True
        try:
            while run.inbox:
                self._step(run, run.inbox.popleft())
        finally:
            run.busy = False

    def _step(self, run: _Run, event: voc.TurnEvent) -> None:
        if self._record is not None:
            self._log(self._record, event)
        self.state, effects = step(self.state, event, self._config)
        for effect in effects:
            try:
                run.effects.perform(effect)
            except Exception as error:
                # Whoever reported the event is not the one to hear of it, and what else the
                # machine decided is carried out: it takes all of it for done.
                log.exception("effect failed", extra={"effect": type(effect).__name__})
                self._problem("ERR_BRAIN", str(error), stage="brain")

    def _log(self, record: Recorder, event: voc.TurnEvent) -> None:
        """A log that cannot be written is told once and given up; it never touches the call."""
        try:
            record(event)
        except Exception as error:
            self._record = None
            self._problem("ERR_RECORDING", str(error), stage="recording")

    # ---- what others report

    def _on_stt(self, event: SttEvent) -> None:
        match event:
            case Partial(text, start, end):
                self._feed(voc.Words(self._at, text, start, end, final=False))
            case Final(text, start, end):
                self._feed(voc.Words(self._at, text, start, end, final=True))
            case Problem(code, message, fatal):
                self._problem(code, message, fatal=fatal)
            case Closed(reason):
                self._problem("ERR_STT_DISCONNECTED", reason)
                if self._run is not None:
                    self._run.spawn(self._revive(self._run.ear.stt))

    async def _revive(self, stt: SpeechToText) -> None:
        """Task of the brain's group: connect a closed recogniser again, for the call's life."""
        for attempt in itertools.count():
            await asyncio.sleep(REVIVE_S[min(attempt, len(REVIVE_S) - 1)])
            await bounded("recogniser", stt.aclose())
            try:
                await stt.connect(self._on_stt)
            except Exception as error:  # a vendor's library may raise anything
                self._problem("ERR_STT_CONNECTION", str(error))
            else:
                return

    def _see(self, image: Image) -> None:
        if self._run is not None and not self._run.effects.answers.sight.see(image):
            full = "a picture was not kept: too many wait for words; say or type something"
            self._problem("ERR_IMAGE", full, stage="input")

    def _part_broken(self, part: Part, error: Exception) -> None:
        log.error("a part failed", exc_info=error, extra={"part": part})
        code = "ERR_STT_FAILED" if part == "stt" else "ERR_VAD"
        self._problem(code, f"{type(error).__name__}: {error}", stage=part)

    def _problem(self, code: str, message: str, *, stage: str = "stt", fatal: bool = False) -> None:
        if self._run is not None:
            self._run.line.emit(call.Problem(code=code, stage=stage, message=message, fatal=fatal))

    def _on_display(self, change: DisplayChange) -> None:
        self._feed(voc.Slots(self._at, self._made_of.agent.display.pending))

    def _on_wake(self, wake: Wake) -> None:
        if self._run is not None:
            self._run.effects.answers.woken(wake)
            self._feed(voc.Woken(self._at))

    def record(self, event: SubscriberEvent) -> None:
        """The agent's subscriber seat: a tool that ends while nobody asks is worth a wake."""
        if isinstance(event, ToolSettledIdle):
            self._on_wake(Wake.tool_settled(event))


def _agree(field: str, said: bool, found: bool) -> None:
    if said != found:
        raise MediaValueError(f"config.{field}", str(said), f"its part says {found}: use that")
