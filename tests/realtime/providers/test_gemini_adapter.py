"""Gemini Live from the key to the last event: the adapter against the strict simulator."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from tests.simulators import tone_words
from tests.simulators.gemini_live import KEY, TOKEN, GeminiLive, Options, gemini_live
from tests.simulators.gemini_live_setup import GENERATIONS, GenerationName
from tests.simulators.realtime_script import Asked, Call, Fault, Reply, Script
from voxglove.adapters.credentials import Secret
from voxglove.adapters.errors import CredentialsRejected, ProviderRefused
from voxglove.core.messages import Message
from voxglove.core.model import ToolSpec
from voxglove.realtime.commands import (
    AppendContext,
    CommitTurn,
    CutOutput,
    RequestResponse,
    SendAudio,
    SendText,
    SendToolResults,
    SpeechBoundary,
    ToolOutput,
    UpdateAgent,
)
from voxglove.realtime.events import (
    Audio,
    Closed,
    GoAway,
    Interrupted,
    Opened,
    RealtimeEvent,
    ResponseDone,
    ResponseStarted,
    Resumable,
    ToolCalls,
    ToolsCancelled,
    UserTurn,
    Words,
)
from voxglove.realtime.port import Connection, Setup
from voxglove.realtime.providers.gemini import GeminiLiveAdapter, GeminiLiveConfig

pytestmark = pytest.mark.real_loop

NAMES: tuple[GenerationName, ...] = ("3.8", "3.1", "2.5")
LOOK = ToolSpec("look/up", "Looks.", {"type": "object", "properties": {"id": {"type": "string"}}})
SETUP = Setup(instructions="Be brief.", tools=(LOOK,))
E = TypeVar("E")


@dataclass(slots=True)
class Ear:
    """What a connection told so far."""

    events: list[RealtimeEvent] = field(default_factory=list)
    _came: asyncio.Event = field(default_factory=asyncio.Event)

    def __call__(self, event: RealtimeEvent) -> None:
        self.events.append(event)
        self._came.set()

    def all(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(5):
            while not holds():
                self._came.clear()
                await self._came.wait()

    async def wait(self, kind: type[E], count: int = 1) -> E:
        """The event of this kind number `count`, from 1."""
        await self.until(lambda: len(self.all(kind)) >= count)
        return self.all(kind)[count - 1]

    def said(self, role: str) -> list[str]:
        return [one.text for one in self.all(Words) if one.final and one.role == role]


def config_for(server: GeminiLive, **options: object) -> GeminiLiveConfig:
    model = GENERATIONS[server.record.generation].models[0]
    values = {"key": Secret(KEY), "model": model, "base_url": server.origin, **options}
    return GeminiLiveConfig(**values)  # type: ignore[arg-type]


async def open_one(
    server: GeminiLive, ear: Ear, group: asyncio.TaskGroup, setup: Setup = SETUP, **options: object
) -> Connection:
    return await GeminiLiveAdapter(config_for(server, **options)).connect(setup, ear, group)


def speak(connection: Connection, text: str, silence_ms: int = 700) -> None:
    pcm = tone_words.speak(text, 16_000).tobytes() + bytes(32 * silence_ms)
    for at in range(0, len(pcm), 640):
        connection.tell(SendAudio(pcm[at : at + 640]))


def fast(answer: Callable[[Asked], Reply] | None = None, **options: object) -> Script:
    """A model that answers at once, and shortly: what it says is played in real time."""

    def say(asked: Asked) -> Reply:
        return Reply(text="golf", after_s=0.01)

    return Script(answer=answer or say, speed=50.0, **options)  # type: ignore[arg-type]


def assert_clean(server: GeminiLive) -> None:
    assert server.violations == []
    assert server.faults == []


@pytest.mark.parametrize("generation", NAMES)
async def test_a_spoken_turn_is_heard_answered_and_told(generation: GenerationName) -> None:
    async with gemini_live(fast(), generation=generation) as server:
        ear = Ear()
        async with asyncio.TaskGroup() as group:
            connection = await open_one(server, ear, group)
            speak(connection, "one two")
            await ear.wait(ResponseDone)
            handle = await ear.wait(Resumable, 2)
            await connection.close()
    assert handle.handle
    assert server.turns == ["one two"]
    assert ear.said("user") == ["one two"]
    assert ear.said("assistant") == ["golf"]
    sound = b"".join(event.pcm for event in ear.all(Audio))
    assert tone_words.read(sound, 24_000) == ["golf"]
    assert len(ear.all(UserTurn)) == 1
    assert ear.events[-1] == Closed("1000", clean=True)
    assert_clean(server)


@pytest.mark.parametrize("generation", NAMES)
async def test_a_tool_is_called_by_our_name_and_its_result_and_a_note_reach_the_model(
    generation: GenerationName,
) -> None:
    def answer(asked: Asked) -> Reply:
        if asked.by == "results":
            return Reply(text="golf", after_s=0.01)
        return Reply(calls=(Call(name=asked.tools[0], arguments={"id": "7"}),), after_s=0.01)

    async with gemini_live(fast(answer), generation=generation) as server:
        ear = Ear()
        async with asyncio.TaskGroup() as group:
            connection = await open_one(server, ear, group)
            connection.tell(SendText("look", request_id="r1"))
            called = await ear.wait(ToolCalls)
            (call,) = called.calls
            connection.tell(AppendContext("It rains."))
            connection.tell(SendToolResults((ToolOutput(call.id, call.tool_name, "india"),)))
            connection.tell(SendToolResults((ToolOutput(call.id, call.tool_name, "again"),)))
            await ear.until(lambda: "golf" in ear.said("assistant"))
            await connection.close()
    assert (call.tool_name, call.input_args) == ("look/up", {"id": "7"})
    assert ear.all(ResponseStarted)[0].request_id == "r1"
    told = " ".join(text for _, text in server.conversation)
    assert "india" in told
    assert "It rains." in told
    assert "again" not in told
    assert_clean(server)


@pytest.mark.parametrize("generation", NAMES)
async def test_texts_of_every_kind_are_taken_in_order(generation: GenerationName) -> None:
    async with gemini_live(fast(), generation=generation) as server:
        ear = Ear()
        async with asyncio.TaskGroup() as group:
            history = (Message(sender="user", text="one"), Message(sender="agent", text="two"))
            setup = Setup(instructions="Be brief.", history=history)
            connection = await open_one(server, ear, group, setup)
            connection.tell(AppendContext("alpha"))
            connection.tell(RequestResponse("bravo", "r1"))
            connection.tell(RequestResponse("charlie", "r2"))
            connection.tell(UpdateAgent(instructions="Be long."))
            await ear.wait(ResponseDone, 2)
            await connection.close()
    assert [event.request_id for event in ear.all(ResponseStarted)] == ["r1", "r2"]
    told = " ".join(text for _, text in server.conversation)
    places = [told.index(word) for word in ("one", "two", "alpha", "bravo", "charlie")]
    assert places == sorted(places)
    assert len(server.record.updates) == (1 if generation == "3.8" else 0)
    assert_clean(server)


@pytest.mark.parametrize("generation", NAMES)
async def test_a_barge_in_silences_the_answer_and_the_new_turn_is_answered(
    generation: GenerationName,
) -> None:
    def answer(asked: Asked) -> Reply:
        long = "alpha bravo charlie delta echo foxtrot golf hotel"
        return Reply(text=long if asked.text == "one" else "two", after_s=0.01)

    script = Script(answer=answer, speed=4.0)
    async with gemini_live(script, generation=generation) as server:
        ear = Ear()
        async with asyncio.TaskGroup() as group:
            connection = await open_one(server, ear, group)
            speak(connection, "one")
            await ear.wait(Audio, 3)
            speak(connection, "nine")
            cut = await ear.wait(Interrupted)
            await ear.until(lambda: "two" in ear.said("assistant"))
            await connection.close()
    item = ear.all(Audio)[0].item_id
    assert cut.item_id == item
    after = ear.events[ear.events.index(cut) :]
    assert not [one for one in after if isinstance(one, Audio) and one.item_id == item]
    assert [event.status for event in ear.all(ResponseDone)][0] == "cancelled"
    assert ear.said("user")[:2] == ["one", "nine"][: len(ear.said("user"))]
    assert_clean(server)


async def test_a_barge_in_takes_a_blocking_call_back_and_its_result_is_told_as_a_note() -> None:
    def answer(asked: Asked) -> Reply:
        calls = (Call(name=asked.tools[0]),) if asked.text == "one" else ()
        return Reply(text="" if calls else "two", calls=calls, after_s=0.01)

    async with gemini_live(fast(answer)) as server:
        ear = Ear()
        async with asyncio.TaskGroup() as group:
            connection = await open_one(server, ear, group, blocking_tools=True)
            speak(connection, "one")
            call = (await ear.wait(ToolCalls)).calls[0]
            speak(connection, "nine")
            assert (await ear.wait(ToolsCancelled)).call_ids == (call.id,)
            connection.tell(SendToolResults((ToolOutput(call.id, call.tool_name, "booked"),)))
            await ear.until(lambda: "two" in ear.said("assistant"))
            await ear.wait(ResponseDone, 2)
            connection.tell(SendText("done"))
            await ear.wait(ResponseDone, 3)
            await connection.close()
    assert server.record.tool_responses == {}
    assert any("booked" in text for _, text in server.conversation)
    assert_clean(server)


async def test_manual_turns_and_a_cut_of_our_own() -> None:
    async with gemini_live(fast()) as server:
        ear = Ear()
        async with asyncio.TaskGroup() as group:
            setup = Setup(instructions="", manual_turns=True, interruption=False)
            connection = await open_one(server, ear, group, setup)
            connection.tell(SpeechBoundary(True))
            speak(connection, "one", silence_ms=0)
            connection.tell(CommitTurn())
            await ear.wait(Audio)
            connection.tell(CutOutput())
            heard = len(ear.all(Audio))
            await ear.wait(ResponseDone)
            await connection.close()
    assert server.turns == ["one"]
    assert len(ear.all(Audio)) == heard
    assert len(ear.all(Interrupted)) == 1
    assert_clean(server)


@pytest.mark.parametrize("generation", NAMES)
async def test_a_handle_brings_the_conversation_back_with_what_came_since(
    generation: GenerationName,
) -> None:
    fault = Fault(point="handle_given", action="go_away", seconds=30.5)
    async with gemini_live(fast(faults=[fault]), generation=generation) as server:
        ear, again = Ear(), Ear()
        async with asyncio.TaskGroup() as group:
            connection = await open_one(server, ear, group)
            connection.tell(SendText("one"))
            assert (await ear.wait(GoAway)).time_left_s == 30.5
            handle = ear.all(Resumable)[-1].handle
            await connection.close()
            since = (Message(sender="user", text="two"),)
            setup = Setup(instructions="Be brief.", resume_handle=handle, history=since)
            connection = await open_one(server, again, group, setup)
            connection.tell(SendText("three"))
            await again.wait(ResponseDone)
            await connection.close()
    assert again.all(Opened)[0].resumed
    told = " ".join(text for role, text in server.conversation if role == "user")
    assert told.split() == ["one", "two", "three"]
    assert len(again.all(ResponseDone)) == 1, "what came since is not answered"
    assert_clean(server)


async def test_a_handle_that_expired_is_named_as_such() -> None:
    async with gemini_live(fast()) as server, asyncio.TaskGroup() as group:
        setup = Setup(instructions="", resume_handle="gone")
        with pytest.raises(ProviderRefused) as caught:
            await open_one(server, Ear(), group, setup)
    assert caught.value.code == "ERR_REALTIME_HANDLE"


async def test_voice_row_093_an_abnormal_close_surfaces_its_code_and_reason() -> None:
    fault = Fault(point="mid_audio", action="close", code=1011, reason="Deadline expired")
    async with gemini_live(fast(faults=[fault])) as server:
        ear = Ear()
        async with asyncio.TaskGroup() as group:
            connection = await open_one(server, ear, group)
            connection.tell(SendText("one"))
            closed = await ear.wait(Closed)
            await connection.close()
    assert closed == Closed("1011", "Deadline expired")
    assert [event.status for event in ear.all(ResponseDone)] == ["cancelled"]
    assert ear.events[-1] is closed


@pytest.mark.parametrize("late", [False, True])
async def test_a_wrong_key_is_not_tried_again_and_not_shown(late: bool) -> None:
    async with gemini_live(fast(), refuses_late=late) as server, asyncio.TaskGroup() as group:
        with pytest.raises(CredentialsRejected) as caught:
            await open_one(server, Ear(), group, key=Secret("AIzaWrongKeyOfSomebody"))
    assert "WrongKey" not in str(caught.value)


async def test_an_unknown_model_is_refused() -> None:
    async with gemini_live(fast()) as server, asyncio.TaskGroup() as group:
        with pytest.raises(ProviderRefused, match="not found"):
            await open_one(server, Ear(), group, model="gemini-9.9-live")


async def test_an_ephemeral_token_opens_the_constrained_method() -> None:
    async with gemini_live(fast()) as server, asyncio.TaskGroup() as group:
        connection = await open_one(server, Ear(), group, key=Secret(TOKEN))
        await connection.close()
    assert "Constrained" in server.wires[0].path
    assert "token" not in server.wires[0].path
    assert server.wires[0].headers["Authorization"] == f"Token {TOKEN}"


async def test_a_session_without_compression_would_end_and_with_it_goes_on() -> None:
    options = Options(uncompressed_s=0.05, notice_s=0.05)
    async with gemini_live(fast(), options=options) as server:
        for trigger, ends in ((None, True), (100_000, False)):
            ear = Ear()
            async with asyncio.TaskGroup() as group:
                connection = await open_one(server, ear, group, compression_trigger_tokens=trigger)
                connection.tell(SendText("one"))
                await ear.until(lambda: ear.all(Closed if ends else ResponseDone))  # noqa: B023
                await connection.close()
            assert bool(ear.all(GoAway)) is ends
