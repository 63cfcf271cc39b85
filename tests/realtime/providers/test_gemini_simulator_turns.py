"""How the simulated Gemini Live model takes turns: hearing, speaking, tools, interruptions."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import numpy as np
import pytest

from tests.realtime.providers.gemini_peer import (
    Json,
    Peer,
    assert_clean,
    audio,
    content,
    opened,
    order_of,
    sound_of,
    words_of,
)
from tests.simulators.gemini_live import Options, gemini_live
from tests.simulators.realtime_script import Asked, Call, Reply, Script

LONG = "alpha bravo charlie delta echo foxtrot golf hotel"
MANUAL: Json = {"automaticActivityDetection": {"disabled": True}}
SEEDED: Json = {"initialHistoryInClientContent": True}
FUNCTION = {"functionDeclarations": [{"name": "lookup"}]}


def now() -> float:
    return asyncio.get_running_loop().time()


def said(role: str, text: str) -> Json:
    return {"role": role, "parts": [{"text": text}]}


def typed(*turns: Json, complete: bool = True) -> Json:
    return {"clientContent": {"turns": list(turns), "turnComplete": complete}}


async def chunk_lengths(script: Script) -> tuple[list[int], float, float]:
    """Milliseconds of each chunk, seconds until generationComplete, and until turnComplete."""
    async with gemini_live(script) as server, opened(server) as peer:
        await peer.send({"realtimeInput": {"text": "alpha"}})
        await peer.until("modelTurn")
        begun = now()
        spoken = [peer.seen[-1], *await peer.until("generationComplete")]
        generated = now() - begun
        await peer.until("turnComplete")
        finished = now() - begun
    assert_clean(server)
    lengths: list[int] = []
    for message in spoken:
        turn: Any = content(message).get("modelTurn")
        if turn:
            lengths.append(len(base64.b64decode(turn["parts"][0]["inlineData"]["data"])) // 48)
    return lengths, generated, finished


async def test_sound_comes_faster_than_it_plays_and_the_turn_ends_when_it_was_played() -> None:
    script = Script(answer=lambda asked: Reply(text=LONG), speed=4)
    lengths, generated, finished = await chunk_lengths(script)
    assert sum(lengths) == 8 * 280
    assert all(40 <= length <= 100 for length in lengths[:-1])
    assert generated == pytest.approx(8 * 0.28 / 4, abs=0.01)
    assert finished == pytest.approx(8 * 0.28, abs=0.01)


async def test_transcripts_come_only_when_asked_for() -> None:
    async with gemini_live(Script()) as server, opened(server) as peer:
        await peer.speak("alpha")
        with_words = await peer.until("turnComplete")
    assert words_of(with_words, "inputTranscription") == " alpha"
    assert words_of(with_words, "outputTranscription") == "echo alpha"
    assert "finished" not in str(with_words)
    setup = {"inputAudioTranscription": None, "outputAudioTranscription": None}
    async with gemini_live(Script()) as server, opened(server, **setup) as peer:
        await peer.speak("alpha")
        without = await peer.until("turnComplete")
    assert order_of(without) == [
        "modelTurn",
        "generationComplete",
        "turnComplete",
        "interactionStatus",
    ]


async def test_transcripts_may_say_that_they_are_finished() -> None:
    options = Options(says_finished=True)
    async with gemini_live(Script(), options=options) as server, opened(server) as peer:
        await peer.speak("alpha bravo")
        turn = await peer.until("turnComplete")
    for kind in ("inputTranscription", "outputTranscription"):
        pieces: list[Any] = [content(message).get(kind) for message in turn]
        assert [piece.get("finished", False) for piece in pieces if piece][-2:] == [False, True]
    assert_clean(server)


async def test_a_server_may_send_what_nobody_needs() -> None:
    options = Options(chatters=True)
    async with gemini_live(Script(), options=options) as server, opened(server) as peer:
        await peer.speak("alpha")
        kinds = order_of(await peer.until("turnComplete"))
    extra = {"interimInputTranscription", "groundingMetadata", "serverContent", "waitingForInput"}
    assert extra <= set(kinds)
    assert_clean(server)


async def test_words_of_the_user_may_come_after_the_answer_began() -> None:
    script = Script(answer=lambda asked: Reply(text=LONG, words_late_s=0.2))
    async with gemini_live(script) as server, opened(server) as peer:
        await peer.speak("alpha")
        turn = order_of(await peer.until("turnComplete"))
    assert turn.index("inputTranscription") > turn.index("modelTurn")
    assert_clean(server)


@pytest.mark.parametrize("generation", ["3.8", "2.5"])
async def test_newer_models_put_sound_and_words_into_one_message(generation: Any) -> None:
    async with gemini_live(Script(), generation=generation) as server, opened(server) as peer:
        await peer.send({"realtimeInput": {"text": "alpha"}})
        turn = await peer.until("turnComplete")
    both = [m for m in turn if {"modelTurn", "outputTranscription"} <= set(content(m))]
    assert bool(both) is (generation == "3.8")
    assert_clean(server)


@pytest.mark.parametrize("rate", [8_000, 16_000, 24_000, 48_000])
async def test_any_declared_rate_is_heard(rate: int) -> None:
    async with gemini_live(Script()) as server, opened(server) as peer:
        await peer.speak("alpha bravo", rate)
        await peer.until("turnComplete")
    assert server.turns == ["alpha bravo"]
    assert_clean(server)


@pytest.mark.parametrize(("silence_ms", "turns"), [(300, ["alpha", "bravo"]), (900, [])])
async def test_the_setup_says_how_long_a_pause_ends_a_turn(
    silence_ms: int, turns: list[str]
) -> None:
    config = {"automaticActivityDetection": {"silenceDurationMs": silence_ms}}
    async with gemini_live(Script()) as server, opened(server, realtimeInputConfig=config) as peer:
        await peer.speak("alpha", pause_ms=400)
        await peer.speak("bravo", pause_ms=400)
        await asyncio.sleep(1)
    assert server.turns == turns


async def test_a_client_that_sends_nothing_keeps_its_turn_until_the_stream_ends() -> None:
    async with gemini_live(Script()) as server, opened(server) as peer:
        await peer.speak("alpha", pause_ms=0)
        await asyncio.sleep(60)
        assert server.turns == []
        await peer.send({"realtimeInput": {"audioStreamEnd": True}})
        await peer.until("turnComplete")
        await peer.speak("bravo")
        await peer.until("turnComplete")
    assert server.turns == ["alpha", "bravo"]
    assert_clean(server)


async def test_without_detection_the_client_cuts_turns() -> None:
    async with gemini_live(Script()) as server, opened(server, realtimeInputConfig=MANUAL) as peer:
        await peer.speak("zero")
        await peer.send({"realtimeInput": {"activityStart": {}}})
        await peer.speak("alpha", pause_ms=2_000)
        await peer.speak("bravo", pause_ms=0)
        assert server.turns == []
        await peer.send({"realtimeInput": {"activityEnd": {}}})
        await peer.until("turnComplete")
    assert server.turns == ["alpha bravo"]
    assert_clean(server)


async def test_activity_is_told_where_a_project_has_it() -> None:
    options = Options(voice_activity=True)
    async with gemini_live(Script(), options=options) as server, opened(server) as peer:
        await peer.send(audio(np.zeros(16_000, np.int16).tobytes()))
        await peer.speak("alpha")
        turn = await peer.until("turnComplete")
    told: list[Any] = [m["voiceActivity"] for m in turn if "voiceActivity" in m]
    assert [one["voiceActivityType"] for one in told] == ["ACTIVITY_START", "ACTIVITY_END"]
    assert told[0]["audioOffset"] == "1.060s"
    assert_clean(server)


async def begin_long(peer: Peer) -> None:
    """Typed; a few chunks of the answer have come."""
    await peer.send({"realtimeInput": {"text": "one"}})
    for _ in range(3):
        await peer.until("modelTurn")


def long_then_echo(asked: Asked) -> Reply:
    return Reply(text=LONG if asked.text == "one" else f"echo {asked.text}")


async def test_the_user_interrupts_while_speech_is_generated() -> None:
    async with gemini_live(Script(answer=long_then_echo)) as server, opened(server) as peer:
        await begin_long(peer)
        await peer.speak("two")
        cut = order_of(await peer.until("turnComplete"))
        assert "generationComplete" not in cut
        assert cut[-2:] == ["interrupted", "turnComplete"]
        assert sound_of(await peer.until("turnComplete")) == ["echo", "two"]
    assert server.conversation == [("user", "one"), ("user", "two"), ("assistant", "echo two")]
    assert_clean(server)


async def test_an_interrupted_answer_is_remembered_as_far_as_it_was_played() -> None:
    async with gemini_live(Script(answer=long_then_echo)) as server, opened(server) as peer:
        await peer.send({"realtimeInput": {"text": "one"}})
        await peer.until("modelTurn")
        await asyncio.sleep(3 * 0.28 + 0.05)
        await peer.speak("two")
        await peer.until("interrupted")
        await peer.until("turnComplete")
        assert server.conversation[1] == ("assistant", "alpha bravo charlie")
    assert_clean(server)


async def test_without_interruption_the_answer_is_finished_first() -> None:
    config = {"activityHandling": "NO_INTERRUPTION"}
    script = Script(answer=long_then_echo)
    async with gemini_live(script) as server, opened(server, realtimeInputConfig=config) as peer:
        await begin_long(peer)
        await peer.speak("two")
        assert "interrupted" not in order_of(await peer.until("turnComplete"))
        assert sound_of(await peer.until("turnComplete")) == ["echo", "two"]
    assert_clean(server)


@pytest.mark.parametrize("complete", [True, False])
async def test_client_content_interrupts_and_typed_text_waits(complete: bool) -> None:
    async with gemini_live(Script(answer=long_then_echo)) as server, opened(server) as peer:
        await begin_long(peer)
        await peer.send({"realtimeInput": {"text": "two"}})
        await peer.send(typed(said("user", "three"), complete=complete))
        cut = order_of(await peer.until("turnComplete"))
        assert cut[-2:] == ["interrupted", "turnComplete"]
        assert sound_of(await peer.until("turnComplete")) == ["echo", "two"]
        if complete:
            await peer.until("turnComplete")
    assert ("user", "three") in server.conversation
    assert_clean(server)


async def test_the_initial_history_is_taken_in_silence() -> None:
    asked: list[Asked] = []

    def answer(question: Asked) -> Reply:
        asked.append(question)
        return Reply(text="golf")

    script = Script(answer=answer)
    async with (
        gemini_live(script, generation="3.1") as server,
        opened(server, historyConfig=SEEDED) as peer,
    ):
        await peer.send(typed(said("user", "one"), complete=False))
        await peer.send(typed(said("model", "two")))
        await peer.speak("alpha")
        await peer.until("turnComplete")
    assert [one.text for one in asked] == ["alpha"]
    assert asked[0].history == (("user", "one"), ("assistant", "two"), ("user", "alpha"))
    assert_clean(server)


async def test_the_model_knows_what_it_was_set_up_with_and_what_changed() -> None:
    asked: list[Asked] = []

    def answer(question: Asked) -> Reply:
        asked.append(question)
        return Reply()

    picture = {"mimeType": "image/jpeg", "data": "_9j_"}
    setup = {"systemInstruction": said("user", "Be brief."), "tools": [FUNCTION]}
    async with gemini_live(Script(answer=answer)) as server, opened(server, **setup) as peer:
        await peer.send({"realtimeInput": {"video": picture}})
        await peer.send({"realtime_input": {"media_chunks": [picture]}})
        await peer.send({"realtimeInput": {"text": "one"}})
        assert "generationComplete" not in order_of(await peer.until("turnComplete"))
        update = {"systemInstruction": said("user", "New."), "tools": {"tools": []}}
        await peer.send({"contextUpdate": update})
        await peer.send({"realtimeInput": {"text": "two"}})
        await peer.until("turnComplete")
    assert [(one.instructions, list(one.tools), one.images) for one in asked] == [
        ("Be brief.", ["lookup"], 2),
        ("New.", [], 0),
    ]
    assert_clean(server)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(text="golf", status="failed"), "RESPONSE_REJECTED"),
        (Reply(text="golf", status="incomplete"), "GENERATED_AUDIO_SAFETY"),
        (Reply(calls=(Call(name="lookup", arguments="{"),)), "MALFORMED_FUNCTION_CALL"),
    ],
)
async def test_a_turn_may_end_badly(reply: Reply, reason: str) -> None:
    script = Script(answer=lambda asked: reply)
    async with gemini_live(script) as server, opened(server, tools=[FUNCTION]) as peer:
        await peer.send({"realtimeInput": {"text": "alpha"}})
        turn = await peer.until("turnComplete")
    assert content(turn[-1])["turnCompleteReason"] == reason
    assert not any("toolCall" in message for message in turn)
    assert_clean(server)
