"""The composition root: what is checked at start, and what each call gets of its own."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from voxglove.core.agent import Agent
from voxglove.core.factory import CallInfo as AgentCallInfo
from voxglove.media.events import CallEvent, CallStarted
from voxglove.media.transport import CallInfo
from voxglove.web.build import CallOptions, Shared, call_factory, open_call, open_shared
from voxglove.web.config import CallConfig, Config, PartConfig
from voxglove.web.config_reader import ConfigError

ENV = {"OLLAMA_HOST": "127.0.0.1:9"}


def config(folder: Path, **changes: object) -> Config:
    script = folder / "spoken.json"
    script.write_text("[]")
    base: dict[str, object] = {
        "stt": PartConfig(name="scripted", arg=str(script)),
        "tts": PartConfig(name="scripted"),
        "model": PartConfig(name="scripted", arg="echo"),
    }
    return Config(**{**base, **changes})  # type: ignore[arg-type]


def info(agent: str = "demo") -> CallInfo:
    return CallInfo(call_id="c1", line="websocket", peer="test", agent=agent)


@pytest.fixture
async def shared(tmp_path: Path):  # type: ignore[no-untyped-def]
    made = await open_shared(config(tmp_path), ENV)
    yield made
    made.close()


async def test_each_call_has_an_agent_and_a_call_of_its_own(shared: Shared) -> None:
    async with open_call(shared, info()) as first, open_call(shared, info()) as second:
        assert first.call is not second.call
        assert first.agent is not second.agent
        assert first.agent.model.name == "scripted:echo"


async def test_an_unknown_agent_is_named(shared: Shared) -> None:
    with pytest.raises(ConfigError, match="agent: 'nobody'"):
        async with open_call(shared, info("nobody")):
            pytest.fail("it opened")


async def test_an_own_factory_gets_the_facts_of_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_for_build.py").write_text(
        "from voxglove.adapters.models.scripted import EchoModel\n"
        "from voxglove.core.builder import Glove\n"
        "seen = []\n"
        "def factory(info):\n"
        "    seen.append(info)\n"
        "    return Glove(model=EchoModel()).build()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    made = await open_shared(config(tmp_path, agents={"own": "own_for_build:factory"}), ENV)
    try:
        async with open_call(made, info("own")) as opened:
            assert isinstance(opened.agent, Agent)
        import own_for_build  # type: ignore[import-not-found]

        (told,) = own_for_build.seen
        assert isinstance(told, AgentCallInfo)
        assert (told.call_id, told.agent, told.has_display) == ("c1", "own", True)
    finally:
        made.close()


async def test_agents_that_cannot_be_imported_are_told_at_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"agents\.own: .*importing no_such_module failed"):
        await open_shared(config(tmp_path, agents={"own": "no_such_module:factory"}), ENV)


async def test_the_first_event_says_who_is_on_the_call(shared: Shared) -> None:
    events: list[CallEvent] = []
    async with open_call(shared, info(), CallOptions(frame_clocked=True, fast=True)) as opened:
        opened.call.subscribe(lambda at, event: events.append(event))
        opened.announce()
    (started,) = events
    assert isinstance(started, CallStarted)
    assert (started.call_id, started.line, started.agent) == ("c1", "websocket", "demo")
    assert (started.stt, started.tts, started.model) == ("scripted", "scripted", "scripted:echo")
    assert started.clock == "fast" and started.costs


async def test_a_live_call_names_no_costs(shared: Shared) -> None:
    events: list[CallEvent] = []
    async with open_call(shared, info()) as opened:
        opened.call.subscribe(lambda at, event: events.append(event))
        opened.announce()
    (started,) = events
    assert isinstance(started, CallStarted)
    assert (started.clock, dict(started.costs)) == ("real", {})


async def test_the_registrys_calls_are_recorded_where_the_configuration_says(
    tmp_path: Path,
) -> None:
    kept = tmp_path / "kept"
    made = await open_shared(config(tmp_path, call=CallConfig(record_dir=str(kept))), ENV)
    try:
        async with (
            asyncio.TaskGroup() as survivors,
            call_factory(made)(info(), survivors) as built,
        ):
            running = survivors.create_task(built.call.run())
            await asyncio.sleep(0.1)
            built.call.hang_up()
            await running
    finally:
        made.close()
    assert (kept / "c1.wav").stat().st_size >= 44
    lines = [json.loads(line) for line in (kept / "c1.jsonl").read_text().splitlines()]
    assert (lines[0]["type"], lines[-1]["type"]) == ("call_started", "call_ended")
