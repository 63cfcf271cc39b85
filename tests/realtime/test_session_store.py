"""A store that fails, is slow, or fails after it wrote: what was said is kept, the call lives."""

from __future__ import annotations

import asyncio

import pytest

from tests.realtime.by_hand import RoughStore, by_hand
from tests.realtime.sessions import built
from voxglove.core.errors import StoreError
from voxglove.core.tool import tool as as_tool
from voxglove.realtime.commands import SendToolResults
from voxglove.realtime.events import UserTurn, Words


async def test_what_the_store_refused_is_written_again_by_itself() -> None:
    store = RoughStore("call")
    async with by_hand(agent=built(store=store)) as call:
        store.fails = 2
        call.turn("u1", "alpha")
        await asyncio.sleep(10)
        assert await call.texts() == ["alpha"]
        assert call.problems == ["ERR_REALTIME"] * 2


async def test_a_store_that_stays_away_is_not_asked_in_a_loop() -> None:
    store = RoughStore("call")
    async with by_hand(agent=built(store=store)) as call:
        store.fails = 1_000_000
        call.turn("u1", None)  # its words are overdue after 3 s
        await asyncio.sleep(20)
        assert len(call.problems) < 40
        store.fails = 0
        await asyncio.sleep(5)
        assert len(await call.texts()) == 1


async def test_a_write_that_failed_after_it_was_done_does_not_stop_the_next() -> None:
    store = RoughStore("call")
    async with by_hand(agent=built(store=store)) as call:
        store.fails, store.late = 1, True
        call.turn("u1", "alpha")
        call.answers("r1", "a1", "bravo")
        await asyncio.sleep(10)
        assert await call.texts() == ["alpha", "bravo"]


async def test_what_was_heard_survives_a_write_that_failed() -> None:
    store = RoughStore("call")
    async with by_hand(agent=built(store=store)) as call:
        call.turn("u1", "alpha")
        await asyncio.sleep(0.1)
        call.begins("r1", "a1", "one two three four five six", s=6.0)
        await asyncio.sleep(2.0)
        call.session.stop_speech()
        await asyncio.sleep(0.1)
        store.fails = 1
        call.ends("r1", "a1", "one two three four five six")
        await asyncio.sleep(10)
        answer = (await store.get_messages())[-1]
        assert answer.playback == "settled" and answer.interrupted
        assert answer.heard is not None and 0 < len(answer.heard.split()) < 5


async def test_a_call_whose_message_cannot_be_stored_is_answered_all_the_same() -> None:
    store, ran = RoughStore("call"), []

    async def book() -> str:
        """Book."""
        ran.append(1)
        return "seven"

    async with by_hand(agent=built(as_tool(book), store=store)) as call:
        store.fails = 1
        call.calls("r1", "book")
        await asyncio.sleep(5)
        (told,) = call.told(SendToolResults)
        assert told.outputs[0].call_id == "call_book" and told.outputs[0].status == "error"
        assert ran == []


async def test_the_end_of_a_call_reports_what_could_not_be_stored() -> None:
    store = RoughStore("call")
    with pytest.raises(StoreError, match="disk is full"):
        async with by_hand(agent=built(store=store)) as call:
            call.wire.say(UserTurn("u1"))
            store.fails = 1_000_000
            await call.session.stop()
    assert call.problems
    assert call.session.state == "closed"


async def test_a_hung_store_does_not_hold_up_the_end_of_a_call() -> None:
    store = RoughStore("call")
    with pytest.raises(TimeoutError):  # not all of it was stored: stop says so, in time
        async with by_hand(agent=built(store=store)) as call:
            loop = asyncio.get_running_loop()
            task = call.session._life
            assert task is not None
            store.slow_s = 3600
            call.turn("u1", "alpha")
            await asyncio.sleep(0.1)
            before = loop.time()
            task.cancel()
            await asyncio.wait([task])
            assert loop.time() - before < 2.0


async def test_words_that_come_while_their_turn_is_being_written() -> None:
    store = RoughStore("call")
    async with by_hand(agent=built(store=store)) as call:
        store.slow_s = 1.0
        call.turn("u1", None)
        await asyncio.sleep(3.5)  # being written without them
        call.wire.say(Words("user", "u1", "alpha", True))
        await asyncio.sleep(5)
        assert await call.texts() == ["alpha"]


async def test_overdue_words_are_overdue_to_the_last_bit() -> None:
    """Times whose difference and sum round differently: it looked for ever once."""
    async with by_hand(agent=built(store=RoughStore("call"))) as call:
        for count in range(60):
            await asyncio.sleep(0.1003 + count / 700)
            call.turn(f"u{count}", None)
        await asyncio.sleep(5)
        assert len(await call.texts()) == 60
