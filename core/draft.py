"""A model answer while it is being generated.

Collects what a model reports, so that an aborted or failed call leaves its partial text behind
(spec core 19.24), gives every event the id its message will have, and makes call ids unique.
Owned by one model call of the loop; after close() late reports vanish.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import assert_never

from .events import ModelResponse, ModelResponseComplete, TextDelta, ToolUse
from .messages import IdSource, Message, Playback, ToolCall
from .model import ModelEvent
from .notify import Emitter


class Draft:
    """One answer in the making; `message_id` is known before the first delta."""

    def __init__(
        self,
        message_id: str,
        new_id: IdSource,
        taken: Callable[[], set[str]],
        emitter: Emitter,
        playback: bool,
    ) -> None:
        self.message_id = message_id
        self._new_id = new_id
        self._taken = taken
        self._used: set[str] | None = None
        self._emitter = emitter
        self._playback: Playback | None = "pending" if playback else None
        self._parts: list[str] = []
        self._call_ids: list[str] = []
        self._announced = 0
        self._closed = False

    def close(self) -> None:
        """Ignore whatever a model still reports (a thread, a late socket frame)."""
        self._closed = True

    def notify(self, event: ModelEvent) -> None:
        """The model's `notify`: attribute and pass on, in order."""
        if self._closed:
            return
        match event:
            case TextDelta():
                self._parts.append(event.text)
                self._emitter.emit(self._attributed(event))
            case ToolUse():
                call_id = self._id_at(self._announced, event.id)
                self._announced += 1
                self._emitter.emit(replace(event, id=call_id, message_id=self.message_id))
            case ModelResponse() | ModelResponseComplete():
                if not self._parts:
                    self._parts.append(event.text)
                calls = self._identify(event.tool_calls)
                self._emitter.emit(replace(event, tool_calls=calls, message_id=self.message_id))
            case _:
                assert_never(event)

    def _attributed(self, delta: TextDelta) -> TextDelta:
        """Made at once: there is one for every few letters, and each replace() is dear."""
        return TextDelta(
            text=delta.text,
            message_id=self.message_id,
            phase=delta.phase,
            agent=self._emitter.agent,
            run_id=self._emitter.run_id,
        )

    def message(self, answers: Sequence[Message]) -> Message:
        """The finished answer: one message, also of a model that returned several."""
        text = "\n".join(answer.text for answer in answers if answer.text)
        calls = tuple(call for answer in answers for call in answer.tool_calls)
        return replace(
            answers[-1],
            sender="agent",
            id=self.message_id,
            text=text,
            content=tuple(part for answer in answers for part in answer.content),
            tool_calls=self._identify(calls),
            playback=self._playback if text.strip() else None,
        )

    def partial(self) -> Message | None:
        """What was generated before the end came, marked interrupted; calls never ran and go."""
        text = "".join(self._parts)
        if not text.strip():
            return None
        return Message(
            sender="agent",
            id=self.message_id,
            text=text,
            playback=self._playback,
            interrupted=True,
        )

    def _identify(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        return tuple(replace(call, id=self._id_at(at, call.id)) for at, call in enumerate(calls))

    def _id_at(self, at: int, proposed: str) -> str:
        """The id of the reply's call number `at`: the model's own unless empty or taken.

        Small models number calls anew in every reply; a result must fit one call only.
        """
        if at < len(self._call_ids):
            return self._call_ids[at]
        if self._used is None:
            self._used = self._taken()
        call_id = proposed
        while not call_id or call_id in self._used:
            call_id = self._new_id("call")
        self._used.add(call_id)
        self._call_ids.append(call_id)
        return call_id
