"""How the simulated OpenAI realtime model begins and ends: handshakes, expiry, faults, speed."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from typing import Any

import openai
import pytest
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.simulators import tone_words
from tests.simulators.openai_realtime import openai_realtime
from tests.simulators.openai_realtime_client import (
    BEARER,
    FAST,
    MODEL,
    RATE,
    Client,
    answering,
    bare_session,
    user,
)
from tests.simulators.openai_realtime_types import unknown_fields
from tests.simulators.realtime_script import (
    Action,
    Call,
    Fault,
    Point,
    Reply,
    Script,
)

pytestmark = pytest.mark.real_loop


@pytest.mark.parametrize(
    "query, headers, status",
    [
        ("?model=gpt-realtime-2", {"Authorization": "Bearer other"}, 401),
        ("?model=gpt-realtime-2", {}, 401),
        ("", {"Authorization": BEARER}, 400),
        ("?model=m&intent=transcription", {"Authorization": BEARER}, 400),
        (
            "?model=gpt-realtime-2",
            {"Authorization": BEARER, "OpenAI-Beta": "realtime=v1"},
            400,
        ),
    ],
)
async def test_a_handshake_is_refused(query: str, headers: dict[str, str], status: int) -> None:
    async with openai_realtime(Script()) as server:
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"{server.origin}/v1/realtime{query}", additional_headers=headers)
        assert refused.value.response.status_code == status


async def test_a_browser_hands_its_key_in_as_a_subprotocol() -> None:
    async with openai_realtime(Script()) as server:
        offered: Any = ["realtime", "openai-insecure-api-key.test-key"]
        url = f"{server.origin}/v1/realtime?model={MODEL}"
        async with connect(url, subprotocols=offered) as socket:
            assert socket.subprotocol == "realtime"
            assert json.loads(await socket.recv())["type"] == "session.created"


async def test_a_model_of_another_family_is_refused() -> None:
    async with openai_realtime(Script()) as server:
        headers = {"Authorization": BEARER}
        url = f"{server.origin}/v1/realtime?model=gpt-live"
        async with connect(url, additional_headers=headers) as socket:
            event = json.loads(await socket.recv())
            assert (event["error"]["code"], unknown_fields(event)) == ("invalid_model", [])
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 4_000


@pytest.mark.parametrize("by_fault", [False, True])
async def test_a_session_expires(by_fault: bool) -> None:
    fault = Fault(point="opened", action="go_away", seconds=0.05)
    script = Script(faults=[fault] if by_fault else [])
    async with bare_session(script, max_session_s=None if by_fault else 0.2) as client:
        await client.setup()
        assert (await client.until("error"))["error"]["code"] == "session_expired"
        with pytest.raises(ConnectionClosed) as closed:
            await client.next()
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1_001
        assert closed.value.rcvd.reason.startswith("Your session hit the maximum duration")


async def test_after_a_fatal_error_nothing_more_comes() -> None:
    fault = Fault(point="setup", action="error", error_code="insufficient_quota")
    async with bare_session(Script(faults=[fault])) as client:
        await client.sdk.session.update(session={"type": "realtime"})
        assert (await client.until("error"))["error"]["code"] == "insufficient_quota"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await client.next()


POINTS: tuple[Point, ...] = (
    *("setup", "opened", "caller_silent", "caller_speaking", "caller_stopped", "turn_taken"),
    *("user_words", "response_started", "before_audio", "mid_audio", "audio_done", "item_done"),
    *("response_done", "tool_called", "tool_running", "tool_answered", "text_taken"),
    "context_taken",
)


@pytest.mark.parametrize("point", POINTS)
async def test_a_fault_strikes_at_every_point(point: Point) -> None:
    script = Script(
        answer=answering(Reply(text="one", calls=(Call(name="f", id="call_f"),)), Reply()),
        faults=[Fault(point=point, action="drop")],
        speed=FAST,
    )
    with pytest.raises(ConnectionClosed):
        async with bare_session(script) as client:
            await client.setup(audio={"input": {"transcription": {"model": "whisper-1"}}})
            await client.push("one", silence_ms=600)
            await client.until("response.done")
            await client.item(type="function_call_output", call_id="call_f", output="x")
            await client.item(**user("hi"))
            await client.item(**{**user("he is a guest"), "role": "system"})
            await asyncio.sleep(0.15)
            await client.until("response.done")
    assert script.faults[0].done


@pytest.mark.parametrize("action", ["stall", "half_open"])
async def test_a_silent_server_keeps_its_socket_open(action: Action) -> None:
    fault = Fault(point="mid_audio", action=action, nth=2)
    script = Script(answer=answering(Reply(text="one two")), faults=[fault], speed=FAST)
    async with bare_session(script) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await client.ask()
        assert len(client.of("response.output_audio.delta")) == 2
        assert fault.done


async def test_a_delay_holds_everything_back_for_a_while() -> None:
    fault = Fault(point="before_audio", action="delay", seconds=0.2)
    script = Script(answer=answering(Reply(text="one")), faults=[fault], speed=FAST)
    async with bare_session(script) as client:
        await client.sdk.response.create()
        await client.until("response.content_part.added")
        before = time.monotonic()
        await client.until("response.output_audio.delta")
        assert time.monotonic() - before > 0.15
        assert (await client.until("response.done"))["response"]["status"] == "completed"


async def test_an_error_that_is_not_fatal_lets_the_session_go_on() -> None:
    fault = Fault(point="response_started", action="error", error_code="server_error")
    script = Script(answer=answering(Reply(text="one")), faults=[fault], speed=FAST)
    async with bare_session(script) as client:
        assert (await client.ask())["status"] == "completed"
        (error,) = client.of("error")
        assert (error["error"]["code"], error["error"]["type"]) == (*("server_error",) * 2,)
        assert client.server.violations == []


async def test_speech_goes_out_as_fast_as_the_script_says() -> None:
    text = " ".join(tone_words.WORDS[:20])
    async with bare_session(Script(answer=answering(Reply(text=text)), speed=FAST)) as client:
        before = time.monotonic()
        await client.ask()
        took = time.monotonic() - before
        assert 5.6 / FAST <= took < 5.6
        sizes = [
            len(base64.b64decode(e["delta"])) for e in client.of("response.output_audio.delta")
        ]
        assert set(sizes[:-1]) == {RATE * 2 * 60 // 1_000}


async def test_a_client_secret_opens_a_session_until_it_expires() -> None:
    async with openai_realtime(Script(speed=FAST), rest=True, secret_s=0.3) as server:
        async with openai.AsyncOpenAI(api_key="test-key", base_url=server.rest + "/v1") as sdk:
            made = await sdk.realtime.client_secrets.create(
                expires_after={"anchor": "created_at", "seconds": 60},
                session={"type": "realtime", "model": MODEL, "instructions": "Be brief."},
            )
        assert made.value.startswith("ek_")
        headers = {"Authorization": f"Bearer {made.value}"}
        url = f"{server.origin}/v1/realtime?model={MODEL}"
        async with connect(url, additional_headers=headers) as socket:
            client = Client(AsyncRealtimeConnection(socket), server)
            created = await client.next()
            assert created["session"]["instructions"] == "Be brief."
            await asyncio.sleep(0.3)
            assert (await client.ask())["status"] == "completed", "it outlives its key"
        with pytest.raises(InvalidStatus) as refused:
            await connect(url, additional_headers=headers)
        assert refused.value.response.status_code == 401


@pytest.mark.parametrize(
    "key, expires_after, error",
    [
        ("other", {}, openai.AuthenticationError),
        ("test-key", {"seconds": 9}, openai.BadRequestError),
        ("test-key", {"anchor": "now"}, openai.BadRequestError),
    ],
)
async def test_a_client_secret_is_refused(
    key: str, expires_after: Any, error: type[openai.APIStatusError]
) -> None:
    async with (
        openai_realtime(Script(), rest=True) as server,
        openai.AsyncOpenAI(api_key=key, base_url=server.rest + "/v1", max_retries=0) as sdk,
    ):
        with pytest.raises(error):
            await sdk.realtime.client_secrets.create(expires_after=expires_after)
