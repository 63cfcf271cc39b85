"""History: the one writer of an agent's stored messages.

Everything that appends or amends goes through here, so that a results message gets each result
once, and an amendment that is faster than the message it amends is kept until that is stored
(DESIGN 2, 5.6). Owned by the agent; the store is the owner of the data.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial

from .cancel import to_the_end
from .errors import UnknownMessageError, UsageError
from .events import MessageAmended, MessageStored, SubscriberEvent
from .messages import (
    IdSource,
    Message,
    MessagePatch,
    ToolResult,
    aborted_result,
    apply_patch,
)
from .store import InboxStore, Store
from .view import model_view

logger = logging.getLogger(__name__)

CLEAN_UP_S = 2.0


class History:
    """Append, amend, view. All methods raise StoreError when the store does."""

    def __init__(
        self,
        store: Store,
        new_id: IdSource,
        emit: Callable[[SubscriberEvent], None],
        *,
        summaries: bool = False,
    ) -> None:
        self.store = store
        self.new_id = new_id
        self._emit = emit
        self._summaries = summaries
        self._results: dict[str, dict[str, ToolResult]] = {}
        self._drafts: dict[str, MessagePatch] = {}
        self._announced: dict[str, Message] = {}
        self._write = asyncio.Lock()
        self._begun = 0

    @property
    def begun(self) -> int:
        """How many appends were begun: whether history grows while somebody summarises it."""
        return self._begun

    async def view(self, running: Collection[str]) -> list[Message]:
        """What the next model request shows (view.model_view)."""
        messages = await self.store.get_messages()
        return model_view(messages, running, summaries=self._summaries)

    def open_draft(self) -> str:
        """The id of an assistant message that is being generated and not stored yet."""
        message_id = self.new_id("msg")
        self._drafts[message_id] = {}
        return message_id

    @contextmanager
    def announced(self, message: Message | None) -> Iterator[None]:
        """Until the block ends the message may be amended although it is not stored yet."""
        if message is None:
            yield
            return
        self._announced[message.id] = message
        self._drafts[message.id] = {}
        try:
            yield
        finally:
            self.drop_draft(message.id)

    def corrected(self, message: Message) -> Message:
        """An announced message as it was amended so far; later amendments apply to what is stored
        in its place."""
        known = self._announced.get(message.id, message)
        patch = self._drafts.get(message.id)
        if not patch:
            return known
        amended = self._announced[message.id] = apply_patch(known, patch)
        self._drafts[message.id] = {}
        return amended

    def drop_draft(self, message_id: str) -> None:
        """It came to nothing or is stored; amendments held for it are forgotten."""
        self._drafts.pop(message_id, None)
        self._announced.pop(message_id, None)

    async def append(self, *messages: Message) -> tuple[Message, ...]:
        """Append all or nothing, giving ids where they are missing and applying held patches.

        Returns the messages as they are stored. What the store has written is reported, also if
        the caller is cancelled meanwhile.
        """
        untold = [self._prepare(message) for message in messages]
        told = []
        if not untold:
            return ()
        self._begun += 1
        try:
            await self.store.append_messages(untold)
            while untold:
                told.append(await self._tell(untold[0]))
                del untold[0]
        except UsageError:
            raise
        except BaseException:
            await self._after_broken_write(untold)
            raise
        return tuple(told)

    async def _after_broken_write(self, messages: Collection[Message]) -> None:
        """The store may have written before the write broke off: then these are reported, and
        amended as they were meant to be. In any case they are drafts no longer."""
        untold = {message.id for message in messages}

        async def tell() -> None:
            for message in await self.store.get_messages():
                if message.id in untold:
                    await self._tell(message)
                    untold.discard(message.id)

        try:
            await to_the_end(tell, CLEAN_UP_S)
        except Exception:
            logger.exception("cannot tell what is stored", extra={"count": len(untold)})
        finally:
            for message in messages:
                self.drop_draft(message.id)

    async def _tell(self, message: Message) -> Message:
        """Report a message the store has; what was amended while it wrote is amended once more."""
        applied: MessagePatch = {}
        while (late := self._drafts.get(message.id)) and late != applied:
            applied = late.copy()
            message = await self._amend_stored(message, applied)
        self.drop_draft(message.id)
        self._emit(MessageStored(message=message))
        return message

    async def append_marking(
        self, message: Message, mark: Callable[[], Awaitable[None]]
    ) -> tuple[Message, ...]:
        """Append a message and then mark what it shows as shown, also if the caller is cancelled
        while the store writes: what is in history is not told twice."""

        async def mark_if_stored() -> None:
            if await self.holds(message.id):
                await mark()

        try:
            stored = await self.append(message)
        except BaseException:
            await to_the_end(mark_if_stored, CLEAN_UP_S)
            raise
        await mark()
        return stored

    async def append_consuming(self, message: Message, item_ids: Sequence[str]) -> Message:
        """Append a message that shows inbox items and consume them with it: both or neither."""
        store = self.store
        if not isinstance(store, InboxStore):
            raise UsageError("append_consuming: this store has no inbox")
        ready = self._prepare(message)
        self._begun += 1
        try:
            await store.consume_inbox_items(item_ids, ready)
        except BaseException:
            await self._after_broken_write([ready])
            raise
        self._emit(MessageStored(message=ready))
        return ready

    async def append_calls(self, asked: Message, results: Message) -> None:
        """Store a call message together with the reserved message of its results.

        If it is cancelled or fails, the calls are stored as aborted or not at all.
        """
        self._results[results.id] = {}
        try:
            await self.append(asked, results)
        except BaseException:
            # The store may have written before the cancellation came.
            self._results[results.id] = {
                call.id: ToolResult(call.tool_name, call.id, aborted_result("not started"))
                for call in asked.tool_calls
            }
            with suppress(UnknownMessageError):
                await to_the_end(partial(self.rewrite_results, results.id), CLEAN_UP_S)
            raise

    async def add_result(self, results_id: str, result: ToolResult) -> ToolResult:
        """Store the terminal result of a call; returns the one that counts, the first."""
        known = self._results.setdefault(results_id, {})
        if result.call_id in known:
            return known[result.call_id]
        known[result.call_id] = result
        async with self._write:
            # Always the whole list: a write lost to cancellation is made good by the next.
            await self.store.amend_message(results_id, {"tool_results": tuple(known.values())})
        return result

    async def rewrite_results(self, results_id: str) -> None:
        """Close a results message: write all its results once more and forget it."""
        known = self._results.get(results_id, {})
        async with self._write:
            await self.store.amend_message(results_id, {"tool_results": tuple(known.values())})
        self.close_results(results_id)

    def close_results(self, results_id: str) -> None:
        """Forget a results message that is complete."""
        self._results.pop(results_id, None)

    async def amend(self, message_id: str, patch: MessagePatch) -> None:
        """Correct one message, stored or still being generated; raises UnknownMessageError."""
        if message_id in self._drafts:
            self._drafts[message_id].update(patch)
        else:
            async with self._write:
                await self.store.amend_message(message_id, patch)
        self._emit(MessageAmended(message_id=message_id, patch=patch))

    async def holds(self, message_id: str) -> bool:
        """Whether the store has a message of this id."""
        return any(one.id == message_id for one in await self.store.get_messages())

    async def find(self, message_id: str) -> Message:
        """One message, stored or announced; raises UnknownMessageError."""
        if message_id in self._announced:
            return self._announced[message_id]
        for message in reversed(await self.store.get_messages()):
            if message.id == message_id:
                return message
        raise UnknownMessageError(f"no message {message_id!r} in store {self.store.identifier!r}")

    async def _amend_stored(self, message: Message, patch: MessagePatch) -> Message:
        amended = apply_patch(message, patch)
        if amended != message:
            async with self._write:
                await self.store.amend_message(message.id, patch)
        return amended

    def _prepare(self, message: Message) -> Message:
        if not message.id:
            return replace(message, id=self.new_id("msg"))
        patch = self._drafts.get(message.id)
        return apply_patch(message, patch) if patch else message
