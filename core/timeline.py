"""The conversation as a page shows it, from live events or from history (spec core 16).

Both ways feed the same builder, so their entries are equal once a request is over (row 92). What
the framework wrote (results, summaries, skills, inbox, events, context) is no entry; a sub-agent's
events are not either. Owned by whoever shows the conversation; keeps no store and asks none.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from .events import (
    MessageAmended,
    MessageStored,
    ModelResponse,
    ModelResponseComplete,
    RequestEnded,
    SubscriberEvent,
    TextDelta,
    ToolUse,
    ToolUseResult,
)
from .messages import (
    ContentPart,
    Message,
    ResultStatus,
    ToolCall,
    ToolResultData,
    apply_patch,
    result_text,
)

ToolStatus = Literal["running"] | ResultStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class UserEntry:
    """What a person said or typed. `original` is the first wording where it was changed."""

    id: str
    text: str
    original: str | None = None
    media: tuple[ContentPart, ...] = ()
    kind: Literal["user"] = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEntry:
    """What the agent wrote. Of spoken text `heard` and `unheard` are set once playback settled."""

    id: str
    text: str
    heard: str | None = None
    unheard: str | None = None
    interrupted: bool = False
    kind: Literal["agent_text"] = "agent_text"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEntry:
    """One tool call. `output` is what the model was told; `render_data` is for people."""

    id: str
    name: str
    input: object
    status: ToolStatus
    output: str | None = None
    render_data: object = None
    kind: Literal["tool"] = "tool"


TimelineEntry = UserEntry | TextEntry | ToolEntry


class TimelineBuilder:
    """A subscriber that keeps the timeline; `entries` may be read at any time."""

    def __init__(self) -> None:
        self._messages: dict[str, Message] = {}
        self._drafts: dict[str, Message] = {}
        self._results: dict[str, ToolResultData] = {}
        self._lost: set[str] = set()

    @classmethod
    def from_history(
        cls, messages: Sequence[Message], running: Collection[str] = ()
    ) -> "TimelineBuilder":
        """The timeline of stored messages. `running` are calls that still run
        (Agent.outstanding); others without a result are shown as aborted."""
        builder = cls()
        for message in messages:
            builder._store(message)
        asked = {call.id for message in messages for call in message.tool_calls}
        builder._lost = asked - builder._results.keys() - set(running)
        return builder

    @property
    def entries(self) -> tuple[TimelineEntry, ...]:
        """In the order of the conversation."""
        shown = [*self._messages.values(), *self._drafts.values()]
        return tuple(entry for message in shown for entry in self._entries_of(message))

    def record(self, event: SubscriberEvent, /) -> None:
        """Take one event; kinds that change nothing here are ignored."""
        match event:
            case TextDelta(phase="answer"):
                self._grow(event.message_id, event.text)
            case ToolUse():
                self._grow(event.message_id, call=ToolCall(event.name, event.input, event.id))
            case ModelResponse() | ModelResponseComplete():
                self._draft(event.message_id, event.text, event.tool_calls)
            case MessageStored():
                self._store(event.message)
            case MessageAmended() if event.message_id in self._messages:
                known = self._messages[event.message_id]
                self._messages[known.id] = apply_patch(known, event.patch)
            case ToolUseResult():
                self._results[event.call_id] = event.result
            case RequestEnded():
                self._drafts.clear()  # what was worth keeping has been stored
            case _:
                return

    def _grow(self, message_id: str, text: str = "", call: ToolCall | None = None) -> None:
        known = self._drafts.get(message_id)
        before = known.text if known is not None else ""
        calls = known.tool_calls if known is not None else ()
        self._draft(message_id, before + text, calls if call is None else (*calls, call))

    def _draft(self, message_id: str, text: str, calls: tuple[ToolCall, ...]) -> None:
        if message_id not in self._messages:
            self._drafts[message_id] = Message(
                sender="agent", id=message_id, text=text, tool_calls=calls
            )

    def _store(self, message: Message) -> None:
        self._drafts.pop(message.id, None)
        for result in message.tool_results:
            self._results.setdefault(result.call_id, result.result)
        if message.is_user_turn or message.sender == "agent":
            self._messages[message.id] = message

    def _entries_of(self, message: Message) -> Iterator[TimelineEntry]:
        if message.sender == "user":
            media = tuple(part for part in message.content if part.type != "text")
            yield UserEntry(
                id=message.id,
                text=message.text,
                original=message.pre_modified_text,
                media=media,
            )
            return
        if message.text.strip():
            settled = message.playback == "settled"
            yield TextEntry(
                id=message.id,
                text=message.text,
                heard=message.heard if settled else None,
                unheard=message.unheard if settled else None,
                interrupted=message.interrupted,
            )
        for call in message.tool_calls:
            yield self._tool_entry(call)

    def _tool_entry(self, call: ToolCall) -> ToolEntry:
        result = self._results.get(call.id)
        if result is None:
            status: ToolStatus = "aborted" if call.id in self._lost else "running"
            return ToolEntry(id=call.id, name=call.tool_name, input=call.input_args, status=status)
        return ToolEntry(
            id=call.id,
            name=call.tool_name,
            input=call.input_args,
            status=result.status,
            output=result_text(result),
            render_data=result.render_data,
        )


def entry_json(entry: TimelineEntry) -> dict[str, object]:
    """The entry with the field names of the seeds; what is not set is left out."""
    found: dict[str, object] = {"kind": entry.kind, "id": entry.id}
    match entry:
        case UserEntry():
            found |= {"text": entry.text, "original": entry.original}
            found["images"] = [_media_json(part) for part in entry.media] or None
        case TextEntry():
            found |= {"text": entry.text, "heard": entry.heard, "unheard": entry.unheard}
            found["interrupted"] = entry.interrupted or None
        case ToolEntry():
            found |= {"name": entry.name, "input": entry.input, "status": entry.status}
            found |= {"output": entry.output, "renderData": entry.render_data}
    return {key: value for key, value in found.items() if value is not None}


def _media_json(part: ContentPart) -> dict[str, object]:
    """A medium without its bytes: a page gets those where it put them in."""
    source = part.source
    found = {"type": part.type, "name": part.name}
    if source is not None:
        found |= {"media_type": source.media_type, "url": source.url}
    return {key: value for key, value in found.items() if value is not None}
