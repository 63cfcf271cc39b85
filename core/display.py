"""The display stack: slots a tool shows to a person, and the answers it waits for.

Owned by one agent. It renders nothing; listeners carry the changes to a page. A wait registers its
answer before any listener hears of the slot, and whatever ends the wait (answer, refusal, removal,
abort, cancellation) takes the slot away, so `pending` always returns to 0 (spec core 8, 19.14).
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from .cancel import AbortScope, CancelToken, Unsubscribe
from .errors import SlotRejected, UsageError

logger = logging.getLogger(__name__)

DisplayStrategy = Literal["stay", "hide-on-complete", "hide-on-new"]
STRATEGIES: tuple[DisplayStrategy, ...] = ("stay", "hide-on-complete", "hide-on-new")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One thing on the stack; `renderer` names what draws it, `input` is its JSON props."""

    id: str
    renderer: str
    input: object
    strategy: DisplayStrategy = "stay"
    tool_call_id: str | None = None
    tool_name: str | None = None


@dataclass(frozen=True, slots=True)
class DisplayChange:
    """What listeners get: the slot that came or went, and the stack after it (bottom to top)."""

    kind: Literal["pushed", "removed"]
    slot: Slot
    stack: tuple[Slot, ...]


DisplayListener = Callable[[DisplayChange], None]


class DisplayStack:
    """Slots bottom to top. All methods belong on the event loop's thread."""

    def __init__(self) -> None:
        self._slots: dict[str, Slot] = {}
        self._waiting: dict[str, asyncio.Future[object]] = {}
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

    def push_and_forget(
        self,
        renderer: str,
        input: object = None,
        *,
        strategy: DisplayStrategy = "stay",
        tool_call_id: str | None = None,
        tool_name: str | None = None,
    ) -> str:
        """Show a slot and return its id at once."""
        slot = self._make(renderer, input, strategy, tool_call_id, tool_name)
        self._show(slot)
        return slot.id

    async def push_and_wait(
        self,
        renderer: str,
        input: object = None,
        *,
        strategy: DisplayStrategy = "stay",
        tool_call_id: str | None = None,
        tool_name: str | None = None,
        token: CancelToken | None = None,
    ) -> object:
        """Show a slot and wait for its answer.

        Returns the resolved value. Raises SlotRejected (or the exception given to reject()), and
        AbortError when `token` fires; the slot is gone afterwards, also after cancellation.
        """
        slot = self._make(renderer, input, strategy, tool_call_id, tool_name)
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting[slot.id] = answer  # before listeners: one of them may answer at once
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
        """Answer a slot; a slot nobody waits for is just removed. False if it is unknown."""
        answer = self._waiting.pop(slot_id, None)
        if answer is not None and not answer.done():
            answer.set_result(value)
        return self._hide(slot_id)

    def reject(self, slot_id: str, reason: str | Exception = "rejected") -> bool:
        """Refuse a slot: its waiter raises. False if it is unknown."""
        answer = self._waiting.pop(slot_id, None)
        if answer is not None and not answer.done():
            error = reason if isinstance(reason, Exception) else SlotRejected(reason)
            answer.set_exception(error)
        return self._hide(slot_id)

    def remove_slot(self, slot_id: str) -> bool:
        """Take a slot away; a waiter raises SlotRejected. False if it is unknown."""
        return self.reject(slot_id, "the slot was removed")

    def clear_stack(self) -> None:
        """Remove every slot, top first."""
        for slot_id in reversed(list(self._slots)):
            self.remove_slot(slot_id)

    def _make(
        self,
        renderer: str,
        input: object,
        strategy: DisplayStrategy,
        tool_call_id: str | None,
        tool_name: str | None,
    ) -> Slot:
        if not renderer:
            raise UsageError("renderer: name what draws the slot, for instance 'generic'")
        if strategy not in STRATEGIES:
            raise UsageError(f"strategy: {strategy!r} is none of {', '.join(STRATEGIES)}")
        self._count += 1
        return Slot(
            id=f"slot_{self._count}",
            renderer=renderer,
            input=input,
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
    """The display as one running tool sees it: its slots carry the call, its waits its abort."""

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

    def push_and_forget(
        self, renderer: str, input: object = None, *, strategy: DisplayStrategy = "stay"
    ) -> str:
        """As DisplayStack.push_and_forget, on the display the agent has now."""
        return self._current().push_and_forget(
            renderer,
            input,
            strategy=strategy,
            tool_call_id=self._call_id,
            tool_name=self._tool_name,
        )

    async def push_and_wait(
        self, renderer: str, input: object = None, *, strategy: DisplayStrategy = "stay"
    ) -> object:
        """As DisplayStack.push_and_wait; ends with AbortError when the tool is aborted."""
        return await self._current().push_and_wait(
            renderer,
            input,
            strategy=strategy,
            tool_call_id=self._call_id,
            tool_name=self._tool_name,
            token=self._token,
        )

    def remove_slot(self, slot_id: str) -> bool:
        return self._current().remove_slot(slot_id)


def visible_slots(slots: Sequence[Slot], pending: Iterable[str]) -> list[Slot]:
    """The slots a page shows (spec core 8): `stay` always, `hide-on-complete` while an answer is
    pending, `hide-on-new` only as the newest slot of its tool (its renderer without a tool)."""
    waiting = set(pending)
    newest = {slot.tool_name or slot.renderer: slot.id for slot in slots}

    def is_visible(slot: Slot) -> bool:
        if slot.strategy == "hide-on-complete":
            return slot.id in waiting
        if slot.strategy == "hide-on-new":
            return newest[slot.tool_name or slot.renderer] == slot.id
        return True

    return [slot for slot in slots if is_visible(slot)]
