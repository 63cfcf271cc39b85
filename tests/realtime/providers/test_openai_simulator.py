"""The official SDK against the simulated OpenAI realtime model: whole sessions, strictly typed."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import numpy as np
import pytest

from tests.simulators import tone_words
from tests.simulators.openai_realtime_client import (
    FAST,
    RATE,
    Client,
    answering,
    bare_session,
    session,
    user,
)
from tests.simulators.realtime_script import (
    Asked,
    Call,
    Reply,
    Script,
)
from voxglove.media import g711

pytestmark = pytest.mark.real_loop
OLD_ANSWER = {"type": "output_text", "text": "older"}


async def test_official_sdk_completes_a_session_by_voice() -> None:
    async with session(Script(speed=FAST)) as client:
        assert (await client.next())["type"] == "session.created"
        transcription = {"model": "gpt-4o-transcribe"}
        told = await client.setup(audio={"input": {"transcription": transcription}})
        assert told["audio"]["input"]["transcription"] == transcription
        assert told["audio"]["input"]["turn_detection"]["type"] == "server_vad"
        await client.push("alpha bravo", silence_ms=700)
        done = await client.until("response.done")
        assert done["response"]["status"] == "completed"
        assert client.heard() == "echo alpha bravo"
        assert client.server.turns == ["alpha bravo"]
        assert client.server.items() == [("user", "alpha bravo"), ("assistant", "echo alpha bravo")]
        assert client.server.violations == []
        assert client.types() == [
            *("session.created", "conversation.created", "session.updated"),
            *("input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped"),
            *("input_audio_buffer.committed", "conversation.item.added", "conversation.item.done"),
            "conversation.item.input_audio_transcription.delta",
            "conversation.item.input_audio_transcription.completed",
            *("response.created", "rate_limits.updated", "response.output_item.added"),
            *("conversation.item.added", "response.content_part.added"),
            *_spoken(client),
            *("response.output_audio.done", "response.output_audio_transcript.done"),
            *("response.content_part.done", "response.output_item.done"),
            *("conversation.item.done", "response.done"),
        ]


def _spoken(client: Client) -> list[str]:
    """The deltas of speech as they came: words and sound interleave freely."""
    deltas = ("response.output_audio.delta", "response.output_audio_transcript.delta")
    return [one for one in client.types() if one in deltas]


async def test_official_sdk_completes_a_session_by_typed_text() -> None:
    asked: list[Asked] = []
    script = Script(answer=answering(Reply(text="hotel india"), asked=asked), speed=FAST)
    async with session(script) as client:
        await client.setup(output_modalities=["text"], instructions="Be brief.")
        item = await client.item(**user("kilo lima"))
        done = await client.ask()
        assert done["output"][0]["content"] == [{"type": "output_text", "text": "hotel india"}]
        deltas = [event["delta"] for event in client.of("response.output_text.delta")]
        assert deltas == ["hotel", " india"]
        assert (asked[0].by, asked[0].text) == ("text", "kilo lima")
        assert asked[0].instructions == "Be brief."
        assert client.server.items() == [("user", "kilo lima"), ("assistant", "hotel india")]
        assert client.server.response_creates == 1
        await client.sdk.conversation.item.retrieve(item_id=item["id"])
        assert (await client.until("conversation.item.retrieved"))["item"] == item
        await client.sdk.conversation.item.delete(item_id=item["id"])
        await client.until("conversation.item.deleted")
        assert client.server.items() == [("assistant", "hotel india")]
        assert client.server.violations == []


async def test_official_sdk_completes_a_session_with_a_tool_round_trip() -> None:
    calls = (Call(name="weather", arguments={"city": "Nairobi"}), Call(name="clock", id="call_x"))
    asked: list[Asked] = []
    replies = (Reply(text="one", calls=calls), Reply(text="golf"))
    script = Script(answer=answering(*replies, asked=asked), speed=FAST)
    tools = [
        {"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}}
        for name in ("weather", "clock")
    ]
    async with session(script) as client:
        await client.setup(tools=tools)
        done = await client.ask()
        assert [item["type"] for item in done["output"]] == [
            *("message", "function_call", "function_call")
        ]
        weather, clock = done["output"][1:]
        assert json.loads(weather["arguments"]) == {"city": "Nairobi"}
        assert clock["call_id"] == "call_x"
        for call_id, output in ((weather["call_id"], "warm"), ("call_x", "noon")):
            await client.item(type="function_call_output", call_id=call_id, output=output)
        await client.ask()
        assert (asked[0].by, asked[0].tools) == ("request", ["weather", "clock"])
        assert asked[1].by == "results"
        assert asked[1].results == client.server.outputs
        assert client.server.outputs == {weather["call_id"]: "warm", "call_x": "noon"}
        assert client.server.violations == []
        await client.item(type="function_call_output", call_id="call_x", output="late")
        assert client.server.violations == ["second output for call_x"]


async def test_official_sdk_completes_a_session_with_cancel_and_truncate() -> None:
    words = "alpha bravo charlie delta echo foxtrot"
    async with session(Script(answer=answering(Reply(text=words)), speed=4)) as client:
        await client.sdk.response.create()
        first = await client.until("response.output_audio.delta", times=10)
        await client.sdk.response.cancel()
        done = (await client.until("response.done"))["response"]
        assert (done["status"], done["status_details"]["reason"]) == (
            *("cancelled", "client_cancelled"),
        )
        assert done["output"][0]["status"] == "incomplete"
        cut_ms = tone_words.STEP_MS * 2
        await client.sdk.conversation.item.truncate(
            item_id=first["item_id"], content_index=0, audio_end_ms=cut_ms
        )
        await client.until("conversation.item.truncated")
        assert client.server.items() == [("assistant", "alpha bravo")]
        await client.sdk.response.cancel()
        error = (await client.until("error"))["error"]
        assert error["code"] == "response_cancel_not_active"
        assert client.server.violations == [], "to lose a race is no offence"
        assert client.server.record.refusals == ["response_cancel_not_active"]


async def test_official_sdk_completes_a_session_after_an_error() -> None:
    async with session(Script(speed=FAST)) as client:
        await client.sdk.send({"type": "input_audio_buffer.commit", "event_id": "mine"})
        error = (await client.until("error"))["error"]
        assert (error["code"], error["event_id"]) == ("input_audio_buffer_commit_empty", "mine")
        assert (await client.ask())["status"] == "completed"
        await client.setup(audio={"input": {"turn_detection": None}})
        assert client.server.violations == [], "the server might have committed by itself"
        await client.sdk.input_audio_buffer.commit()
        await client.until("error")
        assert len(client.server.violations) == 1


async def test_official_sdk_completes_a_session_with_barge_in() -> None:
    replies = (Reply(text="alpha bravo charlie delta echo foxtrot golf"), Reply(text="zero"))
    async with session(Script(answer=answering(*replies), speed=2)) as client:
        await client.push("one", silence_ms=600)
        await client.until("response.output_audio.delta", times=5)
        await client.push("two", silence_ms=600)
        stopped = (await client.until("response.done"))["response"]
        assert stopped["status_details"] == {"type": "cancelled", "reason": "turn_detected"}
        await client.until("response.done")
        assert client.server.turns == ["one", "two"]
        own = [event for event in client.seen if event["type"].startswith("input_audio_buffer")]
        ids = [event["item_id"] for event in own]
        assert ids[:3] == [ids[0]] * 3 and ids[3:] == [ids[3]] * 3 != ids[:3]
        at = client.seen.index
        assert at(own[3]) < at(client.of("response.done")[0]) < at(own[4])


async def test_official_sdk_completes_a_session_with_turns_by_hand() -> None:
    async with session(Script(speed=FAST)) as client:
        await client.setup(audio={"input": {"turn_detection": None}})
        await client.push("kilo")
        await client.sdk.input_audio_buffer.clear()
        await client.until("input_audio_buffer.cleared")
        await client.push("lima")
        await client.sdk.input_audio_buffer.commit()
        await client.until("conversation.item.done")
        await client.ask()
        assert client.server.turns == ["lima"]
        assert client.heard() == "echo lima"
        assert client.of("input_audio_buffer.speech_started") == []


async def test_official_sdk_gets_a_summary_out_of_band_beside_a_response() -> None:
    words = "alpha bravo charlie delta echo foxtrot"
    script = Script(answer=answering(Reply(text=words)), speed=4, summary="papa")
    async with session(script) as client:
        await client.sdk.response.create()
        await client.until("response.output_audio.delta")
        summary = await client.ask(
            conversation="none", output_modalities=["text"], metadata={"purpose": "summary"}
        )
        assert summary["conversation_id"] is None
        assert summary["metadata"] == {"purpose": "summary"}
        assert summary["output"][0]["content"][0]["text"] == "papa"
        await client.until("response.done")
        assert client.server.items() == [("assistant", words)]
        assert len(client.of("conversation.item.added")) == 1, "of the other one nothing is kept"


async def test_words_come_as_late_as_the_script_says() -> None:
    script = Script(answer=answering(Reply(text="one two", words_late_s=0.1)), speed=FAST)
    async with bare_session(script) as client:
        await client.setup(audio={"input": {"transcription": {"model": "whisper-1"}}})
        await client.push("tango", silence_ms=600)
        await client.until("response.created")
        before = time.monotonic()
        words = await client.until("conversation.item.input_audio_transcription.completed")
        assert words["transcript"] == "tango"
        assert time.monotonic() - before > 0.09


async def test_the_words_of_two_turns_in_one_frame_are_both_told() -> None:
    async with bare_session(Script(speed=FAST)) as client:
        await client.setup(audio={"input": {"transcription": {"model": "whisper-1"}}})
        pcm = [tone_words.speak("one", RATE), np.zeros(RATE, np.int16)]
        pcm += [tone_words.speak("two", RATE), np.zeros(RATE, np.int16)]
        audio = base64.b64encode(np.concatenate(pcm).tobytes()).decode()
        await client.sdk.input_audio_buffer.append(audio=audio)
        for words in ("one", "two"):
            told = await client.until("conversation.item.input_audio_transcription.completed")
            assert told["transcript"] == words
        assert client.server.turns == ["one", "two"]


async def test_words_that_cannot_be_read_are_told_to_have_failed() -> None:
    async with bare_session(Script(read=lambda pcm, rate: "", speed=FAST)) as client:
        await client.setup(audio={"input": {"transcription": {"model": "whisper-1"}}})
        await client.push("tango", silence_ms=600)
        failed = await client.until("conversation.item.input_audio_transcription.failed")
        assert failed["error"]["code"] == "audio_unintelligible"


async def test_a_call_that_was_cut_off_is_told_to_be_incomplete() -> None:
    calls = (Call(name="f", arguments={"a": "b"}), Call(name="g", arguments={"c": "d"}))
    replies = answering(Reply(calls=calls, status="incomplete"))
    async with bare_session(Script(answer=replies)) as client:
        done = await client.ask()
        assert [(item["status"], item["arguments"]) for item in done["output"]] == [
            ("completed", '{"a": "b"}'),
            ("incomplete", '{"c":'),
        ]


async def test_a_history_that_is_played_back_asks_nothing() -> None:
    asked: list[Asked] = []
    async with bare_session(Script(answer=answering(Reply(), Reply(), asked=asked))) as client:
        await client.item(**user("old"))
        await client.item(**{**user(""), "role": "assistant", "content": [OLD_ANSWER]})
        await client.ask()
        await client.item(**user("new"))
        await client.ask(instructions="Be kind.")
        assert [(one.by, one.text, one.instruction) for one in asked] == [
            ("request", "", ""),
            ("request", "", "Be kind."),
        ]
        assert list(asked[1].history)[:2] == [("user", "old"), ("assistant", "older")]
        assert done_nothing(client)


def done_nothing(client: Client) -> bool:
    """The answers were empty messages."""
    outputs = [event["response"]["output"] for event in client.of("response.done")]
    return all(item["content"][0]["transcript"] == "" for (item,) in outputs)


@pytest.mark.parametrize("status", ["incomplete", "failed"])
async def test_a_response_that_ends_badly_closes_what_is_open(status: Any) -> None:
    async with bare_session(Script(answer=answering(Reply(text="one", status=status)))) as client:
        done = await client.ask()
        assert (done["status"], done["status_details"]["type"]) == (status, status)
        assert done["output"][0]["status"] == "incomplete"
        assert len(client.of("response.output_item.done")) == 1


async def test_g711_both_ways() -> None:
    async with bare_session(
        Script(answer=answering(Reply(text="golf hotel")), speed=FAST)
    ) as client:
        law = {"format": {"type": "audio/pcmu"}}
        await client.setup(audio={"input": {**law, "turn_detection": None}, "output": law})
        pcm = g711.ulaw_encode(tone_words.speak("india", 8_000))
        await client.sdk.input_audio_buffer.append(audio=base64.b64encode(pcm).decode())
        await client.sdk.input_audio_buffer.commit()
        await client.ask()
        deltas = client.of("response.output_audio.delta")
        said = b"".join(base64.b64decode(event["delta"]) for event in deltas)
        assert tone_words.read(g711.ulaw_decode(said), 8_000) == ["golf", "hotel"]
        assert client.server.turns == ["india"]
