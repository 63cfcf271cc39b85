"""The conversation of an OpenAI realtime session: items, their order, their sound, what was cut.

Pure; owned by `openai_realtime_wire`. Events of items are built there and in
`openai_realtime_answer`; what may be done to an item is judged here (protocols/openai-realtime
section 4).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from tests.simulators.openai_realtime_checks import Json, Refused, parts, word
from tests.simulators.openai_realtime_config import SAMPLE_RATES
from tests.simulators.openai_realtime_vad import decode, encode
from voxglove.media.pcm import Samples

ROOT = "root"


@dataclass(slots=True)
class Item:
    """One item, with its sound as it came, in a format of SAMPLE_RATES. `wire` is what events
    show, without audio."""

    wire: Json
    pieces: list[Samples] = field(default_factory=list)
    format: str = "audio/pcm"
    cut_ms: int | None = None
    """Truncated here: later sound is not kept."""

    @property
    def id(self) -> str:
        return word(self.wire.get("id"))

    @property
    def type(self) -> str:
        return word(self.wire.get("type"))

    @property
    def role(self) -> str:
        """Of a message, "" for others."""
        return word(self.wire.get("role"))

    @property
    def content(self) -> list[Json]:
        return parts(self.wire.get("content"))

    @property
    def rate(self) -> int:
        """Of its sound, in Hz."""
        return SAMPLE_RATES[self.format]

    @property
    def samples(self) -> Samples:
        """Its sound, up to the cut."""
        return np.concatenate(self.pieces) if self.pieces else np.zeros(0, np.int16)

    @property
    def audio_ms(self) -> int:
        return sum(len(piece) for piece in self.pieces) * 1_000 // self.rate

    @property
    def text(self) -> str:
        """The words it shows: typed, written or transcribed."""
        shown = (word(one.get("text")) or word(one.get("transcript")) for one in self.content)
        return " ".join(one for one in shown if one)

    def add_sound(self, samples: Samples) -> None:
        """Sound of an answer, unless it was cut before."""
        if self.cut_ms is None:
            self.pieces.append(samples)

    def set_transcript(self, text: str) -> None:
        """What a transcriber read in its sound."""
        for one in self.content:
            if one.get("type") in ("input_audio", "output_audio"):
                one["transcript"] = text

    def shown(self) -> Json:
        """As events show it: a copy, without audio."""
        content = {"content": [dict(one) for one in self.content]} if "content" in self.wire else {}
        return {**self.wire, **content}

    def cut(self, ms: int) -> None:
        """Keep so much of its sound; its transcript goes, as nobody knows which words are left."""
        kept = self.samples[: ms * self.rate // 1_000]
        self.pieces, self.cut_ms = [kept], ms
        for one in self.content:
            one.pop("transcript", None)


class Conversation:
    """Items in order. `new_id` makes ids for those that come without one."""

    def __init__(self, new_id: Callable[[str], str]) -> None:
        self._new_id = new_id
        self._items: list[Item] = []

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def find(self, item_id: str) -> Item | None:
        return next((item for item in self._items if item.id == item_id), None)

    def get(self, item_id: str, action: str) -> Item:
        """The item that an event names. Raises Refused with the code of this action."""
        found = self.find(item_id)
        if found is None:
            text = f"Error {action} item: the item with id '{item_id}' does not exist."
            raise Refused(f"item_{action}_invalid_item_id", text, "item_id")
        return found

    @property
    def last_id(self) -> str | None:
        return self._items[-1].id if self._items else None

    def create(self, given: Json, previous_item_id: str | None, input_type: str) -> Item:
        """The item of a `conversation.item.create`, in its place. Raises Refused."""
        at = self._place(previous_item_id)
        if self.find(word(given.get("id"))) is not None:
            text = f"Error adding item: an item with id '{given['id']}' already exists."
            raise Refused("item_create_duplicate_item_id", text, "item.id")
        if given["type"] == "function_call_output":
            self._known_call(word(given.get("call_id")))
        item = self.build(given, input_type)
        self._items.insert(at, item)
        return item

    def build(self, given: Json, input_type: str) -> Item:
        """An item of a client's JSON, in no conversation. Raises Refused."""
        wire: Json = {"id": given.get("id") or self._new_id("item"), "object": "realtime.item"}
        wire |= {name: value for name, value in given.items() if name not in wire}
        if given["type"] in ("message", "function_call", "function_call_output"):
            wire["status"] = "completed"
        else:
            del wire["object"]
        if given["type"] == "function_call":
            wire.setdefault("call_id", self._new_id("call"))
        if "content" not in given:
            return Item(wire)
        item = Item(wire, format=input_type)
        content: list[Json] = []
        for one in parts(given.get("content")):
            if one.get("type") == "input_audio":
                data = base64.b64decode(word(one.get("audio")))
                item.pieces.append(decode(data, input_type, "item.content.audio"))
                one = {"type": "input_audio", "transcript": one.get("transcript")}
            content.append(dict(one))
        wire["content"] = content
        return item

    def add(self, item: Item) -> str | None:
        """Put an item at the end; the id of the one before it."""
        before = self.last_id
        self._items.append(item)
        return before

    def before(self, item: Item) -> str | None:
        """The id of the item before this one, None for the first, or for one that was deleted."""
        ids: list[str | None] = [None, *(one.id for one in self._items)]
        return ids[ids.index(item.id) - 1] if item.id in ids else None

    def truncate(self, item_id: str, content_index: int, audio_end_ms: int) -> None:
        """Cut an answer to what was heard. Raises Refused."""
        item = self.get(item_id, "truncate")
        if item.role != "assistant" or not any(
            one.get("type") == "output_audio" for one in item.content
        ):
            text = "Only model output audio messages can be truncated."
            raise Refused("item_truncate_invalid_item_id", text, "item_id")
        if content_index != 0:
            text = f"Content index {content_index} does not exist in item '{item_id}'."
            raise Refused("invalid_value", text, "content_index")
        if audio_end_ms > item.audio_ms:
            text = f"Audio content of {item.audio_ms}ms is already shorter than {audio_end_ms}ms"
            raise Refused("invalid_value", text, "audio_end_ms")
        item.cut(audio_end_ms)

    def delete(self, item_id: str) -> None:
        """Take an item out. Raises Refused."""
        self._items.remove(self.get(item_id, "delete"))

    def retrieve(self, item_id: str) -> Json:
        """An item with the sound of the user in it. Raises Refused."""
        item = self.get(item_id, "retrieve")
        shown = item.shown()
        for one in parts(shown.get("content")):
            if one.get("type") in ("input_audio", "output_audio"):
                one["audio"] = base64.b64encode(encode(item.samples, item.format)).decode()
        return shown

    def _place(self, previous_item_id: str | None) -> int:
        if previous_item_id is None:
            return len(self._items)
        if previous_item_id == ROOT:
            return 0
        found = self.find(previous_item_id)
        if found is None:
            text = f"Previous item with id '{previous_item_id}' does not exist."
            raise Refused("item_create_invalid_previous_item_id", text, "previous_item_id")
        return self._items.index(found) + 1

    def _known_call(self, call_id: str) -> None:
        if not any(
            item.type == "function_call" and item.wire.get("call_id") == call_id
            for item in self._items
        ):
            text = f"Tool call ID '{call_id}' not found in conversation."
            raise Refused("invalid_tool_call_id", text, "item.call_id")


def images(item: Item) -> int:
    """Pictures in an item."""
    return sum(one.get("type") == "input_image" for one in item.content)


def call_of(item: Item) -> tuple[str, str]:
    """Call id and output of a tool's result."""
    return word(item.wire.get("call_id")), word(item.wire.get("output"))
