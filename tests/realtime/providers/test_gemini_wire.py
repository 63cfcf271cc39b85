"""The codec of Gemini Live: golden transcripts, the vendor's own types, turns, texts and ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.realtime import golden_runner
from tests.simulators.gemini_live_rules import read_message
from voxglove.adapters.credentials import Secret
from voxglove.core.messages import Message
from voxglove.core.model import ToolSpec
from voxglove.realtime.commands import (
    AppendContext,
    CutOutput,
    RequestResponse,
    SendAudio,
    SendText,
    SendToolResults,
    SpeechBoundary,
    ToolOutput,
)
from voxglove.realtime.events import (
    Audio,
    Closed,
    Interrupted,
    ItemDone,
    Opened,
    ProviderProblem,
    RealtimeEvent,
    ResponseDone,
    Resumable,
    UserTurn,
    Words,
)
from voxglove.realtime.port import Setup
from voxglove.realtime.providers.codec import Codec
from voxglove.realtime.providers.gemini_config import GeminiLiveConfig
from voxglove.realtime.providers.gemini_wire import GeminiCodec

FILES = golden_runner.transcripts("gemini")
MODELS = (
    "gemini-3.8-live",
    "gemini-3.1-flash-live-preview",
    "gemini-2.5-flash-native-audio-preview-12-2025",
)
Json = dict[str, object]
SOUND: Json = {
    "modelTurn": {"parts": [{"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": "AAAB"}}]}
}
TOOLS = (ToolSpec("look", "Looks.", {}),)


def make(options: golden_runner.Options) -> Codec:
    listed = {key: tuple(one) if isinstance(one, list) else one for key, one in options.items()}
    return GeminiCodec(GeminiLiveConfig(key=Secret("k"), **listed))  # type: ignore[arg-type]


def opened(model: str = MODELS[0], setup: Setup | None = None, **options: object) -> Codec:
    """A codec whose setup was taken; what it sent so far is gone."""
    codec = make({"model": model, **options})
    codec.begin(setup or Setup(instructions="", tools=TOOLS))
    receive(codec, {"setupComplete": {}})
    codec.take()
    return codec


def receive(codec: Codec, message: Json) -> list[RealtimeEvent]:
    return codec.receive(json.dumps(message).encode())


def inner(frame: Json, name: str) -> dict[str, Any]:
    found = frame[name]
    assert isinstance(found, dict)
    return found


def content(codec: Codec, **fields: object) -> list[RealtimeEvent]:
    return receive(codec, {"serverContent": fields})


def sent(codec: Codec) -> list[Json]:
    return [json.loads(frame) for frame in codec.take()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_voice_row_093_the_transcript_holds_in_text_and_in_binary_frames(
    path: Path, binary: bool
) -> None:
    golden_runner.run(path, make, binary=binary)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_vendors_types_and_the_strict_reader_know_every_frame(path: Path) -> None:
    transcript = golden_runner.read(path)
    for frame in transcript.client_frames():
        read_message(frame)
        message = json.loads(frame)
        # The SDK sends this field too, but its class of the setup does not list it.
        listening = message.get("setup", {}).pop("realtimeInputConfig", {})
        types.RealtimeInputConfig.model_validate(listening)
        types.LiveClientMessage.model_validate(message)
    if path.stem != "odd_frames":
        for frame in transcript.server_frames():
            types.LiveServerMessage.model_validate(json.loads(frame))


# ---- what a turn is (W-37)


def test_w37_a_fragment_is_not_final_and_the_whole_is_final_once() -> None:
    codec = opened()
    events = content(codec, inputTranscription={"text": " Hello"})
    events += content(codec, inputTranscription={"text": " there"})
    events += content(codec, **SOUND)
    events += content(codec, inputTranscription={"text": " you"})
    events += content(codec, turnComplete=True)
    words = [event for event in events if isinstance(event, Words) and event.role == "user"]
    assert [one.final for one in words] == [False, False, False, True]
    assert words[-1].text == "Hello there you"
    assert len({one.item_id for one in words}) == 1


def test_w37_an_interrupted_answer_ends_in_every_respect() -> None:
    codec = opened()
    content(codec, **SOUND)
    kinds = [type(event) for event in content(codec, interrupted=True)]
    assert kinds[0] is Interrupted, "silence first"
    assert kinds[-2:] == [ItemDone, ResponseDone]
    assert content(codec, turnComplete=True) == []


def test_words_of_what_was_cut_begin_no_answer_to_what_the_user_says_now() -> None:
    codec = opened()
    content(codec, **SOUND)
    content(codec, interrupted=True)
    content(codec, inputTranscription={"text": "Stop"})
    assert content(codec, outputTranscription={"text": " upon a time"}) == []


def test_w37_the_setup_is_taken_when_the_provider_says_so() -> None:
    codec = make({})
    codec.begin(Setup(instructions=""))
    assert [list(frame) for frame in sent(codec)] == [["setup"]]
    codec.tell(SendText("early"))
    assert sent(codec) == []
    assert isinstance(receive(codec, {"setupComplete": {}})[0], Opened)
    assert [list(frame) for frame in sent(codec)] == [["realtimeInput"]]


def test_a_bundle_is_read_whole() -> None:
    codec = opened()
    events = receive(
        codec,
        {
            "serverContent": {
                **SOUND,
                "inputTranscription": {"text": "Hi"},
                "outputTranscription": {"text": "Hello."},
                "generationComplete": True,
                "turnComplete": True,
            },
            "usageMetadata": {"totalTokenCount": 9, "promptTokenCount": 9},
            "sessionResumptionUpdate": {"newHandle": "h", "resumable": True},
        },
    )
    assert [type(event).__name__ for event in events] == [
        *("Used", "Words", "UserTurn", "ResponseStarted", "Audio", "Words"),
        *("Words", "ItemDone", "Words", "ResponseDone", "Resumable"),
    ]


# ---- due


def test_an_answer_is_due_until_it_was_generated() -> None:
    codec = opened()
    assert not codec.due, "nobody asked"
    codec.tell(RequestResponse("Greet."))
    assert codec.due
    content(codec, **SOUND)
    assert codec.due
    content(codec, generationComplete=True)
    assert not codec.due, "it plays: the provider is silent for as long as that takes"
    content(codec, turnComplete=True)
    assert not codec.due


def test_nothing_is_due_while_a_tool_works_and_its_result_makes_it_due() -> None:
    codec = opened(MODELS[1])
    receive(codec, {"toolCall": {"functionCalls": [{"id": "c", "name": "look"}]}})
    assert not codec.due
    codec.tell(SendText("And now?"))
    assert not codec.due, "the model waits for us"
    codec.tell(SendToolResults((ToolOutput("c", "look", "seen"),)))
    assert codec.due


def test_nothing_is_due_on_a_connection_that_is_over() -> None:
    codec = opened()
    codec.tell(RequestResponse("Greet."))
    codec.closed(1006, "")
    assert not codec.due


# ---- tool calls


@pytest.mark.parametrize("model", MODELS)
def test_field_fault_45_every_call_is_answered_also_after_a_cut_and_an_abort(model: str) -> None:
    codec = opened(model)
    content(codec, **SOUND)
    calls = [{"id": "c1", "name": "look"}, {"id": "c2", "name": "look"}]
    receive(codec, {"toolCall": {"functionCalls": calls}})
    codec.tell(CutOutput())
    codec.tell(SendToolResults((ToolOutput("c1", "look", "Aborted: by the user", "aborted"),)))
    codec.tell(SendToolResults((ToolOutput("c2", "look", "late"),), respond=False))
    responses = [
        one for frame in sent(codec) for one in inner(frame, "toolResponse")["functionResponses"]
    ]
    assert [one["id"] for one in responses] == ["c1", "c2"]
    assert [list(one["response"]) for one in responses] == [["error"], ["output"]]


def test_a_result_of_another_connection_is_told_as_a_note() -> None:
    codec = opened()
    codec.tell(SendToolResults((ToolOutput("before", "look", "seen"),)))
    (frame,) = sent(codec)
    assert "seen" in json.dumps(frame["clientContent"])


def test_what_is_said_of_a_result_sounds_although_its_question_was_cut() -> None:
    codec = opened(MODELS[1])
    content(codec, **SOUND)
    codec.tell(CutOutput())
    assert not [one for one in content(codec, **SOUND) if isinstance(one, Audio)]
    receive(codec, {"toolCall": {"functionCalls": [{"id": "c", "name": "look"}]}})
    codec.tell(SendToolResults((ToolOutput("c", "look", "seen"),)))
    assert [one for one in content(codec, **SOUND) if isinstance(one, Audio)]


def test_only_the_next_answer_is_of_a_result_that_nobody_waited_for() -> None:
    codec = opened()
    receive(codec, {"toolCall": {"functionCalls": [{"id": "c", "name": "look"}]}})
    content(codec, turnComplete=True)
    codec.tell(SendToolResults((ToolOutput("c", "look", "seen"),)))
    answers = []
    for _ in range(2):
        events = content(codec, **SOUND) + content(codec, turnComplete=True)
        answers.append(any(isinstance(event, UserTurn) for event in events))
    assert answers == [False, True], "the second one answers a voice"


# ---- texts


def test_a_history_goes_before_whatever_was_told_meanwhile() -> None:
    codec = make({})
    codec.begin(Setup(instructions="", history=(Message(sender="user", text="one"),)))
    codec.tell(SendText("two"))
    receive(codec, {"setupComplete": {}})
    assert [next(iter(frame)) for frame in sent(codec)] == [
        *("setup", "clientContent", "realtimeInput")
    ]


def test_a_note_waits_for_an_answer_that_may_be_near_by_the_sound_that_was_sent() -> None:
    codec = opened()
    codec.tell(SpeechBoundary(True))
    codec.tell(SpeechBoundary(False))
    codec.tell(AppendContext("It rains."))
    second = bytes(32_000)
    for _ in range(5):
        codec.tell(SendAudio(second))
    assert not [frame for frame in sent(codec) if "clientContent" in frame]
    codec.tell(SendAudio(second[:640]))
    assert "clientContent" in sent(codec)[-1], "no answer came within five seconds"


def test_more_notes_than_anyone_reads_lose_the_oldest() -> None:
    codec = opened()
    content(codec, **SOUND)
    for at in range(300):
        codec.tell(AppendContext(f"note {at}."))
    content(codec, turnComplete=True)
    told = json.dumps(sent(codec))
    assert "note 299." in told
    assert "note 43." not in told


@pytest.mark.parametrize("model", MODELS)
def test_text_of_half_a_surrogate_pair_still_is_text(model: str) -> None:
    codec = opened(model)
    codec.tell(SendText("a\ud800b"))
    (frame,) = codec.take()
    read_message(frame)
    assert "\ud800" not in json.loads(frame).__repr__()


def test_long_sound_goes_in_pieces() -> None:
    codec = opened()
    codec.tell(SendAudio(bytes(1_200_000)))
    assert len(codec.take()) == 3


# ---- ends


@pytest.mark.parametrize(
    ("code", "reason", "shown", "fatal"),
    [
        (1000, "", "1000", False),
        (1006, "reset", "1006", False),
        (1007, "Request contains an invalid argument.", "1007", False),
        (1007, "API key not valid. Please pass a valid API key.", "unauthenticated", True),
        (1008, "The operation was aborted.", "1008", False),
        (1008, "models/x is not found, or is not supported for bidiGenerateContent.", "1008", True),
        (1011, "Deadline expired before operation could complete.", "1011", False),
        (1011, "You exceeded your current quota, please check your plan.", "1011", True),
    ],
)
def test_voice_row_093_a_close_tells_its_code_and_reason(
    code: int, reason: str, shown: str, fatal: bool
) -> None:
    codec = opened()
    content(codec, **SOUND)
    end = codec.closed(code, reason)[-1]
    assert end == Closed(shown, reason, fatal)


def test_voice_row_093_an_end_that_we_asked_for_is_clean_and_another_one_is_not() -> None:
    codec = opened()
    assert codec.finish() is False
    assert codec.finished
    assert codec.closed(1000, "") == [Closed("1000", clean=True)]
    assert opened().closed(1000, "") == [Closed("1000")]
    assert opened().closed(1006, "")[-1] == Closed("1006")


def test_a_setup_that_is_refused_is_not_tried_again() -> None:
    codec = make({})
    codec.begin(Setup(instructions=""))
    assert codec.closed(1007, "Request contains an invalid argument.")[-1] == Closed(
        "1007", "Request contains an invalid argument.", fatal=True
    )


def test_a_handle_is_to_blame_only_until_the_model_spoke() -> None:
    resumed = Setup(instructions="", resume_handle="h")
    assert opened(setup=resumed).closed(1007, "x") == [Resumable(None), Closed("handle", "x")]
    codec = opened(setup=resumed)
    content(codec, **SOUND)
    assert codec.closed(1007, "x")[-2:] == [Resumable(None), Closed("1007", "x")]


@settings(max_examples=40)
@given(st.one_of(st.binary(max_size=40), st.text(max_size=40)))
def test_any_frame_at_all_is_a_problem_at_most(frame: bytes | str) -> None:
    events = opened().receive(frame)
    assert all(isinstance(event, ProviderProblem) for event in events)
