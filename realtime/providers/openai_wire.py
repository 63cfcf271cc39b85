"""OpenAI Realtime's wire as a codec: its frames to our events, our commands to its frames.

Pure, one per connection. What it has to remember lives in its parts: requests (one response at a
time), answers (responses and their sound), hearing (the user's turns), conversation (items). Never
touches a socket or a clock. Source: protocols/openai-realtime; spec/voice 18.10; `openai`
types/realtime.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from ..commands import ProviderCommand
from ..events import (
    Closed,
    Opened,
    ProviderProblem,
    RealtimeEvent,
    Summary,
    ToolCalls,
)
from ..port import Setup
from .codec import Frame
from .openai_answers import failure
from .openai_config import OpenAIRealtimeConfig
from .openai_items import is_manual
from .openai_requests import ACTIVE, Request
from .openai_telling import SETUP, Telling, new_parts
from .reading import Json, inner, parsed, text

FATAL = frozenset(
    {
        *("insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached"),
        *("invalid_api_key", "account_deactivated", "invalid_model", "model_not_found"),
    }
)
"""Codes (or types: the service has moved them) after which connecting again cannot help."""
EXPIRED = "session_expired"
HARMLESS = frozenset({"response_cancel_not_active", "input_audio_buffer_commit_empty"})
"""Refusals that say only that the provider was first."""
IGNORED = (
    *("conversation.created", "conversation.item.done", "conversation.item.retrieved"),
    *("conversation.item.truncated", "input_audio_buffer.cleared", "rate_limits.updated"),
    *("input_audio_buffer.dtmf_event_received", "output_audio_buffer.", "mcp_list_tools."),
    *("response.", "conversation.item.input_audio_transcription.segment"),
)
"""How frames begin that say nothing we do not know otherwise, or nothing for us."""
MAX_UNKNOWN = 100
WORDS = "conversation.item.input_audio_transcription."
_State = Literal["connecting", "open", "finishing", "over"]


class OpenAICodec:
    """One connection to OpenAI Realtime."""

    def __init__(self, config: OpenAIRealtimeConfig) -> None:
        self._config = config
        self._parts = new_parts(config)
        self._telling = Telling(self._parts)
        self._setup = Setup(instructions="")
        self._session_id = ""
        self._state: _State = "connecting"
        self._unknown: set[str] = set()
        self._frames: dict[str, Callable[[Json], list[RealtimeEvent]]] = {
            "session.created": self._created,
            "session.updated": self._updated,
            "error": self._error,
            "conversation.item.added": self._item_known,
            "conversation.item.created": self._item_known,
            "conversation.item.deleted": self._item_deleted,
            "input_audio_buffer.speech_started": self._speech_started,
            "input_audio_buffer.speech_stopped": self._speech_stopped,
            "input_audio_buffer.timeout_triggered": self._timeout,
            "input_audio_buffer.committed": self._committed,
            "response.created": self._response_created,
            "response.done": self._response_done,
        }

    def begin(self, setup: Setup) -> None:
        """Nothing goes out before `session.created`. `setup.resume_handle` is not for this wire."""
        self._setup = setup
        self._telling.manual = is_manual(self._config, setup)

    def receive(self, frame: Frame) -> list[RealtimeEvent]:
        """As codec.Codec says."""
        if self._state == "over":
            return []
        message = parsed(frame)
        if message is None:
            return [ProviderProblem("bad_frame", "a frame that is no JSON object was left out")]
        events = self._meaning(text(message, "type"), message)
        if not self.finished:
            self._telling.next_request()
        return events

    def tell(self, command: ProviderCommand) -> list[RealtimeEvent]:
        """As codec.Codec says."""
        if self._state == "over":
            return []
        events = self._telling.obey(command)
        self._telling.next_request()
        return events

    def finish(self) -> bool:
        """This wire has no goodbye: the socket is closed at once."""
        if self._state != "over":
            self._state = "finishing"
        return False

    def closed(self, code: int, reason: str) -> list[RealtimeEvent]:
        """As codec.Codec says. Codes in the reason count: services put them there."""
        words = set(re.split(r"[^a-z_]+", reason.lower()))
        fatal = sorted(words & FATAL)
        expired = EXPIRED in words or "maximum duration" in reason.lower()
        named = fatal[0] if fatal else EXPIRED if expired else str(code)
        return self._over(named, reason, fatal=bool(fatal))

    def take(self) -> list[Frame]:
        """As codec.Codec says."""
        return self._parts.outbox.take()

    @property
    def due(self) -> bool:
        """A response that somebody would hear runs, was asked for, or belongs to a taken turn."""
        return self._state != "over" and self._parts.requests.due

    @property
    def finished(self) -> bool:
        """Nothing more is to be waited for."""
        return self._state in ("finishing", "over")

    def _over(self, code: str, reason: str, *, fatal: bool) -> list[RealtimeEvent]:
        if self._state == "over":
            return []
        clean, self._state = self._state == "finishing", "over"
        unanswered = [Summary(one.request_id, "") for one in self._parts.requests.summaries()]
        closed = Closed(code, reason, fatal=fatal and not clean, clean=clean)
        return [*self._parts.answers.abandon(), *unanswered, closed]

    def _meaning(self, kind: str, message: Json) -> list[RealtimeEvent]:
        read = self._frames.get(kind)
        if read is not None:
            return read(message)
        part = kind.removeprefix(WORDS)
        if kind.startswith(WORDS) and part in ("delta", "completed", "failed"):
            return self._parts.hearing.words(part, message)
        events = self._parts.answers.receive(kind, message)
        if events is not None:
            return events
        if kind.startswith(IGNORED) or kind in self._unknown:
            return []
        if len(self._unknown) < MAX_UNKNOWN:
            self._unknown.add(kind)
        return [
            ProviderProblem("unknown_event", f"{kind or 'a frame without a type'} is not known")
        ]

    def _created(self, message: Json) -> list[RealtimeEvent]:
        if self._session_id:
            return []
        self._session_id = text(inner(message, "session"), "id") or "session"
        self._telling.begin(self._config, self._setup)
        return []

    def _updated(self, message: Json) -> list[RealtimeEvent]:
        if self._state != "connecting" or not self._session_id:
            return []
        self._state = "open"
        return [Opened(self._session_id)]

    def _error(self, message: Json) -> list[RealtimeEvent]:
        error = inner(message, "error")
        code, kind, said = text(error, "code"), text(error, "type"), text(error, "message")
        tag, named = text(error, "event_id"), code or kind or "error"
        if {code, kind} & FATAL or (self._state == "connecting" and self._refuses_setup(tag, kind)):
            fatal = next((one for one in (code, kind) if one in FATAL), named)
            return self._over(fatal, said, fatal=True)
        if EXPIRED in (code, kind):
            return self._over(EXPIRED, said, fatal=False)
        if code in HARMLESS:
            self._parts.hearing.nothing_to_commit(tag)
            return []
        refused = self._parts.requests.refused(tag, code)
        if refused is not None and refused.kind == "summary":
            self._parts.conversation.summarised(refused.request_id, succeeded=False)
            return [ProviderProblem(named, said), Summary(refused.request_id, "")]
        return [] if code == ACTIVE else [ProviderProblem(named, said)]

    def _refuses_setup(self, tag: str, kind: str) -> bool:
        """Whether an error before Opened is about what we set up: it would be so again."""
        return tag == SETUP or (not tag and kind == "invalid_request_error")

    def _item_known(self, message: Json) -> list[RealtimeEvent]:
        item = inner(message, "item")
        self._parts.conversation.note(item)
        self._parts.requests.seen(text(item, "id"))
        return []

    def _item_deleted(self, message: Json) -> list[RealtimeEvent]:
        self._parts.conversation.gone(text(message, "item_id"))
        self._parts.answers.forget(text(message, "item_id"))
        return []

    def _speech_started(self, message: Json) -> list[RealtimeEvent]:
        self._telling.show_frame()
        events = self._parts.hearing.speech(message, started=True)
        return [*events, *self._telling.interrupted()] if self._setup.interruption else events

    def _speech_stopped(self, message: Json) -> list[RealtimeEvent]:
        return self._parts.hearing.speech(message, started=False)

    def _timeout(self, message: Json) -> list[RealtimeEvent]:
        self._parts.hearing.timeout(message)
        return []

    def _committed(self, message: Json) -> list[RealtimeEvent]:
        ours, events = self._parts.hearing.committed(message)
        if not self._telling.manual:
            if ours:
                self._parts.requests.ask(Request("plain"))
            else:
                self._parts.requests.expect()
        return events

    def _response_created(self, message: Json) -> list[RealtimeEvent]:
        response = inner(message, "response")
        response_id = text(response, "id")
        tag = text(inner(response, "metadata"), "request")
        request = self._parts.requests.created(response_id, tag)
        events = self._parts.answers.begin(response_id, request)
        if request is not None and request.cut:
            self._parts.outbox.put("response.cancel", response_id=response_id)
        return events

    def _response_done(self, message: Json) -> list[RealtimeEvent]:
        done = inner(message, "response")
        known, events = self._parts.answers.finish(done)
        self._parts.requests.done(text(done, "id"), known=known)
        self._telling.cut_late()
        for event in events:
            if isinstance(event, ToolCalls):
                self._parts.conversation.called(event.calls)
            elif isinstance(event, Summary):
                self._parts.conversation.summarised(event.request_id, bool(event.text))
        code, kind, said = failure(done)
        fatal = next((one for one in (code, kind) if one in FATAL), "")
        return [*events, *self._over(fatal, said, fatal=True)] if fatal else events
