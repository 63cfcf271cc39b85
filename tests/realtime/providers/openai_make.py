"""Makes OpenAI codecs for golden transcripts and tests, and reads what they send."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

from openai.types.realtime import RealtimeClientEvent
from pydantic import BaseModel, TypeAdapter

from tests.realtime.golden_runner import Options
from voxglove.adapters.credentials import Secret
from voxglove.realtime.commands import ProviderCommand, RequestResponse
from voxglove.realtime.events import RealtimeEvent, ToolCalls
from voxglove.realtime.port import Setup
from voxglove.realtime.providers.openai import OpenAIRealtimeConfig, SemanticVad, ServerVad
from voxglove.realtime.providers.openai_wire import OpenAICodec

KEY = Secret("sk-test")
SECOND = bytes(48_000)
"""Of silence."""
CLIENT = TypeAdapter[BaseModel](RealtimeClientEvent)


def make(options: Options) -> OpenAICodec:
    """A codec whose configuration a transcript's `%` line gives; `server_vad` and `semantic_vad`
    hold fields of the turn detection."""
    rest = dict(options)
    server, semantic = rest.pop("server_vad", None), rest.pop("semantic_vad", None)
    if isinstance(server, dict):
        rest["turn_detection"] = ServerVad(**server)
    if isinstance(semantic, dict):
        rest["turn_detection"] = SemanticVad(**semantic)
    return OpenAICodec(OpenAIRealtimeConfig(key=KEY, **rest))  # type: ignore[arg-type]


def extras(value: object) -> Iterator[str]:
    """Fields that the vendor's own types do not know, at any depth."""
    if isinstance(value, BaseModel):
        yield from value.model_extra or {}
        for name in type(value).model_fields:
            yield from extras(getattr(value, name))
    elif isinstance(value, list):
        for one in value:
            yield from extras(one)


def assert_sdk_takes(frame: str) -> None:
    """The vendor's own types read a frame of ours, and know all of it."""
    event = CLIENT.validate_json(frame)
    assert list(extras(event)) == [], frame


class Wire:
    """A codec with the provider's side in a test's hand."""

    def __init__(self, setup: Setup | None = None, **options: object) -> None:
        self.codec = make(options)
        self.codec.begin(setup or Setup(instructions="Be kind."))
        self.events: list[RealtimeEvent] = []
        self.sent: list[dict[str, object]] = []
        self._responses = 0
        self.server("session.created", session={"id": "sess_1"})
        self.server("session.updated", session={"id": "sess_1"})
        self.sent.clear()

    def server(self, kind: str, **fields: object) -> list[RealtimeEvent]:
        """The provider sends a frame; the events of it."""
        frame = json.dumps({"type": kind, "event_id": "event_1", **fields})
        return self._note(self.codec.receive(frame))

    def tell(self, command: ProviderCommand) -> list[RealtimeEvent]:
        """The session tells something; the events of it."""
        return self._note(self.codec.tell(command))

    def types(self) -> list[object]:
        """The types of the frames that were sent since the last look."""
        kinds = [frame["type"] for frame in self.sent]
        self.sent.clear()
        return kinds

    def respond(self, response_id: str, *, own: bool = False) -> list[RealtimeEvent]:
        """The provider begins a response: to our newest request, or one of its own."""
        metadata: object = None
        if not own:
            asked = [one for one in self.sent if one["type"] == "response.create"]
            response = asked[-1]["response"]
            assert isinstance(response, dict)
            metadata = response["metadata"]
        return self.server("response.created", response={"id": response_id, "metadata": metadata})

    def speak(self, response_id: str, item_id: str, pcm: bytes, *, done: bool = True) -> None:
        """The provider says something in an item of a response."""
        ids = {"response_id": response_id, "item_id": item_id}
        item = {"id": item_id, "type": "message", "role": "assistant"}
        self.server("response.output_item.added", response_id=response_id, item=item)
        self.server("conversation.item.added", item=item)
        self.server("response.output_audio.delta", delta=base64.b64encode(pcm).decode(), **ids)
        if done:
            self.server("response.output_audio.done", **ids)
            self.server("response.output_item.done", response_id=response_id, item=item)

    def done(self, response_id: str, status: str = "completed", **more: object) -> None:
        """The provider ends a response."""
        self.server("response.done", response={"id": response_id, "status": status, **more})

    def _note(self, events: list[RealtimeEvent]) -> list[RealtimeEvent]:
        self.events += events
        for frame in self.codec.take():
            self.sent.append(json.loads(frame))
        return events


def spoken(wire: Wire, *, done: bool = True) -> Wire:
    """One second was said in `item_a` of `resp_1`, which runs; nothing is in `sent`."""
    wire.tell(RequestResponse(request_id="q"))
    wire.respond("resp_1")
    wire.speak("resp_1", "item_a", SECOND, done=done)
    wire.sent.clear()
    return wire


def called(wire: Wire, *call_ids: str) -> Wire:
    """`resp_1` called the tool `a` and is over."""
    wire.tell(RequestResponse())
    wire.respond("resp_1")
    for call_id in call_ids:
        item = {"id": f"i_{call_id}", "type": "function_call", "call_id": call_id, "name": "a"}
        wire.server("conversation.item.added", item=item)
        done = {**item, "status": "completed", "arguments": "{}"}
        wire.server("response.output_item.done", response_id="resp_1", item=done)
    wire.done("resp_1")
    calls = wire.events[-2]
    assert isinstance(calls, ToolCalls) and [call.id for call in calls.calls] == list(call_ids)
    wire.sent = [one for one in wire.sent if one["type"] != "response.create"]
    for call_id in call_ids:  # so that `conversation` knows them
        item = {"id": f"i_{call_id}", "type": "function_call", "call_id": call_id}
        wire.sent.append({"type": "conversation.item.create", "item": item})
    return wire


def conversation(wire: Wire) -> list[tuple[str, str]]:
    """What the provider holds after all that was sent: (role or type, text or call id)."""
    held: dict[object, tuple[str, str]] = {}
    for frame in wire.sent:
        item = frame.get("item")
        if isinstance(item, dict):
            content = item.get("content") or [{}]
            said = content[0].get("text", "") or item.get("call_id", "")
            entry = {item["id"]: (item.get("role") or item["type"], said)}
            held = (
                {**entry, **held} if frame.get("previous_item_id") == "root" else {**held, **entry}
            )
        elif frame["type"] == "conversation.item.delete":
            assert frame["item_id"] in held, "an item was deleted that is not there"
            del held[frame["item_id"]]
    return list(held.values())
