"""History: the one writer of an agent's stored messages.

Everything that appends or amends goes through here, so that a results message gets each result
once, and an amendment that is faster than the message it amends is kept until that is stored
(DESIGN 2, 5.6). Owned by the agent; the store is the owner of the data.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import replace

from .errors import UnknownMessageError
from .events import MessageAmended, SubscriberEvent
from .messages import IdSource, Message, MessagePatch, ToolResult, apply_patch
from .store import Store
from .view import model_view

logger = logging.getLogger(__name__)


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
        self._write = asyncio.Lock()

    async def view(self, running: Collection[str]) -> list[Message]:
        """What the next model request shows (view.model_view)."""
        messages = await self.store.get_messages()
        return model_view(messages, running, summaries=self._summaries)

    def open_draft(self) -> str:
        """The id of an assistant message that is being generated and not stored yet."""
        message_id = self.new_id("msg")
        self._drafts[message_id] = {}
        return message_id

    def drop_draft(self, message_id: str) -> None:
        """The draft came to nothing; amendments held for it are forgotten."""
        self._drafts.pop(message_id, None)

    async def append(self, *messages: Message) -> None:
        """Append all or nothing, giving ids where they are missing and applying held patches."""
        ready = [self._prepare(message) for message in messages]
        await self.store.append_messages(ready)
        for message in ready:
            late = self._drafts.pop(message.id, None)
            if late and apply_patch(message, late) != message:
                # Amended while the store was writing: the draft's patch is applied once more.
                await self.store.amend_message(message.id, late)

    async def append_calls(self, asked: Message, results: Message) -> None:
        """Store a call message together with the reserved message of its results."""
        self._results[results.id] = {}
        await self.append(asked, results)

    async def add_result(self, results_id: str, result: ToolResult) -> bool:
        """Store the terminal result of a call; False if it has one already."""
        known = self._results.setdefault(results_id, {})
        if result.call_id in known:
            return False
        known[result.call_id] = result
        async with self._write:
            # Always the whole list: a write lost to cancellation is made good by the next.
            await self.store.amend_message(results_id, {"tool_results": tuple(known.values())})
        return True

    async def rewrite_results(self, results_id: str) -> None:
        """Close a results message: write all its results once more and forget it."""
        known = self._results.pop(results_id, {})
        async with self._write:
            await self.store.amend_message(results_id, {"tool_results": tuple(known.values())})

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

    async def find(self, message_id: str) -> Message:
        """One stored message; raises UnknownMessageError."""
        for message in reversed(await self.store.get_messages()):
            if message.id == message_id:
                return message
        raise UnknownMessageError(f"no message {message_id!r} in store {self.store.identifier!r}")

    def _prepare(self, message: Message) -> Message:
        if not message.id:
            return replace(message, id=self.new_id("msg"))
        patch = self._drafts.get(message.id)
        return apply_patch(message, patch) if patch else message
