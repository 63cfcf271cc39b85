"""RemoteModel against the real door, against servers that break the wire, and from end to end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.model_rig import HELLO, Asked, said
from tests.adapters.model_suite import RemoteSuite
from tests.adapters.remote_rig import REMOTE
from tests.simulators.remote_chat import RemoteChatSimulator, Scripted
from tests.simulators.sse import Json
from tests.web.client import config, eventually
from tests.web.serving import served
from tests.web.sessions_site import KEY, store_site
from tests.web.test_chat import Hanging
from voxglove.adapters.credentials import Secret
from voxglove.adapters.models.remote import RemoteModel, RemoteModelConfig
from voxglove.adapters.models.remote_wire import EventReader
from voxglove.adapters.models.scripted import Call, Fail, ScriptedModel, Step, say
from voxglove.adapters.stores.remote import RemoteConfig, RemoteStores
from voxglove.core import Glove
from voxglove.core.errors import AbortError, ModelError, UsageError
from voxglove.core.events import ModelResponseComplete, TextDelta, ToolUse
from voxglove.core.messages import ToolCall
from voxglove.core.model import Model, ModelLimits, ModelRequest, ToolSpec
from voxglove.core.stores.sqlite import SqliteStore
from voxglove.core.usage import Usage
from voxglove.web.frontdesk.bookings import Bookings
from voxglove.web.frontdesk.desk import FrontDesk

pytestmark = pytest.mark.real_loop


@asynccontextmanager
async def behind(model: Model, **how: object) -> AsyncIterator[Asked]:
    """A remote model whose server answers with `model`."""
    async with store_site(model=lambda: model) as here, remote(f"{here.url}/chat", **how) as asked:
        yield asked


@asynccontextmanager
async def remote(url: str, **how: object) -> AsyncIterator[Asked]:
    model = RemoteModel(RemoteModelConfig(url=url, **how))  # type: ignore[arg-type]
    try:
        yield Asked(RemoteChatSimulator(), model)
    finally:
        await model.aclose()


class TestRemote(RemoteSuite):
    rig = REMOTE


# -- the answer


async def test_an_answer_comes_as_the_servers_model_gave_it() -> None:
    calls = (Call("look", {"q": ["é", 1.5, None]}, "c1"), Call("book", "{oops", "c2"))
    step = Step(("Hel lo ☺", *calls), usage=Usage(20, 9, 1, 5), stop_reason="tool_use")
    model = ScriptedModel([step])
    tool = ToolSpec("look", "Looks.", {"type": "object", "properties": {}})
    async with behind(model) as asked:
        limits = ModelLimits(max_tokens=7, timeout_s=9)
        result = await asked.ask(
            ModelRequest(
                messages=HELLO.messages, tools=(tool,), system_prompt="Be kind.", limits=limits
            )
        )
    (message,) = result.messages
    assert message.text == "Hel lo ☺"
    wanted = (
        ToolCall("look", {"q": ["é", 1.5, None]}, "c1"),
        ToolCall("book", "{oops", "c2"),
    )
    assert message.tool_calls == wanted
    assert (result.usage, result.stop_reason) == (Usage(20, 9, 1, 5), "tool_use")
    deltas = [one.text for one in asked.events if isinstance(one, TextDelta)]
    assert "".join(deltas) == "Hel lo ☺"
    uses = [(one.id, one.input) for one in asked.events if isinstance(one, ToolUse)]
    assert uses == [("c1", {"q": ["é", 1.5, None]}), ("c2", "{oops")]
    last = asked.events[-1]
    assert isinstance(last, ModelResponseComplete) and last.usage == Usage(20, 9, 1, 5)
    (request,) = model.requests
    assert (request.system_prompt, request.tools, request.limits) == ("Be kind.", (tool,), limits)
    assert request.messages == HELLO.messages


# -- what goes wrong


async def test_an_abort_closes_the_stream_and_the_server_stops_its_model() -> None:
    model = Hanging()
    async with behind(model) as asked, asyncio.TaskGroup() as group:
        asking = group.create_task(_aborted(asked))
        await eventually(lambda: model.started == 1)
        asked.token.abort("barge-in")
        assert await asking == "barge-in"
        await eventually(lambda: bool(model.fired))


async def _aborted(asked: Asked) -> str:
    with pytest.raises(AbortError) as aborted:
        await asked.ask()
    return aborted.value.reason


async def test_a_cancelled_request_closes_the_stream() -> None:
    model = Hanging()
    async with behind(model) as asked, asyncio.TaskGroup() as group:
        asking = group.create_task(asked.ask())
        await eventually(lambda: model.started == 1)
        asking.cancel()
        await asyncio.wait([asking])
        assert asking.cancelled()
        await eventually(lambda: bool(model.fired))


async def test_the_servers_error_is_ours() -> None:
    error = ModelError("busy", code="ERR_MODEL_RATE_LIMIT", retryable=True, retry_after_s=2.5)
    async with behind(ScriptedModel([say("well ", Fail(error))])) as asked:
        with pytest.raises(ModelError, match="busy") as failed:
            await asked.ask()
    found = failed.value
    assert (found.code, found.retryable, found.retry_after_s) == (error.code, True, 2.5)
    assert [one.text for one in asked.events if isinstance(one, TextDelta)] == ["well "]


async def test_the_key_goes_with_the_request_and_into_no_error() -> None:
    configured = config(host="0.0.0.0", api_keys=(Secret(KEY),))
    model = ScriptedModel(["hi"])
    async with store_site(model=lambda: model, configured=configured) as here:
        async with remote(f"{here.url}/chat", key=Secret(KEY)) as asked:
            assert (await asked.ask()).messages[0].text == "hi"
        async with remote(f"{here.url}/chat", key=Secret("another-key-of-24-chars.")) as asked:
            with pytest.raises(ModelError) as failed:
                await asked.ask()
    assert failed.value.code == "ERR_MODEL_AUTH"
    assert "another" not in f"{failed.value!r}{asked.model!r}"


STREAMS = [
    (b"", "ERR_MODEL_CONNECTION", True),
    (b'data: {"type":"text_delta","text":"half an ans"}\n\n', "ERR_MODEL_CONNECTION", True),
    (b'data: {"type":"done","message":{"sender":"agent"}}\n', "ERR_MODEL_CONNECTION", True),
    (b"data: {oops\n\n", "ERR_MODEL_PROTOCOL", False),
    (b'data: {"type":"done"}\n\n', "ERR_MODEL_PROTOCOL", False),
    (b'data: {"type":"done","message":{"text":5}}\n\n', "ERR_MODEL_PROTOCOL", False),
    (
        b'data: {"type":"done","message":{"sender":"agent","text":"hi"},"tokens_in":"x"}\n\n',
        "ERR_MODEL_PROTOCOL",
        False,
    ),
    (b'data: {"type":"error"}\n\n', "ERR_MODEL", False),
    (
        b'data: {"type":"error","code":"ERR_X","message":"m","retryable":true}\n\n',
        "ERR_X",
        True,
    ),
]


async def test_a_broken_stream_is_an_error_of_its_kind() -> None:
    scripts = [Scripted(garbage=raw, ending="early") for raw, _, _ in STREAMS]
    async with REMOTE.asked(*scripts) as asked:
        for raw, code, retryable in STREAMS:
            error = await asked.fail()
            assert (raw, error.code, error.retryable) == (raw, code, retryable)


async def test_a_status_becomes_an_error_with_the_servers_words() -> None:
    cases = [
        (302, "ERR_MODEL_REFUSED", False, None),
        (401, "ERR_MODEL_AUTH", False, None),
        (422, "ERR_MODEL_REFUSED", False, None),
        (429, "ERR_MODEL_RATE_LIMIT", True, 3.0),
        (503, "ERR_MODEL_SERVER", True, 3.0),
    ]
    problem: Json = {"code": "x", "message": "because"}
    headers = {"Retry-After": "3", "Location": "http://127.0.0.1:9/"}
    scripts = [Scripted(status=one, headers=headers, error=problem) for one, *_ in cases]
    async with REMOTE.asked(*scripts) as asked:
        for status, code, retryable, wait_s in cases:
            error = await asked.fail()
            told = (status, error.code, error.retryable, error.retry_after_s)
            assert told == (status, code, retryable, wait_s) and "because" in str(error)


async def test_a_page_in_place_of_a_stream_is_no_answer() -> None:
    async with REMOTE.asked(said(body=b"<html>")) as asked:
        error = await asked.fail()
    assert "no event stream" in str(error) and error.code == "ERR_MODEL_PROTOCOL"


@pytest.mark.parametrize("url", ["", "/api/chat", "ftp://a/chat", "http://u:p@a/chat", "http://["])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="url"):
        RemoteModel(url)


# -- the wire

WIRE = (
    "\ufeff: hello\n\n"
    'data: {"type":"text_delta","text":"é☺👩‍👩‍👧"}\n\n'
    "event: x\nid: 1\r\n"
    'data: {"type":\r\ndata:"two lines"}\r\n\r\n'
    'data:{"a":1}\r\r'
    "data: [1]\n\n"
    "data\n\n"
    'data: {"type":"done"}\n\n'
    'data: {"cut'
).encode()
EVENTS = [
    {"type": "text_delta", "text": "é☺👩‍👩‍👧"},
    {"type": "two lines"},
    {"a": 1},
    {"type": "done"},
]


@given(cuts=st.lists(st.integers(0, len(WIRE)), max_size=12))
def test_events_are_the_same_however_the_stream_is_cut(cuts: list[int]) -> None:
    reader = EventReader()
    places = [0, *sorted(cuts), len(WIRE)]
    pieces = [WIRE[a:b] for a, b in zip(places, places[1:], strict=False)]
    assert [event for piece in pieces for event in reader.feed(piece)] == EVENTS


def test_byte_by_byte_too() -> None:
    reader = EventReader()
    assert [event for at in range(len(WIRE)) for event in reader.feed(WIRE[at : at + 1])] == EVENTS


def test_an_event_without_an_end_is_not_kept_for_ever() -> None:
    reader = EventReader()
    with pytest.raises(ModelError, match="without an end"):
        for _ in range(17 * 1_024):
            list(reader.feed(b"x" * 1_024))


# -- from end to end


async def test_an_agent_far_from_model_and_store_holds_a_conversation_with_tools(
    tmp_path: Path,
) -> None:
    """`voxglove serve` as a process of its own has the model and the store, this one the tools."""
    (tmp_path / "spoken.json").write_text("[]")
    kept = tmp_path / "store.db"
    extra = (
        f"store: sqlite:{kept}\n"
        f"stt: {{name: scripted, arg: '{tmp_path / 'spoken.json'}'}}\n"
        "tts: scripted\n"
    )
    book = Bookings(":memory:")
    async with served(tmp_path, extra=extra) as server:
        stores = RemoteStores(RemoteConfig(url=server.url))
        model = RemoteModel(f"{server.url}/chat")
        try:
            glove = Glove(model=model, store=stores.store("far away"))
            for tool in FrontDesk(book, clock=datetime.now).tools():
                glove.fold(tool)
            agent = glove.build()
            for words in ("A table for two tomorrow at seven.", "The name is Miller.", "Yes."):
                await agent.process_request(words)
        finally:
            await model.aclose()
            await stores.aclose()
    assert [(one.name, one.party) for one in book.all_active()] == [("Miller", 2)]
    book.close()
    async with SqliteStore(kept, "far away") as store:
        messages = await store.get_messages()
        assert await store.get_turn_count() > 0
    assert [one.text for one in messages if one.is_user_turn][0].startswith("A table for two")
    used = [call.tool_name for one in messages for call in one.tool_calls]
    results = [result.call_id for one in messages for result in one.tool_results]
    assert "book_table" in used
    assert results == [call.id for one in messages for call in one.tool_calls]
