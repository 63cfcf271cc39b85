"""The state of one call's turn-taking: three floors and what the guards between them need.

Frozen values only; `machine.step` is the one place that makes new ones. Positions are input
samples at 16 kHz.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from ..media.events import RATE, ModeName
from ..media.transport import LineState
from ..media.turns.bargein import BargeIn, BargeInConfig
from ..media.turns.nearfield import NearField
from .commit import Answer, TurnConfig
from .detectors.port import PauseEma
from .floors import AGENT, LINE, MODES, USER, AgentFloor, UserFloor
from .transcript import Transcript
from .vocabulary import Effect, TellMode


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineConfig:
    """What the machine may decide by. `continuous`: the recogniser segments by itself."""

    turn: TurnConfig = TurnConfig()
    barge_in: BargeInConfig = BargeInConfig()
    continuous: bool = False
    gating: bool = True
    """Whether a speech gate may stand before the recogniser."""
    detector: bool = True
    """Whether a turn detector answers queries; without one the tiers decide at once."""

    @property
    def gated(self) -> bool:
        """Whether a speech gate stands: never before a recogniser that wants all audio."""
        return self.gating and not self.continuous


class Speech(NamedTuple):
    """Evidence of the caller's voice. A named tuple, like `State`: frames change both, and copying
    a frozen dataclass costs ten times as much."""

    start: int | None = None
    """First voiced sample of the utterance being spoken."""
    turn_start: int | None = None
    """First voiced sample of the turn, over all its utterances."""
    onset_at: int | None = None
    """When the latest onset came while the agent had the floor."""
    voiced_at: int = -(10**9)
    """Latest sample at which the detector saw voice (p >= evidence_p)."""
    room_at: int = -(10**9)
    """Latest sample at which the room was not dead (p >= room_p)."""
    words_at: int | None = None
    """When words came that no voice explained, since the last voice."""
    ended: int | None = None
    """Last voiced sample of the latest utterance."""
    peak: float = 0.0
    """Highest frame RMS of the turn."""
    reset_at: int = -(10**9)
    """When a deaf detector was last reset."""
    gate_open: bool = False
    """Whether the recogniser is being given this utterance."""
    reported_to: int = 0
    """How far into the input the recogniser's reports came."""
    changed_to: int = 0
    """How far they had come when the words last changed."""
    asked_at: int = 0
    """When it was last asked about a voice that goes on."""


@dataclass(frozen=True, slots=True)
class Holding:
    """The user stopped speaking: waiting to be sure, and for the text."""

    anchor: int
    """Last voiced sample: holds count from here."""
    known_at: int
    """When the end of speech was known."""
    query: int
    """The detector's open or latest query."""
    asked_at: int
    asked_text: str = ""
    answered_at: int | None = None
    answer: Answer | None = None
    again: bool = False
    awaiting_since: int | None = None
    """The recogniser owes a final text since then; None when it owes nothing."""
    awaiting_end: int = 0
    """That text is about audio up to here."""
    owed: bool = False
    """It did not come in time, and may still come."""
    text_at: int = 0
    """When the text was last extended."""
    forced: str = ""
    """Commit without a hold, for this reason, as soon as there is text."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The user turn last handed to the agent, its words in [start, end). `confirming`: those from
    `open_from` on were a partial, and the recogniser's final for them is still to come."""

    turn: int
    text: str
    start: int
    end: int
    heard_to: int
    """Where its text ends; of the audio from there to `end` nothing was reported yet."""
    confirming: bool = False
    open_from: int = 0
    sure: str = ""
    """Its words before `open_from`."""
    unsure: str = ""
    """Its words from `open_from` on."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer being made. `command`: whose effect ends with it."""

    gen: int
    turn: int | None
    command: int | None = None
    asked_at: int = 0
    """When it was asked for: a voice that ended before is no reaction to it."""
    withheld: bool = False
    """Paused before its first sound, because the user began to speak."""
    audible: bool = False
    """It sounds under a narration that is not over yet."""
    acknowledged: bool = False
    """Something was said already while the person waits for it."""
    aside: bool = False
    """What sounds is that, and nothing of the answer itself."""


@dataclass(frozen=True, slots=True)
class TalkButton:
    """Push-to-talk, in samples: when it went down, and when an early release will commit."""

    down_at: int | None = None
    commit_at: int | None = None
    was_muted: bool = True
    command: int | None = None


@dataclass(frozen=True, slots=True)
class Queued:
    """A command that waits for its turn."""

    command: int
    kind: str
    text: str


class State(NamedTuple):
    """All of it."""

    line: LineState = "detached"
    user: UserFloor = "silent"
    agent: AgentFloor = "idle"
    mode: ModeName = "idle"
    turns: int = 0
    gens: int = 0
    queries: int = 0
    ignored: int = 0
    """Events that meant nothing in their state."""
    transcript: Transcript = Transcript()
    speech: Speech = Speech()
    hold: Holding | None = None
    barge: BargeIn = BargeIn()
    committed: Committed | None = None
    lost: int | None = None
    """Where the audio ends of a turn that was dropped because no words came for it: words that
    come late re-open it (field fault 12)."""
    near: NearField = NearField()
    pauses: PauseEma = PauseEma()
    reply: Reply | None = None
    narration: int | None = None
    queued: tuple[Queued, ...] = ()
    committing: int | None = None
    """The command that asked for a commit."""
    talk: TalkButton = TalkButton()
    muted: bool = False
    slots: int = 0
    woken: bool = False
    swept_at: int = 0
    stable_asked_at: int = 0
    quiet_since: int = 0
    """When somebody last had the floor."""


def initial(config: MachineConfig) -> State:
    """Before the line is attached."""
    return State(muted=config.turn.muted_at_start)


@dataclass(slots=True)
class Step:
    """One event's way through the machine: the state so far and the effects so far."""

    state: State
    config: MachineConfig
    at: int
    effects: list[Effect] = field(default_factory=list)

    def do(self, *effects: Effect) -> None:
        """Ask for `effects`, in order."""
        self.effects.extend(effects)

    def put(self, **changes: object) -> None:
        """Replace fields of the state."""
        self.state = self.state._replace(**changes)  # type: ignore[arg-type]

    def speech(self, **changes: object) -> None:
        """Replace fields of the speech evidence."""
        self.put(speech=self.state.speech._replace(**changes))  # type: ignore[arg-type]

    def ignore(self) -> None:
        """This event means nothing here."""
        self.put(ignored=self.state.ignored + 1)

    def move_line(self, trigger: str) -> bool:
        """Take `trigger` in the line table; False (and counted) where there is no such way."""
        target = LINE[self.state.line].get(trigger)
        if target is None:
            self.ignore()
            return False
        self.put(line=target)
        return True

    def move_user(self, trigger: str) -> bool:
        """Take `trigger` in the user table; False (and counted) where there is no such way."""
        target = USER[self.state.user].get(trigger)
        if target is None:
            self.ignore()
            return False
        self.put(user=target)
        if target == "silent":
            self.put(quiet_since=self.at)
        return True

    def move_agent(self, trigger: str) -> bool:
        """Take `trigger` in the agent table; False (and counted) where there is no such way."""
        target = AGENT[self.state.agent].get(trigger)
        if target is None:
            self.ignore()
            return False
        if target == "idle":
            self.put(quiet_since=self.at)
        self.put(agent=target)
        return True

    def tell_mode(self) -> None:
        """Say the public mode if it changed."""
        state = self.state
        mode: ModeName = MODES[state.agent]
        if state.agent == "narrating" and state.reply is not None:
            mode = "thinking"
        if state.line == "closed" or (state.line == "detached" and state.mode == "idle"):
            mode = "idle"
        if mode != state.mode:
            self.put(mode=mode)
            self.do(TellMode(mode))


@lru_cache(maxsize=256)  # the same few times of the configuration, at every tick that counts
def samples(ms: float) -> int:
    """Milliseconds in input samples."""
    return round(ms * RATE / 1000)
