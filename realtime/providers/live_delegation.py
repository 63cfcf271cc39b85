"""Work that GPT-Live gives away: to a Responses model with our tools, or to ourselves.

With `responses` the session runs a text model behind the voice. Each response of it is one to our
session too, beside those of speech. Its calls are collected until it is complete; their results go
back one by one, and it goes on once no call of the whole connection waits and no response of it
runs (a partial batch is refused). With `client` a delegation is one call of the tool DELEGATE,
whose result the voice tells. Owned by the codec; pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...core.messages import ToolCall
from ...core.usage import Usage
from ..commands import SendToolResults, ToolOutput
from ..events import (
    LOST,
    ProviderProblem,
    RealtimeEvent,
    ResponseDone,
    ResponseStarted,
    ResponseStatus,
    ToolCalls,
    Used,
)
from .live_frames import Outbox
from .reading import count, inner, text

DELEGATE = "delegate"
"""Name of the call that a delegation to the client becomes: an agent that has a tool of this name
does the work. Its input: `transcript` (what was said lately: the task is in it), `offset_ms` (when
the model gave it away), `delegation_id`."""


@dataclass(slots=True)
class Work:
    """One response of the backend. `begun`: the provider said so, not only that it was ordered."""

    number: int
    begun: bool = False
    calls: list[ToolCall] = field(default_factory=list)

    @property
    def response_id(self) -> str:
        return f"work_{self.number}"


@dataclass(slots=True)
class Backend:
    """The Responses model behind the voice, as far as the protocol makes us remember it.

    running    delegation -> its response that runs now
    open       calls that wait for a result
    answered   results went out, and the model was not told to go on yet
    creating   event id of a `response.create` that nothing answered yet
    told       event id -> result that may still be refused
    held       what the user typed while calls waited
    """

    out: Outbox
    running: dict[str, Work] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    answered: bool = False
    creating: str = ""
    told: dict[str, ToolOutput] = field(default_factory=dict)
    held: list[str] = field(default_factory=list)
    count: int = 0

    def delegated(self, delegation_id: str) -> list[RealtimeEvent]:
        """A response was ordered for a delegation."""
        return [] if delegation_id in self.running else self._begin(delegation_id)

    def event(self, delegation_id: str, event: Mapping[str, object]) -> list[RealtimeEvent]:
        """A streaming event of the backend's response. Snapshots in it are empty: calls are read
        from finished items only."""
        work = self.running.get(delegation_id)
        match text(event, "type"):
            case "response.created":
                self.creating = ""
                self.told.clear()
                return self._created(delegation_id, work)
            case "response.output_item.done" if work is not None:
                call = _call(inner(event, "item"))
                if call is not None:
                    work.calls.append(call)
            case "response.completed" if work is not None:
                return self._completed(delegation_id, inner(event, "response"))
            case "response.failed" | "response.incomplete" | "error" as kind if work is not None:
                return self._failed(delegation_id, kind, event)
        return []

    def end(self) -> list[RealtimeEvent]:
        """The connection is over, and all work with it."""
        running, self.running = self.running, {}
        return [ResponseDone(work.response_id, "cancelled", LOST) for work in running.values()]

    def results(self, command: SendToolResults) -> list[RealtimeEvent]:
        """Send results; one of a call that is not open (any more) goes as silent context."""
        for output in command.outputs:
            if output.call_id in self.open:
                self.open.discard(output.call_id)
                item = {"type": "function_call_output", "call_id": output.call_id}
                sent = self.out.put("response.item.create", item=item | {"output": output.text})
                self.told[sent] = output
                self.answered = self.answered or command.respond
            else:
                self._tell(output)
        self._go_on()
        return []

    def message(self, words: str) -> None:
        """The backend should know what the user typed; not between calls and their results."""
        self.held.append(words)
        self._go_on()

    def refused(self, event_id: str) -> None:
        """The provider refused a frame of ours: a result that it does not take for one any more is
        context, a response that it can not begin yet is asked for again later."""
        output = self.told.pop(event_id, None)
        if output is not None:
            self._tell(output)
        elif event_id and event_id == self.creating:
            self.creating, self.answered = "", True

    def _tell(self, output: ToolOutput) -> None:
        self.out.append("thinking", f"Result of {output.name}: {output.text}")

    def _begin(self, delegation_id: str) -> list[RealtimeEvent]:
        self.count += 1
        work = self.running[delegation_id] = Work(self.count)
        return [ResponseStarted(work.response_id)]

    def _created(self, delegation_id: str, work: Work | None) -> list[RealtimeEvent]:
        events: list[RealtimeEvent] = []
        if work is not None and work.begun:
            events.append(ResponseDone(work.response_id, "failed", "another took its place"))
        if work is None or work.begun:
            events += self._begin(delegation_id)
        self.running[delegation_id].begun = True
        return events

    def _completed(self, delegation_id: str, response: Mapping[str, object]) -> list[RealtimeEvent]:
        work = self.running.pop(delegation_id)
        events: list[RealtimeEvent] = []
        usage = _usage(inner(response, "usage"))
        if usage.total:
            events.append(Used(usage))
        if work.calls:
            self.open.update(call.id for call in work.calls)
            events.append(ToolCalls(work.response_id, tuple(work.calls)))
        self._go_on()
        return [*events, ResponseDone(work.response_id)]

    def _failed(
        self, delegation_id: str, kind: str, event: Mapping[str, object]
    ) -> list[RealtimeEvent]:
        """Its calls are void; what was answered before is not asked for again."""
        work = self.running.pop(delegation_id)
        response = inner(event, "response")
        error = inner(response, "error") or inner(event, "error") or event
        reason = text(inner(response, "incomplete_details"), "reason")
        self._go_on()
        status: ResponseStatus = "incomplete" if kind == "response.incomplete" else "failed"
        told = ": ".join(filter(None, (text(error, "code") or reason, text(error, "message"))))
        return [ResponseDone(work.response_id, status, told or status)]

    def _go_on(self) -> None:
        """Tell the backend what it may be told now."""
        if self.open:
            return
        held, self.held = self.held, []
        for words in held:
            content = [{"type": "input_text", "text": words}]
            item = {"type": "message", "role": "user", "content": content}
            self.out.put("response.item.create", item=item)
        if self.answered and not self.running:
            self.answered = False
            self.creating = self.out.put("response.create")


class ClientWork:
    """Delegations to our side. Ids are valid on this connection alone."""

    def __init__(self, out: Outbox) -> None:
        self._out = out
        self._known: set[str] = set()

    def created(self, delegation_id: str, offset_ms: int, transcript: str) -> list[RealtimeEvent]:
        """The model gave work away: one call of the tool DELEGATE."""
        if not delegation_id or delegation_id in self._known:
            return []
        self._known.add(delegation_id)
        args = {"transcript": transcript, "offset_ms": offset_ms, "delegation_id": delegation_id}
        return [ToolCalls(delegation_id, (ToolCall(DELEGATE, args, id=delegation_id),))]

    def results(self, command: SendToolResults) -> list[RealtimeEvent]:
        """What came of it, to be told by the voice, or silent where the model is not to respond."""
        kind = "commentary" if command.respond else "thinking"
        cut = [self._tell(kind, output) for output in command.outputs]
        return [ProviderProblem("content_cut", "a result was too long")] if any(cut) else []

    def _tell(self, kind: str, output: ToolOutput) -> bool:
        known = output.call_id in self._known
        words = output.text or "It is done."
        if not known:
            return self._out.append("thinking", f"Result of {output.name}: {words}")[1]
        return self._out.append(kind, words, output.call_id)[1]


def _call(item: Mapping[str, object]) -> ToolCall | None:
    """The tool call that a finished item is, if it is one that can be answered."""
    if text(item, "type") != "function_call" or not text(item, "call_id"):
        return None
    arguments: object = text(item, "arguments")
    try:
        value = json.loads(text(item, "arguments") or "{}")
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        arguments = value
    return ToolCall(text(item, "name"), arguments, id=text(item, "call_id"))


def _usage(usage: Mapping[str, object]) -> Usage:
    details = inner(usage, "input_tokens_details")
    return Usage(
        count(usage, "input_tokens"),
        count(usage, "output_tokens"),
        count(details, "cache_write_tokens"),
        count(details, "cached_tokens"),
    )
