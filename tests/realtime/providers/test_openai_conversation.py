"""OpenAI Realtime's codec: what the conversation holds, turns that our side ends, our values in
the wire's form."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.realtime.providers.openai_make import SECOND, Wire, called, conversation
from voxglove.core.messages import ContentPart, ContentSource, Message
from voxglove.core.model import ToolSpec
from voxglove.realtime.commands import (
    AppendContext,
    CommitTurn,
    ForgetBefore,
    RequestResponse,
    SendAudio,
    SendImage,
    SendText,
    SendToolResults,
    SendVideoFrame,
    SpeechBoundary,
    Summarise,
    ToolOutput,
    UpdateAgent,
)
from voxglove.realtime.events import (
    ProviderProblem,
    UserTurn,
    Words,
)
from voxglove.realtime.port import Setup
from voxglove.realtime.providers.openai import ServerVad
from voxglove.realtime.providers.openai_items import (
    arguments_text,
    history_items,
    parsed_arguments,
    wire_word,
)


def test_voice_row_085_context_of_a_key_replaces_the_one_before() -> None:
    wire = Wire()
    for words in ("one", "two", "three"):
        wire.tell(AppendContext(words, "k"))
    wire.tell(AppendContext("elsewhere"))
    held = conversation(wire)
    assert held == [("system", "three"), ("system", "elsewhere")]


def test_voice_row_088_context_is_silent_and_an_instruction_no_part_of_the_conversation() -> None:
    wire = Wire()
    wire.tell(AppendContext("VIP"))
    assert wire.types() == ["conversation.item.create"]
    wire.tell(RequestResponse("Greet."))
    assert wire.types() == ["response.create"]


def test_voice_row_082_new_tools_go_out_before_the_result_that_follows() -> None:
    wire = called(Wire(), "call_1")
    wire.types()
    wire.tell(UpdateAgent(tools=(ToolSpec("b", "", {}),)))
    wire.tell(SendToolResults((ToolOutput("call_1", "a", "done"),)))
    assert wire.types() == ["session.update", "conversation.item.create", "response.create"]


def test_voice_row_089_a_summary_takes_the_place_of_what_it_covers() -> None:
    wire = called(Wire(), "call_1", "call_2")
    wire.tell(SendToolResults((ToolOutput("call_1", "a", "done"),), respond=False))
    wire.tell(AppendContext("clock", "k"))
    wire.tell(SendText("covered", respond=False))
    wire.tell(Summarise("s", "Sum up."))
    wire.respond("sum_1")
    wire.tell(SendText("newer", respond=False))
    item = {"type": "message", "content": [{"type": "output_text", "text": "All."}]}
    wire.done("sum_1", output=[item])
    wire.tell(ForgetBefore("All."))
    left = conversation(wire)
    assert left[0] == ("system", "Summary of the conversation so far:\nAll.")
    assert left[1:] == [("function_call", "call_2"), ("system", "clock"), ("user", "newer")]


def test_what_is_being_answered_is_not_forgotten() -> None:
    wire = Wire()
    wire.tell(SendText("old", respond=False))
    wire.tell(SendText("new"))
    wire.respond("resp_1")
    wire.speak("resp_1", "item_a", SECOND, done=False)
    wire.tell(ForgetBefore("All."))
    deleted = [one["item_id"] for one in wire.sent if one["type"] == "conversation.item.delete"]
    assert deleted == ["vg_1"]


def test_the_camera_is_one_item() -> None:
    wire = Wire()
    for number in range(3):
        wire.tell(SendVideoFrame(bytes([number])))
        wire.server("input_audio_buffer.speech_started", item_id=f"u{number}", audio_start_ms=1)
    assert [kind for kind, _ in conversation(wire)] == ["user"]
    wire.server("input_audio_buffer.speech_started", item_id="u9", audio_start_ms=1)
    assert len(conversation(wire)) == 1


def test_a_result_without_a_call_goes_nowhere() -> None:
    wire = called(Wire(), "call_1")
    wire.types()
    wire.tell(SendToolResults((ToolOutput("call_9", "a", "x"),)))
    assert wire.types() == []
    wire.tell(SendToolResults((ToolOutput("call_1", "a", "x"),), respond=False))
    wire.tell(SendToolResults((ToolOutput("call_1", "a", "x"),)))
    assert wire.types() == ["conversation.item.create"]


def test_a_manual_turn_begins_with_its_lead_and_ends_with_a_request() -> None:
    wire = Wire(Setup(instructions="", manual_turns=True))
    wire.tell(SendAudio(SECOND * 3))
    wire.tell(SpeechBoundary(speaking=True))
    assert wire.types()[-2:] == ["input_audio_buffer.clear", "input_audio_buffer.append"]
    wire.tell(SendAudio(SECOND))
    wire.tell(SpeechBoundary(speaking=False))
    assert wire.types()[-2:] == ["input_audio_buffer.commit", "response.create"]
    assert wire.server("input_audio_buffer.committed", item_id="u") == [UserTurn("u", None, 4_000)]
    wire.tell(SpeechBoundary(speaking=True))
    wire.tell(SendAudio(bytes(48 * 90)))
    wire.tell(CommitTurn())
    assert "input_audio_buffer.commit" not in wire.types()


def test_boundaries_mean_nothing_where_the_provider_ends_turns() -> None:
    wire = Wire()
    wire.tell(SendAudio(SECOND * 3))
    wire.types()
    wire.tell(SpeechBoundary(speaking=True))
    wire.tell(SpeechBoundary(speaking=False))
    assert wire.types() == []


def test_a_turn_of_silence_has_no_words() -> None:
    wire = Wire(turn_detection=ServerVad(idle_timeout_ms=5_000))
    wire.server(
        "input_audio_buffer.timeout_triggered", item_id="u", audio_start_ms=10, audio_end_ms=5_010
    )
    events = wire.server("input_audio_buffer.committed", item_id="u")
    assert events == [
        UserTurn("u", 10, 5_010),
        Words("user", "u", "", final=True, start_ms=10, end_ms=5_010),
    ]
    words = "conversation.item.input_audio_transcription.completed"
    assert wire.server(words, item_id="u", transcript="hm") == []


def test_long_sound_is_sent_in_pieces() -> None:
    wire = Wire()
    wire.tell(SendAudio(bytes(7 * 1024 * 1024)))
    assert len(wire.sent) == 3
    assert max(len(json.dumps(one)) for one in wire.sent) < 15 * 1024 * 1024


def test_an_image_that_the_provider_does_not_read_is_a_problem() -> None:
    wire = Wire()
    problem = wire.tell(SendImage(b"x", "image/tiff"))[0]
    assert isinstance(problem, ProviderProblem) and problem.code == "unsupported_image"
    assert wire.sent == []


# -- our values in the wire's form ------------------------------------------------------------


def image(source: ContentSource) -> Message:
    return Message(sender="user", content=(ContentPart("image", source=source),))


def test_only_pictures_that_carry_their_bytes_are_shown() -> None:
    shown = [
        image(ContentSource("url", "image/png", url="data:image/png;base64,iVBO")),
        image(ContentSource("base64", "image/jpeg", data="/9j/")),
        image(ContentSource("url", "image/png", url="https://example.org/a.png")),
        image(ContentSource("base64", "image/tiff", data="AAAA")),
    ]
    contents = [item["content"] for item in history_items(shown)]
    note = [{"type": "input_text", "text": "[image cannot be shown here]"}]
    assert contents == [
        [{"type": "input_image", "image_url": "data:image/png;base64,iVBO"}],
        [{"type": "input_image", "image_url": "data:image/jpeg;base64,/9j/"}],
        note,
        note,
    ]


def test_text_parts_are_said_once_whatever_the_message_repeats() -> None:
    parts = (ContentPart("text", text="look"), ContentPart("text", text=" "))
    items = list(history_items([Message(sender="user", text="look", content=parts)]))
    assert [item["content"] for item in items] == [[{"type": "input_text", "text": "look"}]]


def test_nothing_is_seeded_of_messages_that_say_nothing() -> None:
    messages = [Message(sender="user", text=" "), Message(sender="agent", text="")]
    messages.append(Message(sender="user", text="", framework_context="runtime"))
    assert list(history_items(messages)) == []


@pytest.mark.parametrize(
    ("raw", "arguments"),
    [
        ("", {}),
        ('{"a": 1}', {"a": 1}),
        ("[1]", "[1]"),
        ('{"a":', '{"a":'),
        ('{"a": NaN}', '{"a": NaN}'),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_arguments_that_are_no_object_stay_text(raw: str, arguments: object) -> None:
    assert parsed_arguments(raw) == arguments


def test_arguments_go_back_as_an_object() -> None:
    assert json.loads(arguments_text({"a": "b"})) == {"a": "b"}
    assert json.loads(arguments_text('{"a": "b"}')) == {"a": "b"}
    assert json.loads(arguments_text("none")) == {"arguments": "none"}


@given(st.text(), st.text())
def test_names_stay_apart_on_the_wire(one: str, other: str) -> None:
    words = [wire_word(name, 64) for name in (one, other)]
    assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", word) for word in words)
    assert (words[0] == words[1]) == (one == other)
