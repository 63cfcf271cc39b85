"""What the tests of vendors' text models share: asking, histories at random, an agent with tools.

Nothing here knows a wire.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import strategies as st

from tests.simulators.sse_server import SseServer
from voxglove.core import AbortError, Agent, Glove, Tool
from voxglove.core.cancel import CancelToken
from voxglove.core.errors import ModelError
from voxglove.core.events import TextDelta, ToolUse
from voxglove.core.messages import (
    ContentPart,
    ContentSource,
    Message,
    ToolCall,
    ToolResult,
    ToolResultData,
)
from voxglove.core.model import Model, ModelEvent, ModelRequest, ModelResult, ToolSpec

HELLO = ModelRequest(messages=(Message(sender="user", text="hello"),), system_prompt="Be kind.")
LOOKUP = ToolSpec(
    "lookup", "Looks up.", {"type": "object", "properties": {"id": {"type": "integer"}}}
)
NOW = ToolSpec("now", "The time.", {})
PNG = ContentPart("image", source=ContentSource("base64", "image/png", data="QUJD"), name="a.png")


@dataclass
class Asked:
    """A model on a simulator, and what it reported."""

    server: SseServer
    model: Model
    token: CancelToken = field(default_factory=CancelToken)
    events: list[ModelEvent] = field(default_factory=list)

    async def ask(self, request: ModelRequest = HELLO) -> ModelResult:
        return await self.model.prompt(request, self.events.append, self.token)

    async def fail(self, request: ModelRequest = HELLO) -> ModelError:
        """The error that asking ends in."""
        with pytest.raises(ModelError) as caught:
            await self.ask(request)
        return caught.value

    def deltas(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, TextDelta)]

    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]

    def used(self) -> list[tuple[str, str, object]]:
        return [(e.id, e.name, e.input) for e in self.events if isinstance(e, ToolUse)]


async def assert_stopping_closes_the_stream(call: Asked, *, by_token: bool) -> None:
    """The server sees the stream close within 100 ms of the abort."""
    loop = asyncio.get_running_loop()

    async def ask_in_vain() -> None:
        with pytest.raises(AbortError if by_token else asyncio.CancelledError):
            await call.ask()

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        task = group.create_task(ask_in_vain())
        while not call.deltas():  # noqa: ASYNC110 - the model reports by callback
            await asyncio.sleep(0.01)
        started = loop.time()
        if by_token:
            call.token.abort("barge-in")
        else:
            task.cancel()
        await call.server.closed.wait()
        assert loop.time() - started < 0.1


async def assert_two_at_once_are_apart(call: Asked) -> None:
    """Stopping one answer leaves another of the same model alone; the first step hangs."""
    other = Asked(call.server, call.model)

    async def ask_in_vain() -> None:
        with pytest.raises(AbortError):
            await call.ask()

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        hanging = group.create_task(ask_in_vain())
        while not call.deltas():  # noqa: ASYNC110 - the model reports by callback
            await asyncio.sleep(0.01)
        result = await other.ask()
        assert not hanging.done() and result.messages[0].text == "Two."
        call.token.abort("barge-in")
        await call.server.closed.wait()


def agent_of(model: Model, *tools: Tool) -> Agent:
    """An agent in the rooms of a table booking."""
    glove = Glove(model=model, system_prompt="You book tables.")
    for tool in tools:
        glove.fold(tool)
    return glove.build()


def results(*pairs: tuple[str, str, ToolResultData]) -> Message:
    """A results message; pairs are (tool, call id, data)."""
    return Message(
        sender="user",
        text="tool results",
        is_tool_results=True,
        tool_results=tuple(ToolResult(name, id, data) for name, id, data in pairs),
    )


def asks(*calls: ToolCall, text: str = "") -> Message:
    return Message(sender="agent", text=text, tool_calls=calls)


TEXTS = st.sampled_from(["", "  ", "Hello.", "☺ one\n\ntwo", "\u2028", "[interrupted]"])
WORDS = st.sampled_from(["look", "files/read", "ключ", "x" * 200, "9lives", "a.b:c", ""])
IDS = st.sampled_from(["c1", "toolu_2", "functions.look:0", "ид 3", "y" * 90, "call|4"])
ARGS = st.sampled_from([{}, {"q": 1}, "{oops", "[]", None, {"deep": {"none": None, "l": [1]}}])
DATA = st.builds(
    ToolResultData,
    st.sampled_from(["success", "error", "aborted"]),
    st.sampled_from([None, "", " ", "text", {"free": 3}, [1, 2]]),
    st.sampled_from([None, "hang-up"]),
)
MEDIA = st.sampled_from(
    [
        PNG,
        ContentPart("image", source=ContentSource("url", "image/png", url="https://x.test/a.png")),
        ContentPart("image", source=ContentSource("base64", "image/tiff", data="QUJD")),
        ContentPart("image", source=ContentSource("base64", "image/png", data="no base64!")),
        ContentPart("image"),
        ContentPart("video", source=ContentSource("base64", "video/mp4", data="QUJD"), name="v"),
        ContentPart("video", source=ContentSource("url", "video/mp4", url="ftp://x.test/v")),
        ContentPart("document", source=ContentSource("base64", "application/pdf", data="QUJD")),
        ContentPart("document", source=ContentSource("base64", "text/csv", data="YSxi")),
        ContentPart("document", source=ContentSource("url", "text/plain", url="https://x.test/t")),
        ContentPart("text", text="typed"),
        ContentPart("text", text=" "),
    ]
)


def histories(
    options: st.SearchStrategy[dict[str, object] | None],
) -> st.SearchStrategy[list[Message]]:
    """Stored histories as calls leave them: cut answers, calls without results, late results.

    `options` are the provider_options an answer may carry.
    """
    call = st.builds(ToolCall, WORDS, ARGS, IDS)
    user = st.builds(
        lambda text, content: Message(sender="user", text=text, content=tuple(content)),
        TEXTS,
        st.lists(MEDIA, max_size=3),
    )
    agent = st.builds(
        lambda text, calls, cut, kept: Message(
            sender="agent",
            text=text,
            tool_calls=tuple({one.id: one for one in calls}.values()),
            interrupted=cut is not None,
            playback="settled" if cut else None,
            heard=cut,
            provider_options=kept,
        ),
        TEXTS,
        st.lists(call, max_size=3),
        st.sampled_from([None, None, "", "Hel"]),
        options,
    )
    back = st.builds(
        lambda pairs: results(*pairs), st.lists(st.tuples(WORDS, IDS, DATA), max_size=4)
    )
    note = st.builds(
        lambda text: Message(sender="user", text=text, framework_context="runtime"), TEXTS
    )
    return st.lists(st.one_of(user, agent, back, note), max_size=9).map(_unique_calls)


def _unique_calls(messages: list[Message]) -> list[Message]:
    """As the loop stores them: a call id is used once."""
    seen: set[str] = set()
    kept: list[Message] = []
    for message in messages:
        fresh = tuple(one for one in message.tool_calls if one.id not in seen)
        seen |= {one.id for one in fresh}
        kept.append(
            message
            if len(fresh) == len(message.tool_calls)
            else Message(sender="agent", text=message.text, tool_calls=fresh)
        )
    return kept
