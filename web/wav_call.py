"""A call with a recording as the caller: what `voxglove call` runs and regression tests drive.

The fixture line is the call's clock, in real time or, on a virtual loop, as fast as the models
allow; inference results count at fixed samples, so both give the same timeline unless one was
late (DESIGN 6). Prints nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..adapters.transports.fixture import FixtureTransport
from ..core.agent import Agent
from ..media import events as call
from ..media.call import Call
from ..media.frame import AudioFrame
from ..media.pcm import Samples
from ..media.transport import CallInfo, Hangup, Signal
from .brains import is_local
from .build import CallOptions, Shared, open_call
from .config_reader import ConfigError
from .timeline import TimelineFile, TurnLogFile
from .wrapped import WrappedTransport

QUIET_S = 2.0
"""Quiet after the last reply that ends a call by itself (CONTRACTS C)."""

CAP_S = 30.0
"""Most time after the recording's end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WavCall:
    """One call: the caller's audio (16 kHz), where to write, and when to hang up."""

    audio: Samples
    name: str
    agent: str
    out: Path | None = None
    timeline: Path | None = None
    record: Path | None = None
    fast: bool = False
    hangup_after_s: float | None = None
    cost_factor: float = 1.0
    on_progress: Callable[[float], None] = lambda seconds: None
    """Told the seconds of input heard, once a second."""


@dataclass(slots=True)
class WavResult:
    """How it went. `completed`: the recording was heard, and the last reply to its end; no answer
    failed unless a later one was heard."""

    reason: call.EndReason = "error"
    completed: bool = False
    late: int = 0
    events: list[tuple[int, call.CallEvent]] = field(default_factory=list)

    def lines(self) -> list[Mapping[str, object]]:
        """The timeline as JSON objects."""
        return [call.to_line(at, event) for at, event in self.events]


async def hold(shared: Shared, order: WavCall) -> WavResult:
    """Hold the call to its end. Raises OSError for files that cannot be written, and what
    `open_call` raises."""
    result = WavResult()
    watch = _Watch(order)
    files: list[TimelineFile | TurnLogFile] = []
    info = CallInfo(call_id=f"wav-{order.name}", line="fixture", peer=order.name, agent=order.agent)
    record = None
    if order.record is not None and shared.realtime is not None:
        remedy = "only the cascade has a turn machine whose inputs can be recorded; leave it out"
        raise ConfigError("--record", str(order.record), remedy)
    try:
        if order.record is not None:
            record = TurnLogFile(order.record)
            files.append(record)
        options = CallOptions(
            frame_clocked=True,
            cost_factor=order.cost_factor,
            fast=order.fast,
            recording=order.out,
            record=record,
            has_display=False,
        )
        async with open_call(shared, info, options) as opened:
            if order.fast:
                _refuse_network(shared, opened.agent)
            if record is not None:
                record.begin(opened.machine)
            live = opened.call
            live.subscribe(lambda at, event: result.events.append((at, event)))
            live.subscribe(watch)
            if order.timeline is not None:
                file = TimelineFile(order.timeline)
                files.append(file)
                live.subscribe(file)
            opened.announce()
            live.attach(_UntilQuiet(FixtureTransport(order.audio), watch, live))
            result.reason = await live.run()
    finally:
        for written in files:
            written.close()
    result.completed = watch.completed and result.reason in ("hangup", "remote_hangup")
    ended = [event for _, event in result.events if isinstance(event, call.CallEnded)]
    result.late = ended[-1].late if ended else 0
    return result


def _refuse_network(shared: Shared, agent: Agent) -> None:
    """A virtual clock cannot wait for a peer in another process (DESIGN 6)."""
    if shared.realtime is not None:
        remedy = "--fast runs only parts of this machine; leave it out, or use --brain cascade"
        raise ConfigError("brain", shared.realtime.provider, remedy)
    remedy = "--fast runs only parts of this machine; leave it out, or use {}"
    if not is_local(agent.model):
        other = "--model demo or scripted:echo"
        raise ConfigError("model", agent.model.name, remedy.format(other))
    for key, part in shared.speech.parts.items():
        if not part.local:
            raise ConfigError(key, part.name, remedy.format("the default"))


class _Watch:
    """Sink that knows whether anybody still speaks or thinks, and whether something was missed:
    an answer that failed without a later one, or the recording."""

    def __init__(self, order: WavCall) -> None:
        self._order = order
        self._end = len(order.audio)
        self._mode = "idle"
        self._voice = False
        self._last = 0
        self._told = 0
        self._unanswered = False
        self._unrecorded = False
        self._heard_all = False

    @property
    def completed(self) -> bool:
        """The recording was heard to its end, and nothing was missed."""
        return self._heard_all and not self._unanswered and not self._unrecorded

    def __call__(self, at: int, event: call.CallEvent) -> None:
        match event:
            case call.Mode(mode=mode):
                self._mode, self._last = mode, at
            case call.Vad(event=kind):
                self._voice, self._last = kind in ("start", "confirmed"), at
            case call.Turn() | call.Transcript() | call.Response() | call.Tool():
                self._last = at
                if isinstance(event, call.Response) and event.event == "audio":
                    self._unanswered = False
            case call.Problem(stage="recording"):
                self._unrecorded = True
            case call.Problem(stage="agent" | "tts" | "stt" | "provider"):
                self._unanswered = True

    def over(self, at: int) -> bool:
        """Whether the call should end at input sample `at`."""
        if at // call.RATE > self._told:
            self._told = at // call.RATE
            self._order.on_progress(at / call.RATE)
        since = at - self._end
        after = self._order.hangup_after_s
        if after is not None:
            self._heard_all = since >= 0
            return since >= round(after * call.RATE)
        quiet = self._mode in ("listening", "idle") and not self._voice
        if since >= 0 and quiet and at - max(self._last, self._end) >= QUIET_S * call.RATE:
            self._heard_all = True
            return True
        return since >= CAP_S * call.RATE


class _UntilQuiet(WrappedTransport):
    """The fixture line that hangs up when the call is over, at a frame's border."""

    def __init__(self, inner: FixtureTransport, watch: _Watch, live: Call) -> None:
        super().__init__(inner)
        self._watch = watch
        self._live = live

    async def receive(self) -> AsyncIterator[AudioFrame | Signal]:
        async for item in super().receive():
            yield item
            if self._watch.over(self._live.at):
                yield Hangup(by_remote=False)
                return
