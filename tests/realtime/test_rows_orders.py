"""What a host orders of a session, and how a session ends, on every provider (rows 87, 88, 90)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.core.support import ScriptedModel
from tests.realtime.rigs import PROVIDERS, Provider, quiet, rig
from tests.realtime.sessions import Held, built, held
from voxglove.core.cancel import CancelToken
from voxglove.core.context import TurnPreparation
from voxglove.core.messages import Message
from voxglove.core.model import ModelRequest, ModelResult, Notify
from voxglove.core.stores.memory import MemoryStore
from voxglove.core.usage import Usage
from voxglove.realtime.commands import RequestResponse, SendText
from voxglove.realtime.config import SessionConfig
from voxglove.realtime.events import ResponseDone, ResponseStarted, Used
from voxglove.realtime.scripted import ScriptedAdapter
from voxglove.realtime.session import RealtimeSession

each = pytest.mark.parametrize("provider", PROVIDERS)


# ---- row 87


@each
async def test_voice_row_087_a_text_request_waits_until_the_call_is_over(
    provider: Provider,
) -> None:
    agent = built()
    agent.set_model(ScriptedModel("in writing"))
    async with rig(provider, quiet, agent=agent) as call:
        request = asyncio.ensure_future(_asked(call.session, "a letter"))
        await call.say("alpha")
        await call.rest(1.0)
        assert not request.done()
        assert await call.texts() == [("user", "alpha"), ("agent", "echo")]
        await call.session.stop()
        await request
    assert [text for _, text in await call.texts()] == ["alpha", "echo", "a letter", "in writing"]
    call.assert_clean()


async def test_voice_row_087_a_call_waits_until_a_text_request_is_over() -> None:
    agent = built()
    agent.set_model(ScriptedModel(_slow))
    adapter = ScriptedAdapter()
    session = RealtimeSession(agent, adapter=adapter)
    async with asyncio.TaskGroup() as group:
        request = group.create_task(agent.process_request("a letter"))
        await asyncio.sleep(0.1)
        starting = group.create_task(session.start())
        await asyncio.sleep(1.0)
        assert not starting.done() and not adapter.setups
        await request
        await starting
        assert len(adapter.setups) == 1
        await session.stop()


async def _asked(session: RealtimeSession, text: str) -> None:
    await session.agent.process_request(text)


async def _slow(request: ModelRequest, notify: Notify, token: CancelToken) -> ModelResult:
    await asyncio.sleep(3.0)
    return ModelResult(messages=(Message(sender="agent", text="done"),), usage=Usage())


# ---- row 88


@each
async def test_voice_row_088_a_text_for_the_user_is_spoken_about_and_kept(
    provider: Provider,
) -> None:
    async with rig(provider, quiet) as call:
        done = call.session.inject(kind="user", text="covered until june")
        await call.rest()
        assert done.done()
        assert call.heard == ["tango"]
        assert await call.texts() == [("user", "covered until june"), ("agent", "tango")]
    call.assert_clean()


@each
async def test_voice_row_088_a_text_for_context_is_silent(provider: Provider) -> None:
    async with rig(provider, quiet) as call:
        done = call.session.inject(kind="context", text="the caller is a friend")
        await call.wait(3.0)
        assert done.done()
        assert call.heard == []
        assert call.count("the caller is a friend") == 1
        assert sum("a friend" in message.text for message in await call.history()) == 1
        await call.say("alpha")
        await call.rest()
        assert call.heard == ["echo"] and call.count("the caller is a friend") == 1
        known = call.asked[-1].history
        assert any("the caller is a friend" in text for _, text in known)
    call.assert_clean()


@each
async def test_voice_row_088_an_instruction_is_followed_and_is_no_history(
    provider: Provider,
) -> None:
    async with rig(provider, quiet) as call:
        done = call.session.respond("greet in one sentence")
        await call.rest()
        assert done.done()
        assert call.count("greet in one sentence") == 1
        assert len(call.heard) == 1
        assert [who for who, _ in await call.texts()] == ["agent"]
        assert "greet in one" not in str(await call.history())
    if provider == "openai":
        assert "greet in one" not in str(call.server.items())  # type: ignore[union-attr]
    call.assert_clean()


@each
async def test_voice_row_088_typed_words_come_behind_preparers_and_context(
    provider: Provider,
) -> None:
    ran: list[str] = []
    agent = built()

    def prepare(preparation: TurnPreparation) -> None:
        ran.append(preparation.reason)
        if preparation.reason == "user_speech":
            preparation.agent.set_system_prompt("prepared now")

    async def before() -> None:
        await asyncio.sleep(0.2)
        ran.append("before_turn")

    agent.add_turn_preparer(prepare)
    agent.add_context_provider(lambda token: f"it is {len(ran)}", id="clock")
    async with rig(provider, quiet, agent=agent, config=SessionConfig(before_turn=before)) as call:
        assert ran == ["session_open", "before_turn"]
        await call.wait(0.3)
        saying = asyncio.ensure_future(call.session.say("my typed words"))
        await call.rest()
        await saying
        assert ran == ["session_open", "before_turn", "user_speech", "before_turn"]
        typed = call.place("my typed words")
        assert call.place("prepared now") < typed
        assert call.place("it is 4") < typed
        assert call.heard == ["tango"]
        assert await call.texts() == [("user", "my typed words"), ("agent", "tango")]
    call.assert_clean()


@each
async def test_voice_row_088_orders_keep_their_order(provider: Provider) -> None:
    async with rig(provider, quiet) as call:
        session = call.session
        orders = [
            session.inject(kind="context", text="first a fact"),
            session.respond("second an instruction"),
            session.inject(kind="context", text="third a fact"),
            session.respond("fourth an instruction"),
        ]
        await call.until(lambda: all(order.done() for order in orders))
        texts = ("first a fact", "second an instruction", "third a fact", "fourth an instruction")
        places = [call.place(text) for text in texts]
        assert places == sorted(places)
        assert [call.count(text) for text in texts] == [1, 1, 1, 1]
        starts = [one for one in call.events if isinstance(one, ResponseStarted | ResponseDone)]
        kinds = [type(one) for one in starts]
        if call.can.turn_taking != "full_duplex":  # whose speech has no ends of its own
            assert kinds == [ResponseStarted, ResponseDone] * 2, "one behind the other"
        assert len(call.heard) == 2
    call.assert_clean()


async def test_voice_row_088_a_typed_word_ends_speech_and_comes_before_later_orders() -> None:
    async with held() as call:
        call.session.respond("a very long instruction to be read aloud to the end")
        await call.until(lambda: call.session.speaking)
        typed = asyncio.ensure_future(call.session.say("stop"))
        await asyncio.sleep(0)
        later = call.session.respond("and now")
        await typed
        await later
        asked = _asking(call)
        assert [getattr(one, "text", "") or getattr(one, "instruction", "") for one in asked] == [
            "a very long instruction to be read aloud to the end",
            "stop",
            "and now",
        ]


def _asking(call: Held) -> Sequence[object]:
    return [one for one in call.wire.commands if isinstance(one, SendText | RequestResponse)]


# ---- row 90


@each
async def test_voice_row_090_concurrent_stops_share_one_ending(provider: Provider) -> None:
    async with rig(provider, quiet) as call:
        await call.say("alpha")
        await call.rest(0.3)
        before = len(call.events)
        first, second = await asyncio.gather(call.session.stop(), call.session.stop())
        assert first is second
        assert await call.session.stop() is first
        told = [one for one in call.events[before:] if isinstance(one, Used) and one.final]
        assert len(told) <= 1
        if call.can.usage == "duration":
            assert told == [first] and first.final
            assert first.seconds is not None and 1.0 <= first.seconds <= 5.0
        assert call.states[-1] == "closed" and call.states.count("closed") == 1
    call.assert_clean()


async def test_voice_row_090_seconds_of_all_connections_are_counted_once() -> None:
    async with rig("gpt-live", quiet) as call:
        await call.wait(3.0)
        call.wires[-1].reset()
        await call.until(lambda: len(call.wires) == 2 and call.session.state == "open")
        await call.wait(4.0)
        used = await call.session.stop()
        assert used.final and used.seconds is not None
        assert 4.0 <= used.seconds <= 8.5, "what a lost connection never told is not known"


async def test_voice_row_090_a_failing_end_is_told_to_all_after_everything_is_closed() -> None:
    class Full(MemoryStore):
        full = False

        async def append_messages(self, messages: Sequence[Message]) -> None:
            if self.full:
                raise OSError("disk full")
            await super().append_messages(messages)

    store = Full("call")
    agent = built(store=store)
    session = RealtimeSession(agent, adapter=ScriptedAdapter())
    states: list[str] = []
    session.on("state", states.append)
    await session.start()
    session.respond("a very long instruction to be read aloud to the end")
    await asyncio.sleep(0.3)
    store.full = True
    ends = await asyncio.gather(session.stop(), session.stop(), return_exceptions=True)
    assert all(isinstance(end, Exception) and "disk full" in _text(end) for end in ends), ends
    assert states[-1] == "closed"
    store.full = False
    agent.set_model(ScriptedModel("free again"))
    async with agent.running():
        await agent.process_request("hello?")


def _text(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return " ".join(_text(one) for one in error.exceptions)
    return f"{error} {error.__cause__ or ''}"
