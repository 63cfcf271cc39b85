"""A model that listens while it speaks, and the host that integrates it (row 91)."""

from __future__ import annotations

import asyncio

from tests.realtime.rigs import quiet, rig
from tests.realtime.sessions import built
from tests.simulators import tone_words
from tests.simulators.realtime_script import Asked, Call, Reply
from voxglove.core.context import TurnPreparation
from voxglove.core.external import AgentEvent
from voxglove.core.tool import ToolContext, tool
from voxglove.realtime.config import SessionConfig
from voxglove.realtime.events import Words
from voxglove.realtime.listeners import Transcript
from voxglove.realtime.session_events import OutputStopped

PRICE = AgentEvent(source="catalog", content="growth costs 39 now", id="price:1")
LONG = "alpha bravo charlie delta echo foxtrot golf hotel india juliet"


def talk(asked: Asked) -> Reply:
    """Speaks long where `papa` is heard, gives work away where `kilo` is."""
    if asked.by == "speech" and "papa" in asked.text:
        return Reply(text=LONG)
    if asked.by == "speech" and "kilo" in asked.text:
        return Reply(calls=(Call(name="book", arguments={"word": "kilo"}),))
    return quiet(asked)


async def test_voice_row_091_speech_is_announced_when_all_that_a_turn_brings_is_told() -> None:
    agent = built()
    turns: list[str] = []

    async def prepare(preparation: TurnPreparation) -> None:
        await asyncio.sleep(0.5)
        turns.append(preparation.reason)

    agent.add_turn_preparer(prepare)
    agent.add_context_provider(lambda token: f"turn {len(turns)}", delivery="request", id="turn")
    agent.add_context_provider(lambda token: f"goal {len(turns)}", delivery="history", id="goal")
    async with rig("gpt-live", quiet, agent=agent) as call:
        await call.wait(0.2)
        began = asyncio.get_running_loop().time()
        await call.session.notify_user_speech(True)
        assert asyncio.get_running_loop().time() - began >= 0.5
        assert turns == ["session_open", "user_speech"]
        await call.wait(0.2)
        assert call.count("turn 2") == call.count("goal 2") == 1
        await call.session.notify_user_speech(False)
        await call.wait(0.2)
        assert turns == ["session_open", "user_speech"], "a boundary prepares nothing"
        kinds = {str(frame["type"]) for frame in call.frames()}
        assert kinds == {"session.start", "session.thinking.append"}, "nothing is committed"
        await call.session.notify_user_speech(True)
        assert turns == ["session_open", "user_speech", "user_speech"]
        assert sum("goal" in one.text for one in await call.history()) == 3
    call.assert_clean()


async def test_voice_row_091_a_boundary_cancels_no_work_behind_the_voice() -> None:
    ran: list[str] = []

    async def book(word: str, ctx: ToolContext) -> str:
        """Book a word."""
        await asyncio.sleep(2.0)
        ran.append(word)
        return "seven"

    async with rig("gpt-live", talk, tools=[tool(book)]) as call:
        await call.say("kilo")
        await call.until(lambda: call.session.working)
        await call.session.notify_user_speech(True)
        await call.wait(0.4)
        await call.session.notify_user_speech(False)
        await call.rest()
        assert ran == ["kilo"] and [text for _, text in call.results] == ["seven"]
        assert call.heard == ["golf"]
    call.assert_clean()


async def test_voice_row_091_the_end_of_playback_begins_the_quiet_pause() -> None:
    async with rig("gpt-live", quiet) as call:
        await call.say("november")
        await call.rest()
        call.session.notify_playback(True)
        await call.agent.emit_event(PRICE)
        await call.wait(3.0)
        assert [one.by for one in call.asked] == ["speech"], "the loudspeaker is still on"
        call.session.notify_playback(False)
        await call.wait(0.6)
        assert [one.by for one in call.asked] == ["speech"]
        await call.wait(0.4)
        await call.rest()
        assert [one.by for one in call.asked] == ["speech", "context", "request"]
    call.assert_clean()


async def test_voice_row_091_the_users_own_pause_does_not_begin_it_while_he_speaks() -> None:
    async with rig("gpt-live", quiet) as call:
        await call.wait(1.0)
        await call.session.notify_user_speech(True)
        await call.agent.emit_event(PRICE)
        await call.wait(3.0)
        assert call.asked == [], "an event waits for the user's end"
        await call.session.notify_user_speech(False)
        await call.wait(1.5)
        await call.rest()
        assert call.count("growth costs 39") == 1
    call.assert_clean()


async def test_voice_row_091_fragments_of_both_sides_keep_their_times_while_they_overlap() -> None:
    transcripts: list[Transcript] = []
    async with rig("gpt-live", talk, config=SessionConfig(interruption=False)) as call:
        call.session.on("transcript", transcripts.append)
        await call.say("papa")
        await call.until(lambda: call.session.speaking)
        await call.say("november")
        await call.rest()
    spoken = {role: _pieces(transcripts, role) for role in ("user", "assistant")}
    user = next(one for one in spoken["user"] if "november" in one.text)
    (start, end) = (user.start_ms, user.end_ms)
    assert start is not None and end is not None
    beside = [
        one
        for one in spoken["assistant"]
        if one.start_ms is not None
        and one.end_ms is not None
        and one.start_ms < end
        and start < one.end_ms
    ]
    assert beside, "both spoke at that time"
    for pieces in spoken.values():
        times = [one.start_ms for one in pieces if one.start_ms is not None]
        assert times == sorted(times) and len(times) == len(pieces)
    call.assert_clean()


def _pieces(transcripts: list[Transcript], role: str) -> list[Transcript]:
    return [one for one in transcripts if one.role == role and not one.final]


async def test_voice_row_091_interrupt_shuts_the_model_out_until_output_is_resumed() -> None:
    async with rig("gpt-live", talk) as call:
        await call.say("papa")
        await call.until(lambda: call.session.speaking)
        await call.wait(0.5)
        call.session.interrupt()
        stops = call.all(OutputStopped)
        assert len(stops) == 1, "the host flushes at once"
        before = len(call.heard)
        said = len(call.frames())
        await call.wait(3.0)
        assert len(call.heard) == before, "what it goes on saying is not heard"
        assert call.frames()[said:] == [], "nothing is told to a model that cannot be stopped"
        await call.say("november")
        await call.rest()
        assert len(call.heard) == before, "an answer neither"
        call.session.resume_output()
        await call.say("oscar")
        await call.rest()
        assert call.heard[before:] == ["echo"]
    spoken = [message for message in await call.history() if message.sender == "agent"]
    cut, unheard, heard = ((one.interrupted, one.heard) for one in spoken)
    assert cut[0] and cut[1] and LONG.startswith(cut[1]) and len(cut[1]) < len(LONG)
    assert unheard == (True, ""), "spoken to a closed gate"
    assert heard == (False, "echo")
    call.assert_clean()


async def test_voice_row_091_time_goes_on_where_the_host_sends_nothing() -> None:
    async with rig("gpt-live", quiet) as call:
        call.session.respond("greet")
        await asyncio.sleep(4.0)
        assert call.heard == ["hotel"], "silence was sent in the caller's place"
        words = [one for one in call.all(Words) if one.role == "assistant" and one.final]
        assert [one.text for one in words] == ["hotel"]
        sent_s = (await call.session.stop()).seconds
        assert sent_s is not None and 3.0 <= sent_s <= 5.0
    assert tone_words.duration_ms("hotel") < 1_000
    call.assert_clean()
