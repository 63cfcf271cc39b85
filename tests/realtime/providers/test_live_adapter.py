"""The GPT-Live adapter on a socket, against the strict simulated provider.

The provider's clock is the audio it gets, so a test sends minutes of it in milliseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pytest

from tests.simulators import tone_words
from tests.simulators.gpt_live import GptLive, gpt_live
from tests.simulators.realtime_script import Asked, Call, Fault, Reply, Script, echo
from voxglove.adapters.credentials import Secret
from voxglove.adapters.errors import ConnectionFailed, CredentialsRejected, ProviderRefused
from voxglove.core.errors import UsageError
from voxglove.core.messages import Message, ToolCall, ToolResult, ToolResultData
from voxglove.core.model import ToolSpec
from voxglove.realtime.commands import (
    AppendContext,
    CutOutput,
    RequestResponse,
    SendAudio,
    SendText,
    SendToolResults,
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
    ToolCalls,
    Used,
    UserTurn,
    Words,
)
from voxglove.realtime.port import Connection, Setup
from voxglove.realtime.providers.live import GptLiveAdapter, GptLiveConfig

pytestmark = pytest.mark.real_loop

RATE = 16_000
Kind = TypeVar("Kind")
TOOL = ToolSpec("lookup_order", "Find an order.", {"type": "object", "properties": {}})
LONG = "one two three four five six seven eight nine zero"


@dataclass
class Caller:
    """A session's half: one connection and everything that came of it."""

    connection: Connection
    server: GptLive
    events: list[RealtimeEvent]
    news: asyncio.Event

    def say(self, text: str = "", ms: int = 0) -> None:
        """Words, then silence, in frames of 20 ms."""
        quiet = np.zeros(RATE * ms // 1_000, np.int16)
        pcm = np.concatenate([tone_words.speak(text, RATE), quiet]).tobytes()
        for at in range(0, len(pcm), 640):
            self.connection.tell(SendAudio(pcm[at : at + 640]))

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not holds():
                self.news.clear()
                with suppress(TimeoutError):  # the server tells nobody what it noted
                    await asyncio.wait_for(self.news.wait(), 0.01)

    async def done(self, count: int = 1) -> None:
        """So many responses are over."""
        await self.until(lambda: len(self.of(ResponseDone)) >= count)

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [event for event in self.events if isinstance(event, kind)]

    def heard(self) -> str:
        """The words in the agent's sound."""
        return " ".join(tone_words.read(b"".join(one.pcm for one in self.of(Audio)), RATE))

    def written(self, role: str) -> list[str]:
        """Whole turns of one side, as written."""
        return [one.text for one in self.of(Words) if one.final and one.role == role]


def adapter(server: GptLive, **options: object) -> GptLiveAdapter:
    values = {"key": Secret("test-key"), "base_url": f"{server.origin}/v1", **options}
    return GptLiveAdapter(GptLiveConfig(**values))  # type: ignore[arg-type]


@asynccontextmanager
async def calling(
    script: Script,
    setup: Setup | None = None,
    backchannel: Callable[[str], bool] = lambda words: False,
    max_session_s: float = 7_200.0,
    **options: object,
) -> AsyncIterator[Caller]:
    """A connection to a simulated provider; in the end it is closed, and nobody did wrong."""
    async with (
        gpt_live(script, backchannel=backchannel, max_session_s=max_session_s) as server,
        asyncio.TaskGroup() as group,
    ):
        events: list[RealtimeEvent] = []
        news = asyncio.Event()

        def emit(event: RealtimeEvent) -> None:
            events.append(event)
            news.set()

        setup = setup or Setup(instructions="Be kind.")
        connection = await adapter(server, **options).connect(setup, emit, group)
        caller = Caller(connection, server, events, news)
        yield caller
        await connection.close()
        assert isinstance(events[-1], Closed)
        assert len(caller.of(Closed)) == 1
        assert server.violations == []
        assert server.faults == []


async def test_a_session_by_voice_from_the_first_word_to_the_final_usage() -> None:
    async with calling(Script()) as call:
        call.say("alpha bravo", 3_000)
        await call.done()
        assert call.server.turns == ["alpha bravo"]
        assert call.heard() == "echo alpha bravo"
        assert call.written("user") == ["alpha bravo"]
        assert call.written("assistant") == ["echo alpha bravo"]
        (turn,) = call.of(UserTurn)
        assert (turn.start_ms, turn.end_ms) == (0, 600)
        sound = sum(len(one.pcm) for one in call.of(Audio)) // (2 * RATE // 1_000)
        assert 3 * tone_words.STEP_MS <= sound <= 3 * tone_words.STEP_MS + 700
        await call.connection.close()
        assert call.events[-1] == Closed("close_requested", clean=True)
        assert call.of(Used)[-1].final
        assert call.of(Used)[-1].seconds == 3


async def test_a_request_is_answered_by_the_response_that_names_it() -> None:
    async with calling(Script()) as call:
        call.connection.tell(RequestResponse("Greet the caller.", "r1"))
        call.say(ms=2_000)
        await call.done()
        assert call.of(ResponseStarted)[0].request_id == "r1"
        assert call.heard() == "hotel"
        assert call.server.appended == [("commentary", "Greet the caller.", None)]


@pytest.mark.parametrize("delegation", ["responses", "client"])
async def test_typed_text_is_answered_aloud(delegation: str) -> None:
    asked: list[Asked] = []

    def answer(one: Asked) -> Reply:
        asked.append(one)
        return echo(one)

    async with calling(Script(answer=answer), delegation=delegation) as call:
        call.connection.tell(SendText("kilo", request_id="r2"))
        call.say(ms=2_000)
        await call.done()
        assert call.of(ResponseStarted)[0].request_id == "r2"
        assert "kilo" in asked[0].instruction
        if delegation == "responses":  # the backend knows what was typed word for word
            assert (asked[0].by, asked[0].text) == ("text", "kilo")
            assert call.heard() == "echo kilo"


def with_tools(asked: Asked) -> Reply:
    """Two calls for what was said; then what they gave."""
    if asked.by == "speech":
        calls = (Call(name="lookup_order", arguments={"id": "7"}), Call(name="lookup_order"))
        return Reply(text="mike", calls=calls)
    return echo(asked)


async def test_tools_are_answered_in_one_batch_whoever_is_ready_first() -> None:
    setup = Setup(instructions="Be kind.", tools=(TOOL,))
    async with calling(Script(answer=with_tools), setup) as call:
        call.say("alpha", 2_000)
        await call.until(lambda: bool(call.of(ToolCalls)))
        (calls,) = call.of(ToolCalls)
        assert [one.input_args for one in calls.calls] == [{"id": "7"}, {}]
        second, first = (ToolOutput(one.id, one.tool_name, "two") for one in calls.calls)
        call.connection.tell(SendToolResults((first,)))
        call.connection.tell(SendToolResults((second,)))
        await call.until(lambda: len(call.server.outputs) == 2)
        call.say(ms=3_000)
        await call.done(4)
        assert call.written("assistant") == ["mike", "golf two two"]
        started = [one.response_id for one in call.of(ResponseStarted)]
        assert calls.response_id in started
        creates = [one for one in call.server.wires[0].received if one["type"] == "response.create"]
        assert len(creates) == 1


async def test_work_that_is_given_to_us_is_one_call_and_its_result_is_spoken() -> None:
    def answer(asked: Asked) -> Reply:
        return Reply(calls=(Call(name="x"),)) if asked.by == "speech" else echo(asked)

    async with calling(Script(answer=answer), delegation="client") as call:
        call.say("alpha bravo", 2_000)
        await call.until(lambda: bool(call.of(ToolCalls)))
        (one,) = call.of(ToolCalls)[0].calls
        assert one.tool_name == "delegate"
        assert isinstance(one.input_args, dict)
        assert one.input_args["transcript"] == "user: alpha bravo"
        call.connection.tell(SendToolResults((ToolOutput(one.id, "delegate", "kilo"),)))
        call.say(ms=2_000)
        await call.done()
        assert call.heard() == "golf kilo"


async def test_after_a_cut_nothing_of_the_utterance_sounds_and_the_next_one_does() -> None:
    """The model does not know of the cut and talks on; what it says then is for nobody."""

    def answer(asked: Asked) -> Reply:
        return Reply(text="kilo" if asked.by == "request" else LONG)

    async with calling(Script(answer=answer)) as call:
        call.say("alpha", 1_500)
        await call.until(lambda: bool(call.of(Audio)))
        await call.until(lambda: len(call.server.sessions[0].state.history) > 1)
        (item,) = {one.item_id for one in call.of(Audio)}
        call.connection.tell(CutOutput({item: 100}))
        assert call.of(Interrupted) == [Interrupted(item)]
        sounded = len(call.of(Audio))
        call.say(ms=4_000)
        await call.done()
        assert len(call.of(Audio)) == sounded
        done = call.of(ResponseDone)[0]
        assert (done.status, done.reason) == ("cancelled", "cut")
        words = call.written("assistant")[0].split()
        assert words == LONG.split()[: len(words)]
        assert len(words) < 6
        call.connection.tell(RequestResponse("go on"))
        call.say(ms=2_000)
        await call.done(2)
        assert call.written("assistant")[1:] == ["kilo"]


async def test_the_model_falls_silent_by_itself_when_the_caller_talks_over_it() -> None:
    script = Script(answer=lambda asked: Reply(text=LONG) if asked.text == "alpha" else Reply())
    async with calling(script) as call:
        call.say("alpha", 1_000)
        call.say("bravo charlie", 2_000)
        await call.until(lambda: len(call.of(UserTurn)) == 2)
        assert call.written("user") == ["alpha", "bravo charlie"]
        assert len(call.written("assistant")[0].split()) < 5
        assert call.of(Interrupted) == []


async def test_voice_row_091_words_of_both_speakers_overlap_and_keep_their_times() -> None:
    script = Script(answer=lambda asked: Reply(text=LONG) if asked.text == "alpha" else Reply())
    async with calling(script, backchannel=lambda words: words in ("", "mike")) as call:
        call.say("alpha", 1_000)
        call.say("mike", 4_500)
        await call.done()
        await call.until(lambda: len(call.of(UserTurn)) == 2)
        assert call.written("assistant") == [LONG]
        assert call.written("user") == ["alpha", "mike"]
        agent = [one for one in call.of(Words) if one.role == "assistant" and one.final][0]
        mike = call.of(UserTurn)[1]
        assert agent.start_ms is not None and agent.end_ms is not None
        assert mike.start_ms is not None and mike.end_ms is not None
        assert agent.start_ms < mike.start_ms < mike.end_ms < agent.end_ms


async def test_the_agents_changes_reach_voice_and_backend() -> None:
    async with calling(Script()) as call:
        call.connection.tell(UpdateAgent("Speak Swahili.", (TOOL,)))
        call.connection.tell(AppendContext("The caller is a VIP."))
        call.say(ms=500)
        await call.until(lambda: len(call.server.appended) == 3)
        kinds = [kind for kind, _, _ in call.server.appended]
        assert kinds == ["instructions", "instructions", "thinking"]
        delegation = call.server.sessions[0].state.config["delegation"]
        assert isinstance(delegation, dict)
        backend = delegation["responses"]
        assert backend["instructions"] == "Speak Swahili."
        assert [tool["name"] for tool in backend["tools"]] == ["lookup_order"]


async def test_history_and_long_texts_are_within_what_the_provider_takes() -> None:
    call_ = ToolCall("lookup_order", {"id": "7"}, id="c1")
    result = ToolResult("lookup_order", "c1", ToolResultData("success", {"state": "sent"}))
    history = [
        *(Message(sender="user", text=f"turn {at} " + "word " * 60) for at in range(300)),
        Message(sender="agent", text="One moment.", tool_calls=(call_,)),
        Message(sender="user", is_tool_results=True, tool_results=(result,)),
    ]
    setup = Setup(instructions="be kind " * 12_000, history=tuple(history), tools=(TOOL,))
    async with calling(Script(), setup, rate=24_000, store=True, safety_identifier="u1") as call:
        call.connection.tell(AppendContext("x" * 30_000))
        assert call.of(Opened)[0].session_id == "live_1"
        (session,) = call.server.record.starts
        assert session["store"] is True
        assert session["safety_identifier"] == "u1"
        conversation = call.server.conversation
        assert conversation[-2:] == [
            ("developer", 'You called the tool lookup_order with {"id": "7"}.'),
            ("developer", 'The tool lookup_order answered: {"state": "sent"}'),
        ]
        assert conversation[-3] == ("assistant", "One moment.")


async def test_usage_is_told_as_it_grows() -> None:
    async with calling(Script()) as call:
        call.say(ms=30_000)
        await call.until(lambda: len(call.of(Used)) >= 2)
        assert [one.seconds for one in call.of(Used)] == [15, 30]
        assert call.of(Used)[0].context_ratio is not None
        assert not call.of(Used)[0].final


async def test_a_session_that_expires_is_no_clean_end() -> None:
    async with calling(Script(), max_session_s=1.0) as call:
        call.say(ms=1_000)
        await call.until(lambda: bool(call.of(Closed)))
        assert call.events[-1] == Closed("expired")
        assert call.of(Used)[-1].final


@pytest.mark.parametrize(
    ("fault", "code", "fatal"),
    [
        (Fault(point="mid_audio", nth=3, action="close", code=1011), "1011", False),
        (Fault(point="mid_audio", nth=3, action="drop"), "1006", False),
        (
            Fault(point="mid_audio", nth=3, action="error", error_code="insufficient_quota"),
            "insufficient_quota",
            True,
        ),
        (Fault(point="mid_audio", nth=3, action="error", error_code="content"), "content", True),
    ],
)
async def test_what_is_open_is_closed_before_the_end(fault: Fault, code: str, fatal: bool) -> None:
    async with calling(Script(faults=[fault])) as call:
        call.say("alpha", 2_000)
        await call.until(lambda: bool(call.of(Closed)))
        closed = call.of(Closed)[0]
        assert (closed.code, closed.fatal, closed.clean) == (code, fatal, False)
        assert [one.status for one in call.of(ResponseDone)] == ["cancelled"]
        assert len(call.of(ItemDone)) == 1


async def test_a_problem_in_mid_call_ends_nothing() -> None:
    fault = Fault(point="caller_stopped", action="error", error_code="server_error")
    async with calling(Script(faults=[fault])) as call:
        call.say("alpha", 3_000)
        await call.done()
        assert call.heard() == "echo alpha"


async def refused(script: Script, **options: object) -> BaseException:
    """What connecting raises."""
    events: list[RealtimeEvent] = []
    async with gpt_live(script) as server:
        with pytest.raises(BaseException) as caught:
            async with asyncio.TaskGroup() as group:
                setup = Setup(instructions="")
                await adapter(server, **options).connect(setup, events.append, group)
        assert events == []
    error = caught.value
    return error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error


async def test_connecting_fails_in_words_that_say_whether_to_try_again() -> None:
    wrong_key = await refused(Script(), key=Secret("wrong"))
    assert isinstance(wrong_key, CredentialsRejected)
    wrong_voice = await refused(Script(), voice="nova")
    assert isinstance(wrong_voice, ProviderRefused)
    assert "nova" in str(wrong_voice)
    wrong_model = await refused(Script(), model="gpt-live-9")
    assert isinstance(wrong_model, ProviderRefused)
    busy = Fault(point="setup", action="error", error_code="overloaded")
    assert isinstance(await refused(Script(faults=[busy])), ConnectionFailed)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"key": Secret("")}, "key"),
        ({"rate": 8_000}, "rate"),
        ({"delegation": "decisions"}, "delegation"),
        ({"base_url": "https://api.openai.com/v1"}, "base_url"),
        ({"voice": ""}, "voice"),
        ({"acknowledgement_delay_ms": -1}, "acknowledgement_delay_ms"),
        ({"delegation_max_tokens": 0}, "delegation_max_tokens"),
    ],
)
def test_a_wrong_option_is_named_at_construction(options: dict[str, object], field: str) -> None:
    with pytest.raises(UsageError, match=rf"GptLiveConfig\.{field}: "):
        GptLiveConfig(**{"key": Secret("test-key"), **options})  # type: ignore[arg-type]


def test_a_session_is_told_what_this_model_can_do() -> None:
    made = GptLiveAdapter(GptLiveConfig(key=Secret("test-key"), rate=24_000))
    can = made.capabilities
    assert (made.provider, made.model) == ("openai-live", "gpt-live-1")
    assert can.turn_taking == "full_duplex"
    assert can.input_format == can.output_format
    assert can.input_format.rate == 24_000
    assert (can.transcripts, can.usage, can.paced_input) == ("fragments", "duration", True)
    assert (can.update_tools, can.update_instructions) == ("live", "append")
    assert not (can.resume or can.can_cancel or can.item_delete or can.out_of_band)
    assert can.max_session_s == 7_200


def test_the_key_goes_where_the_host_wants_it_and_is_never_shown() -> None:
    key = Secret("sk-0123456789-0123456789")
    plain = GptLiveConfig(key=key, service_tier="priority")
    assert plain.socket().url == "wss://api.openai.com/v1/live/sessions"
    assert set(plain.socket().headers) == {"Authorization", "OpenAI-Service-Tier"}
    azure = GptLiveConfig(key=key, azure=True, base_url="wss://x.openai.azure.com/openai/v1/")
    assert azure.socket().url == "wss://x.openai.azure.com/openai/v1/live/sessions"
    assert azure.socket().headers == {"api-key": key}
    assert key.reveal() not in f"{plain} {plain.socket()} {azure}"
