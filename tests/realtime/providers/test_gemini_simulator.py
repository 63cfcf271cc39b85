"""The simulated Gemini Live API, driven by Google's own SDK over TLS.

What the SDK completes against it, and whose messages it parses to the last field, is the wire.
Refusals stand in test_gemini_simulator_rules.py, what the SDK does not reach in
test_gemini_simulator_turns.py. All of it runs on the virtual clock.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google import genai
from google.genai import errors, types
from google.genai.live import AsyncSession

from tests.realtime.providers.gemini_peer import assert_clean
from tests.simulators.gemini_live import KEY, TOKEN, GeminiLive, gemini_live
from tests.simulators.gemini_live_setup import GENERATIONS, GenerationName
from tests.simulators.realtime_script import Asked, Call, Fault, Reply, Script
from tests.simulators.tone_words import read, speak
from tests.support.peers import require_peer
from voxglove.web.tls import self_signed

MODEL = "gemini-3.8-live"
TRANSCRIPTS: dict[str, Any] = {"input_audio_transcription": {}, "output_audio_transcription": {}}
Connect = Callable[..., Any]


def lookup(behavior: str) -> dict[str, Any]:
    parameters = {"type": "OBJECT", "properties": {"id": {"type": "STRING"}}, "required": ["id"]}
    declared = {"name": "lookup", "parameters": parameters, "behavior": behavior}
    return {"tools": [{"function_declarations": [declared]}]}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    require_peer("openssl")
    return self_signed(tmp_path_factory.mktemp("tls"), ["127.0.0.1"])


@pytest.fixture
def secure(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


@pytest.fixture
def connect(certificate: tuple[Path, Path]) -> Connect:
    """Connects the SDK to a simulator: connect(server, key=…, version=…, model=…, **config)."""
    trusting = ssl.create_default_context(cafile=str(certificate[0]))

    def connected(
        server: GeminiLive,
        *,
        key: str = KEY,
        version: str = "v1beta",
        slash: str = "",
        model: str = MODEL,
        **config: Any,
    ) -> Any:
        options = types.HttpOptions(
            base_url=server.net.http + slash,
            api_version=version,
            async_client_args={"ssl": trusting},
        )
        client = genai.Client(api_key=key, http_options=options)
        return client.aio.live.connect(model=model, config=types.LiveConnectConfig(**config))

    return connected


async def say(session: AsyncSession, text: str, pause_ms: int = 700) -> None:
    """Words and a pause, in pieces of 100 ms."""
    pcm = np.concatenate([speak(text, 16_000), np.zeros(16 * pause_ms, np.int16)]).tobytes()
    for at in range(0, len(pcm), 3_200):
        piece = types.Blob(data=pcm[at : at + 3_200], mime_type="audio/pcm;rate=16000")
        await session.send_realtime_input(audio=piece)


async def type_text(session: AsyncSession, text: str) -> None:
    turn = types.Content(role="user", parts=[types.Part(text=text)])
    await session.send_client_content(turns=turn, turn_complete=True)


async def turn_of(session: AsyncSession) -> list[types.LiveServerMessage]:
    return [message async for message in session.receive()]


def heard_in(turn: list[types.LiveServerMessage]) -> list[str]:
    return read(b"".join(message.data or b"" for message in turn), 24_000)


def told_in(turn: list[types.LiveServerMessage], kind: str) -> str:
    pieces = (getattr(message.server_content, kind, None) for message in turn)
    return "".join(piece.text or "" for piece in pieces if piece is not None)


def has(turn: list[types.LiveServerMessage], kind: str) -> bool:
    return any(getattr(message.server_content, kind, None) for message in turn)


@pytest.mark.parametrize("generation", ["3.8", "3.1", "2.5"])
async def test_official_sdk_completes_a_session_by_voice(
    generation: GenerationName, secure: ssl.SSLContext, connect: Connect
) -> None:
    model = GENERATIONS[generation].models[0]
    async with (
        gemini_live(Script(), generation=generation, ssl=secure) as server,
        connect(server, model=model, **TRANSCRIPTS) as session,
    ):
        await say(session, "alpha bravo")
        turn = await turn_of(session)
        await say(session, "charlie")
        second = await turn_of(session)
    assert heard_in(turn) == ["echo", "alpha", "bravo"]
    assert told_in(turn, "input_transcription") == " alpha bravo"
    assert told_in(turn, "output_transcription") == "echo alpha bravo"
    assert heard_in(second) == ["echo", "charlie"]
    usage = turn[-1].usage_metadata
    assert usage is not None and usage.total_token_count == 250
    assert server.turns == ["alpha bravo", "charlie"]
    assert server.conversation == [
        ("user", "alpha bravo"),
        ("assistant", "echo alpha bravo"),
        ("user", "charlie"),
        ("assistant", "echo charlie"),
    ]
    assert_clean(server)


async def test_official_sdk_completes_a_session_by_text(
    secure: ssl.SSLContext, connect: Connect
) -> None:
    async with (
        gemini_live(Script(), ssl=secure) as server,
        connect(server, system_instruction="Be brief.", **TRANSCRIPTS) as session,
    ):
        assert session.session_id == "sid-1"
        await type_text(session, "alpha")
        first = await turn_of(session)
        await session.send_realtime_input(text="bravo")
        second = await turn_of(session)
    assert heard_in(first) == ["echo", "alpha"] and heard_in(second) == ["echo", "bravo"]
    assert has(first, "generation_complete") and has(first, "turn_complete")
    assert_clean(server)


async def test_official_sdk_completes_a_session_of_written_answers(
    secure: ssl.SSLContext, connect: Connect
) -> None:
    model = GENERATIONS["2.5"].text_models[0]
    async with (
        gemini_live(Script(), generation="2.5", ssl=secure) as server,
        connect(server, model=model, response_modalities=["TEXT"]) as session,
    ):
        await type_text(session, "alpha")
        turn = await turn_of(session)
    assert "".join(message.text or "" for message in turn) == "echo alpha"
    assert_clean(server)


async def test_official_sdk_completes_a_session_with_everything_configured(
    secure: ssl.SSLContext, connect: Connect
) -> None:
    config: dict[str, Any] = {
        "response_modalities": ["AUDIO"],
        "temperature": 0.7,
        "top_p": 0.95,
        "top_k": 40,
        "max_output_tokens": 512,
        "seed": 1,
        "media_resolution": "MEDIA_RESOLUTION_LOW",
        "speech_config": {
            "voice_config": {"prebuilt_voice_config": {"voice_name": "Puck"}},
            "language_code": "en-US",
        },
        "thinking_config": {"thinking_budget": 0},
        "realtime_input_config": {
            "automatic_activity_detection": {
                "disabled": False,
                "start_of_speech_sensitivity": "START_SENSITIVITY_HIGH",
                "end_of_speech_sensitivity": "END_SENSITIVITY_LOW",
                "prefix_padding_ms": 20,
                "silence_duration_ms": 300,
            },
            "activity_handling": "START_OF_ACTIVITY_INTERRUPTS",
            "turn_coverage": "TURN_INCLUDES_ONLY_ACTIVITY",
        },
        "context_window_compression": {
            "trigger_tokens": 25_600,
            "sliding_window": {"target_tokens": 12_800},
        },
        "session_resumption": {},
        "proactivity": {"proactive_audio": True},
        "history_config": {"initial_history_in_client_content": True},
        "system_instruction": "Be brief.",
        **lookup("NON_BLOCKING"),
        **TRANSCRIPTS,
    }
    async with (
        gemini_live(Script(), ssl=secure) as server,
        connect(server, **config) as session,
    ):
        past = [types.Content(role="model", parts=[types.Part(text="golf")])]
        await session.send_client_content(turns=past, turn_complete=True)
        picture = types.Blob(data=b"\xff\xd8\xff", mime_type="image/jpeg")
        await session.send_realtime_input(video=picture)
        await say(session, "alpha", pause_ms=400)
        assert heard_in(await turn_of(session)) == ["echo", "alpha"]
        await session.send_context_update(system_instruction="New.", tools=[])
        await type_text(session, "bravo")
        assert heard_in(await turn_of(session)) == ["echo", "bravo"]
    assert server.conversation[:2] == [("assistant", "golf"), ("user", "alpha")]
    assert [sorted(update) for update in server.record.updates] == [["systemInstruction", "tools"]]
    assert_clean(server)


async def test_official_sdk_completes_a_session_with_a_tool_that_blocks(
    secure: ssl.SSLContext, connect: Connect
) -> None:
    def answer(asked: Asked) -> Reply:
        if asked.by == "results":
            return Reply(text=f"golf {' '.join(asked.results.values())}")
        return Reply(text="hotel", calls=(Call(name="lookup", arguments={"id": "7"}),))

    async with (
        gemini_live(Script(answer=answer), ssl=secure) as server,
        connect(server, **lookup("BLOCKING"), **TRANSCRIPTS) as session,
    ):
        await type_text(session, "alpha")
        turn: list[types.LiveServerMessage] = []
        async for message in session.receive():
            turn.append(message)
            if message.tool_call is not None:
                call = message.tool_call.function_calls[0]
                assert call.args == {"id": "7"}
                response = types.FunctionResponse(
                    id=call.id, name=call.name, response={"output": "two"}
                )
                await session.send_tool_response(function_responses=[response])
    assert heard_in(turn) == ["hotel", "golf", "two"]
    assert [id for id in server.tool_responses] == [call.id]
    assert_clean(server)


async def test_official_sdk_completes_a_session_that_is_interrupted(
    secure: ssl.SSLContext, connect: Connect
) -> None:
    long = "alpha bravo charlie delta echo foxtrot"
    script = Script(answer=lambda asked: Reply(text=long if asked.text == "one" else "golf"))
    async with (
        gemini_live(script, ssl=secure) as server,
        connect(server, **TRANSCRIPTS) as session,
    ):
        await say(session, "one")
        first: list[types.LiveServerMessage] = []
        async for message in session.receive():
            first.append(message)
            if has(first, "generation_complete") and not has(first, "interrupted"):
                await asyncio.sleep(0.3)
                await say(session, "two")
        second = await turn_of(session)
    assert has(first, "interrupted") and first[-1].server_content.turn_complete  # type: ignore[union-attr]
    assert heard_in(second) == ["golf"]
    role, kept = server.conversation[1]
    assert role == "assistant" and kept and long.startswith(kept) and kept != long
    assert_clean(server)


async def test_official_sdk_completes_a_session_that_is_resumed_after_go_away(
    secure: ssl.SSLContext, connect: Connect
) -> None:
    fault = Fault(point="handle_given", action="go_away", seconds=2)
    async with gemini_live(Script(faults=[fault]), ssl=secure) as server:
        async with connect(server, session_resumption={}) as session:
            await type_text(session, "alpha")
            await turn_of(session)
            update = (await anext(session.receive())).session_resumption_update
            assert update is not None and update.resumable and update.new_handle
            leaving = (await anext(session.receive())).go_away
            assert leaving is not None and leaving.time_left == "2s"
            before = asyncio.get_running_loop().time()
            with pytest.raises(errors.APIError, match="1011"):
                await anext(session.receive())
            assert asyncio.get_running_loop().time() - before == pytest.approx(2, abs=0.01)
        again = types.SessionResumptionConfig(handle=update.new_handle)
        async with connect(server, session_resumption=again) as session:
            assert session.session_id == "sid-1"
            await type_text(session, "bravo")
            await turn_of(session)
    assert [text for _, text in server.conversation] == [
        "alpha",
        "echo alpha",
        "bravo",
        "echo bravo",
    ]
    assert_clean(server)


@pytest.mark.parametrize(
    ("version", "slash", "key"),
    [("v1beta", "/", KEY), ("v1alpha", "", KEY), ("v1alpha", "/", TOKEN), ("v1", "", KEY)],
)
@pytest.mark.filterwarnings("ignore:The SDK's ephemeral token support")
async def test_official_sdk_is_let_in(
    version: str, slash: str, key: str, secure: ssl.SSLContext, connect: Connect
) -> None:
    async with (
        gemini_live(Script(), ssl=secure) as server,
        connect(server, version=version, slash=slash, key=key) as session,
    ):
        await type_text(session, "alpha")
        assert heard_in(await turn_of(session)) == ["echo", "alpha"]
    assert_clean(server)


async def test_official_sdk_hears_why_a_setup_is_refused(
    secure: ssl.SSLContext, connect: Connect
) -> None:
    async with gemini_live(Script(), ssl=secure) as server:
        with pytest.raises(errors.APIError, match="1008.*gemini-9 is not found"):
            async with connect(server, model="gemini-9"):
                pass
        with pytest.raises(errors.APIError, match="1007.*TEXT"):
            async with connect(server, response_modalities=["TEXT"]):
                pass


def test_the_sdk_refuses_a_server_message_with_an_unknown_field() -> None:
    """Else `assert_clean` would say nothing."""
    for message in ({"goAway": {"left": "5s"}}, {"serverContent": {"done": True}}):
        with pytest.raises(ValueError, match="Extra inputs"):
            types.LiveServerMessage.model_validate(message)
