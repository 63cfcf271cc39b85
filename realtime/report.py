"""A call's turns as the agent's subscribers know turns: the events of a text request.

Whoever listens to the agent hears the same of a call as of a text turn (spec/voice 18.11b): a
response is a request, its words are text deltas. Owned by one run of a session; emits only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..core.events import (
    ModelResponseComplete,
    RequestEnded,
    RequestStarted,
    RequestStatus,
    TextDelta,
)
from ..core.live import LiveConversation
from ..core.messages import ToolCall
from ..core.usage import Usage
from .events import ResponseDone, ResponseStarted, ResponseStatus, ToolCalls

_STATUS: dict[ResponseStatus, RequestStatus] = {
    "completed": "ok",
    "incomplete": "ok",
    "cancelled": "aborted",
    "failed": "failed",
}


@dataclass(slots=True)
class _Running:
    """A response that is reported: its words by message, its calls, what it cost."""

    texts: dict[str, str] = field(default_factory=dict)
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()


class Report:
    """See the module."""

    def __init__(self, live: LiveConversation) -> None:
        self._live = live
        self._running: dict[str, _Running] = {}
        self.user_message_id: str | None = None
        """Of the turn that is answered now; None for what the agent says by itself."""

    @property
    def current(self) -> str:
        """The response that began last and is not over; "" for none."""
        return next(reversed(self._running), "")

    def started(self, event: ResponseStarted) -> None:
        """A response began."""
        self._running[event.response_id] = _Running()
        started = RequestStarted(user_message_id=self.user_message_id)
        self._live.emit(started, event.response_id)

    def words(self, message_id: str, text: str) -> None:
        """The answer grows."""
        run_id = self.current
        running = self._running.get(run_id)
        if running is not None and text:
            running.texts[message_id] = running.texts.get(message_id, "") + text
            self._live.emit(TextDelta(text=text, message_id=message_id), run_id)

    def whole(self, message_id: str, text: str) -> None:
        """The answer's final wording; what was not told as a delta is told now."""
        running = self._running.get(self.current)
        if running is None:
            return
        told = running.texts.get(message_id, "")
        if not told:
            self.words(message_id, text)
        elif text:
            running.texts[message_id] = text

    def calls(self, event: ToolCalls) -> None:
        """The response asked for tools; each call is told when it is run (run_calls)."""
        running = self._running.get(event.response_id)
        if running is not None:
            running.calls += event.calls

    def used(self, usage: Usage) -> None:
        """What the response cost."""
        running = self._running.get(self.current)
        if running is not None:
            running.usage += usage

    def ended(self, event: ResponseDone) -> None:
        """A response is over, however it ended."""
        running = self._running.pop(event.response_id, None)
        if running is None:
            return
        complete = ModelResponseComplete(
            text="\n".join(text for text in running.texts.values() if text.strip()),
            tool_calls=running.calls,
            stop_reason=event.reason or None,
            usage=running.usage,
            message_id=next(reversed(running.texts), ""),
        )
        self._live.emit(complete, event.response_id)
        status = _STATUS[event.status]
        error = None if status == "ok" else event.reason or event.status
        self._live.emit(RequestEnded(status=status, error=error), event.response_id)

    def close(self) -> None:
        """The call is over: nothing stays open."""
        for response_id in list(self._running):
            self.ended(ResponseDone(response_id, "cancelled", "the call ended"))
