"""GPT-Live's wire: a stream in both directions, made the vocabulary that every provider has.

The provider has no turns, no items and no responses of speech; it listens while it speaks, and its
time is the audio that it is sent. So this codec finds utterances (`live_speech.py`) and turns
(`live_turns.py`) in the streams, and collects delegated work (`live_delegation.py`). One per
connection, owned by the driver; pure. Sources: spec/voice 18.10, 18.11.

What is said in other words, because the protocol has no better:

- RequestResponse and SendText are *commentary*, things to say; AppendContext is *thinking*, silent
  and never removed. UpdateAgent's instructions come on top of the old ones. The backend model gets
  the new instructions and tools in place of the old.
- CutOutput cannot end the generation: what the model goes on to say is dropped until it falls
  silent, and the words that belong to it.
- ToolCalls come of the backend model's response (`responses`), or are one call of the tool
  `delegate` (`client`).
"""

from __future__ import annotations

import base64
import binascii
from collections import deque

from ..commands import (
    AppendContext,
    CutOutput,
    ProviderCommand,
    RequestResponse,
    SendAudio,
    SendImage,
    SendText,
    SendToolResults,
    SendVideoFrame,
    SpeechBoundary,
    Summarise,
    UpdateAgent,
)
from ..events import (
    Closed,
    Interrupted,
    Opened,
    ProviderProblem,
    RealtimeEvent,
    ResponseStarted,
    Summary,
    Used,
)
from ..port import Setup
from .codec import Frame
from .live_delegation import Backend, ClientWork
from .live_frames import Outbox
from .live_speech import AgentSpeech, Fragment
from .live_start import LiveOptions, function_tools, session_of, tool_notice
from .live_turns import RecentWords, UserWords
from .reading import Json, count, inner, number, parsed, text

CHUNK_MS = 100
"""Longest piece of sound in one frame."""
WAITING = 1_000
"""Commands that wait for session.started, the oldest sound dropped first: 20 s of frames."""
DUE_MS = 300
"""The output stream follows the input this closely: further behind, sound is due."""

FATAL = frozenset(
    {
        *("insufficient_quota", "credit_balance_exhausted", "invalid_api_key"),
        *("account_deactivated", "billing_hard_limit_reached", "forbidden"),
    }
)
"""Codes of errors that end a connection, and the next one as well."""
REFUSED = frozenset({"model_not_found", "invalid_model", "unknown_parameter"})
"""The same, but only of session.start."""
ENDS_CALL = frozenset({"content", "remote_hangup"})
"""Reasons of session.closed after which a new session has no sense."""
QUIET = frozenset(
    {
        *("session.updated", "session.instructions.appended", "session.thinking.appended"),
        *("session.input_audio.muted", "session.input_audio.unmuted", "info"),
        *("session.output_audio.fixture.playing", "session.output_audio.fixture.played"),
        *("session.paused", "session.resumed", "session.input_audio.append"),
        *("decision.event", "decision.item.created", "decision.item.deleted"),
    }
)
"""Events that nobody here needs."""


class LiveCodec:
    """See Codec. `due` once the model owes sound for the sound it was sent."""

    def __init__(self, options: LiveOptions) -> None:
        self._options = options
        self._out = Outbox()
        self._speech = AgentSpeech(options.rate)
        self._user = UserWords()
        self._recent = RecentWords()
        self._backend = Backend(self._out)
        self._client = ClientWork(self._out)
        self._link = Link()
        self._requests: dict[str, str] = {}
        """Event id of a commentary -> request that it carries."""
        self._refused: set[str] = set()
        """Kinds of commands and events that were complained about."""

    def begin(self, setup: Setup) -> None:
        session, cut = session_of(self._options, setup)
        self._link.shortened = cut
        self._out.put("session.start", session=session)

    def take(self) -> list[Frame]:
        return self._out.take()

    @property
    def due(self) -> bool:
        return not self._link.started or self._sent_ms - self._speech.clock_ms > DUE_MS

    @property
    def finished(self) -> bool:
        return self._link.over

    @property
    def _sent_ms(self) -> float:
        return self._link.sent_bytes * 500 / self._options.rate

    # what the provider says ------------------------------------------------------------------

    def receive(self, frame: Frame) -> list[RealtimeEvent]:
        if self._link.over:
            return []
        event = parsed(frame)
        if event is None:
            return self._complain("bad_frame", "a frame is no JSON object")
        events = self._event(text(event, "type"), event)
        begun = next(
            (at for at, one in enumerate(events) if isinstance(one, ResponseStarted)), None
        )
        if begun is not None and not self._link.over:
            events[begun:begun] = self._user.answered(self._speech.clock_ms)
        # After the end there is no turn left, so Closed stays the last.
        return events + self._user.tick(self._speech.clock_ms)

    def _event(self, kind: str, event: Json) -> list[RealtimeEvent]:
        match kind:
            case "session.output_audio.delta":
                return self._audio(text(event, "delta"))
            case "session.input_transcript.delta" | "session.output_transcript.delta":
                return self._words(kind == "session.input_transcript.delta", event)
            case "session.started":
                return self._started(text(inner(event, "session"), "id"))
            case "session.commentary.appended":
                request_id = self._requests.pop(text(event, "client_event_id"), "")
                if request_id:
                    self._speech.asked(request_id)
                return []
            case "session.delegation.created" | "response.event":
                return self._delegation(kind, event)
            case "session.usage.updated" | "session.closed":
                return self._usage(kind, event)
            case "error":
                return self._error(event)
        if kind in QUIET or kind.startswith("transport."):
            return []
        return self._complain("unknown_event", f"an event of unknown type {kind[:80]!r}")

    def _audio(self, delta: str) -> list[RealtimeEvent]:
        try:
            pcm = base64.b64decode(delta, validate=True)
        except (binascii.Error, ValueError):
            return self._complain("bad_audio", "sound that is no base64")
        return self._speech.audio(pcm)

    def _words(self, of_user: bool, event: Json) -> list[RealtimeEvent]:
        words, start = text(event, "delta"), count(event, "start_ms")
        if not words:
            return []
        self._recent.add("user" if of_user else "assistant", words)
        fragment = Fragment(words, start, max(start, count(event, "end_ms")))
        if of_user:
            return self._user.fragment(fragment, self._speech.clock_ms)
        return self._speech.words(fragment)

    def _started(self, session_id: str) -> list[RealtimeEvent]:
        if self._link.started:
            return []
        self._link.started = True
        events: list[RealtimeEvent] = [Opened(session_id)]
        if self._link.shortened:
            events.append(_too_long("instructions or history of the start"))
        while self._link.waiting:
            events += self._tell(self._link.waiting.popleft())
        return events

    def _delegation(self, kind: str, event: Json) -> list[RealtimeEvent]:
        if kind == "response.event":
            return self._backend.event(text(event, "delegation_id"), inner(event, "event"))
        delegation = inner(event, "delegation")
        delegation_id = text(delegation, "id")
        match text(delegation, "target"):
            case "client":
                offset_ms = count(event, "offset_ms")
                return self._client.created(delegation_id, offset_ms, str(self._recent))
            case "responses":
                return self._backend.delegated(delegation_id)
        return []

    def _usage(self, kind: str, event: Json) -> list[RealtimeEvent]:
        seconds = number(inner(event, "usage"), "seconds")
        ratio = number(inner(event, "context_window"), "usage_ratio")
        if kind == "session.closed":
            reason = text(event, "reason") or "closed"
            closed = Closed(reason, fatal=reason in ENDS_CALL, clean=reason == "close_requested")
            return self._end(Used(context_ratio=ratio, seconds=seconds, final=True), closed)
        if seconds is None and ratio is None:
            return []
        return [Used(context_ratio=ratio, seconds=seconds)]

    def _error(self, event: Json) -> list[RealtimeEvent]:
        error = inner(event, "error")
        code, message = text(error, "code") or "error", text(error, "message")
        if text(error, "param"):
            message = f"{message} ({text(error, 'param')})"
        event_id = text(error, "client_event_id")
        self._requests.pop(event_id, None)
        self._backend.refused(event_id)
        problem = ProviderProblem(code, message)
        started = self._link.started
        if started and code not in FATAL:
            return [problem]
        refused = text(error, "type") == "invalid_request_error" or code in REFUSED
        fatal = code in FATAL or (refused and not started)
        return self._end(problem, Closed(code, message, fatal))

    def _end(self, first: RealtimeEvent | None, closed: Closed) -> list[RealtimeEvent]:
        """Nothing comes after this: close what is open. A turn of the user in the middle of which
        the connection broke is none: its sound will be heard again."""
        self._link.over = True
        events = [] if first is None else [first]
        last = self._user.end() if closed.clean or closed.fatal or self._link.closing else []
        return [*self._speech.end(), *self._backend.end(), *last, *events, closed]

    def _complain(self, code: str, message: str) -> list[RealtimeEvent]:
        """Once for each code: a provider that changed says it often."""
        if code in self._refused:
            return []
        self._refused.add(code)
        return [ProviderProblem(code, message)]

    # what it is told -------------------------------------------------------------------------

    def tell(self, command: ProviderCommand) -> list[RealtimeEvent]:
        if self._link.closing or self._link.over:
            return _unsaid(command)
        if self._link.started:
            return self._tell(command)
        if isinstance(command, CutOutput | Summarise):
            return _unsaid(command)
        self._link.wait(command)
        return []

    def _tell(self, command: ProviderCommand) -> list[RealtimeEvent]:
        match command:
            case SendAudio(pcm=pcm):
                self._send_audio(pcm)
            case AppendContext(text=words):
                return self._append("thinking", words)
            case SendText() | RequestResponse():
                return self._ask(command)
            case SendToolResults():
                owner = self._client if self._options.delegation == "client" else self._backend
                return owner.results(command)
            case UpdateAgent():
                return self._update(command)
            case CutOutput(cancel=cancel):
                return self._speech.cut() if cancel else [Interrupted()]
            case SpeechBoundary(speaking=speaking):
                self._user.boundary(speaking, self._speech.clock_ms)
            case SendImage() | SendVideoFrame():
                return self._complain("unsupported_input", "this model sees no pictures")
            case _:
                return _unsaid(command)
        return []

    def _send_audio(self, pcm: bytes) -> None:
        size = 2 * self._options.rate * CHUNK_MS // 1000
        for at in range(0, len(pcm), size):
            self._out.put_audio(base64.b64encode(pcm[at : at + size]).decode())
        self._link.sent_bytes += len(pcm)

    def _ask(self, command: SendText | RequestResponse) -> list[RealtimeEvent]:
        """Something to speak about, or a typed message that only waits."""
        if isinstance(command, SendText):
            if self._options.delegation == "responses" and command.text.strip():
                self._backend.message(command.text)
            self._recent.add("user", f" {command.text} ")
            words, speak = f"The user typed: {command.text}", command.respond
            words += "\nAnswer it aloud." if speak else ""
        else:
            words, speak = _wish(command), True
        return self._append("commentary" if speak else "thinking", words, command.request_id)

    def _append(self, kind: str, words: str, request_id: str = "") -> list[RealtimeEvent]:
        event_id, cut = self._out.append(kind, words)
        if request_id and kind == "commentary":
            self._requests[event_id] = request_id
        return [_too_long(kind)] if cut else []

    def _update(self, command: UpdateAgent) -> list[RealtimeEvent]:
        events: list[RealtimeEvent] = []
        responses: dict[str, object] = {}
        if command.instructions is not None:
            events += self._append("instructions", f"From now on: {command.instructions}")
            if not self._options.delegation_instructions:
                responses["instructions"] = command.instructions
        if self._options.delegation == "client":
            return events
        if command.tools is not None:
            responses["tools"] = function_tools(command.tools)
            events += self._append("instructions", tool_notice(command.tools))
        if responses:
            delegation = {"type": "responses", "responses": responses}
            self._out.put("session.update", session={"delegation": delegation})
        return events

    def finish(self) -> bool:
        if not self._link.started or self._link.over:
            return False
        if not self._link.closing:
            self._link.closing = True
            self._out.put("session.close")
        return True

    def closed(self, code: int, reason: str) -> list[RealtimeEvent]:
        return [] if self._link.over else self._end(None, Closed(str(code), reason))


class Link:
    """How far a connection has come.

    started      session.started came
    closing      we asked for the end
    over         the last event was given
    shortened    not all of the setup went into session.start
    sent_bytes   sound that was sent
    waiting      commands that came before session.started
    """

    def __init__(self) -> None:
        self.started = self.closing = self.over = self.shortened = False
        self.sent_bytes = 0
        self.waiting: deque[ProviderCommand] = deque()

    def wait(self, command: ProviderCommand) -> None:
        """Keep a command for the start; where there are too many, the oldest sound goes first."""
        if len(self.waiting) >= WAITING:
            oldest = next(
                (at for at, one in enumerate(self.waiting) if isinstance(one, SendAudio)), 0
            )
            del self.waiting[oldest]
        self.waiting.append(command)


def _wish(command: RequestResponse) -> str:
    """A request as something to say."""
    if not command.instruction.strip():
        return "Say now what helps the user to go on."
    if command.verbatim:
        return f"Say exactly this, word for word, and nothing else: {command.instruction}"
    return command.instruction


def _unsaid(command: ProviderCommand) -> list[RealtimeEvent]:
    """Commands that the provider has nothing for; two of them are answered nevertheless."""
    if isinstance(command, CutOutput):
        return [Interrupted()]
    return [Summary(command.request_id, "")] if isinstance(command, Summarise) else []


def _too_long(what: str) -> ProviderProblem:
    return ProviderProblem("content_cut", f"too long for this model, cut: {what}")
