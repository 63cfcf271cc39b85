"""What a call leaves in the store, and what a model knows of it later (rows 84, 89 and 92)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from tests.core.support import ScriptedModel
from tests.realtime.rigs import PROVIDERS, Provider, Rig, quiet, rig
from tests.realtime.sessions import built
from tests.simulators.realtime_script import Asked, Call, Reply, Script
from voxglove.core.events import CompactionEnd
from voxglove.core.messages import Message
from voxglove.core.tool import ToolContext, tool
from voxglove.realtime.config import LiveCompaction, SessionConfig
from voxglove.realtime.link import Reconnected
from voxglove.realtime.playback import OutputCut, Played, settled
from voxglove.realtime.session import RealtimeSession

each = pytest.mark.parametrize("provider", PROVIDERS)
LONG = "alpha bravo charlie delta echo foxtrot golf hotel"
"""2.24 s of speech."""


async def book(word: str, ctx: ToolContext) -> str:
    """Book a word."""
    return "seven"


def talk(asked: Asked) -> Reply:
    """Answers; books where `kilo` is heard."""
    if asked.by == "speech" and "kilo" in asked.text:
        return Reply(calls=(Call(name="book", arguments={"word": "kilo"}),))
    return quiet(asked)


# ---- row 84


@each
async def test_voice_row_084_every_turn_is_stored_once_and_in_order(provider: Provider) -> None:
    async with rig(provider, talk, tools=[tool(book)]) as call:
        await call.say("alpha bravo")
        await call.rest(0.4)
        await call.say("kilo lima")
        await call.rest(0.4)
        await call.session.say("november")
        await call.rest(0.4)
    history = await call.history()
    assert [_entry(message) for message in history] == [
        ("user", "alpha bravo"),
        ("agent", "echo"),
        ("user", "kilo lima"),
        ("call", "book"),
        ("result", "seven"),
        ("agent", "golf"),
        ("user", "november"),
        ("agent", "tango"),
    ]
    assert history[3].tool_calls[0].id == history[4].tool_results[0].call_id
    spoken = [message for message in history if message.sender == "agent" and message.text]
    assert [message.playback for message in spoken] == ["settled"] * 3
    assert len({message.id for message in history}) == len(history)
    call.assert_clean()


@each
async def test_voice_row_084_a_text_turn_after_the_call_knows_what_was_said(
    provider: Provider,
) -> None:
    agent = built(tool(book))
    async with rig(provider, talk, agent=agent) as call:
        await call.say("kilo lima")
        await call.rest(0.4)
    model = ScriptedModel("you booked seven")
    agent.set_model(model)
    async with agent.running():
        await agent.process_request("what did I book?")
    (request,) = model.requests
    assert [_entry(message) for message in request.messages] == [
        ("user", "kilo lima"),
        ("call", "book"),
        ("result", "seven"),
        ("agent", "golf"),
        ("user", "what did I book?"),
    ]


@each
async def test_voice_row_084_a_call_after_a_text_turn_knows_what_was_written(
    provider: Provider,
) -> None:
    agent = built()
    agent.set_model(ScriptedModel("noted"))
    async with agent.running():
        await agent.process_request("my name is Ada")
    async with rig(provider, quiet, agent=agent) as call:
        assert call.seed(1) == [("user", "my name is Ada"), ("assistant", "noted")]
    call.assert_clean()


def _entry(message: Message) -> tuple[str, str]:
    if message.tool_calls:
        return "call", message.tool_calls[0].tool_name
    if message.tool_results:
        return "result", str(message.tool_results[0].result.data)
    return message.sender, message.text


# ---- row 89


def _crowded(count: int = 1) -> Script:
    """A model whose context is over 1,000 tokens after answer `count`, and small again then."""
    return Script(tokens=lambda response: 5_000 if response == count else 100, summary="kilo lima")


async def _compacted(call: Rig) -> str:
    """Talk until the conversation is summarised; the summary in the store."""
    await call.say("alpha bravo")
    await call.rest(0.3)
    await call.until(lambda: [one for one in call.subscribed if isinstance(one, CompactionEnd)])
    await call.rest(1.0)
    (summary,) = [message.text for message in await call.history() if message.is_compaction]
    return summary


async def test_voice_row_089_openai_writes_the_summary_itself_and_keeps_only_that() -> None:
    config = SessionConfig(compaction=LiveCompaction(context_limit=1_000))
    async with rig("openai", quiet, script=_crowded(), config=config) as call:
        assert "kilo lima" in await _compacted(call)
        assert len(call.wires) == 1, "nothing has to be opened anew"
        known = [text for _, text in call.server.items()]  # type: ignore[union-attr]
        assert len(known) == 1 and "kilo lima" in known[0]
        await call.say("november")
        await call.rest(0.4)
        assert call.heard == ["echo", "echo"], "the summary is not spoken"
    assert [text for _, text in await call.texts()][-2:] == ["november", "echo"]
    call.assert_clean()


@pytest.mark.parametrize("by_model", [True, False])
async def test_voice_row_089_elsewhere_a_model_writes_it_or_the_transcript_is_it(
    by_model: bool,
) -> None:
    model = ScriptedModel("they met") if by_model else None
    limit = LiveCompaction(context_limit=1_000, model=model)
    config = SessionConfig(compaction=limit)
    async with rig("gemini", quiet, script=_crowded(), config=config) as call:
        summary = await _compacted(call)
        if by_model:
            assert "they met" in summary and "alpha bravo" not in summary
        else:
            assert "User: alpha bravo" in summary and "You: echo" in summary
        (moved,) = call.all(Reconnected)
        assert moved.planned and not moved.state_restored
        seed = call.seed(2)
        assert len(seed) == 1 and summary in seed[0][1]
        await call.say("november")
        await call.rest(0.4)
        assert call.heard == ["echo", "echo"]
    call.assert_clean()


async def test_voice_row_089_a_share_of_the_window_counts_where_no_tokens_are_told() -> None:
    config = SessionConfig(compaction=LiveCompaction(ratio_limit=0.004))
    async with rig("gpt-live", quiet, config=config) as call:
        summary = await _compacted(call)
        assert "alpha bravo" in summary
        (moved,) = call.all(Reconnected)
        assert moved.planned
        assert [text for _, text in call.seed(2)] == [summary]
    call.assert_clean()


# ---- row 92


class Speaker:
    """A host that knows what its loudspeaker has played, `late_s` after it was handed the sound."""

    def __init__(self, late_s: float = 0.07) -> None:
        self._late_s = late_s
        self._starts: dict[str, float] = {}
        self._ms: dict[str, int] = {}
        self._timers: list[asyncio.TimerHandle] = []
        self.session: RealtimeSession
        self.told: Mapping[str, Played] = {}

    def add(self, item_id: str, samples: int, rate: int) -> None:
        now = asyncio.get_running_loop().time()
        self._starts.setdefault(item_id, now + self._late_s)
        self._ms[item_id] = self._ms.get(item_id, 0) + samples * 1000 // rate

    def done(self, item_id: str) -> None:
        if item_id in self._starts:
            ends = self._starts[item_id] + self._ms[item_id] / 1000
            timer = asyncio.get_running_loop().call_at(ends, self._over, item_id)
            self._timers.append(timer)

    def cut(self) -> OutputCut:
        now = asyncio.get_running_loop().time()
        for timer in self._timers:
            timer.cancel()
        elapsed = {item: max(0, round((now - at) * 1000)) for item, at in self._starts.items()}
        self._starts.clear()
        played = {
            item: Played(min(ms, self._ms[item]), complete=False) for item, ms in elapsed.items()
        }
        self.told = self.told or played
        return settled(played)

    def _over(self, item_id: str) -> None:
        self._starts.pop(item_id, None)
        self.session.heard(item_id)
        self.session.notify_playback(False)


@asynccontextmanager
async def _speaking(speaker: Speaker) -> AsyncIterator[Rig]:
    """A call whose model speaks for two seconds when it hears `papa`."""
    async with rig("openai", _long, playback=speaker) as call:
        speaker.session = call.session
        yield call


def _truncated(call: Rig) -> list[dict[str, object]]:
    return [frame for frame in call.frames() if "truncate" in str(frame.get("type"))]


def _long(asked: Asked) -> Reply:
    return Reply(text=LONG if asked.text == "papa" else "tango")


async def test_voice_row_092_the_model_keeps_what_was_really_played() -> None:
    speaker = Speaker()
    async with _speaking(speaker) as call:
        await call.say("papa")
        await call.wait(0.6)
        await call.say("quebec")
        await call.wait(1.0)
        (cut,) = _truncated(call)
        (heard,) = [played for played in speaker.told.values() if not played.complete]
        assert cut["audio_end_ms"] == heard.ms
        assert 300 < heard.ms < 2_000
    answer = (await call.history())[1]
    assert answer.text == LONG or LONG.startswith(answer.text)
    assert answer.interrupted and answer.heard and LONG.startswith(answer.heard)
    words = len(answer.heard.split())
    assert abs(words * 280 - heard.ms) <= 280, "heard to the word"
    call.assert_clean()


async def test_voice_row_092_what_was_heard_whole_is_not_truncated() -> None:
    async with _speaking(Speaker()) as call:
        await call.say("papa")
        await call.wait(3.5)
        await call.say("quebec")
        await call.wait(1.0)
        assert _truncated(call) == []
        assert not [frame for frame in call.frames() if "item.delete" in str(frame["type"])]
    assert (await call.history())[1].heard == LONG
    call.assert_clean()


async def test_voice_row_092_what_never_sounded_is_deleted() -> None:
    async with _speaking(Speaker(late_s=30.0)) as call:
        await call.say("papa")
        await call.wait(0.6)
        await call.say("quebec")
        await call.wait(1.0)
        assert _truncated(call) == []
        deleted = [frame for frame in call.frames() if "item.delete" in str(frame["type"])]
        assert len(deleted) == 1
        assert LONG not in str(call.server.items())  # type: ignore[union-attr]
    assert not (await call.history())[1].heard
    call.assert_clean()
