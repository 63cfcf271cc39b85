"""The simulated Live API, held to the vendor's own client and types, and to its document.

A server that refuses what the real one takes, or takes what it refuses, makes every other test of
GPT-Live worthless.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pytest
from openai import AsyncOpenAI
from openai.resources.live.live import AsyncLiveConnection
from openai.types.live.client_event_param import ClientEventParam
from openai.types.live.server_event import ServerEvent
from pydantic import TypeAdapter
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.simulators import tone_words
from tests.simulators.gpt_live import GptLive, gpt_live
from tests.simulators.realtime_script import Asked, Call, Fault, Reply, Script, echo
from voxglove.media import g711

pytestmark = pytest.mark.real_loop

RATE = 16_000
TYPES = TypeAdapter(ServerEvent)
Json = dict[str, Any]


def pcm(text: str = "", ms: int = 0) -> bytes:
    """Words, then silence."""
    silence = np.zeros(RATE * ms // 1_000, np.int16)
    return np.concatenate([tone_words.speak(text, RATE), silence]).tobytes()


def encoded(sound: bytes) -> str:
    return base64.b64encode(sound).decode()


@dataclass
class Heard:
    """What came, every event checked against the vendor's types."""

    events: list[Json] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, raw: bytes | str) -> None:
        TYPES.validate_json(raw, extra="forbid", strict=True)
        self.events.append(json.loads(raw))
        self.changed.set()

    def of(self, kind: str) -> list[Json]:
        return [event for event in self.events if event["type"] == kind]

    def words(self, channel: str) -> str:
        events = self.of(f"session.{channel}_transcript.delta")
        return "".join(str(event["delta"]) for event in events).strip()

    def sound(self) -> bytes:
        return b"".join(
            base64.b64decode(str(event["delta"])) for event in self.of("session.output_audio.delta")
        )

    async def until(self, kind: str, count: int = 1) -> Json:
        async with asyncio.timeout(5):
            while len(self.of(kind)) < count:
                self.changed.clear()
                await self.changed.wait()
        return self.of(kind)[count - 1]


class Sdk:
    """The official client in a session."""

    def __init__(self, connection: AsyncLiveConnection, heard: Heard) -> None:
        self.connection = connection
        self.heard = heard

    async def send(self, event: ClientEventParam) -> None:
        await self.connection.send(event)

    async def say(self, text: str = "", ms: int = 0) -> None:
        sound = pcm(text, ms)
        for at in range(0, len(sound), 3_200):
            audio = encoded(sound[at : at + 3_200])
            await self.connection.session.input_audio.append(audio=audio)

    async def close(self) -> Json:
        await self.connection.session.close(event_id="bye")
        return await self.heard.until("session.closed")


TOOL: Json = {
    "type": "function",
    "name": "lookup_order",
    "description": "d",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}
BACKEND: Json = {
    "type": "responses",
    "responses": {"model": "gpt-5.6-luna", "instructions": "i", "tools": [TOOL]},
}


@asynccontextmanager
async def sdk(server: GptLive, delegation: Json | None = None) -> AsyncIterator[Sdk]:
    """A session that has started, at 16 kHz."""
    heard = Heard()
    async with (
        AsyncOpenAI(api_key="test-key", base_url=f"{server.http}/v1") as client,
        client.live.connect(max_retries=0) as connection,
        asyncio.TaskGroup() as group,
    ):

        async def read() -> None:
            try:
                while True:
                    heard.take(await connection.recv_bytes())
            except ConnectionClosed:
                return

        group.create_task(read())
        session: Json = {
            "model": "gpt-live-1",
            "instructions": "Be kind.",
            "audio": {
                "format": {"type": "audio/pcm", "rate": RATE},
                "output": {"voice": "marin"},
            },
        }
        if delegation is not None:
            session["delegation"] = delegation
        start: Json = {"type": "session.start", "event_id": "s1", "session": session}
        await connection.send(cast(ClientEventParam, start))
        await heard.until("session.started")
        yield Sdk(connection, heard)
        await connection.close()
    assert server.faults == []


async def test_official_sdk_completes_a_session_by_voice() -> None:
    async with gpt_live(Script()) as server, sdk(server) as session:
        await session.say("alpha bravo", 1_000)
        await session.say(ms=1_500)
        closed = await session.close()
        heard = session.heard
        assert server.turns == ["alpha bravo"]
        assert heard.words("input") == "alpha bravo"
        assert heard.words("output") == "echo alpha bravo"
        assert tone_words.read(heard.sound(), RATE) == ["echo", "alpha", "bravo"]
        assert len(heard.sound()) == 2 * RATE * 3  # 3.06 s went in: whole steps of 100 ms come out
        assert closed["reason"] == "close_requested"
        assert closed["usage"] == {"seconds": 3}
        assert closed["client_event_id"] == "bye"
        assert heard.events[-2]["type"] == "session.usage.updated"
        assert server.violations == []


async def test_official_sdk_completes_a_session_by_commentary() -> None:
    async with gpt_live(Script()) as server, sdk(server) as session:
        append = session.connection.session.commentary.append
        await append(content="Greet the caller.", delegation_id=None, event_id="c1")
        await asyncio.sleep(0.02)
        assert session.heard.of("session.commentary.appended") == []  # no audio, no time
        await session.say(ms=600)
        appended = await session.heard.until("session.commentary.appended")
        assert (appended["client_event_id"], appended["start_ms"]) == ("c1", 100)
        closed = await session.close()
        assert session.heard.words("output") == "hotel"
        assert tone_words.read(session.heard.sound(), RATE) == ["hotel"]
        assert closed["usage"] == {"seconds": 0}
        assert server.appended == [("commentary", "Greet the caller.", None)]
        assert server.violations == []


def with_tools(asked: Asked) -> Reply:
    """Two calls for what was said; then what they gave."""
    if asked.by == "speech":
        calls = (Call(name="lookup_order", arguments={"id": "7"}), Call(name="lookup_order"))
        return Reply(text="mike", calls=calls)
    return echo(asked)


async def test_official_sdk_completes_a_session_with_delegated_tools() -> None:
    async with gpt_live(Script(answer=with_tools)) as server, sdk(server, BACKEND) as session:
        await session.say("alpha", 1_000)
        heard, respond = session.heard, session.connection.response
        created = await heard.until("session.delegation.created")
        assert created["delegation"] == {
            "id": "dlg_1",
            "type": "delegation",
            "target": "responses",
            "response_id": "resp_1",
        }
        await heard.until("response.event", 5)
        inner = [event["event"] for event in heard.of("response.event")]
        calls = [one["item"] for one in inner if "item" in one and "call_id" in one["item"]]
        assert [call["call_id"] for call in calls] == ["call_1", "call_2"]
        assert inner[-1]["type"] == "response.completed"
        assert inner[-1]["response"]["output"] == []
        await respond.item.create(
            item={"type": "function_call_output", "call_id": "call_1", "output": "one"}
        )
        await respond.create(event_id="too early")
        error = await heard.until("error")
        assert error["error"]["client_event_id"] == "too early"
        await respond.item.create(
            item={"type": "function_call_output", "call_id": "call_2", "output": "two"}
        )
        await respond.create()
        await session.say(ms=1_500)
        await session.close()
        assert heard.words("output") == "mike golf one two"
        assert server.outputs == {"call_1": "one", "call_2": "two"}
        assert all(event["delegation_id"] == "dlg_1" for event in heard.of("response.event"))


async def test_official_sdk_completes_a_session_with_work_of_its_own() -> None:
    async with gpt_live(Script(answer=with_tools)) as server, sdk(server) as session:
        await session.say("alpha", 1_000)
        await session.heard.until("session.delegation.created", 2)
        append = session.connection.session.commentary.append
        await append(content="one", delegation_id="dlg_2")
        await append(content="two", delegation_id="dlg_7", event_id="unknown")
        await session.connection.response.create(event_id="no backend")
        await session.heard.until("error", 2)
        await session.say(ms=1_000)
        await session.close()
        assert session.heard.words("output") == "mike golf one"
        errors = [event["error"]["client_event_id"] for event in session.heard.of("error")]
        assert errors == ["unknown", "no backend"]


async def test_official_sdk_completes_a_session_that_is_muted_updated_and_told() -> None:
    async with gpt_live(Script()) as server, sdk(server, BACKEND) as session:
        live = session.connection.session
        await live.input_audio.mute(event_id="m")
        await session.say("alpha", 700)
        await live.input_audio.unmute()
        await session.say("bravo", 700)
        await live.instructions.append(content="Be brief.", delegation_id=None)
        await live.thinking.append(content="A VIP.", delegation_id=None)
        await live.update(session={"delegation": {"type": "responses", "responses": {"tools": []}}})
        await session.say(ms=900)
        updated = await session.heard.until("session.updated")
        await session.close()
        assert server.turns == ["bravo"]
        assert session.heard.of("session.input_audio.muted")[0]["client_event_id"] == "m"
        resource = updated["session"]
        assert resource["delegation"]["responses"]["tools"] == []
        assert resource["delegation"]["responses"]["instructions"] == "i"
        kinds = [(kind, content) for kind, content, _ in server.appended]
        assert kinds == [("instructions", "Be brief."), ("thinking", "A VIP.")]
        assert server.violations == []


async def test_a_fixture_plays_and_the_caller_is_not_heard_meanwhile() -> None:
    async with gpt_live(Script()) as server, sdk(server) as session:
        tone = tone_words.speak("kilo", 24_000).tobytes()
        await session.connection.session.output_audio.fixture.play(audio=encoded(tone))
        append = session.connection.session.thinking.append
        await append(content="refused", delegation_id=None)
        await session.say("alpha", 20)
        await session.heard.until("session.output_audio.fixture.played")
        await session.close()
        assert tone_words.read(session.heard.sound(), RATE) == ["kilo"]
        assert server.turns == []
        assert [problem.partition(":")[0] for problem in server.violations] == ["fixture_active"]


async def test_telephone_sound_in_both_directions() -> None:
    async with gpt_live(Script()) as server, raw(server) as socket:
        audio = {"format": {"type": "audio/pcmu", "rate": 8_000}}
        await socket.send(json.dumps(start(audio=audio)))
        heard = Heard()
        heard.take(await socket.recv())
        said = tone_words.speak("alpha", 8_000)
        for samples in (said, np.zeros(8_000 * 2, np.int16)):
            sound = encoded(g711.ulaw_encode(samples))
            await socket.send(json.dumps({"type": "session.input_audio.append", "audio": sound}))
        await socket.send('{"type": "session.close"}')
        async for frame in socket:
            heard.take(frame)
        assert server.turns == ["alpha"]
        assert tone_words.read(g711.ulaw_decode(heard.sound()), 8_000) == ["echo", "alpha"]


# what the document says ------------------------------------------------------------------------


async def test_the_clock_is_the_audio_and_usage_is_told_every_15_s_of_it() -> None:
    async with gpt_live(Script()) as server, sdk(server) as session:
        await session.say(ms=30_050)
        await session.heard.until("session.usage.updated", 2)
        usage = [event["usage"] for event in session.heard.of("session.usage.updated")]
        assert usage == [{"seconds": 15}, {"seconds": 30}]
        assert session.heard.sound() == bytes(2 * RATE * 30)


async def test_words_have_the_times_of_frames_of_200_ms() -> None:
    async with gpt_live(Script()) as server, sdk(server) as session:
        await session.say("alpha bravo charlie", 700)
        await session.close()
        fragments = session.heard.of("session.input_transcript.delta")
        assert len(fragments) > 1
        times = [(event["start_ms"], event["end_ms"]) for event in fragments]
        assert all(start % 200 == end % 200 == 0 for start, end in times)
        assert times == [(0, 400), (400, 600), (600, 1_000)]
        assert session.heard.words("input") == "alpha bravo charlie"


LONG = "one two three four five six seven eight"


async def test_the_model_falls_silent_when_the_caller_talks_over_it() -> None:
    script = Script(answer=lambda asked: Reply(text=LONG) if asked.text == "alpha" else Reply())
    async with gpt_live(script) as server, sdk(server) as session:
        await session.say("alpha", 1_000)
        await session.say("bravo charlie", 700)
        await session.close()
        said = session.heard.words("output").split()
        assert said == LONG.split()[: len(said)]
        assert 1 <= len(said) < 5
        assert server.record.stopped == 1
        assert server.turns == ["alpha", "bravo charlie"]


async def test_a_backchannel_neither_stops_the_model_nor_is_answered() -> None:
    script = Script(answer=lambda asked: Reply(text=LONG) if asked.by == "speech" else Reply())
    async with (
        gpt_live(script, backchannel=lambda words: words in ("", "mike")) as server,
        sdk(server) as session,
    ):
        await session.say("alpha", 1_000)
        await session.say("mike", 3_000)
        await session.close()
        assert session.heard.words("output") == LONG
        assert server.record.stopped == 0
        assert server.turns == ["alpha", "mike"]
        assert server.record.backchannels == ["mike"]


async def test_a_session_expires_and_says_so() -> None:
    async with gpt_live(Script(), max_session_s=1.0) as server, sdk(server) as session:
        await session.say(ms=1_000)
        closed = await session.heard.until("session.closed")
        assert closed["reason"] == "expired"
        assert closed["usage"] == {"seconds": 1}


@asynccontextmanager
async def raw(server: GptLive) -> AsyncIterator[ClientConnection]:
    headers = {"Authorization": "Bearer test-key"}
    address = f"{server.origin}/v1/live/sessions"
    async with connect(address, additional_headers=headers, compression=None) as socket:
        yield socket


START: Json = {"type": "session.start", "event_id": "s", "session": {"model": "gpt-live-1"}}


def start(**session: object) -> Json:
    return START | {"session": {"model": "gpt-live-1", **session}}


def message(text: str, role: str = "user", parts: int = 1) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}] * parts}


@pytest.mark.parametrize(
    ("event", "code", "param"),
    [
        (start(voice="marin"), "unknown_parameter", "session.voice"),
        (
            start(audio={"output": {"voice": "marin", "speed": 2}}),
            "unknown_parameter",
            "session.audio.output.speed",
        ),
        (start(audio={"output": {"voice": "nova"}}), "forbidden", "session.audio.output.voice"),
        (
            start(audio={"format": {"type": "audio/pcm", "rate": 8_000}}),
            "invalid_value",
            "session.audio.format.rate",
        ),
        (START | {"session": {"model": "gpt-realtime-2"}}, "model_not_found", "session.model"),
        (START | {"session": {}}, "missing_required_parameter", "session.model"),
        (start(input=[message("x")] * 129), "invalid_value", "session.input"),
        (start(input=[message("x", parts=2)]), "invalid_value", "session.input[0].content"),
        (start(input=[message("x", "system")]), "invalid_value", "session.input[0].role"),
        (start(input=[message("x" * 40_000)]), "invalid_value", "session.input"),
        (start(instructions="x" * 70_000), "invalid_value", "session.instructions"),
        (
            start(delegation={"type": "responses", "responses": {}}),
            "missing_required_parameter",
            "session.delegation.responses.model",
        ),
        ({"type": "session.input_audio.append", "audio": "AAAA"}, "session_not_started", None),
        ({"type": "response.cancel"}, "unknown_event", "type"),
    ],
)
async def test_what_is_no_good_start_is_refused_and_ends_it(
    event: Json, code: str, param: str | None
) -> None:
    async with gpt_live(Script()) as server, raw(server) as socket:
        await socket.send(json.dumps(event))
        answer = json.loads(await socket.recv())
        TYPES.validate_python(answer, extra="forbid")
        assert (answer["error"]["code"], answer["error"].get("param")) == (code, param)
        with pytest.raises(ConnectionClosed):
            await socket.recv()
        assert len(server.violations) == 1


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (START, "session_already_started"),
        ({"type": "session.thinking.append", "content": "x"}, "missing_required_parameter"),
        (
            {"type": "session.thinking.append", "content": "x" * 2_001, "delegation_id": None},
            "invalid_value",
        ),
        (
            {"type": "session.commentary.append", "content": "x", "delegation_id": "dlg_1"},
            "invalid_value",
        ),
        ({"type": "session.input_audio.append", "audio": "AA"}, "invalid_value"),
        ({"type": "session.input_audio.append", "audio": "AA=="}, "invalid_value"),
        ({"type": "session.update", "session": {"instructions": "x"}}, "unknown_parameter"),
        (
            {"type": "session.update", "session": {"delegation": {"type": "client"}}},
            "invalid_value",
        ),
        (
            {
                "type": "response.item.create",
                "item": {"type": "function_call_output", "call_id": "call_9", "output": ""},
            },
            "invalid_call_id",
        ),
    ],
)
async def test_what_is_refused_later_is_answered_and_ends_nothing(event: Json, code: str) -> None:
    async with gpt_live(Script()) as server, raw(server) as socket:
        await socket.send(json.dumps(start(delegation=BACKEND)))
        assert json.loads(await socket.recv())["type"] == "session.started"
        await socket.send(json.dumps({"event_id": "e", **event}))
        error = json.loads(await socket.recv())["error"]
        assert error["code"] == code
        assert error["client_event_id"] in ("e", "s")
        await socket.send('{"type": "session.close"}')
        assert json.loads(await socket.recv())["type"] == "session.usage.updated"


@pytest.mark.parametrize(
    ("fault", "events"),
    [
        (Fault(point="opened", action="error", error_code="insufficient_quota"), ["error"]),
        (Fault(point="opened", action="error", error_code="content"), ["session.closed"]),
        (Fault(point="opened", action="close", code=1011), []),
        (Fault(point="opened", action="drop"), []),
    ],
)
async def test_faults_strike(fault: Fault, events: list[str]) -> None:
    async with gpt_live(Script(faults=[fault])) as server, raw(server) as socket:
        await socket.send(json.dumps(START))
        seen = []
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                seen.append(json.loads(await socket.recv())["type"])
        kept = [kind for kind in seen if kind not in ("session.started", "session.usage.updated")]
        assert kept == events
        code = {"close": 1011, "drop": None}.get(
            fault.action, 1000 if "content" in fault.error_code else 1008
        )
        assert (None if closed.value.rcvd is None else closed.value.rcvd.code) == code
        assert server.faults == []


@pytest.mark.parametrize(
    ("path", "key", "status"),
    [
        ("/v1/live/sessions", "no", 401),
        ("/v1/live/sessions?model=gpt-live-1", "test-key", 404),
        ("/v1/realtime", "test-key", 404),
    ],
)
async def test_a_wrong_key_and_a_wrong_address_are_refused(
    path: str, key: str, status: int
) -> None:
    async with gpt_live(Script()) as server:
        headers = {"Authorization": f"Bearer {key}"}
        with pytest.raises(InvalidStatus) as refused:
            await connect(server.origin + path, additional_headers=headers)
        assert refused.value.response.status_code == status
