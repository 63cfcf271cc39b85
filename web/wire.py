"""Between client messages (CONTRACTS B) and the brain's commands and call events: two tables.

Pure: no socket, no clock. What a message must look like is checked before, in
adapters/transports/websocket_messages; here it only gets its meaning.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..media.brain import ClientBargeIn, Command, Commit, Interrupt, Mute, PushToTalk, Say
from ..media.events import (
    CallEnded,
    CallEvent,
    Compaction,
    Inbox,
    Interruption,
    Metric,
    Mode,
    Problem,
    Response,
    Slot,
    SlotRemoved,
    Tasks,
    Tool,
    Transcript,
    to_line,
)
from ..media.format import PIPELINE
from ..media.frame import FRAME_MS
from ..media.transport import Image

ServerMessage = dict[str, object]


@dataclass(frozen=True, slots=True)
class Resolve:
    """A person answered a slot."""

    id: str
    value: object


@dataclass(frozen=True, slots=True)
class Reject:
    """A person refused a slot."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Impair:
    """A developer wants packets of this line lost (`loss` 0..1, in runs of `burst`) and delayed,
    those that go `down` to the client too."""

    loss: float
    burst: int
    jitter_ms: float
    down: bool


Request = Command | Resolve | Reject | Impair

COMMANDS: Mapping[str, Callable[[Mapping[str, object]], Request]] = {
    "say": lambda m: Say(str(m["text"])),
    "mute": lambda m: Mute(bool(m["on"])),
    "ptt": lambda m: PushToTalk(bool(m["down"])),
    "commit": lambda m: Commit(),
    "interrupt": lambda m: Interrupt(),
    "barge_in": lambda m: ClientBargeIn(),
    "resolve": lambda m: Resolve(str(m["id"]), m["value"]),
    "reject": lambda m: Reject(str(m["id"]), str(m.get("reason", "rejected"))),
    "impair": lambda m: _impair(m),
}
"""Message kind -> what is asked. Kinds that stand nowhere here (`playback_done`, `speaker`) are
accepted and need no action: playback is acknowledged by position, a browser has one speaker."""


def to_request(message: Mapping[str, object]) -> Request | None:
    """What a checked client message asks for; None for one that needs no action."""
    make = COMMANDS.get(str(message.get("t")))
    return None if make is None else make(message)


def to_picture(message: Mapping[str, object]) -> Image | None:
    """The picture that a checked client message brings, if it does."""
    if message.get("t") != "image":
        return None
    live = message.get("live") is True
    return Image(str(message["mime"]), b64decode(str(message["data"])), live)


def _impair(message: Mapping[str, object]) -> Impair:
    loss, burst, jitter_ms = (message[key] for key in ("loss", "burst", "jitter_ms"))
    return Impair(
        loss=float(str(loss)),
        burst=int(str(burst)),
        jitter_ms=float(str(jitter_ms)),
        down=bool(message["down"]),
    )


def ready(
    *, call_id: str, token: str, epoch: int, assistant: str, resumed: bool, inbox: bool = False
) -> ServerMessage:
    """The first message of every attach. `token` re-attaches for as long as the call lives.
    `inbox`: whoever looks at the page may answer what the agent asks somebody outside."""
    found: ServerMessage = {
        "t": "ready",
        "sessionId": call_id,
        "callId": call_id,
        "token": token,
        "epoch": epoch,
        "config": {"rate": PIPELINE.rate, "frame_ms": FRAME_MS},
        "speakers": [{"id": "user", "displayName": "You", "description": "the caller"}],
        "assistantName": assistant,
        "resumed": resumed,
    }
    return found | ({"inbox": f"/sessions/{call_id}/inbox"} if inbox else {})


def error(code: str, message: str, field: str | None = None) -> ServerMessage:
    """A problem the client should know about."""
    found: ServerMessage = {"t": "error", "code": code, "message": message}
    return found if field is None else found | {"field": field}


def bad_answer(slot_id: str, problems: Sequence[tuple[str, str]]) -> ServerMessage:
    """An answer does not fit its slot, which stays open: what is wrong with which of its fields."""
    field = problems[0][0]
    told = "; ".join(f"{name}: {why}" for name, why in problems)
    listed = [{"field": name, "message": why} for name, why in problems]
    return error("bad_answer", told, field) | {"id": slot_id, "problems": listed}


def unknown_slot(slot_id: str) -> ServerMessage:
    """An answer came for a slot that is not open, or not any more."""
    return error("unknown_slot", "no such slot is open", "id") | {"id": slot_id}


@dataclass(slots=True)
class _Answer:
    """The answer that runs: its text so far, and whether it sounds."""

    turn: int | None = None
    sounds: bool = False
    text: str = ""

    @property
    def chars(self) -> int:
        """How long its text is, as a page counts (UTF-16)."""
        return len(self.text.rstrip().encode("utf-16-le", "surrogatepass")) // 2

    def speech(self, sent: int) -> list[ServerMessage]:
        if not self.sounds or not self.text.strip():
            return []
        return [{"t": "speech", "turnId": self.turn, "text": self.text, "pos": sent}]


class ServerWire:
    """Call events -> server messages, for all sockets of one call.

    Remembers only what a re-attaching client must be told: mode, mute, open slots, the agent's
    plan, inbox and compaction as they were last told, and whether a client's own barge-in awaits
    its answer.
    """

    def __init__(self) -> None:
        self._mode = "listening"
        self._muted = False
        self._slots: dict[str, ServerMessage] = {}
        self._agent: dict[str, ServerMessage] = {}
        """The last line of each type that says how the agent stands."""
        self._barge_in = False
        self._answer = _Answer()

    def snapshot(self) -> list[ServerMessage]:
        """What a client that was just attached is told after `ready`."""
        self._barge_in = False
        again = [{**line, "again": True} for line in self._agent.values()]
        return [self._state(), *self._slots.values(), *again]

    def muted(self, on: bool) -> list[ServerMessage]:
        """The caller's audio was muted or unmuted."""
        self._muted = on
        return [self._state()]

    def barge_in(self) -> None:
        """The client paused by itself: from now on it is owed a pause, a clear or a resume."""
        self._barge_in = True

    def barge_in_settled(self) -> list[ServerMessage]:
        """The brain is done with the barge-in: resume, unless that was said (voice row 29)."""
        owed, self._barge_in = self._barge_in, False
        return [{"t": "resume"}] if owed else []

    def words(self, text: str, sent: int) -> list[ServerMessage]:
        """The running answer's text so far; held back until the answer sounds, so that a page
        never shows words that a caller who went on talking will not hear."""
        self._answer.text = text
        return self._answer.speech(sent)

    def encode(self, at: int, event: CallEvent, sent: int) -> list[ServerMessage]:
        """The messages that tell a client about `event`, emitted at input sample `at`; `sent` is
        the output position at which sound sent after them will stand."""
        match event:
            case Mode():
                self._mode = "listening" if event.mode == "idle" else event.mode
                return [self._state()]
            case Transcript(role="user"):
                return [_user_words(event)]
            case Transcript():
                return _agent_words(event, sent)
            case Response():
                return [*self._response(event, sent), _plain(at, event)]
            case Slot() | SlotRemoved():
                return [self._slot(at, event)]
            case Metric():
                return [_of_line("metric", at, event)]
            case Problem():
                return [error(event.code, event.message)]
            case Interruption():
                return [*self._reflex(event), _plain(at, event)]
            case CallEnded():
                return []  # the transport says bye, last of all
            case _:
                return [self._line(at, event)]

    def _line(self, at: int, event: CallEvent) -> ServerMessage:
        line = _plain(at, event)
        behind = self._answer.chars
        if isinstance(event, Tool) and event.event == "started" and behind:
            return line | {"behind": {"turnId": self._answer.turn, "chars": behind}}
        if isinstance(event, Tasks | Inbox | Compaction):
            self._agent[event.type] = line
        return line

    def _state(self) -> ServerMessage:
        quiet = self._muted and self._mode == "listening"
        return {"t": "state", "state": "muted" if quiet else self._mode, "muted": self._muted}

    def _response(self, event: Response, sent: int) -> list[ServerMessage]:
        if event.event == "started":
            self._answer = _Answer(event.turn)
            return []
        if event.event == "audio":
            self._answer.sounds = True
            return self._answer.speech(sent)
        if event.turn == self._answer.turn:
            self._answer = _Answer()
        return [{"t": "speech_end", "turnId": event.turn, "pos": sent}]

    def _slot(self, at: int, event: Slot | SlotRemoved) -> ServerMessage:
        message = _of_line(event.type, at, event)
        self._slots.pop(event.id, None)
        if isinstance(event, Slot):
            self._slots[event.id] = message
        return message

    def _reflex(self, event: Interruption) -> list[ServerMessage]:
        if not self._barge_in:
            return []
        if event.event == "paused":
            return [{"t": "pause"}]
        self._barge_in = False
        return [{"t": "resume"}]  # after a cut too: the client is empty and must play again


def _plain(at: int, event: CallEvent) -> ServerMessage:
    return {"t": "event", "event": to_line(at, event)}


def _of_line(kind: str, at: int, event: CallEvent) -> ServerMessage:
    line = to_line(at, event)
    return {"t": kind, **{key: value for key, value in line.items() if key not in _NOT_ON_WIRE}}


_NOT_ON_WIRE = frozenset({"t", "at", "type"})


def _user_words(event: Transcript) -> ServerMessage:
    if event.partial:
        return {"t": "partial", "text": event.text}
    return {
        "t": "utterance",
        "speaker": "user",
        "text": event.text,
        "turnId": event.turn,
        "source": event.source,
    }


def _agent_words(event: Transcript, sent: int) -> list[ServerMessage]:
    said: ServerMessage = {
        "t": "speech",
        "turnId": event.turn,
        "text": event.text,
        "pos": sent,
        "source": event.source,
    }
    if event.partial:
        return [said]
    if event.heard is None and event.unheard is None:
        return [said]
    told = heard_of(event)
    return [said, told] if event.source == "narration" else [told]


def heard_of(event: Transcript) -> ServerMessage:
    """What of an answer reached the caller, by its final transcript."""
    return {
        "t": "heard",
        "turnId": event.turn,
        "heard": event.heard or "",
        "unheard": event.unheard or "",
        "interrupted": bool(event.interrupted),
    }
