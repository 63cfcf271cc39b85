"""What was asked of the model is asked once, whatever happens to the connection meanwhile."""

from __future__ import annotations

import asyncio

from tests.realtime.by_hand import ByHand, HandAdapter, by_hand
from tests.realtime.sessions import built
from voxglove.core.tool import tool as as_tool
from voxglove.realtime.asks import BEGIN_S
from voxglove.realtime.commands import AppendContext, RequestResponse, SendText, SendToolResults
from voxglove.realtime.config import SessionConfig
from voxglove.realtime.events import (
    Audio,
    ItemDone,
    UserSpeech,
    UserTurn,
    Words,
)
from voxglove.realtime.link import Reconnected
from voxglove.realtime.session import RealtimeSession


def _requests(call: ByHand) -> list[str]:
    """Everything that asks the newest connection for a response."""
    found = [one.instruction for one in call.told(RequestResponse)]
    found += [one.text for one in call.told(SendText)]
    return found + ["results" for one in call.told(SendToolResults) if one.respond]


async def test_an_order_given_when_a_new_connection_is_told_is_asked_once() -> None:
    async with by_hand() as call:

        def greet(event: object) -> None:
            if isinstance(event, Reconnected):
                call.session.respond("greet")

        call.session.listen(greet)
        call.breaks()
        await call.again()
        assert _requests(call) == ["greet"]


async def test_an_order_just_before_a_connection_is_introduced_is_asked_once() -> None:
    async with by_hand() as call:

        def greet(event: object) -> None:
            if isinstance(event, Reconnected):
                asyncio.get_running_loop().call_soon(call.session.respond, "greet")

        call.session.listen(greet)
        call.breaks()
        await call.again()
        assert _requests(call) == ["greet"]


async def test_typed_words_that_wait_while_the_connection_changes_come_once() -> None:
    async def slow() -> None:
        await asyncio.sleep(2.0)

    async with by_hand(config=SessionConfig(before_turn=slow)) as call:
        typed = call.session.inject(kind="user", text="alpha")
        await asyncio.sleep(0.5)
        call.breaks()
        await call.again()
        await asyncio.sleep(8)
        assert len(_requests(call)) == 1
        known = sum("alpha" in one.text for one in call.told(AppendContext))
        known += sum("alpha" in one.text for one in call.told(SendText))
        known += sum("alpha" in one.text for one in call.adapter.setups[-1].history)
        assert known == 1
        call.answers("r1", "a1", "bravo", request=_asked(call))
        await asyncio.wait_for(typed, 1)


def _asked(call: ByHand) -> str:
    for command in call.wire.commands:
        if isinstance(command, RequestResponse | SendText):
            return command.request_id
    raise AssertionError("nothing was asked")


async def test_typed_words_in_a_long_outage_are_answered_after_it() -> None:
    async with by_hand() as call:
        call.adapter.connect_s = BEGIN_S + 4
        call.breaks()
        typed = call.session.inject(kind="user", text="alpha")
        await call.again()
        assert not typed.done() and len(_requests(call)) == 1
        call.answers("r1", "a1", "bravo", request=_asked(call))
        await asyncio.wait_for(typed, 1)


async def test_a_request_behind_a_long_response_is_not_given_up() -> None:
    async with by_hand() as call:
        call.begins("r1", "a1", "a long story")
        wish = call.session.respond("and now this")
        await asyncio.sleep(BEGIN_S * 2)
        assert not wish.done() and call.problems == []
        call.ends("r1", "a1", "a long story")
        await asyncio.sleep(BEGIN_S * 2 + 1)
        assert wish.done() and call.problems == ["ERR_REALTIME_NO_RESPONSE"]


async def test_an_order_given_while_it_connects_is_asked_when_it_is_open() -> None:
    adapter = HandAdapter(connect_s=BEGIN_S + 2)
    session = RealtimeSession(built(), adapter=adapter)
    task = asyncio.get_running_loop().create_task(session.start())
    await asyncio.sleep(1)
    wish = session.respond("greet")
    await task
    await asyncio.sleep(0.1)
    assert [type(one) for one in adapter.connections[0].commands] == [RequestResponse]
    assert not wish.done()
    await session.stop()


async def test_words_outside_a_response_are_history_although_something_is_to_be_read_out() -> None:
    async with by_hand() as call:
        call.session.respond("read this", verbatim=True)
        await asyncio.sleep(0.1)
        call.wire.say(Words("assistant", "a1", "alpha"), Audio("a1", bytes(4_800)))
        call.wire.say(Words("assistant", "a1", "alpha", True), ItemDone("a1"))
        await asyncio.sleep(2)
        assert await call.texts() == ["alpha"]


async def test_a_turn_taken_while_the_answer_before_it_runs_is_asked_again_after_a_break() -> None:
    async with by_hand() as call:
        call.turn("u1", "alpha")
        call.begins("r1", "a1", "one")
        call.turn("u2", "bravo")
        call.ends("r1", "a1", "one")
        await asyncio.sleep(0.1)
        call.breaks()
        await call.again()
        assert len(_requests(call)) == 1


async def test_an_answered_turn_is_not_asked_again() -> None:
    async with by_hand() as call:
        call.turn("u1", "alpha")
        call.answers("r1", "a1", "one")
        await asyncio.sleep(3)
        call.breaks()
        await call.again()
        assert _requests(call) == []


async def test_results_that_came_while_the_user_spoke_are_answered_with_his_turn_only() -> None:
    async def book() -> str:
        """Book."""
        await asyncio.sleep(1)
        return "seven"

    async with by_hand(as_tool(book)) as call:
        call.calls("r1", "book")
        await asyncio.sleep(0.5)
        call.wire.say(UserSpeech("started", "u1"))
        await asyncio.sleep(1)
        call.wire.say(UserSpeech("stopped", "u1"))
        call.turn("u1", "alpha")
        call.answers("r2", "a2", "seven and alpha")
        await asyncio.sleep(10)
        assert _requests(call) == []


async def test_results_that_came_while_somebody_coughed_are_answered_at_the_pause() -> None:
    async def book() -> str:
        """Book."""
        await asyncio.sleep(1)
        return "seven"

    async with by_hand(as_tool(book)) as call:
        call.calls("r1", "book")
        await asyncio.sleep(0.5)
        call.wire.say(UserSpeech("started", "u1"))
        await asyncio.sleep(1)
        call.wire.say(UserSpeech("stopped", "u1"))
        await asyncio.sleep(3)
        assert len(_requests(call)) == 1


async def test_a_call_that_was_acted_on_before_its_words_came_runs_once() -> None:
    ran = []

    async def book() -> str:
        """Book."""
        ran.append(1)
        await asyncio.sleep(2)
        return "seven"

    async with by_hand(as_tool(book)) as call:
        call.session.send_audio(bytes(48_000))
        call.wire.say(UserTurn("u1", 0, 900))
        call.calls("r1", "book")
        await asyncio.sleep(0.3)
        call.breaks()
        await call.again()
        assert call.wire.sent <= 24_000 * 0.2  # the turn is not heard again
        assert len(await call.texts()) == 1


async def test_a_turn_that_was_answered_before_its_words_came_is_not_lost() -> None:
    async with by_hand() as call:
        call.session.send_audio(bytes(48_000))
        call.wire.say(UserTurn("u1", 0, 900))
        call.begins("r1", "a1", "one two three", s=0.5)
        call.breaks("r1")
        await call.again()
        assert call.wire.sent <= 24_000 * 0.2
        assert len(await call.texts()) == 2
