"""The turn vocabulary: what the turn machine is told, and what it asks for.

Events are facts with an input sample (`at`), the turn or generation they belong to, and nothing
else: replaying a recorded list of them replays the machine. Effects are orders to the pipeline, or
things to tell. Neither holds objects that do I/O. A provider's or adapter's own words never get
here (DESIGN 7).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..media.events import ModeName
from ..media.transport import LineState

VadKind = Literal["start", "confirmed", "misfire", "end", "echo"]
"""`echo`: what was taken for a voice is the agent's own, coming back."""
GateMove = Literal["hold", "open", "cancel", "close"]
Source = Literal["speech", "typed", "inject", "respond", "wake"]

# ---- events ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tick:
    """20 ms of input ended at `at`: voice probability and RMS level (full scale 1) of it."""

    at: int
    prob: float = 0.0
    level: float = 0.0


@dataclass(frozen=True, slots=True)
class Voice:
    """The detector decided something about the caller's voice, dated to `position`."""

    at: int
    kind: VadKind
    position: int


@dataclass(frozen=True, slots=True)
class Words:
    """The recogniser's text for input samples [start, end); `final` = its last word on them."""

    at: int
    text: str
    start: int
    end: int
    final: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """The turn detector's answer to query `query`: see `detectors.port.Decision`. `failed`: it
    had none to give."""

    at: int
    query: int
    hold_ms: int = 0
    reason: str = ""
    p: float | None = None
    again_ms: int | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Sounded:
    """A sample of generation `gen` reached the person; `aside`: only of what announces it."""

    at: int
    gen: int
    aside: bool = False


@dataclass(frozen=True, slots=True)
class Silenced:
    """Everything given so far of `gen` was heard; the answer itself is not over."""

    at: int
    gen: int


@dataclass(frozen=True, slots=True)
class Answered:
    """Generation `gen` is over: its request resolved and all of it was heard. `failed` holds a
    wire code when it ended by an error."""

    at: int
    gen: int
    failed: str | None = None


@dataclass(frozen=True, slots=True)
class Narrated:
    """Narration `command` is over."""

    at: int
    command: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A command of the brain port, numbered; `text` where it has one."""

    at: int
    command: int
    kind: Literal[
        "say", "respond", "inject", "context", "narrate", "interrupt", "commit", "barge_in"
    ]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Muted:
    """The microphone was muted or opened by command."""

    at: int
    command: int
    on: bool


@dataclass(frozen=True, slots=True)
class Talk:
    """The talk button went down or up."""

    at: int
    command: int
    down: bool


@dataclass(frozen=True, slots=True)
class Woken:
    """The agent has something to say by itself (an event, an inbox item, a late tool result)."""

    at: int


@dataclass(frozen=True, slots=True)
class Slots:
    """`pending` display slots wait for the person."""

    at: int
    pending: int


@dataclass(frozen=True, slots=True)
class LineMoved:
    """The carrier came, went, or the call closed."""

    at: int
    state: LineState


TurnEvent = (
    Tick
    | Voice
    | Words
    | Verdict
    | Sounded
    | Silenced
    | Answered
    | Narrated
    | Asked
    | Muted
    | Talk
    | Woken
    | Slots
    | LineMoved
)

# ---- effects --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pause:
    """Silence on the line, sound kept; reported as an interruption when the agent was audible."""

    audible: bool


@dataclass(frozen=True, slots=True)
class Resume:
    """Sound goes on at the paused sample."""

    reason: str
    audible: bool


@dataclass(frozen=True, slots=True)
class Cut:
    """End generation `gen`: sound gone, late writes void, its request ended. Running tools go on
    unless `tools`; a waiting display slot stays (row 24)."""

    gen: int
    reason: str
    tools: bool
    audible: bool


@dataclass(frozen=True, slots=True)
class StartReply:
    """Ask the agent. `turn` is the committed user turn answered, None for the agent's own."""

    gen: int
    turn: int | None
    source: Source
    text: str
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """Generation `gen` is slow: say that it is on its way, unless its words have come."""

    gen: int


@dataclass(frozen=True, slots=True)
class AskDetector:
    """Is the turn over? `text` so far; speech ended at `end`. `again`: asked once before."""

    query: int
    text: str
    end: int
    again: bool


@dataclass(frozen=True, slots=True)
class FlushStt:
    """The utterance ended at `end`: a final text is wanted."""

    end: int


@dataclass(frozen=True, slots=True)
class AskStt:
    """A report of the words up to `end` is wanted soon."""

    end: int


@dataclass(frozen=True, slots=True)
class SettleStt:
    """Audio before `end` belongs to a committed or dropped turn."""

    end: int


@dataclass(frozen=True, slots=True)
class Gate:
    """Move the speech gate: hold and buffer, let through from `start` on, cancel, or close."""

    move: GateMove
    start: int | None = None


@dataclass(frozen=True, slots=True)
class ResetVad:
    """The detector seems deaf, or its audio has a hole."""

    reason: str


@dataclass(frozen=True, slots=True)
class DuckVad:
    """The agent is audible (`on`) or not."""

    on: bool


@dataclass(frozen=True, slots=True)
class Microphone:
    """Feed VAD and STT (`on`), or not."""

    on: bool


@dataclass(frozen=True, slots=True)
class StartNarration:
    """Speak the text of command `command`."""

    command: int


@dataclass(frozen=True, slots=True)
class EndNarration:
    """Stop narration `command` now."""

    command: int


@dataclass(frozen=True, slots=True)
class AddContext:
    """Tell the agent `text` without asking it."""

    text: str


@dataclass(frozen=True, slots=True)
class Complete:
    """The effect of command `command` is over."""

    command: int


@dataclass(frozen=True, slots=True)
class AnswerClient:
    """Answer a client's own barge-in reflex: `resume` when there is nothing to cut (row 29)."""

    resume: bool


@dataclass(frozen=True, slots=True)
class TellMode:
    """The public mode changed."""

    mode: ModeName


@dataclass(frozen=True, slots=True)
class TellWords:
    """The user's words so far, for people to read."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TellTurn:
    """A decision about a user turn. `committed` carries what latency needs: see `Timing`."""

    event: Literal["committed", "dropped", "corrected", "resumed"]
    reason: str
    text: str
    turn: int | None = None
    hold_ms: int | None = None
    p: float | None = None
    timing: Timing | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """When a turn's decision had its parts, in input samples: end of speech, its detection, the
    end of the hold, the text, the commit."""

    speech_end: int
    vad_end: int
    held: int
    text: int
    commit: int


@dataclass(frozen=True, slots=True)
class TellMetric:
    """A number worth keeping."""

    name: str
    value: float


Effect = (
    Pause
    | Resume
    | Cut
    | StartReply
    | Acknowledge
    | AskDetector
    | FlushStt
    | AskStt
    | SettleStt
    | Gate
    | ResetVad
    | DuckVad
    | Microphone
    | StartNarration
    | EndNarration
    | AddContext
    | Complete
    | AnswerClient
    | TellMode
    | TellWords
    | TellTurn
    | TellMetric
)
