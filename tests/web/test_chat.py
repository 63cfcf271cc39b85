"""`POST /chat`: what a body may be, what comes back, and that whoever goes away ends it."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import pytest

from tests.web.client import config, eventually
from tests.web.sessions_site import StoreSite, store_site
from voxglove.adapters.models.scripted import Call, Fail, ScriptedModel, Step, Text, say
from voxglove.core.cancel import CancelToken
from voxglove.core.errors import ModelError
from voxglove.core.events import TextDelta
from voxglove.core.messages import Message
from voxglove.core.model import Model, ModelRequest, ModelResult, Notify
from voxglove.core.usage import Usage
from voxglove.web.routes import chat
from voxglove.web.routes.chat import MAX_BODY
from voxglove.web.routes.chat_stream import MAX_WAITING_BYTES

pytestmark = pytest.mark.real_loop

HELLO: dict[str, object] = {"messages": [{"sender": "user", "text": "hello"}]}


@asynccontextmanager
async def chatting(
    model: Model | None, *, max_chats: int = 16
) -> AsyncIterator[tuple[StoreSite, aiohttp.ClientSession]]:
    make: Callable[[], Model] | None = None if model is None else lambda: model
    async with (
        store_site(model=make, configured=config(max_chats=max_chats)) as here,
        aiohttp.ClientSession() as http,
    ):
        yield here, http


async def events(answer: aiohttp.ClientResponse) -> list[dict[str, object]]:
    """All events of a stream, in order; comments left out."""
    assert answer.status == 200, await answer.text()
    assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    blocks = (await answer.text()).split("\n\n")
    return [json.loads(one.removeprefix("data: ")) for one in blocks if one.startswith("data: ")]


async def answered(model: Model, body: object = HELLO) -> list[dict[str, object]]:
    async with (
        chatting(model) as (here, http),
        http.post(f"{here.url}/chat", json=body) as answer,
    ):
        return await events(answer)


@dataclass
class Hanging:
    """Says a word and then nothing, until its token fires."""

    name: str = "hanging"
    word: str = "well"
    started: int = 0
    fired: list[str] = field(default_factory=list)

    def set_system_prompt(self, prompt: str) -> None:
        return None

    async def prompt(
        self, request: ModelRequest, notify: Notify, token: CancelToken
    ) -> ModelResult:
        token.on_abort(lambda: self.fired.append(str(token.reason)))
        self.started += 1
        if self.word:
            notify(TextDelta(text=self.word))
        await asyncio.Event().wait()
        raise AssertionError


# -- the answer


async def test_an_answer_streams_and_ends_with_the_whole_message() -> None:
    usage = Usage(20, 9, 1, 5)
    call = Call("look", {"q": "é\n"}, "c1")
    step = Step(("Hel lo ☺", call), usage=usage, stop_reason="tool_use")
    found = await answered(ScriptedModel([step]))
    *first, use, done = found
    assert [one["type"] for one in first] == ["text_delta"] * len(first)
    assert "".join(str(one["text"]) for one in first) == "Hel lo ☺"
    assert use == {"type": "tool_use", "id": "c1", "name": "look", "input": {"q": "é\n"}}
    message = done.pop("message")
    assert done == {
        "type": "done",
        "tokens_in": 20,
        "tokens_out": 9,
        "cache_creation_input_tokens": 1,
        "cache_read_input_tokens": 5,
        "stop_reason": "tool_use",
    }
    assert isinstance(message, dict)
    assert (message["sender"], message["text"]) == ("agent", "Hel lo ☺")
    assert message["tool_calls"][0]["tool_name"] == "look"


async def test_a_model_that_does_not_stream_gives_the_same_events() -> None:
    parts = ("Hello.", Call("look", {}, "c1"))
    whole = await answered(ScriptedModel([Step(parts, streams=False)]))
    assert [one["type"] for one in whole] == ["text_delta", "tool_use", "done"]


async def test_headers_keep_proxies_from_holding_the_stream() -> None:
    async with (
        chatting(ScriptedModel(["hi"])) as (here, http),
        http.post(f"{here.url}/chat", json=HELLO) as answer,
    ):
        assert answer.headers["Cache-Control"] == "no-store, no-transform"
        assert answer.headers["X-Accel-Buffering"] == "no"
        assert "Content-Length" not in answer.headers
        await events(answer)


async def test_the_model_gets_prompt_tools_limits_and_nothing_that_is_for_people_only() -> None:
    model = ScriptedModel(["ok"])
    result = {"status": "success", "data": {"free": 3}, "render_data": "s3cret", "summary": "few"}
    body = {
        "systemPrompt": "Be kind.",
        "messages": [
            {"sender": "user", "text": "free?"},
            {"sender": "agent", "tool_calls": [{"tool_name": "t", "input_args": {}, "id": "c"}]},
            {
                "sender": "user",
                "tool_results": [{"tool_name": "t", "call_id": "c", "result": result}],
            },
            {
                "sender": "agent",
                "text": "Three are free.",
                "playback": "settled",
                "heard": "Three",
                "unheard": " are free.",
                "interrupted": True,
            },
            {"sender": "user", "text": "when?"},
        ],
        "tools": [{"name": "t", "description": "d", "parameters": {"type": "object"}}],
        "max_tokens": 50,
        "timeout_s": 20,
    }
    await answered(model, body)
    (request,) = model.requests
    assert request.system_prompt == "Be kind."
    assert [(tool.name, tool.description) for tool in request.tools] == [("t", "d")]
    assert (request.limits.max_tokens, request.limits.timeout_s) == (50, 20)
    (told,) = request.messages[2].tool_results
    assert (told.result.data, told.result.render_data) == ({"free": 3}, None)
    assert "are free" not in request.messages[3].text, "what was not heard"
    assert "Three" in request.messages[3].text


async def test_a_failure_in_the_stream_is_its_last_event() -> None:
    error = ModelError("overloaded", code="ERR_MODEL_SERVER", retryable=True, retry_after_s=1.5)
    found = await answered(ScriptedModel([say("one ", Fail(error))]))
    assert found[-1] == {
        "type": "error",
        "code": "ERR_MODEL_SERVER",
        "message": "overloaded",
        "retryable": True,
        "retry_after_s": 1.5,
    }
    assert [one["type"] for one in found] == ["text_delta", "error"]


async def test_a_defect_of_the_model_is_told_without_its_words() -> None:
    class Defect(Hanging):
        async def prompt(
            self, request: ModelRequest, notify: Notify, token: CancelToken
        ) -> ModelResult:
            raise RuntimeError("postgresql://user:pw@host")

    (found,) = await answered(Defect())
    assert (found["type"], found["retryable"]) == ("error", False)
    assert "host" not in str(found)


async def test_an_answer_without_messages_is_an_error() -> None:
    class Empty(Hanging):
        async def prompt(
            self, request: ModelRequest, notify: Notify, token: CancelToken
        ) -> ModelResult:
            return ModelResult(messages=())

    (found,) = await answered(Empty())
    assert (found["type"], found["code"]) == ("error", "ERR_MODEL_EMPTY")


async def test_several_messages_become_one() -> None:
    class Two(Hanging):
        async def prompt(
            self, request: ModelRequest, notify: Notify, token: CancelToken
        ) -> ModelResult:
            texts = ("one", "two")
            return ModelResult(messages=tuple(Message(sender="agent", text=t) for t in texts))

    first, done = await answered(Two())
    assert first == {"type": "text_delta", "text": "one\n\ntwo"}
    assert isinstance(done["message"], dict) and done["message"]["text"] == "one\n\ntwo"


# -- whoever goes away


@pytest.mark.parametrize("word", ["well", ""], ids=["in the middle", "before the first word"])
async def test_a_reader_that_goes_away_ends_the_models_work_at_once(word: str) -> None:
    model = Hanging(word=word)
    async with chatting(model) as (here, http):
        answer = await http.post(f"{here.url}/chat", json=HELLO)
        await eventually(lambda: model.started == 1)
        assert here.chats.active == 1 and not model.fired
        gone_at = asyncio.get_running_loop().time()
        answer.close()
        await eventually(lambda: bool(model.fired))
        assert asyncio.get_running_loop().time() - gone_at < 1
        await eventually(lambda: here.chats.active == 0)
    assert model.fired == ["the reader is gone"]


async def test_a_server_that_goes_down_ends_its_answers_in_words() -> None:
    model = Hanging()
    async with (
        chatting(model) as (here, http),
        http.post(f"{here.url}/chat", json=HELLO) as answer,
    ):
        await eventually(lambda: model.started == 1)
        here.chats.end_all()
        *_, last = await events(answer)
    assert model.fired == ["the server is going down"]
    assert (last["code"], last["message"]) == ("ERR_MODEL_ABORTED", "the server is going down")


async def test_a_model_that_heeds_its_token_tells_why_the_answer_ended() -> None:
    model = ScriptedModel([say(Text("slow", after_ms=60_000))])
    async with (
        chatting(model) as (here, http),
        http.post(f"{here.url}/chat", json=HELLO) as answer,
    ):
        await eventually(lambda: here.chats.active == 1)
        here.chats.end_all()
        (found,) = await events(answer)
    assert (found["code"], found["retryable"]) == ("ERR_MODEL_ABORTED", True)


async def test_silence_is_broken_by_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "KEEP_ALIVE_S", 0.05)
    async with (
        chatting(Hanging(word="")) as (here, http),
        http.post(f"{here.url}/chat", json=HELLO) as answer,
    ):
        async with asyncio.timeout(5):
            assert await answer.content.readuntil(b"\n\n") == b": keep-alive\n\n"
            assert await answer.content.readuntil(b"\n\n") == b": keep-alive\n\n"
        answer.close()


async def test_a_reader_that_takes_nothing_does_not_fill_the_memory() -> None:
    class Flood(Hanging):
        async def prompt(
            self, request: ModelRequest, notify: Notify, token: CancelToken
        ) -> ModelResult:
            for _ in range(2 * MAX_WAITING_BYTES // 1_000):
                notify(TextDelta(text="x" * 1_000))
            raise AssertionError("the flood was taken whole")

    found = await answered(Flood())
    assert found[-1]["code"] == "ERR_MODEL_SLOW_READER"
    assert sum(len(str(one.get("text"))) for one in found) <= MAX_WAITING_BYTES


# -- how many, how large


async def test_more_answers_than_places_are_refused_not_queued() -> None:
    model = Hanging()
    async with chatting(model, max_chats=2) as (here, http):
        held = [await http.post(f"{here.url}/chat", json=HELLO) for _ in range(2)]
        async with http.post(f"{here.url}/chat", json=HELLO) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (503, "2")
            assert (await answer.json())["code"] == "busy"
        assert here.server.metrics.value("chats_active") == 2
        held[0].close()
        await eventually(lambda: here.chats.active == 1)
        held[1].close()
        assert here.server.metrics.value("chats_total") == 2


async def test_a_server_without_a_model_or_places_says_so() -> None:
    for model, places in ((None, 16), (Hanging(), 0)):
        async with (
            chatting(model, max_chats=places) as (here, http),
            http.post(f"{here.url}/chat", json=HELLO) as answer,
        ):
            assert (answer.status, (await answer.json())["code"]) == (404, "no_chat")


async def test_a_server_that_drains_takes_no_more() -> None:
    async with chatting(Hanging()) as (here, http):
        await here.server.registry.drain(0)
        async with http.post(f"{here.url}/chat", json=HELLO) as answer:
            assert (answer.status, (await answer.json())["code"]) == (503, "draining")


def picture(size: int) -> bytes:
    source = {"type": "base64", "media_type": "image/png", "data": "A" * size}
    parts = [{"type": "text", "text": "what is it?"}, {"type": "image", "source": source}]
    body = {"messages": [{"sender": "user", "text": "what is it?", "content": parts}]}
    return json.dumps(body).encode()


async def test_pictures_pass_up_to_the_documented_size() -> None:
    model = ScriptedModel(["A cat."])
    size = MAX_BODY - len(picture(0))
    async with chatting(model) as (here, http):
        async with http.post(f"{here.url}/chat", data=io.BytesIO(picture(size))) as answer:
            assert (await events(answer))[-1]["type"] == "done"
        async with http.post(f"{here.url}/chat", data=io.BytesIO(picture(size + 1))) as answer:
            assert (answer.status, (await answer.json())["code"]) == (413, "too_big")
    source = model.requests[0].messages[0].content[1].source
    assert source is not None and len(source.data or "") == size


# -- bodies

USER = {"sender": "user", "text": "hi"}
ASKED = {"sender": "agent", "tool_calls": [{"tool_name": "t", "input_args": {}, "id": "c"}]}
RESULT = {"tool_name": "t", "call_id": "c", "result": {"status": "success", "data": 1}}
TOLD = {"sender": "user", "tool_results": [RESULT]}
TOOL = {"name": "t", "description": "d", "parameters": {}}

WRONG: list[tuple[dict[str, object], str]] = [
    ({}, "messages"),
    ({"messages": []}, "messages"),
    ({"messages": "hello"}, "messages"),
    ({"messages": [USER] * 4_001}, "messages"),
    ({"messages": [USER, "hi"]}, "messages[1]"),
    ({"messages": [{"sender": "assistant", "text": "hi"}]}, "messages[0].sender"),
    ({"messages": [{"role": "user", "content": "hi"}]}, "messages[0].sender"),
    ({"messages": [{"sender": "user"}]}, "messages[0].text"),
    ({"messages": [{"sender": "user", "text": 5}]}, "messages[0].text"),
    ({"messages": [USER | {"content": [{"type": "image"}]}]}, "messages[0].content[0].source"),
    ({"messages": [USER | {"content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
    ({"messages": [ASKED]}, "messages[0].tool_calls"),
    ({"messages": [ASKED, USER]}, "messages[1].tool_results"),
    ({"messages": [TOLD]}, "messages[0].tool_results"),
    ({"messages": [ASKED, TOLD, TOLD]}, "messages[2].tool_results"),
    ({"messages": [ASKED, TOLD | {"tool_results": [RESULT] * 2}]}, "messages[1].tool_results"),
    ({"messages": [ASKED, TOLD | {"sender": "agent"}]}, "messages[1].sender"),
    ({"messages": [ASKED | {"sender": "user"}, TOLD]}, "messages[0].sender"),
    (
        {"messages": [ASKED | {"tool_calls": [{"tool_name": "t", "input_args": {}}]}, TOLD]},
        "messages[0].tool_calls",
    ),
    ({"messages": [USER], "tools": {}}, "tools"),
    ({"messages": [USER], "tools": [TOOL, TOOL]}, "tools[1].name"),
    ({"messages": [USER], "tools": [TOOL | {"name": ""}]}, "tools[0].name"),
    ({"messages": [USER], "tools": [TOOL | {"name": "x" * 129}]}, "tools[0].name"),
    ({"messages": [USER], "tools": [TOOL | {"parameters": None}]}, "tools[0].parameters"),
    ({"messages": [USER], "tools": [{"name": "t", "parameters": {}}]}, "tools[0].description"),
    ({"messages": [USER], "systemPrompt": 5}, "systemPrompt"),
    ({"messages": [USER], "max_tokens": -1}, "max_tokens"),
    ({"messages": [USER], "max_tokens": 10**9}, "max_tokens"),
    ({"messages": [USER], "timeout_s": "5"}, "timeout_s"),
]


async def test_what_is_wrong_with_a_body_is_named_before_the_model_is_asked() -> None:
    model = ScriptedModel([])
    async with chatting(model) as (here, http):
        for body, field_at_fault in WRONG:
            async with http.post(f"{here.url}/chat", json=body) as answer:
                found = await answer.json()
                assert (answer.status, found["field"]) == (422, field_at_fault), (body, found)
        for raw in (b"[]", b"{", b"\xff", b'{"messages": NaN}', b"[" * 5_000):
            async with http.post(f"{here.url}/chat", data=raw) as answer:
                assert (answer.status, (await answer.json())["code"]) == (400, "bad_body")
        assert here.chats.active == 0
    assert model.requests == []
