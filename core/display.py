"""The display stack: slots a tool shows to a person, and the answers it waits for.

Owned by one agent. It renders nothing; listeners carry the changes to a page. A wait registers its
answer before any listener hears of the slot, and whatever ends the wait (answer, refusal, removal,
abort, cancellation) takes the slot away, so `pending` always returns to 0 (spec core 8, 19.14).
Props and answers are checked against the shapes of renderers.py, or of the push itself.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, overload

from pydantic import TypeAdapter

from .cancel import AbortScope, CancelToken, Unsubscribe
from .errors import SlotRejected, UsageError
from .renderers import Parser, Renderer, Renderers, checked_answer, checked_props, parser_of
from .slots import (
    STRATEGIES,
    DisplayChange,
    DisplayListener,
    DisplayStrategy,
    Slot,
    visible_slots,
)

logger = logging.getLogger(__name__)

__all__ = [
    "SLOT_REMOVED",
    "STRATEGIES",
    "DisplayChange",
    "DisplayListener",
    "DisplayStack",
    "DisplayStrategy",
    "Slot",
    "ToolDisplay",
    "visible_slots",
]

SLOT_REMOVED = "the slot was removed"
"""Reason of a SlotRejected that no person gave."""

P = TypeVar("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Wait:
    """A tool that waits, and what its answer must look like."""

    answer: asyncio.Future[object]
    shape: Parser | None


class DisplayStack:
    """Slots bottom to top. All methods belong on the event loop's thread.

    `renderers` may be shared with other displays; by default only `permission_request` is known.
    """

    def __init__(self, renderers: Renderers | None = None) -> None:
        self.renderers = renderers or Renderers()
        self._slots: dict[str, Slot] = {}
        self._waiting: dict[str, _Wait] = {}
        self._listeners: dict[object, DisplayListener] = {}
        self._audience: set[object] = set()
        self._count = 0

    @property
    def stack(self) -> tuple[Slot, ...]:
        return tuple(self._slots.values())

    @property
    def pending(self) -> int:
        """How many tools wait for an answer."""
        return len(self._waiting)

    @property
    def pending_ids(self) -> frozenset[str]:
        return frozenset(self._waiting)

    @property
    def has_audience(self) -> bool:
        """Whether somebody listens who could answer."""
        return bool(self._audience)

    def subscribe(self, listener: DisplayListener, *, answers: bool = True) -> Unsubscribe:
        """Hear every change, in order. A raising listener is logged and does not stop others.

        `answers`: a person can answer through this listener. A call's brain only watches, so it
        is no audience, and a question nobody could see is denied (DESIGN 5.6).
        """
        key = object()
        self._listeners[key] = listener
        if answers:
            self._audience.add(key)
        return lambda: self._unsubscribe(key)

    def register_renderer(
        self,
        name: str,
        *,
        props: type[P] | TypeAdapter[P] | None = None,
        resolve: type[R] | TypeAdapter[R] | None = None,
    ) -> Renderer:
        """Say what props and answers of renderer `name` look like, from the next slot on."""
        return self.renderers.register(name, props=props, resolve=resolve)

    def push_and_forget(
        self,
        renderer: str,
        input: object = None,
        *,
        strategy: DisplayStrategy = "stay",
        props: type[P] | TypeAdapter[P] | None = None,
        tool_call_id: str | None = None,
        tool_name: str | None = None,
    ) -> str:
        """Show a slot and return its id at once.

        `props` is the shape of `input`; without it that of the registered renderer holds. Raises
        UsageError, and shows nothing, when `input` does not fit.
        """
        slot = self._make(renderer, input, strategy, parser_of(props), tool_call_id, tool_name)
        self._show(slot)
        return slot.id

    @overload
    async def push_and_wait(
        self,
        renderer: str,
        input: object = None,
        *,
        answers: type[R] | TypeAdapter[R],
        strategy: DisplayStrategy = "stay",
        props: type[P] | TypeAdapter[P] | None = None,
        tool_call_id: str | None = None,
        tool_name: str | None = None,
        token: CancelToken | None = None,
    ) -> R: ...

    @overload
    async def push_and_wait(
        self,
        renderer: str,
        input: object = None,
        *,
        answers: None = None,
        strategy: DisplayStrategy = "stay",
        props: type[P] | TypeAdapter[P] | None = None,
        tool_call_id: str | None = None,
        tool_name: str | None = None,
        token: CancelToken | None = None,
    ) -> object: ...

    async def push_and_wait(
        self,
        renderer: str,
        input: object = None,
        *,
        answers: type[R] | TypeAdapter[R] | None = None,
        strategy: DisplayStrategy = "stay",
        props: type[P] | TypeAdapter[P] | None = None,
        tool_call_id: str | None = None,
        tool_name: str | None = None,
        token: CancelToken | None = None,
    ) -> object:
        """Show a slot and wait for its answer.

        `props` and `answers` are the shapes of `input` and of the answer; without them those of
        the registered renderer hold. Returns the parsed answer. Raises UsageError before anything
        is shown when `input` does not fit, SlotRejected (or the exception given to reject()), and
        AbortError when `token` fires; the slot is gone afterwards, also after cancellation.
        """
        slot = self._make(renderer, input, strategy, parser_of(props), tool_call_id, tool_name)
        shape = parser_of(answers) or self.renderers.get(renderer).resolve
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting[slot.id] = _Wait(answer, shape)  # before listeners: one may answer at once
        try:
            self._show(slot)
            if token is None:
                return await answer
            async with AbortScope(token):
                return await answer
        finally:
            self._waiting.pop(slot.id, None)
            self._hide(slot.id)

    def resolve(self, slot_id: str, value: object = None) -> bool:
        """Answer a slot; a slot nobody waits for is just removed. False if it is unknown or
        settled already. Raises InvalidAnswer, and the wait goes on, when `value` does not fit."""
        wait = self._waiting.get(slot_id)
        if wait is None:
            return self._hide(slot_id)
        if wait.answer.done():  # it was aborted: its waiter only has not run yet
            return False
        parsed = checked_answer(slot_id, wait.shape, value)
        del self._waiting[slot_id]
        wait.answer.set_result(parsed)
        return self._hide(slot_id)

    def reject(self, slot_id: str, reason: str | Exception = "rejected") -> bool:
        """Refuse a slot: its waiter raises. False if it is unknown."""
        wait = self._waiting.pop(slot_id, None)
        if wait is not None and not wait.answer.done():
            error = reason if isinstance(reason, Exception) else SlotRejected(reason)
            wait.answer.set_exception(error)
        return self._hide(slot_id)

    def remove_slot(self, slot_id: str) -> bool:
        """Take a slot away; a waiter raises SlotRejected. False if it is unknown."""
        return self.reject(slot_id, SLOT_REMOVED)

    def clear_stack(self) -> None:
        """Remove every slot, top first."""
        for slot_id in reversed(list(self._slots)):
            self.remove_slot(slot_id)

    def _make(
        self,
        renderer: str,
        input: object,
        strategy: DisplayStrategy,
        shape: Parser | None,
        tool_call_id: str | None,
        tool_name: str | None,
    ) -> Slot:
        if not renderer:
            raise UsageError("renderer: name what draws the slot, for instance 'generic'")
        if strategy not in STRATEGIES:
            raise UsageError(f"strategy: {strategy!r} is none of {', '.join(STRATEGIES)}")
        shown = checked_props(renderer, shape or self.renderers.get(renderer).props, input)
        self._count += 1
        return Slot(
            id=f"slot_{self._count}",
            renderer=renderer,
            input=shown,
            strategy=strategy,
            tool_call_id=tool_call_id,
            tool_name=tool_name,
        )

    def _show(self, slot: Slot) -> None:
        self._slots[slot.id] = slot
        self._tell(DisplayChange("pushed", slot, self.stack))

    def _hide(self, slot_id: str) -> bool:
        slot = self._slots.pop(slot_id, None)
        if slot is None:
            return False
        self._tell(DisplayChange("removed", slot, self.stack))
        return True

    def _tell(self, change: DisplayChange) -> None:
        for listener in list(self._listeners.values()):
            try:
                listener(change)
            except Exception:
                logger.exception("display listener failed", extra={"slot": change.slot.id})

    def _unsubscribe(self, key: object) -> None:
        self._listeners.pop(key, None)
        self._audience.discard(key)


class ToolDisplay:
    """The display as one running tool sees it: its slots carry the call, its waits its abort.

    Every method of DisplayStack is here, asked of the display the agent has now (core fault 5, 26).
    """

    def __init__(
        self, current: Callable[[], DisplayStack], call_id: str, tool_name: str, token: CancelToken
    ) -> None:
        self._current = current
        self._call_id = call_id
        self._tool_name = tool_name
        self._token = token

    @property
    def stack(self) -> tuple[Slot, ...]:
        return self._current().stack

    @property
    def renderers(self) -> Renderers:
        return self._current().renderers

    @property
    def pending(self) -> int:
        return self._current().pending

    @property
    def pending_ids(self) -> frozenset[str]:
        return self._current().pending_ids

    @property
    def has_audience(self) -> bool:
        return self._current().has_audience

    def subscribe(self, listener: DisplayListener, *, answers: bool = True) -> Unsubscribe:
        """As DisplayStack.subscribe; stays on that display when the agent is given another."""
        return self._current().subscribe(listener, answers=answers)

    def register_renderer(
        self,
        name: str,
        *,
        props: type[P] | TypeAdapter[P] | None = None,
        resolve: type[R] | TypeAdapter[R] | None = None,
    ) -> Renderer:
        return self._current().register_renderer(name, props=props, resolve=resolve)

    def push_and_forget(
        self,
        renderer: str,
        input: object = None,
        *,
        strategy: DisplayStrategy = "stay",
        props: type[P] | TypeAdapter[P] | None = None,
    ) -> str:
        """As DisplayStack.push_and_forget."""
        return self._current().push_and_forget(
            renderer,
            input,
            strategy=strategy,
            props=props,
            tool_call_id=self._call_id,
            tool_name=self._tool_name,
        )

    @overload
    async def push_and_wait(
        self,
        renderer: str,
        input: object = None,
        *,
        answers: type[R] | TypeAdapter[R],
        strategy: DisplayStrategy = "stay",
        props: type[P] | TypeAdapter[P] | None = None,
    ) -> R: ...

    @overload
    async def push_and_wait(
        self,
        renderer: str,
        input: object = None,
        *,
        answers: None = None,
        strategy: DisplayStrategy = "stay",
        props: type[P] | TypeAdapter[P] | None = None,
    ) -> object: ...

    async def push_and_wait(
        self,
        renderer: str,
        input: object = None,
        *,
        answers: type[R] | TypeAdapter[R] | None = None,
        strategy: DisplayStrategy = "stay",
        props: type[P] | TypeAdapter[P] | None = None,
    ) -> object:
        """As DisplayStack.push_and_wait; ends with AbortError when the tool is aborted."""
        return await self._current().push_and_wait(
            renderer,
            input,
            answers=answers,
            strategy=strategy,
            props=props,
            tool_call_id=self._call_id,
            tool_name=self._tool_name,
            token=self._token,
        )

    def resolve(self, slot_id: str, value: object = None) -> bool:
        return self._current().resolve(slot_id, value)

    def reject(self, slot_id: str, reason: str | Exception = "rejected") -> bool:
        return self._current().reject(slot_id, reason)

    def remove_slot(self, slot_id: str) -> bool:
        return self._current().remove_slot(slot_id)

    def clear_stack(self) -> None:
        self._current().clear_stack()
