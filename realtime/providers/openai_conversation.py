"""The provider's conversation as we know it: which items it holds, which of them are replaced.

Owned by the codec. Queues the frames that create and delete items; every id is either ours or came
from the provider. Never looks at sound, never asks for a response.
Source: protocols/openai-realtime 4; spec/voice 18.7.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ...core.messages import ToolCall
from ..commands import ToolOutput
from .openai_frames import Outbox
from .openai_items import SUMMARY, image_part, image_url, output_item, system_item, user_item
from .reading import Json, text


class Conversation:
    """Items in the order in which they were made known, and what stands in them."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._items: dict[str, None] = {}
        self._keyed: dict[str, str] = {}
        self._newest_user = ""
        self._camera = ""
        self._open_calls: set[str] = set()
        self._call_items: dict[str, str] = {}
        self._output_items: dict[str, str] = {}
        self._asked: dict[str, tuple[str, ...]] = {}
        self._told: tuple[str, ...] | None = None

    def put(self, item: Json, after: str | None = None) -> str:
        """Create an item at the end (or at the front: `root`); its id."""
        item_id = self._outbox.put_item(item, after)
        self._items[item_id] = None
        if item.get("role") == "user":
            self._newest_user = item_id
        return item_id

    def delete(self, item_id: str) -> None:
        """Delete an item, if it is there."""
        if item_id in self._items:
            del self._items[item_id]
            self._outbox.put("conversation.item.delete", item_id=item_id)

    def note(self, item: Json) -> None:
        """The provider holds this item now."""
        item_id = text(item, "id")
        if not item_id:
            return
        self._items.setdefault(item_id)
        if text(item, "type") == "function_call" and text(item, "call_id"):
            self._call_items[text(item, "call_id")] = item_id
        if text(item, "role") == "user":
            self._newest_user = item_id

    def gone(self, item_id: str) -> None:
        """The provider does not hold it any more."""
        self._items.pop(item_id, None)

    def know(self, words: str, key: str) -> None:
        """A context text; in place of the last one of its key. A blank one only ends that."""
        if key:
            self.delete(self._keyed.pop(key, ""))
        if words.strip():
            item_id = self.put(system_item(words))
            if key:
                self._keyed[key] = item_id

    def see(self, jpeg: bytes) -> None:
        """What the camera shows, in place of what it showed."""
        self.delete(self._camera)
        newest = self._newest_user
        self._camera = self.put(user_item(image_part(image_url(jpeg, "image/jpeg"))))
        self._newest_user = newest

    def called(self, calls: Iterable[ToolCall]) -> None:
        """These calls wait for their results."""
        self._open_calls.update(call.id for call in calls)

    def answer(self, outputs: Iterable[ToolOutput]) -> set[str]:
        """Give results, one to each call that waits; their items. A second result, or one of a call
        that this connection never made, has no place in the conversation."""
        given: set[str] = set()
        for output in outputs:
            if output.call_id in self._open_calls:
                self._open_calls.remove(output.call_id)
                item = output_item(output.call_id, output.text)
                item_id = self._output_items[output.call_id] = self.put(item)
                given.add(item_id)
        return given

    def summarising(self, request_id: str) -> None:
        """A summary of what there is now was asked for."""
        self._asked[request_id] = tuple(self._items)

    def summarised(self, request_id: str, succeeded: bool) -> None:
        """It came, or failed."""
        covered = self._asked.pop(request_id, None)
        if succeeded and covered is not None:
            self._told = covered

    def replace_by(self, summary: str, *, running: Collection[str], wanted: bool) -> list[str]:
        """Put `summary` in front and delete what it covers; the ids that went.

        That is what there was when the last summary was asked for; without one, everything. Items
        `running` stay, calls without a result, context under a key, and while an answer is `wanted`
        the user's newest message.
        """
        covered, self._told = self._told or tuple(self._items), None
        kept = {*running, *self._keyed.values(), *self._kept_calls(covered, wanted)}
        if wanted:
            kept.add(self._newest_user)
        goes = [one for one in covered if one in self._items and one not in kept]
        self.put(system_item(f"{SUMMARY}\n{summary}"), after="root")
        for item_id in goes:
            self.delete(item_id)
        self._call_items = _within(self._call_items, self._items)
        self._output_items = _within(self._output_items, self._items)
        return goes

    def _kept_calls(self, covered: Collection[str], wanted: bool) -> list[str]:
        """Items of calls that a result belongs to or will: without them it would be refused."""
        gone = frozenset(covered)
        kept: list[str] = []
        for call_id, item_id in self._call_items.items():
            output = self._output_items.get(call_id)
            without = call_id in self._open_calls or wanted
            waits = without if output is None else output not in gone
            if waits:
                kept.append(item_id)
        return kept


def _within(items: Mapping[str, str], known: Collection[str]) -> dict[str, str]:
    return {key: item_id for key, item_id in items.items() if item_id in known}
