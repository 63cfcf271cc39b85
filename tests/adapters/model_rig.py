"""What tests of text models ask with: an answer in no wire's words, and a model that gives it.

Nothing here knows a wire. A vendor's rig turns a `Said` into what its simulator sends.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol

import pytest

from tests.simulators.sse import Json, SseServer, Step
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
from voxglove.core.usage import Usage

HELLO = ModelRequest(messages=(Message(sender="user", text="hello"),), system_prompt="Be kind.")
LOOKUP = ToolSpec(
    "lookup", "Looks up.", {"type": "object", "properties": {"id": {"type": "integer"}}}
)
NOW = ToolSpec("now", "The time.", {})
PNG = ContentPart("image", source=ContentSource("base64", "image/png", data="QUJD"), name="a.png")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said(Step):
    """One answer of a model, and how it goes out.

    calls     with ids of letters and digits; arguments are an object, or the text of the wire
    thoughts  what it thought first, where the wire has such a thing
    counted   the tokens that are reported
    stop      why it ended, where not of itself
    breaks    an error of an overloaded server in place of the end
    """

    words: tuple[str, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    thoughts: str = ""
    counted: Usage | None = None
    stop: Literal["", "max_tokens", "refusal"] = ""
    breaks: bool = False


def said(*words: str, **how: Any) -> Said:
    return Said(words=words, **how)


def outgoing(answer: Said) -> dict[str, Any]:
    """What of `answer` every wire's step takes as it is."""
    return {one.name: getattr(answer, one.name) for one in fields(Step)}


@dataclass
class Asked:
    """A model on a server, and what it reported. `heard` is set by the first words.

    A model without a server has one that nobody asks.
    """

    server: SseServer[Any]
    model: Model
    token: CancelToken = field(default_factory=CancelToken)
    events: list[ModelEvent] = field(default_factory=list)
    heard: asyncio.Event = field(default_factory=asyncio.Event)

    async def ask(self, request: ModelRequest = HELLO) -> ModelResult:
        return await self.model.prompt(request, self.notify, self.token)

    async def fail(self, request: ModelRequest = HELLO) -> ModelError:
        """The error that asking ends in."""
        with pytest.raises(ModelError) as caught:
            await self.ask(request)
        return caught.value

    def notify(self, event: ModelEvent) -> None:
        self.events.append(event)
        if isinstance(event, TextDelta):
            self.heard.set()

    def beside(self) -> Asked:
        """The same model, asked by somebody else."""
        return Asked(self.server, self.model)

    @property
    def body(self) -> Json:
        """The last request's body."""
        return self.server.bodies[-1]

    @property
    def sent(self) -> str:
        """The same as text."""
        return json.dumps(self.body, ensure_ascii=False)

    def deltas(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, TextDelta)]

    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]

    def used(self) -> list[tuple[str, str, object]]:
        return [(e.id, e.name, e.input) for e in self.events if isinstance(e, ToolUse)]


class Closable(Model, Protocol):
    async def aclose(self) -> None: ...


@asynccontextmanager
async def opened(server: SseServer[Any], make: Callable[[], Closable]) -> AsyncIterator[Asked]:
    """`server` runs, and the model that `make` makes for it is closed before it ends."""
    async with server.running():
        model = make()
        try:
            yield Asked(server, model)
        finally:
            await model.aclose()
    assert server.streams == 0, "a stream is still being written"


async def stopped(asking: Asked, *, by_token: bool, when: Coroutine[Any, Any, object]) -> float:
    """Ask, and stop it after `when`: by its token, or as whoever waits for it. The loop time then.

    What comes out of it is an abort or a cancellation, nothing else.
    """

    async def ask_in_vain() -> None:
        with pytest.raises(AbortError if by_token else asyncio.CancelledError):
            await asking.ask()

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        task = group.create_task(ask_in_vain())
        await when
        at = asyncio.get_running_loop().time()
        if by_token:
            asking.token.abort("barge-in")
        else:
            task.cancel()
    return at


Options = Sequence[dict[str, object] | None]


class AnswerRig(Protocol):
    """A model that can be told what to answer.

    `asked` opens one that gives `script` in order, and closes it behind the block. Whatever else it
    takes is the model's configuration. `usage` is what its wire can report of tokens; with `thinks`
    thoughts come apart from the words, and are kept.
    """

    @property
    def usage(self) -> Usage: ...
    @property
    def thinks(self) -> bool: ...

    def asked(self, *script: Said, **config: Any) -> AbstractAsyncContextManager[Asked]: ...

    def tool_name(self, name: str) -> str:
        """What the model calls our tool `name`."""
        ...


class ModelRig(AnswerRig, Protocol):
    """A model behind a server.

    modes    values of `stream` that the model knows; True comes first
    garbage  what is no event of the wire, as raw bytes of a stream
    noise    events that do not exist yet, which are passed over
    options  provider_options that a stored message may carry
    has_sdk  its errors come from a vendor's package and are kept as the cause

    `asked` takes the wire's own steps as well, and of configuration `key`, `base_url`,
    `timeout_s`, `max_tokens` and `stream`.
    """

    @property
    def modes(self) -> tuple[bool, ...]: ...
    @property
    def garbage(self) -> Sequence[bytes]: ...
    @property
    def noise(self) -> bytes: ...
    @property
    def options(self) -> Options: ...
    @property
    def has_sdk(self) -> bool: ...

    def scripted(self, answer: Said) -> Step:
        """`answer` in the words of the wire."""
        ...

    def bound(self, body: Json) -> object:
        """How long an answer to this request may become."""
        ...

    def problem(self, request: ModelRequest) -> str:
        """What the vendor would refuse in the body of `request`; empty if it takes it."""
        ...


def agent_of(model: Model, *tools: Tool, prompt: str = "You book tables.") -> Agent:
    """An agent in the rooms of a table booking."""
    glove = Glove(model=model, system_prompt=prompt)
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


def arguments_of(call: ToolCall) -> str:
    """As a wire's text."""
    raw = call.input_args
    return raw if isinstance(raw, str) else json.dumps(raw)


def encoded(body: object) -> Any:
    """`body` as it arrives; what no encoding can carry raises here."""
    return json.loads(json.dumps(body, ensure_ascii=False).encode())


def halves(text: str) -> tuple[str, ...]:
    """`text` in the pieces in which it is streamed."""
    middle = len(text) // 2
    return tuple(piece for piece in (text[:middle], text[middle:]) if piece)
