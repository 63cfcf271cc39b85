"""Who talks and what is due: no flag sticks, and nothing fires twice or into somebody's speech."""

from __future__ import annotations

import asyncio

from tests.realtime.by_hand import ByHand, HandAdapter, by_hand, unable
from voxglove.core.external import AgentEvent
from voxglove.realtime.commands import RequestResponse
from voxglove.realtime.config import SessionConfig
from voxglove.realtime.events import (
    Audio,
    Interrupted,
    ItemDone,
    ResponseDone,
    ResponseStarted,
    UserSpeech,
    UserTurn,
    Words,
)
from voxglove.realtime.session_events import AnswerHeard


def _resting(call: ByHand) -> bool:
    run = call.session._run
    assert run is not None
    return run.parts.floor.gap and not call.session.working


async def test_a_stop_leaves_the_floor_free() -> None:
    async with by_hand() as call:
        call.begins("r1", "a1", "a long story", s=30)
        await asyncio.sleep(1)
        call.session.interrupt()
        call.wire.say(ItemDone("a1"), ResponseDone("r1", "cancelled"))
        await asyncio.sleep(1)
        assert not call.session.speaking and _resting(call)


async def test_a_cough_that_interrupted_does_not_hold_the_floor_for_ever() -> None:
    async with by_hand() as call:
        call.begins("r1", "a1", "a long story", s=30)
        await asyncio.sleep(1)
        call.wire.say(Interrupted("a1"), ItemDone("a1"), ResponseDone("r1", "cancelled"))
        await asyncio.sleep(1)
        assert call.session.user_speaks  # as far as anybody knows
        await asyncio.sleep(10)
        assert _resting(call)


async def test_each_turn_has_its_preparations_also_after_a_cough() -> None:
    prepared = []
    config = SessionConfig(before_turn=lambda: prepared.append(1))
    async with by_hand(config=config) as call:
        before = len(prepared)
        call.wire.say(UserSpeech("started", "u1"))
        await asyncio.sleep(0.2)
        call.wire.say(UserSpeech("stopped", "u1"))  # and no turn comes of it
        await asyncio.sleep(5)
        assert len(prepared) == before + 1
        call.wire.say(UserSpeech("started", "u2"))
        await asyncio.sleep(1)
        assert len(prepared) == before + 2
        call.wire.say(UserSpeech("stopped", "u2"))
        call.turn("u2", "alpha")
        await asyncio.sleep(1)
        assert len(prepared) == before + 2


async def test_a_storm_of_events_does_not_put_off_speaking_about_them() -> None:
    async with by_hand() as call:
        for count in range(20):
            await call.agent.emit_event(AgentEvent(source="door", content=f"ring {count}"))
            await asyncio.sleep(0.3)
        assert len(call.told(RequestResponse)) >= 1


async def test_a_caller_who_speaks_on_while_it_reconnects_is_not_talked_over() -> None:
    adapter = HandAdapter(unable(turn_taking="full_duplex"))
    async with by_hand(adapter=adapter) as call:
        call.session.user_speech(True)
        await asyncio.sleep(0.2)
        call.breaks()
        await call.again()
        await call.agent.emit_event(AgentEvent(source="door", content="ring"))
        await asyncio.sleep(3)
        assert call.told(RequestResponse) == []
        call.session.user_speech(False)
        await asyncio.sleep(3)
        assert len(call.told(RequestResponse)) == 1


async def test_an_answer_broken_off_by_a_move_is_over_for_whoever_plays_it() -> None:
    async with by_hand() as call:
        call.turn("u1", "alpha")
        call.begins("r1", "a1", "one two three", s=2)
        run = call.session._run
        assert run is not None
        run.parts.link.move(0.0)
        await call.again()
        await asyncio.sleep(5)
        assert [one.item_id for one in call.all(AnswerHeard)] == ["a1"]
        last = (await call.agent.store.get_messages())[-1]
        assert last.playback == "settled"


async def test_what_comes_of_an_item_after_its_stop_counts_as_unheard() -> None:
    adapter = HandAdapter(unable(turn_taking="full_duplex", can_cancel=False))
    async with by_hand(adapter=adapter) as call:
        text = " ".join(f"word{count}" for count in range(20))
        call.wire.say(ResponseStarted("r1"), Words("assistant", "a1", text))
        call.wire.say(Audio("a1", bytes(2 * 48_000)))
        await asyncio.sleep(2.0)
        call.session.stop_speech()
        call.wire.say(Audio("a1", bytes(8 * 48_000)))
        call.ends("r1", "a1", text)
        await asyncio.sleep(1)
        last = (await call.agent.store.get_messages())[-1]
        assert last.heard is not None and 2 <= len(last.heard.split()) <= 6


async def test_nothing_is_asked_while_a_slow_model_owes_an_answer() -> None:
    async with by_hand() as call:
        await call.agent.emit_event(AgentEvent(source="door", content="ring"))
        call.turn("u1", "alpha")
        await asyncio.sleep(3)
        assert call.told(RequestResponse) == []
        call.answers("r1", "a1", "bravo")
        await asyncio.sleep(5)
        assert _resting(call)


async def test_words_that_never_become_a_turn_do_not_hold_up_history() -> None:
    async with by_hand() as call:
        call.wire.say(Words("user", "u1", "uh"))
        call.answers("r1", "a1", "one")
        await asyncio.sleep(6)
        assert await call.texts() == ["uh", "one"]


async def test_typed_words_come_behind_the_answer_that_they_interrupt() -> None:
    async with by_hand() as call:
        call.turn("u1", "alpha")
        call.begins("r1", "a1", "one two three", s=5)
        await asyncio.sleep(2)
        call.session.inject(kind="user", text="charlie")
        call.session.stop_speech()
        await asyncio.sleep(0.2)
        call.wire.say(ItemDone("a1"), ResponseDone("r1", "cancelled"))
        await asyncio.sleep(2)
        assert await call.texts() == ["alpha", "one two three", "charlie"]


async def test_a_turn_spoken_before_the_one_before_it_was_taken_is_kept_for_replay() -> None:
    async with by_hand() as call:
        for _ in range(2):  # the provider is slow: it takes the first when both are over
            call.session.user_speech(True)
            call.session.send_audio(bytes(48_000))
            call.session.user_speech(False)
        call.wire.say(UserTurn("u1", 0, 900), Words("user", "u1", "alpha", True))
        await asyncio.sleep(0.1)
        for _ in range(5):
            call.session.send_audio(bytes(48_000))
            await asyncio.sleep(1)
        call.breaks()
        await call.again()
        assert call.wire.sent >= 24_000 * 6
