"""What the model makes: responses, their items, sound, words and calls, from `response.*` frames.

Owned by the codec. Remembers how much sound of each item came, which is what a cut is clamped to,
and which responses were cut, whose late frames are dropped. Never asks for a response itself.
Source: protocols/openai-realtime 5, 6, 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import get_args

from ...core.messages import ToolCall
from ...core.usage import Usage
from ..events import (
    LOST,
    Audio,
    Interrupted,
    ItemDone,
    ProviderProblem,
    RealtimeEvent,
    ResponseDone,
    ResponseStarted,
    ResponseStatus,
    Summary,
    ToolCalls,
    Used,
    Words,
)
from .openai_frames import ms, sound
from .openai_items import ToolNames, parsed_arguments
from .openai_requests import Request
from .reading import Json, each, inner, text, whole

STATUSES: dict[str, ResponseStatus] = {one: one for one in get_args(ResponseStatus)}


@dataclass(slots=True)
class OutputItem:
    """One spoken or written answer. `stored`: it is in the provider's conversation."""

    id: str
    stored: bool
    received: int = 0
    """Bytes of sound that came and were passed on."""
    odd: bytes = b""
    words: str = ""
    sound_done: bool = False
    ended: bool = False
    kept_ms: int | None = None
    """What the provider keeps of it since it was cut."""
    cut_ms: int | None = None
    """What it is to keep once its response, which was not cancelled, is over."""


@dataclass(slots=True)
class Response:
    """One response that runs. `dropped`: it was cut, what still comes of it is not passed on."""

    id: str
    request: Request | None
    items: dict[str, OutputItem] = field(default_factory=dict)
    calls: dict[str, ToolCall] = field(default_factory=dict)
    words: str = ""
    dropped: bool = False

    @property
    def summary(self) -> bool:
        """Whether nobody is to hear or see it but who asked for the summary."""
        return self.request is not None and self.request.kind == "summary"

    @property
    def stored(self) -> bool:
        """Whether its items become part of the conversation."""
        return self.request is None or not self.request.aside


class Answers:
    """Responses that run, and every item that may still be cut."""

    def __init__(self, names: ToolNames) -> None:
        self._names = names
        self._running: dict[str, Response] = {}
        self._items: dict[str, OutputItem] = {}
        self._frames: dict[str, Callable[[Response, Json], Iterator[RealtimeEvent]]] = {
            "response.output_item.added": self._added,
            "response.output_audio.delta": self._sound,
            "response.output_audio.done": self._sound_done,
            "response.output_audio_transcript.delta": self._words,
            "response.output_text.delta": self._words,
            "response.output_item.done": self._item_done,
        }

    @property
    def running(self) -> list[Response]:
        """What somebody hears, oldest first; no summaries."""
        return [one for one in self._running.values() if not one.summary]

    def item(self, item_id: str) -> OutputItem | None:
        """An answer of this connection that was not forgotten."""
        return self._items.get(item_id)

    def goes_on(self, item_id: str) -> bool:
        """Whether more of this item is to come."""
        return any(item_id in one.items and not one.dropped for one in self._running.values())

    def cut_late(self) -> list[tuple[str, int]]:
        """Items that were to be cut when their response is over, and are over; each once."""
        late = [
            (item.id, item.cut_ms)
            for item in self._items.values()
            if item.cut_ms is not None and not self.goes_on(item.id)
        ]
        for item_id, _ in late:
            self._items[item_id].cut_ms = None
        return late

    def forget(self, item_id: str) -> None:
        """The provider does not hold this item any more."""
        self._items.pop(item_id, None)

    def begin(self, response_id: str, request: Request | None) -> list[RealtimeEvent]:
        """`response.created`. One that was cut while it was asked for is dropped at once."""
        if response_id in self._running:
            return []
        cut = request is not None and request.cut
        response = Response(response_id, request, dropped=cut)
        self._running[response_id] = response
        if response.summary:
            return []
        return [ResponseStarted(response_id, "" if request is None else request.request_id)]

    def receive(self, kind: str, frame: Json) -> list[RealtimeEvent] | None:
        """A frame of a response that runs; None where it is none of these."""
        read = self._frames.get(kind)
        if read is None:
            return None
        response = self._running.get(text(frame, "response_id"))
        return [] if response is None else list(read(response, frame))

    def finish(self, done: Json) -> tuple[bool, list[RealtimeEvent]]:
        """`response.done`: whether it was known to run, and what it means."""
        response = self._running.pop(text(done, "id"), None)
        if response is None:
            return False, []
        if response.summary:
            return True, [self._summary(response, done)]
        return True, list(self._finished(response, done))

    def abandon(self) -> Iterator[RealtimeEvent]:
        """The connection is gone: everything that runs ends."""
        for response in self._running.values():
            if response.summary and response.request is not None:
                yield Summary(response.request.request_id, "")
                continue
            yield from self._end_items(response)
            yield ResponseDone(response.id, "cancelled", LOST)
        self._running.clear()

    def _item(self, response: Response, item_id: str) -> OutputItem:
        item = response.items.get(item_id)
        if item is None:
            item = response.items[item_id] = OutputItem(item_id, response.stored)
            self._items[item_id] = item
        return item

    def _added(self, response: Response, frame: Json) -> Iterator[RealtimeEvent]:
        added = inner(frame, "item")
        if text(added, "type") == "message" and not response.summary and text(added, "id"):
            self._item(response, text(added, "id"))
        return iter(())

    def _sound(self, response: Response, frame: Json) -> Iterator[RealtimeEvent]:
        pcm = sound(frame, "delta")
        if pcm is None:
            yield ProviderProblem("bad_audio", "sound that is no base64 was left out")
        elif not response.dropped and not response.summary:
            item = self._item(response, text(frame, "item_id"))
            pcm = item.odd + pcm
            keep = len(pcm) // 2 * 2
            item.odd = pcm[keep:]
            item.received += keep
            if keep and not item.ended:
                yield Audio(item.id, pcm[:keep])

    def _sound_done(self, response: Response, frame: Json) -> Iterator[RealtimeEvent]:
        item = response.items.get(text(frame, "item_id"))
        if item is not None and not response.dropped:
            item.sound_done = True
        return iter(())

    def _words(self, response: Response, frame: Json) -> Iterator[RealtimeEvent]:
        delta = text(frame, "delta")
        if response.summary:
            response.words += delta
        elif delta and not response.dropped:
            item = self._item(response, text(frame, "item_id"))
            if not item.ended:
                item.words += delta
                yield Words("assistant", item.id, delta)

    def _item_done(self, response: Response, frame: Json) -> Iterator[RealtimeEvent]:
        done = inner(frame, "item")
        self._collect(response, done)
        if text(done, "type") != "message" or response.summary or not text(done, "id"):
            return
        item = self._item(response, text(done, "id"))
        said = "".join(text(part, "transcript") or text(part, "text") for part in _parts(done))
        if said and not response.dropped:
            item.words = said
        yield from self._end(response, item)

    def _collect(self, response: Response, item: Json) -> None:
        """Keep a call. Only a whole one: arguments that were cut off are nobody's wish."""
        call_id = text(item, "call_id")
        if text(item, "type") == "function_call" and text(item, "status") == "completed":
            arguments = parsed_arguments(text(item, "arguments"))
            call = ToolCall(self._names.ours(text(item, "name")), arguments, call_id)
            if call_id and not response.summary:
                response.calls.setdefault(call_id, call)

    def _finished(self, response: Response, done: Json) -> Iterator[RealtimeEvent]:
        for item in each(done, "output"):
            self._collect(response, item)
        speaking = next(reversed(response.items), "")
        yield from self._end_items(response)
        usage = inner(done, "usage")
        if usage:
            counted = _usage(usage)
            yield Used(counted, context_tokens=counted.total if response.stored else None)
        if response.calls:
            yield ToolCalls(response.id, tuple(response.calls.values()))
        status = STATUSES.get(text(done, "status"), "failed")
        details = inner(done, "status_details")
        reason = text(details, "reason") or _failure(done)[0]
        if status == "cancelled" and reason == "turn_detected":
            yield Interrupted(speaking)
        yield ResponseDone(response.id, status, reason)

    def _end_items(self, response: Response) -> Iterator[RealtimeEvent]:
        for item in response.items.values():
            yield from self._end(response, item)

    def _end(self, response: Response, item: OutputItem) -> Iterator[RealtimeEvent]:
        if item.ended:
            return
        item.ended = True
        item.sound_done = item.sound_done or not response.dropped
        yield Words("assistant", item.id, item.words, final=True)
        yield ItemDone(item.id)

    def _summary(self, response: Response, done: Json) -> Summary:
        said = "".join(
            text(part, "text") or text(part, "transcript")
            for item in each(done, "output")
            for part in _parts(item)
        )
        whole_answer = text(done, "status") == "completed"
        request_id = "" if response.request is None else response.request.request_id
        words = (said or response.words) if whole_answer else ""
        return Summary(request_id, words.strip(), _usage(inner(done, "usage")))


def failure(done: Json) -> tuple[str, str, str]:
    """Code, type and message of a response that failed, "" for one that did not."""
    error = inner(inner(done, "status_details"), "error")
    return text(error, "code"), text(error, "type"), text(error, "message")


def _failure(done: Json) -> tuple[str, ...]:
    code, kind, message = failure(done)
    return (code or kind or message,)


def _parts(item: Json) -> Iterator[Json]:
    return each(item, "content")


def _usage(usage: Json) -> Usage:
    details = inner(usage, "input_token_details")
    return Usage(
        tokens_in=whole(usage, "input_tokens") or 0,
        tokens_out=whole(usage, "output_tokens") or 0,
        cache_read_input_tokens=whole(details, "cached_tokens") or 0,
    )


def heard_whole(item: OutputItem, heard_ms: int) -> bool:
    """Whether nothing of it was left unheard."""
    return item.sound_done and heard_ms >= ms(item.received)
