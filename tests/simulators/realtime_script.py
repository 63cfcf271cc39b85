"""What a simulated realtime model hears, says and does wrong: the same script for every provider.

A script is a function from what was asked (`Asked`) to an answer (`Reply`), a list of faults at
named points of a session's life, and a way to read and to make speech. The simulators say it in
their provider's frames; so one test runs against all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tests.simulators import tone_words
from tests.simulators.tone_words import Samples

AskedBy = Literal["speech", "text", "request", "results", "context"]
Action = Literal["drop", "half_open", "stall", "close", "error", "go_away", "refuse", "delay"]
Point = Literal[
    "connect",
    "setup",
    "opened",
    "caller_silent",
    "caller_speaking",
    "caller_stopped",
    "turn_taken",
    "user_words",
    "response_started",
    "before_audio",
    "mid_audio",
    "audio_done",
    "item_done",
    "response_done",
    "tool_called",
    "tool_running",
    "tool_answered",
    "text_taken",
    "context_taken",
    "handle_given",
    "closing",
]
"""Where a fault can strike. `mid_audio` is hit at every chunk of speech; `tool_running` 100 ms
after a call; `caller_silent` and `caller_speaking` at every 100 ms of the caller's sound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Why the model works now. `text` is what the user said or typed, `instruction` what a request
    brought, `results` the tools' outputs by call id; `history` all texts of the conversation so
    far, (role, text), oldest first; `images` counts pictures seen since the last answer."""

    by: AskedBy
    text: str = ""
    instruction: str = ""
    results: Mapping[str, str] = field(default_factory=dict)
    history: Sequence[tuple[str, str]] = ()
    instructions: str = ""
    tools: Sequence[str] = ()
    images: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call; an empty id gets one. `arguments` that are a str go out as they are (bad
    JSON)."""

    name: str
    arguments: Mapping[str, object] | str = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One response: speech (and its transcript), then calls. Empty: the model says nothing.

    after_s      before anything of it goes out
    words_late_s the user's transcript comes this long after the response began (0: before it)
    text_only    text instead of speech, where the provider can
    status       how it ends: anything but `completed` is the provider's own doing
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    after_s: float = 0.05
    words_late_s: float = 0.0
    text_only: bool = False
    status: Literal["completed", "incomplete", "failed"] = "completed"


@dataclass(slots=True, kw_only=True)
class Fault:
    """At the `nth` time that `point` is reached on connection number `connection` (both from 1; 0:
    any), `action` happens, once.

    drop       the TCP connection is reset
    half_open  the server reads and writes nothing any more, pongs included; TCP stays open
    stall      it goes on reading and answers pings, and says nothing more
    close      a close frame with `code` and `reason`
    error      the provider's own error with `error_code` (session_expired, insufficient_quota, …)
    go_away    the provider announces its end in `seconds`, and then ends it
    refuse     the handshake is answered with HTTP `code`
    delay      it is silent for `seconds`, then goes on
    """

    point: Point
    action: Action
    nth: int = 1
    connection: int = 1
    code: int = 1011
    reason: str = ""
    error_code: str = ""
    seconds: float = 1.0
    done: bool = False


def echo(asked: Asked) -> Reply:
    """Says what it was told."""
    if asked.by in ("speech", "text"):
        return Reply(text=f"echo {asked.text}".strip())
    if asked.by == "request":
        return Reply(text="hotel")
    if asked.by == "results":
        return Reply(text=f"golf {' '.join(asked.results.values())}")
    return Reply()


@dataclass(slots=True, kw_only=True)
class Script:
    """A simulated model. Tone words both ways unless told otherwise.

    answer      what it says; may keep state of its own
    read        the caller's sound of one turn (int16, at `rate`) as text
    speak       a text as sound at `rate`
    faults      see Fault
    silence_ms  of the caller that ends a turn, where the provider decides
    handles     gives resumption handles, where the provider has them
    speed       how many times faster than real time speech goes out, where it may
    tokens      of every response: its context size as the provider reports it
    """

    answer: Callable[[Asked], Reply] = echo
    read: Callable[[Samples, int], str] = lambda pcm, rate: " ".join(tone_words.read(pcm, rate))
    speak: Callable[[str, int], Samples] = tone_words.speak
    faults: list[Fault] = field(default_factory=list)
    silence_ms: int = 500
    handles: bool = True
    speed: float = 4.0
    tokens: Callable[[int], int] = lambda response: 200 + 50 * response
    summary: str = "alpha bravo"
    hits: dict[tuple[int, Point], int] = field(default_factory=dict)

    def hit(self, point: Point, connection: int) -> Fault | None:
        """Note that `point` was reached; the fault that strikes there now, if any."""
        for number in (connection, 0):
            self.hits[number, point] = self.hits.get((number, point), 0) + 1
        for fault in self.faults:
            if fault.done or fault.point != point or fault.connection not in (0, connection):
                continue
            if self.hits[fault.connection, point] >= fault.nth:
                fault.done = True
                return fault
        return None
