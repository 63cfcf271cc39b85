"""What an agent knows beside its history reaches every provider in time (rows 85 and 86)."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from tests.realtime.rigs import PROVIDERS, Provider, quiet, rig
from tests.realtime.sessions import built, held
from tests.simulators.realtime_script import Asked, Call, Reply
from voxglove.core.agent import Agent
from voxglove.core.cancel import CancelToken
from voxglove.core.external import AgentEvent
from voxglove.core.messages import Message
from voxglove.core.tool import ToolContext, tool
from voxglove.realtime.commands import AppendContext, RequestResponse
from voxglove.realtime.config import SessionConfig

each = pytest.mark.parametrize("provider", PROVIDERS)
PRICE = AgentEvent(source="catalog", content="growth costs 39 now", id="price:1")


async def book(word: str, ctx: ToolContext) -> str:
    """Book a word."""
    await asyncio.sleep(1.0)
    return "seven"


def talk(asked: Asked) -> Reply:
    """Books where `kilo` is heard, speaks long where `papa` is."""
    if asked.by == "speech" and "kilo" in asked.text:
        return Reply(calls=(Call(name="book", arguments={"word": "kilo"}),))
    if asked.by == "speech" and "papa" in asked.text:
        return Reply(text="alpha bravo charlie delta echo foxtrot golf hotel")
    return quiet(asked)


class Counted:
    """A context provider that says how often it was asked."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = count(1)

    def __call__(self, token: CancelToken) -> str:
        return f"{self._name} no {next(self._count)}."


class News:
    """A context provider that says the same until it is changed."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __call__(self, token: CancelToken) -> str:
        return self.text


# ---- row 85


@each
async def test_voice_row_085_each_delivery_is_read_at_its_moments(provider: Provider) -> None:
    news = News("sale on tuesday")
    agent = built(tool(book))
    agent.add_context_provider(Counted("clock"), id="clock")
    agent.add_context_provider(Counted("caller"), delivery="request", id="caller")
    agent.add_context_provider(news, delivery="history", id="news")
    async with rig(provider, talk, agent=agent) as call:
        await call.wait(0.2)
        assert [call.count(text) for text in ("clock no 1.", "caller no 1.", news.text)] == [1] * 3
        await call.say("kilo")
        await call.rest(0.5)
        told = [call.count(f"clock no {number}.") for number in (1, 2, 3, 4)]
        assert told == [1, 1, 1, 0], "on open, when the user spoke, after tools"
        told = [call.count(f"caller no {number}.") for number in (1, 2, 3)]
        assert told == [1, 1, 0], "frozen between two turns of the user"
        (result,) = call.results
        assert call.place("clock no 3.") < call.place(result[0], "seven")
        news.text = "rain on friday"
        await call.say("november")
        await call.rest(0.5)
        assert [call.count(text) for text in ("clock no 4.", "caller no 3.")] == [1, 1]
        assert [call.count(text) for text in ("sale on tuesday", "rain on friday")] == [1, 1]
        assert call.heard == ["golf", "echo"], "none of it is answered"
    kept = [one.text for one in await call.history() if one.framework_context]
    assert len(kept) == 2 and "sale" in kept[0] and "rain" in kept[1]
    call.assert_clean()


async def test_voice_row_085_openai_holds_the_newest_snapshot_alone() -> None:
    agent = built()
    agent.add_context_provider(Counted("clock"), id="clock")
    agent.add_context_provider(News("sale on tuesday"), delivery="history", id="news")
    async with rig("openai", quiet, agent=agent) as call:
        for word in ("alpha", "bravo", "charlie"):
            await call.say(word)
            await call.rest(0.3)
        known = str(call.server.items())  # type: ignore[union-attr]
        assert "clock no 4." in known and known.count("clock no") == 1
        assert known.count("sale on tuesday") == 1
    call.assert_clean()


@pytest.mark.parametrize("provider", ["gemini", "gpt-live"])
async def test_voice_row_085_elsewhere_a_snapshot_comes_on_top(provider: Provider) -> None:
    agent = built()
    agent.add_context_provider(Counted("clock"), id="clock")
    async with rig(provider, quiet, agent=agent) as call:
        for word in ("alpha", "bravo"):
            await call.say(word)
            await call.rest(0.3)
        known = str(call.server.conversation)  # type: ignore[union-attr]
        assert [known.count(f"clock no {number}.") for number in (1, 2, 3)] == [1, 1, 1]
    call.assert_clean()


@each
async def test_voice_row_085_what_stays_the_same_is_told_once(provider: Provider) -> None:
    agent = built()
    agent.add_context_provider(News("it is noon"), id="clock")
    async with rig(provider, quiet, agent=agent) as call:
        for word in ("alpha", "bravo"):
            await call.say(word)
            await call.rest(0.3)
        assert call.count("it is noon") == 1
    call.assert_clean()


# ---- row 86


async def _stored(agent: Agent) -> list[Message]:
    """Messages that tell of the price."""
    messages = await agent.store.get_messages()
    return [message for message in messages if "growth costs 39" in message.text]


def _requests(asked: list[Asked]) -> int:
    """How often the model was asked to speak without the user."""
    return sum(one.by == "request" or "Instruction of the system" in one.text for one in asked)


@each
async def test_voice_row_086_in_a_quiet_call_an_event_is_spoken_about_once(
    provider: Provider,
) -> None:
    async with rig(provider, talk) as call:
        await call.say("alpha")
        await call.rest(1.0)
        await call.agent.emit_event(PRICE)
        await call.agent.emit_event(PRICE)
        assert _requests(call.asked) == 0
        await call.wait(0.5)
        assert _requests(call.asked) == 0, "the pause has not lasted"
        await call.wait(1.5)
        await call.rest(0.5)
        assert _requests(call.asked) == 1
        assert call.count("growth costs 39") == 1
        assert len(await _stored(call.agent)) == 1
        assert len(call.heard) == 2
        await call.wait(2.0)
        assert _requests(call.asked) == 1
    call.assert_clean()


@each
async def test_voice_row_086_while_a_tool_runs_an_event_joins_its_result(
    provider: Provider,
) -> None:
    async with rig(provider, talk, tools=[tool(book)]) as call:
        await call.say("kilo")
        await call.until(lambda: call.session.working)
        await call.wait(0.3)
        await call.agent.emit_event(PRICE)
        await call.rest(2.0)
        (result,) = call.results
        assert call.place("growth costs 39") < call.place(result[0], "seven")
        assert _requests(call.asked) == 0, "it is known, and nobody was asked to speak"
        assert call.heard == ["golf"]
        assert len(await _stored(call.agent)) == 1
    call.assert_clean()


@each
async def test_voice_row_086_while_somebody_speaks_an_event_joins_the_next_turn(
    provider: Provider,
) -> None:
    async with rig(provider, talk) as call:
        await call.say("papa")
        await call.until(lambda: call.session.speaking)
        await call.agent.emit_event(PRICE)
        await call.wait(0.3)
        assert call.count("growth costs 39") == 0
        await call.say("november oscar")
        await call.rest(2.0)
        assert call.count("growth costs 39") == 1
        assert _requests(call.asked) == 0
        assert call.heard[-1] == "echo"
        assert len(await _stored(call.agent)) == 1
    call.assert_clean()


async def test_voice_row_086_the_pause_is_700_ms_of_quiet() -> None:
    async with held() as call:
        await call.rest(5.0)
        await call.agent.emit_event(PRICE)
        await call.rest(0.65)
        assert call.commands(RequestResponse) == []
        await call.rest(0.1)
        assert len(call.commands(RequestResponse)) == 1
        kinds = [type(one) for one in call.wire.commands]
        assert kinds.index(AppendContext) < kinds.index(RequestResponse)


async def test_voice_row_086_a_word_of_the_caller_puts_the_pause_off() -> None:
    async with held() as call:
        await call.rest(1.0)
        await call.agent.emit_event(PRICE)
        await call.rest(0.5)
        call.session.user_speech(True)
        await call.rest(3.0)
        assert call.commands(RequestResponse) == []
        assert len(call.commands(AppendContext)) == 1, "it joined the turn, silently"


async def test_voice_row_086_without_events_they_wait_for_a_text_turn() -> None:
    async with held(config=SessionConfig(events=False)) as call:
        await call.agent.emit_event(PRICE, when_idle="defer")
        await call.talk("alpha")
        await call.rest(5.0)
        assert call.commands(AppendContext) == []
        assert call.commands(RequestResponse) == []
        assert await _stored(call.agent) == []


async def test_voice_row_086_speech_that_was_stopped_does_not_hold_the_pause_up() -> None:
    async with held() as call:
        call.session.respond("something that takes a long time to say in full")
        await call.until(lambda: call.session.speaking)
        call.session.interrupt()
        assert not call.session.speaking
        await call.agent.emit_event(PRICE)
        await call.rest(1.5)
        assert len(call.commands(RequestResponse)) == 2
