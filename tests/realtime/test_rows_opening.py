"""How a session begins, changes its connection and ends, on every provider (rows 77 to 80)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Literal

import pytest

from tests.realtime.rigs import PROVIDERS, Provider, Rig, quiet, rig
from tests.realtime.sessions import built
from tests.simulators.gemini_live import GeminiLive
from tests.simulators.realtime_script import Asked, Call, Fault, Reply, Script
from voxglove.core.errors import ModelError, UsageError
from voxglove.core.tool import ToolContext, tool
from voxglove.realtime.factory import create_realtime_adapter, realtime_model
from voxglove.realtime.link import Reconnected
from voxglove.realtime.port import Capabilities, Connection, Emit, RealtimeAdapter, Setup
from voxglove.realtime.session import RealtimeSession

each = pytest.mark.parametrize("provider", PROVIDERS)
KEYS = {
    "openai": "OPENAI_API_KEY",
    "gemini": "GEMINI_API_KEY or GOOGLE_API_KEY",
    "gpt-live": "OPENAI_API_KEY",
}


async def book(word: str, ctx: ToolContext) -> str:
    """Book a word."""
    return "seven"


class Capped:
    """An adapter whose provider ends connections after `cap_s`."""

    def __init__(self, inner: RealtimeAdapter, cap_s: float) -> None:
        self._inner = inner
        self.provider, self.model = inner.provider, inner.model
        self.capabilities: Capabilities = replace(inner.capabilities, max_session_s=cap_s)

    async def connect(self, setup: Setup, emit: Emit, group: asyncio.TaskGroup) -> Connection:
        return await self._inner.connect(setup, emit, group)


# ---- row 77


@each
def test_voice_row_077_a_missing_key_fails_at_construction_and_names_the_variable(
    provider: Provider,
) -> None:
    with pytest.raises(UsageError, match=f"set {KEYS[provider]}"):
        create_realtime_adapter(provider, env={})
    with pytest.raises(UsageError, match=f"set {KEYS[provider]}"):
        create_realtime_adapter(env={"REALTIME_PROVIDER": provider})
    agent = built()
    agent.set_model(realtime_model(provider))
    with pytest.raises(UsageError, match=f"set {KEYS[provider]}"):
        RealtimeSession(agent, env={})


def test_voice_row_077_without_a_provider_the_remedy_is_named() -> None:
    with pytest.raises(UsageError, match="REALTIME_PROVIDER"):
        create_realtime_adapter(env={})


@each
async def test_voice_row_077_arguments_win_over_the_environment(provider: Provider) -> None:
    models = {"openai": "gpt-realtime-1", "gemini": "gemini-3.1-live", "gpt-live": "gpt-live-2"}
    variable = KEYS[provider].partition(" ")[0]
    env = {
        "REALTIME_PROVIDER": provider,
        "REALTIME_MODEL": models[provider],
        "REALTIME_VOICE": "Kore",
        variable: "k",
    }
    from_env = create_realtime_adapter(env=env)
    assert (from_env.provider, from_env.model) == (
        {"gpt-live": "openai-live"}.get(provider, provider),
        models[provider],
    )
    default = create_realtime_adapter(provider, env={variable: "k"})
    given = create_realtime_adapter(env=env, model=default.model)
    assert given.model == default.model != from_env.model


@each
@pytest.mark.parametrize("given", [True, False])
async def test_voice_row_077_the_voice_reaches_the_provider(
    provider: Provider, given: bool
) -> None:
    argument, setting = ("Aoede", "Kore") if provider == "gemini" else ("shimmer", "verse")
    voice = argument if given else None
    async with rig(provider, env={"REALTIME_VOICE": setting}, voice=voice) as call:
        assert (argument if given else setting) in call.sent_text()
        assert (setting if given else argument) not in call.sent_text()


async def test_voice_row_077_the_placeholder_fails_loudly_as_a_text_model() -> None:
    agent = built()
    async with agent.running():
        with pytest.raises(ModelError, match="answers only on a live call") as failed:
            await agent.process_request("hello")
    assert failed.value.code == "ERR_MODEL_REALTIME"


# ---- row 78


@each
async def test_voice_row_078_states_of_a_call_with_a_broken_connection(provider: Provider) -> None:
    faults = [Fault(point="caller_silent", action="drop", nth=8)]
    states: list[str] = []
    async with rig(provider, script=Script(faults=faults), start=False) as call:
        call.session.on("state", states.append)
        await call.session.start()
        assert states == ["connecting", "open"]
        await call.until(lambda: call.all(Reconnected) and call.session.state == "open")
        await call.session.stop()
    assert states == ["connecting", "open", "reconnecting", "open", "closed"]
    call.assert_clean()


@each
async def test_voice_row_078_a_connection_that_never_opens_ends_closed(provider: Provider) -> None:
    faults = [Fault(point="connect", action="refuse", code=401, error_code="invalid_api_key")]
    async with rig(provider, script=Script(faults=faults), start=False) as call:
        with pytest.raises(Exception, match="401|key"):
            await call.session.start()
    assert call.states == ["connecting", "closed"]


# ---- row 79


async def _told(call: Rig) -> list[tuple[str, str]]:
    """The store's view in the words of a seed."""
    told: list[tuple[str, str]] = []
    for message in await call.history():
        if message.text and not message.tool_results and not message.framework_context:
            told.append(("user" if message.sender == "user" else "assistant", message.text))
        told += [("call", one.tool_name) for one in message.tool_calls]
        told += [("result", str(one.result.data)) for one in message.tool_results]
    return told


async def _conversation(call: Rig) -> None:
    await call.say("alpha bravo")
    await call.rest()
    await call.say("kilo lima")
    await call.rest()


@each
async def test_voice_row_079_a_fresh_connection_is_seeded_with_what_is_stored(
    provider: Provider,
) -> None:
    def answer(asked: Asked) -> Reply:
        if asked.by == "speech" and "kilo" in asked.text:
            return Reply(calls=(Call(name="book", arguments={"word": "kilo"}),))
        return quiet(asked)

    async with rig(provider, answer, tools=[tool(book)]) as call:
        await _conversation(call)
        stored = await _told(call)
        if isinstance(call.server, GeminiLive):
            call.server.expire_handles()
        _cut(call)
        await call.until(lambda: call.all(Reconnected))
        await call.rest()
        seed = call.seed(len(call.wires))
    (again,) = call.all(Reconnected)
    assert not again.state_restored
    assert again.attempt == (2 if call.can.resume else 1)
    assert [one for one in stored if one[0] in ("user", "assistant")] == [
        ("user", "alpha bravo"),
        ("assistant", "echo"),
        ("user", "kilo lima"),
        ("assistant", "golf"),
    ]
    _assert_seeded(seed, stored)
    assert await _told(call) == stored
    call.assert_clean()


def _assert_seeded(seed: list[tuple[str, str]], stored: list[tuple[str, str]]) -> None:
    """Every turn once and in order; a call and its result as such, or as a note in their place."""
    if ("call", "book") in seed:
        assert seed == stored
        return
    said = [one for one in stored if one[0] in ("user", "assistant")]
    notes = [text for role, text in seed if (role, text) not in said]
    assert [one for one in seed if one in said] == said
    assert " ".join(notes).count("book") and " ".join(notes).count("seven") == 1
    assert [text for _, text in seed].index(notes[0]) == 3, "behind the turn that caused it"


async def test_voice_row_079_the_first_attempt_resumes_with_the_newest_handle() -> None:
    async with rig("gemini", quiet) as call:
        await call.say("alpha bravo")
        await call.rest()
        _cut(call)
        await call.until(lambda: call.all(Reconnected))
        await call.say("november")
        await call.rest()
        assert await call.texts() == [
            ("user", "alpha bravo"),
            ("agent", "echo"),
            ("user", "november"),
            ("agent", "echo"),
        ]
    (again,) = call.all(Reconnected)
    assert again.state_restored and again.attempt == 1
    assert call.seed(2) == [], "what the handle restores must not be told again"
    call.assert_clean()


def _cut(call: Rig) -> None:
    """The newest connection is reset."""
    call.wires[-1].reset()


# ---- row 80


@each
async def test_voice_row_080_a_cap_is_left_before_it_strikes_and_at_a_turn_gap(
    provider: Provider,
) -> None:
    async with rig(provider, quiet, adapt=lambda adapter: Capped(adapter, 60.0)) as call:
        await call.say("alpha bravo")
        started = asyncio.get_running_loop().time()
        await call.until(lambda: len(call.wires) > 1, limit_s=60)
        await call.until(lambda: call.all(Reconnected))
        moved_after = asyncio.get_running_loop().time() - started
        await call.say("november")
        await call.rest()
        assert [text for _, text in await call.texts()] == [
            "alpha bravo",
            "echo",
            "november",
            "echo",
        ]
    (moved,) = call.all(Reconnected)
    assert moved.planned and moved.lost_ms == 0
    assert moved.replayed_ms <= 2_000, "old silence keeps the new connection from the caller"
    assert 30 < moved_after < 60
    assert call.can.closes_first or "reconnecting" not in call.states
    call.assert_clean()


@each
@pytest.mark.parametrize("how", ["go_away", "drop"])
async def test_voice_row_080_what_the_caller_said_in_the_gap_is_replayed(
    provider: Provider, how: Literal["go_away", "drop"]
) -> None:
    fault = Fault(point="caller_speaking", action=how, nth=4, seconds=1.0)
    async with rig(provider, quiet, script=Script(faults=[fault])) as call:
        await call.say("alpha bravo charlie delta echo foxtrot golf hotel")
        await call.rest()
        said = [text for who, text in await call.texts() if who == "user"]
        assert " ".join(said) == "alpha bravo charlie delta echo foxtrot golf hotel"
    (again,) = call.all(Reconnected)
    assert again.lost_ms == 0
    if how == "drop":
        assert again.replayed_ms > 0
    assert call.heard == ["echo"]
    call.assert_clean()


async def test_voice_row_080_an_announced_end_is_left_at_the_gap_behind_the_answer() -> None:
    fault = Fault(point="caller_speaking", action="go_away", nth=1, seconds=20.0)
    async with rig("gemini", quiet, script=Script(faults=[fault])) as call:
        call.session.user_speech(True)  # the host's ears: this provider tells of no onset
        await call.say("alpha bravo charlie delta")
        assert len(call.wires) == 1, "a turn is under way"
        call.session.user_speech(False)
        await call.rest()
        await call.until(lambda: call.all(Reconnected), limit_s=15)
        assert call.heard == ["echo"]
    (moved,) = call.all(Reconnected)
    assert moved.planned and moved.state_restored and moved.lost_ms == 0
    call.assert_clean()
