"""The call vocabulary: what both kinds of brain report about a call, and its JSONL form.

One frozen class per timeline type of CONTRACTS A, in one union. A `Call` stamps an event with the
input clock when it is emitted; nothing here has a clock of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal

from .transport import LineState

RATE = 16_000
"""Positions on a timeline count samples at this rate (CONTRACTS A)."""

ModeName = Literal["idle", "listening", "thinking", "speaking"]
EndReason = Literal["hangup", "remote_hangup", "limit", "linger", "error", "drain"]
ToolStatus = Literal["success", "error", "aborted"]
Json = object
_HERE = {"here": True}
"""Marks a field that stays in this process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEvent:
    """Root of the union: `turn` and `gen` where they apply."""

    type: ClassVar[str] = "event"
    turn: int | None = None
    gen: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted(CallEvent):
    """First line of a timeline: who is on the call and with which parts."""

    type: ClassVar[str] = "call_started"
    call_id: str
    line: str
    brain: str
    agent: str
    stt: str
    tts: str
    model: str
    clock: Literal["fast", "real"]
    costs: Mapping[str, float]
    v: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LineEvent(CallEvent):
    """The carrier came, went, or the call closed."""

    type: ClassVar[str] = "line"
    state: LineState


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode(CallEvent):
    """The public mode changed."""

    type: ClassVar[str] = "mode"
    mode: ModeName


@dataclass(frozen=True, slots=True, kw_only=True)
class InputGap(CallEvent):
    """`samples` of input never came; silence stands in their place."""

    type: ClassVar[str] = "gap"
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Vad(CallEvent):
    """A voice-activity decision; `position` is the sample it is dated to."""

    type: ClassVar[str] = "vad"
    event: Literal["start", "confirmed", "misfire", "end"]
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript(CallEvent):
    """Words of one side. `start`, `end` are input samples; final assistant lines say what of
    the text was heard and whether that is an estimate. `message` is the id that the user's words
    get in history; it is for this process and on no timeline, for ids differ from run to run."""

    type: ClassVar[str] = "transcript"
    role: Literal["user", "assistant"]
    text: str
    partial: bool
    start: int | None = None
    end: int | None = None
    source: Literal["speech", "typed", "narration"] = "speech"
    heard: str | None = None
    unheard: str | None = None
    interrupted: bool | None = None
    estimated: bool | None = None
    message: str | None = field(default=None, metadata=_HERE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn(CallEvent):
    """A decision about a user turn: committed, dropped, corrected or resumed, and why. `message` as
    in Transcript, where the turn is told before its words are known."""

    type: ClassVar[str] = "turn"
    event: Literal["committed", "dropped", "corrected", "resumed"]
    reason: str
    text: str
    hold_ms: int | None = None
    p: float | None = None
    message: str | None = field(default=None, metadata=_HERE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response(CallEvent):
    """The agent's answer to a turn: started, audible, ended or cut; `out` is an output sample."""

    type: ClassVar[str] = "response"
    event: Literal["started", "audio", "ended", "cut"]
    out: int | None = None
    text: str | None = None
    heard: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption(CallEvent):
    """A barge-in paused, resumed or cut the agent's sound."""

    type: ClassVar[str] = "interruption"
    event: Literal["paused", "resumed", "cut"]
    reason: str
    out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(CallEvent):
    """A tool call started, or has its one terminal result."""

    type: ClassVar[str] = "tool"
    event: Literal["started", "result"]
    id: str
    name: str
    input: Json = None
    status: ToolStatus | None = None
    duration_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks(CallEvent):
    """The agent's plan, whole: each task with `id`, `content`, `activeForm` and `status`."""

    type: ClassVar[str] = "tasks"
    tasks: tuple[Mapping[str, Json], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox(CallEvent):
    """What the agent asked somebody outside for and has not taken up yet, in order: each item
    with `id`, `tag`, `request`, `blocking`, `status` and, once it was given, `response`."""

    type: ClassVar[str] = "inbox"
    items: tuple[Mapping[str, Json], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction(CallEvent):
    """The agent began or ended to summarise the conversation for itself. Never spoken."""

    type: ClassVar[str] = "compaction"
    event: Literal["start", "end"]
    status: Literal["ok", "aborted", "failed"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot(CallEvent):
    """Something for a person to see or answer came onto the display stack."""

    type: ClassVar[str] = "slot"
    id: str
    renderer: str
    input: Json
    strategy: str
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRemoved(CallEvent):
    """A slot left the display stack."""

    type: ClassVar[str] = "slot_removed"
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyPart:
    """One stage's share of a turn's latency and the setting that owns it."""

    name: Literal["vad_wait", "turn", "stt", "agent", "tts", "output"]
    ms: float
    setting: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric(CallEvent):
    """A measured value; for `turn_latency` the parts sum to `total_ms` within 1 ms."""

    type: ClassVar[str] = "metric"
    name: str
    value: float | None = None
    total_ms: float | None = None
    parts: tuple[LatencyPart, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconnected(CallEvent):
    """Another connection to a realtime provider carries the call: after an outage, or `planned`.

    `restored`: the provider kept the conversation, else it was told anew from history. `lost_ms` of
    the caller's sound came too long before and were not sent again, `replayed_ms` were."""

    type: ClassVar[str] = "reconnected"
    restored: bool
    planned: bool
    attempt: int
    lost_ms: int
    replayed_ms: int
    outage_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem(CallEvent):
    """Something failed; the call goes on unless `fatal`."""

    type: ClassVar[str] = "problem"
    code: str
    stage: str
    message: str
    fatal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded(CallEvent):
    """Last line of a timeline."""

    type: ClassVar[str] = "call_ended"
    reason: EndReason
    late: int
    turns: int


def to_line(at: int, event: CallEvent) -> dict[str, object]:
    """The JSONL object of `event` emitted at input sample `at` (CONTRACTS A). Fields that are
    None are left out."""
    line: dict[str, object] = {"t": at / RATE, "at": at, "type": event.type}
    for item in fields(event):
        value = getattr(event, item.name)
        if value is None or "here" in item.metadata:
            continue
        line[item.name] = _plain(value)
    return line


def _plain(value: object) -> object:
    """A field as JSON has it; an agent's own values go as they are."""
    match value:
        case LatencyPart():
            return {"name": value.name, "ms": value.ms, "setting": value.setting}
        case Mapping():
            return dict(value)
        case tuple():
            return [_plain(one) for one in value]
        case _:
            return value
