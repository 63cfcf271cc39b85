"""The codec of Gemini Live under any order of the provider's messages and our commands."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulators.gemini_live_rules import read_message
from voxglove.adapters.credentials import Secret
from voxglove.core.model import ToolSpec
from voxglove.realtime.commands import (
    AppendContext,
    CommitTurn,
    CutOutput,
    ProviderCommand,
    RequestResponse,
    SendAudio,
    SendImage,
    SendText,
    SendToolResults,
    SpeechBoundary,
    Summarise,
    ToolOutput,
    UpdateAgent,
)
from voxglove.realtime.events import (
    Audio,
    Closed,
    Interrupted,
    ItemDone,
    RealtimeEvent,
    ResponseDone,
    ResponseStarted,
    ToolCalls,
    UserTurn,
    Words,
)
from voxglove.realtime.port import Setup
from voxglove.realtime.providers.codec import Codec
from voxglove.realtime.providers.gemini_config import GENERATIONS, GeminiLiveConfig
from voxglove.realtime.providers.gemini_wire import GeminiCodec

Json = dict[str, object]
MODELS = ("gemini-3.8-live", "gemini-3.1-flash-live-preview", "gemini-2.5-flash-native-audio")
TOOLS = (ToolSpec("look", "Looks.", {}),)
SOUND = {"parts": [{"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": "AAAB"}}]}

_IDS = st.sampled_from(["c1", "c2", "c3"])
_PIECES = st.fixed_dictionaries(
    {},
    optional={
        "inputTranscription": st.fixed_dictionaries(
            {"text": st.sampled_from(["", " a"])}, optional={"finished": st.booleans()}
        ),
        "outputTranscription": st.just({"text": "b"}),
        "modelTurn": st.just(SOUND),
        "interrupted": st.booleans(),
        "generationComplete": st.booleans(),
        "turnComplete": st.booleans(),
        "turnCompleteReason": st.sampled_from(["NEED_MORE_INPUT", "RESPONSE_REJECTED"]),
    },
)
_MESSAGES = st.one_of(
    st.fixed_dictionaries({"serverContent": _PIECES}),
    st.fixed_dictionaries({"serverContent": _PIECES}),
    st.builds(lambda id: {"toolCall": {"functionCalls": [{"id": id, "name": "look"}]}}, _IDS),
    st.builds(lambda id: {"toolCallCancellation": {"ids": [id]}}, _IDS),
    st.sampled_from(
        [
            {"setupComplete": {}},
            {"voiceActivity": {"voiceActivityType": "ACTIVITY_START"}},
            {"usageMetadata": {"totalTokenCount": 5}},
            {"sessionResumptionUpdate": {"resumable": True, "newHandle": "h"}},
            {"odd": 1},
        ]
    ),
)
_COMMANDS = st.one_of(
    st.builds(lambda id: SendToolResults((ToolOutput(id, "look", "x"),)), _IDS),
    st.builds(CutOutput, st.just({}), st.booleans()),
    st.builds(SpeechBoundary, st.booleans()),
    st.builds(SendText, st.sampled_from(["", "hi"]), st.booleans(), st.just("t")),
    st.sampled_from(
        [
            AppendContext("note"),
            RequestResponse("do", "r"),
            CommitTurn(),
            SendAudio(bytes(160_000)),
            SendImage(b"\xff\xd8", "image/jpeg"),
            UpdateAgent("new", TOOLS),
            Summarise("s", ""),
        ]
    ),
)


class Watch:
    """What must hold of the events and frames of one connection, whatever comes."""

    def __init__(self) -> None:
        self.response = ""
        self.started: Counter[str] = Counter()
        self.done: set[str] = set()
        self.turns: set[str] = set()
        self.finals: set[str] = set()
        self.called: set[str] = set()
        self.cancelled: set[str] = set()
        self.answered: set[str] = set()
        self.over = False

    def event(self, event: RealtimeEvent) -> None:
        assert not self.over, "nothing comes after Closed"
        match event:
            case ResponseStarted(response_id):
                assert not self.response
                assert not self.started[response_id]
                self.started[response_id] += 1
                self.response = response_id
            case ResponseDone(response_id):
                assert response_id == self.response
                self.response = ""
            case Audio(item_id) | ItemDone(item_id):
                assert self.response
                assert item_id not in self.done
                self.done |= {item_id} if isinstance(event, ItemDone) else set()
            case UserTurn(item_id):
                assert item_id not in self.turns
                self.turns.add(item_id)
            case Words(_, item_id, _, final):
                assert item_id not in self.finals | self.done
                self.finals |= {item_id} if final else set()
            case ToolCalls(response_id, calls):
                assert response_id == self.response
                assert self.called.isdisjoint(call.id for call in calls)
                self.called |= {call.id for call in calls}
            case Closed():
                assert not self.response
                self.over = True

    def frame(self, frame: str | bytes) -> None:
        kind, value = read_message(frame)
        assert len(json.loads(frame)) == 1
        if kind == "toolResponse":
            for response in value["functionResponses"]:
                assert response["id"] in self.called - self.cancelled - self.answered
                self.answered.add(response["id"])
        if kind == "realtimeInput":
            assert len(value) == 1


@settings(max_examples=80)
@given(
    st.sampled_from(MODELS),
    st.booleans(),
    st.booleans(),
    st.lists(st.one_of(_MESSAGES, _COMMANDS), max_size=40),
)
def test_any_order_keeps_the_port(
    model: str, manual: bool, interruption: bool, steps: list[Json | ProviderCommand]
) -> None:
    codec, watch = codec_of(model), Watch()
    codec.begin(Setup(instructions="", manual_turns=manual, interruption=interruption))
    receive(codec, {"setupComplete": {}})
    asked = Counter[str]()
    for step in steps:
        events = receive(codec, step) if isinstance(step, Mapping) else codec.tell(step)
        if isinstance(step, CutOutput):
            assert [type(event) for event in events] == [Interrupted]
        for event in events:
            watch.event(event)
        asked.update(event.request_id for event in events if isinstance(event, ResponseStarted))
        watch.cancelled |= _cancelled(step) & watch.called
        for frame in codec.take():
            watch.frame(frame)
    for event in codec.closed(1006, ""):
        watch.event(event)
    assert watch.over
    assert not codec.take()
    assert codec.closed(1006, "") == receive(codec, {"odd": 1}) == []
    told = Counter(
        step.request_id for step in steps if isinstance(step, SendText | RequestResponse)
    )
    assert not Counter({key: n for key, n in asked.items() if key}) - told


def _cancelled(step: Json | ProviderCommand) -> set[str]:
    if not isinstance(step, Mapping):
        return set()
    cancellation = step.get("toolCallCancellation")
    return set(cancellation["ids"]) if isinstance(cancellation, dict) else set()


def codec_of(model: str) -> Codec:
    return GeminiCodec(GeminiLiveConfig(key=Secret("k"), model=model))


def receive(codec: Codec, message: Mapping[str, object]) -> list[RealtimeEvent]:
    return codec.receive(json.dumps(message).encode())


def test_every_generation_is_among_the_models() -> None:
    assert {codec_facts(model) for model in MODELS} == set(GENERATIONS)


def codec_facts(model: str) -> object:
    return GeminiLiveConfig(key=Secret("k"), model=model).generation
