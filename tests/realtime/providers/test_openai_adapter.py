"""The OpenAI Realtime adapter on a socket, against the strict simulated provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.simulators import tone_words
from tests.simulators.openai_realtime import OpenAIRealtimeServer, openai_realtime
from tests.simulators.realtime_script import Asked, Call, Fault, Reply, Script, echo
from voxglove.adapters.credentials import Secret
from voxglove.adapters.errors import (
    ConnectionFailed,
    CredentialsRejected,
    ProviderRefused,
)
from voxglove.core.messages import ContentPart, ContentSource, Message, ToolCall, ToolResult
from voxglove.core.messages import ToolResultData as Result
from voxglove.core.model import ToolSpec
from voxglove.realtime.commands import (
    AppendContext,
    CommitTurn,
    CutOutput,
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
    Audio,
    Closed,
    Interrupted,
    ItemDone,
    Opened,
    RealtimeEvent,
    ResponseDone,
    ResponseStarted,
    Summary,
    ToolCalls,
    Used,
    UserSpeech,
    UserTurn,
    Words,
)
from voxglove.realtime.port import Connection, RealtimeAdapter, Setup
from voxglove.realtime.providers.openai import OpenAIRealtimeAdapter, OpenAIRealtimeConfig

pytestmark = pytest.mark.real_loop

RATE = 24_000
FAST = 50.0
TOOL = ToolSpec("look up", "Looks.", {"type": "object", "properties": {"q": {"type": "string"}}})


@dataclass
class Caller:
    """A session's half: one connection and everything that came of it."""

    connection: Connection
    server: OpenAIRealtimeServer
    events: list[RealtimeEvent]
    news: asyncio.Event
    read: int = field(default=0)

    async def until(self, holds: Callable[[RealtimeEvent], bool]) -> RealtimeEvent:
        """The next event that was not looked at and of which this holds."""
        async with asyncio.timeout(5):
            while True:
                while self.read < len(self.events):
                    self.read += 1
                    if holds(self.events[self.read - 1]):
                        return self.events[self.read - 1]
                self.news.clear()
                await self.news.wait()

    async def done(self) -> ResponseDone:
        """The end of the response that ends next."""
        found = await self.until(lambda event: isinstance(event, ResponseDone))
        assert isinstance(found, ResponseDone)
        return found

    def speak(self, text: str, silence_ms: int = 700) -> None:
        """Say something in frames of 20 ms, and be silent after it."""
        quiet = np.zeros(RATE * silence_ms // 1_000, np.int16)
        pcm = np.concatenate([tone_words.speak(text, RATE), quiet]).tobytes()
        for at in range(0, len(pcm), 960):
            self.connection.tell(SendAudio(pcm[at : at + 960]))

    def heard(self, item_id: str = "") -> str:
        """The words in what the model said, of one item or of all."""
        return " ".join(
            tone_words.read(
                b"".join(
                    event.pcm
                    for event in self.events
                    if isinstance(event, Audio) and item_id in ("", event.item_id)
                ),
                RATE,
            )
        )

    def written(self, role: str) -> list[str]:
        """Whole turns of one side, as written."""
        return [
            event.text
            for event in self.events
            if isinstance(event, Words) and event.final and event.role == role
        ]


def adapter(server: OpenAIRealtimeServer, **options: object) -> RealtimeAdapter:
    values = {"key": Secret("test-key"), "base_url": f"{server.origin}/v1", **options}
    return OpenAIRealtimeAdapter(OpenAIRealtimeConfig(**values))  # type: ignore[arg-type]


@asynccontextmanager
async def calling(
    script: Script, setup: Setup | None = None, **options: object
) -> AsyncIterator[Caller]:
    """A connection to a simulated provider; in the end it is closed, and nobody did wrong."""
    async with openai_realtime(script) as server, asyncio.TaskGroup() as group:
        events: list[RealtimeEvent] = []
        news = asyncio.Event()

        def emit(event: RealtimeEvent) -> None:
            events.append(event)
            news.set()

        given = setup or Setup(instructions="Be brief.")
        connection = await adapter(server, **options).connect(given, emit, group)
        assert isinstance(events[0], Opened)
        yield Caller(connection, server, events, news)
        await connection.close()
        assert [event for event in events if isinstance(event, Closed)] == [events[-1]]
        assert server.faults == [] and server.violations == []


async def test_a_spoken_turn_is_answered() -> None:
    async with calling(Script(speed=FAST)) as call:
        call.speak("alpha bravo")
        assert await call.done() == ResponseDone(call.events[-1].response_id)  # type: ignore[union-attr]
        assert call.heard() == "echo alpha bravo"
        assert call.written("user") == ["alpha bravo"]
        assert call.written("assistant") == ["echo alpha bravo"]
        turn = next(event for event in call.events if isinstance(event, UserTurn))
        started, stopped = (event for event in call.events if isinstance(event, UserSpeech))
        assert (turn.start_ms, turn.end_ms) == (started.at_ms, stopped.at_ms)
        used = next(event for event in call.events if isinstance(event, Used))
        assert used.context_tokens == 250
        assert sum(isinstance(event, ItemDone) for event in call.events) == 1
    assert call.events[-1] == Closed("1000", clean=True)


async def test_history_and_options_are_taken_by_the_provider() -> None:
    asked: list[Asked] = []
    picture = ContentSource("base64", "image/png", data="iVBORw==")
    history = (
        Message(sender="user", text="facts", is_compaction=True),
        Message(sender="user", text="kilo", content=(ContentPart("image", source=picture),)),
        Message(sender="agent", text="lima", tool_calls=(ToolCall("look up", {"q": 1}, "c" * 60),)),
        Message(
            sender="user",
            is_tool_results=True,
            tool_results=(ToolResult("look up", "c" * 60, Result("success", "mike")),),
        ),
    )
    setup = Setup(instructions="Rules.", tools=(TOOL,), history=history)

    def answer(request: Asked) -> Reply:
        asked.append(request)
        return Reply(text="tango")

    script = Script(answer=answer, speed=FAST)
    async with calling(script, setup, reasoning_effort="low", speed=1.2, truncation=0.5) as call:
        call.connection.tell(SendText("papa", request_id="q1"))
        started = await call.until(lambda event: isinstance(event, ResponseStarted))
        assert isinstance(started, ResponseStarted) and started.request_id == "q1"
        await call.done()
        assert call.heard() == "tango"
        assert (asked[0].history[-1], asked[0].instructions) == (("user", "papa"), "Rules.")
        assert list(asked[0].tools) == ["look_up_a973a279"]
        roles = [role for role, _ in call.server.items()]
        assert roles[:3] == ["system", "user", "assistant"]
        assert ("user", "papa") in call.server.items()


async def test_tools_are_called_answered_and_followed_by_one_response() -> None:
    def answer(asked: Asked) -> Reply:
        if asked.by == "text":
            call = Call(name="look_up", arguments={"q": "x"}, id="c1")
            return Reply(
                text="one moment", calls=(call, Call(name="look_up", arguments='{"q":', id="c2"))
            )
        return echo(asked)

    script = Script(answer=lambda asked: _named(answer(asked), asked), speed=FAST)
    async with calling(script, Setup(instructions="", tools=(TOOL,))) as call:
        call.connection.tell(SendText("go"))
        found = await call.until(lambda event: isinstance(event, ToolCalls))
        assert isinstance(found, ToolCalls)
        assert [(one.tool_name, one.input_args) for one in found.calls] == [
            ("look up", {"q": "x"}),
            ("look up", '{"q":'),
        ]
        await call.done()
        call.connection.tell(UpdateAgent(instructions="New."))
        outputs = tuple(ToolOutput(one.id, "look up", "india") for one in found.calls)
        call.connection.tell(SendToolResults(outputs))
        await call.done()
        assert call.server.response_creates == 2
        assert list(call.server.outputs.values()) == ["india", "india"]
        assert "golf india india" in call.heard()


def _named(reply: Reply, asked: Asked) -> Reply:
    """The reply with calls of the one tool that the session shows, by its wire's name."""
    calls = tuple(
        Call(name=asked.tools[0], arguments=one.arguments, id=one.id) for one in reply.calls
    )
    return Reply(text=reply.text, calls=calls)


async def test_voice_row_092_barge_in_leaves_what_was_heard() -> None:
    script = Script(answer=lambda asked: Reply(text="one two three four five six"), speed=4.0)
    async with calling(script) as call:
        call.connection.tell(RequestResponse())
        first = await call.until(lambda event: isinstance(event, Audio))
        assert isinstance(first, Audio)
        call.speak("alpha", silence_ms=0)
        await call.until(lambda event: isinstance(event, UserSpeech))
        call.connection.tell(CutOutput({first.item_id: 30}))
        assert await call.until(lambda event: isinstance(event, Interrupted))
        done = await call.done()
        assert done.status == "cancelled"
        await _settled(call, "conversation.item.truncated")
        truncated = _sent(call, "conversation.item.truncated")
        assert [one["audio_end_ms"] for one in truncated] == [30]


async def test_voice_row_092_what_nobody_heard_is_deleted() -> None:
    async with calling(Script(answer=lambda asked: Reply(text="one two three"))) as call:
        call.connection.tell(RequestResponse())
        first = await call.until(lambda event: isinstance(event, Audio))
        assert isinstance(first, Audio)
        call.connection.tell(CutOutput({first.item_id: 0}))
        await call.done()
        await _settled(call, "conversation.item.deleted")
        assert call.server.items() == []


async def test_voice_row_092_with_interruption_off_the_response_goes_on() -> None:
    script = Script(answer=lambda asked: Reply(text="one two three"), speed=8.0)
    async with calling(script, Setup(instructions="", interruption=False)) as call:
        call.connection.tell(RequestResponse())
        first = await call.until(lambda event: isinstance(event, Audio))
        assert isinstance(first, Audio)
        call.connection.tell(CutOutput({first.item_id: 200}, cancel=False))
        assert (await call.done()).status == "completed"
        assert call.heard() == "one two three"
        await _settled(call, "conversation.item.truncated")
        assert [one["audio_end_ms"] for one in _sent(call, "conversation.item.truncated")] == [200]


async def test_a_turn_during_an_answer_that_goes_on_is_answered_after_it() -> None:
    script = Script(answer=_long_then_echo, speed=4.0)
    async with calling(script, Setup(instructions="", interruption=False)) as call:
        call.connection.tell(RequestResponse())
        await call.until(lambda event: isinstance(event, Audio))
        call.speak("delta")
        await call.until(lambda event: isinstance(event, UserTurn))
        assert [(await call.done()).status, (await call.done()).status] == ["completed"] * 2
        assert call.heard() == "one two three four five six echo delta"
        assert call.server.response_creates == 2


def _long_then_echo(asked: Asked) -> Reply:
    speaks = asked.by == "speech"
    return echo(asked) if speaks else Reply(text="one two three four five six")


async def test_requests_made_at_once_are_answered_one_after_another() -> None:
    async with calling(Script(speed=FAST)) as call:
        call.connection.tell(RequestResponse("First.", "a"))
        call.connection.tell(SendText("bravo", request_id="b"))
        call.connection.tell(RequestResponse("Read this.", "c", verbatim=True))
        for _ in range(3):
            await call.done()
        begun = [event.request_id for event in call.events if isinstance(event, ResponseStarted)]
        assert begun == ["a", "b", "c"]
        assert call.server.record.refusals == []
        assert ("user", "First.") not in call.server.items()


async def test_our_side_can_end_turns() -> None:
    setup = Setup(instructions="", manual_turns=True)
    async with calling(Script(speed=FAST), setup) as call:
        call.connection.tell(SendAudio(bytes(RATE * 2 * 3)))
        call.connection.tell(SpeechBoundary(speaking=True))
        call.speak("charlie", silence_ms=100)
        call.connection.tell(SpeechBoundary(speaking=False))
        call.connection.tell(CommitTurn())
        await call.done()
        assert call.heard() == "echo charlie"
        assert call.server.response_creates == 1


async def test_context_pictures_and_summaries() -> None:
    async with calling(Script(speed=FAST, summary="alpha bravo")) as call:
        call.connection.tell(AppendContext("old", "k"))
        call.connection.tell(AppendContext("new", "k"))
        call.connection.tell(SendImage(b"\x89PNG", "image/png"))
        call.connection.tell(SendVideoFrame(b"\xff\xd8"))
        call.connection.tell(SendText("hotel"))
        call.connection.tell(Summarise("s1", "Sum up."))
        found = await call.until(lambda event: isinstance(event, Summary))
        assert isinstance(found, Summary)
        assert (found.request_id, found.text) == ("s1", "alpha bravo")
        await _over(call)
        call.connection.tell(ForgetBefore(found.text))
        call.connection.tell(SendText("india"))
        await call.done()
        texts = [text for _, text in call.server.items()]
        assert texts[0].endswith("alpha bravo")
        assert "new" in texts and "old" not in texts and "hotel" not in texts
        assert "india" in texts


async def _over(call: Caller) -> None:
    """Wait until the response that runs is over."""
    if not any(isinstance(event, ResponseDone) for event in call.events):
        await call.done()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"key": Secret("wrong")}, CredentialsRejected),
        ({"model": "nobody"}, ProviderRefused),
    ],
)
async def test_what_cannot_be_opened_says_why(
    options: dict[str, object], error: type[Exception]
) -> None:
    async with openai_realtime(Script()) as server, asyncio.TaskGroup() as group:
        with pytest.raises(error) as caught:
            await adapter(server, **options).connect(Setup(instructions=""), _nobody, group)
        assert "wrong" not in str(caught.value)


async def test_a_resume_handle_is_refused_before_anything_is_sent() -> None:
    async with openai_realtime(Script()) as server, asyncio.TaskGroup() as group:
        setup = Setup(instructions="", resume_handle="h")
        with pytest.raises(ProviderRefused) as caught:
            await adapter(server).connect(setup, _nobody, group)
        assert caught.value.code == "ERR_REALTIME_HANDLE"
        assert server.running.wires == []


async def test_a_drop_before_it_is_open_may_be_tried_again() -> None:
    script = Script(faults=[Fault(point="setup", action="drop")])
    async with openai_realtime(script) as server, asyncio.TaskGroup() as group:
        with pytest.raises(ConnectionFailed):
            await adapter(server).connect(Setup(instructions=""), _nobody, group)


@pytest.mark.parametrize(
    ("fault", "closed"),
    [
        (Fault(point="mid_audio", action="error", error_code="session_expired"), "session_expired"),
        (Fault(point="mid_audio", action="error", error_code="insufficient_quota"), "fatal"),
        (Fault(point="mid_audio", action="drop"), "1006"),
    ],
)
async def test_what_runs_is_ended_in_order_when_the_connection_is(
    fault: Fault, closed: str
) -> None:
    async with calling(Script(faults=[fault])) as call:
        call.connection.tell(SendText("alpha"))
        last = await call.until(lambda event: isinstance(event, Closed))
        assert isinstance(last, Closed)
        assert ("fatal" if last.fatal else last.code) == closed
        kinds = [type(event) for event in call.events[-4:]]
        assert kinds == [Words, ItemDone, ResponseDone, Closed]


def test_capabilities_and_address() -> None:
    config = OpenAIRealtimeConfig(key=Secret("k"), turn_detection="manual", text_only=True)
    plain = OpenAIRealtimeAdapter(OpenAIRealtimeConfig(key=Secret("k")))
    manual = OpenAIRealtimeAdapter(config)
    assert (plain.provider, plain.model) == ("openai", "gpt-realtime-2")
    assert plain.capabilities.turn_taking == "provider"
    assert plain.capabilities.outputs == {"audio", "text"}
    assert plain.capabilities.inputs == {"audio", "text", "image"}
    assert manual.capabilities.turn_taking == "host"
    assert manual.capabilities.outputs == {"text"}
    assert not plain.capabilities.resume and plain.capabilities.max_session_s == 3_600
    assert "k" not in repr(config.key)


async def test_an_http_address_is_the_same_server() -> None:
    events: list[RealtimeEvent] = []
    async with openai_realtime(Script()) as server, asyncio.TaskGroup() as group:
        same = adapter(server, base_url=f"{server.http}/v1/")
        connection = await same.connect(Setup(instructions=""), events.append, group)
        await connection.close()
    assert [type(event) for event in events] == [Opened, Closed]


async def test_azure_gets_its_own_header() -> None:
    async with openai_realtime(Script()) as server, asyncio.TaskGroup() as group:
        azure = adapter(server, key_header="api-key")
        with pytest.raises(CredentialsRejected):
            await azure.connect(Setup(instructions=""), _nobody, group)


def _nobody(event: RealtimeEvent) -> None:
    """Listens to nothing."""


def _sent(call: Caller, kind: str) -> list[dict[str, object]]:
    """Frames of the provider of one type."""
    return [one for one in call.server.running.wires[0].sent if one["type"] == kind]


async def _settled(call: Caller, kind: str) -> None:
    """Wait until the provider has sent a frame of this type."""
    async with asyncio.timeout(5):
        while not _sent(call, kind):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
