"""Every block of docs/realtime.md is run as it stands, and its tables say what the code does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, fields
from typing import Any

import pytest
import yaml

from tests.examples.page import ROOT, Block, blocks, code, rows, section
from tests.examples.page import run as run_block
from tests.house.test_readme import README, commands
from tests.simulators.openai_realtime import openai_realtime
from tests.simulators.realtime_script import Script
from voxglove.adapters.models.scripted import ScriptedModel
from voxglove.core import Agent, Glove, MemoryStore, tool
from voxglove.core.permissions import PermissionRequest
from voxglove.realtime.config import SessionConfig
from voxglove.realtime.factory import create_realtime_adapter, realtime_model
from voxglove.realtime.listeners import EVENT_NAMES
from voxglove.realtime.port import Capabilities, RealtimeAdapter
from voxglove.realtime.scripted import Asked, Reply, ScriptedAdapter
from voxglove.realtime.session import RealtimeSession
from voxglove.web.config import Config
from voxglove.web.config_reader import read_section

PAGE = ROOT / "docs" / "realtime.md"
BLOCKS = {block.name: block for block in blocks(PAGE, "python", "sh", "yaml")}
TESTED: list[str] = []
PROVIDERS = ("openai", "gemini", "openai-live")


def about(name: str) -> pytest.MarkDecorator:
    """Give a test the block that it is about, as `page`."""
    TESTED.append(name)
    return pytest.mark.parametrize("page", [BLOCKS[name]], ids=["block"])


async def run(page: Block, **names: Any) -> dict[str, Any]:
    """Run a block with what the page says is there."""
    return await run_block(page, asyncio=asyncio, RealtimeSession=RealtimeSession, **names)


def adapters() -> dict[str, RealtimeAdapter]:
    return {name: create_realtime_adapter(name, api_key="test-key") for name in PROVIDERS}


@dataclass
class Speaker:
    played: int = 0
    rates: set[int] = field(default_factory=set)
    flushed: int = 0

    def play(self, pcm: bytes, rate: int) -> None:
        self.played += len(pcm)
        self.rates.add(rate)

    def flush(self) -> None:
        self.flushed += 1


@dataclass
class Crm:
    synced: list[str] = field(default_factory=list)
    asked: list[object] = field(default_factory=list)

    def sync(self, subject: str) -> None:
        self.synced.append(subject)

    async def agrees(self, wish: object) -> bool:
        self.asked.append(wish)
        return True


@tool(read_only=True)
def stock(item: str) -> int:
    """How many of an item are in stock."""
    return {"umbrella": 3}.get(item, 0)


def built() -> Agent:
    return Glove(model=realtime_model(), system_prompt="Be brief.").build(MemoryStore("call"))


async def stored(agent: Agent) -> list[str]:
    return [one.text for one in await agent.store.get_messages()]


@about("In a program 1")
async def test_the_first_session_speaks_with_a_provider(
    page: Block, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def microphone() -> AsyncIterator[bytes]:
        for _ in range(200):
            await asyncio.sleep(0.02)
            yield bytes(960)

    speaker = Speaker()
    async with openai_realtime(Script()) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "test-key")
        monkeypatch.setenv("OPENAI_REALTIME_BASE_URL", f"{server.origin}/v1")
        monkeypatch.delenv("REALTIME_PROVIDER", raising=False)
        names = await run(page, microphone=microphone(), speaker=speaker)
    assert speaker.played > 0 and speaker.rates == {24_000}
    assert await stored(names["agent"]) == ["hotel"]
    assert names["used"].usage.total > 0
    assert server.violations == []


@about("In a program 2")
async def test_adapters_are_made_with_options(page: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "test-key")
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    names = await run(page)
    assert names["live"].capabilities.input_format.rate == 24_000


@about("The session 1")
async def test_words_go_in_by_four_ways(page: Block, capsys: pytest.CaptureFixture[str]) -> None:
    adapter, agent = ScriptedAdapter(), built()
    await run(page, agent=agent, adapter=adapter)
    said = await stored(agent)
    assert "VIP" in said[0]
    assert said[1:] == [
        "When does my warranty end?",
        "When does my warranty end?",
        "The warranty check came back: covered until 2031.",
        "The warranty check came back: covered until 2031.",
    ], "the provider echoes; what it read out is not kept"
    assert "user When does my warranty end?" in capsys.readouterr().out


@about("Context, events, goals 1")
async def test_goals_prepare_and_an_offer_is_told(page: Block) -> None:
    asked: list[Asked] = []

    def answer(one: Asked) -> Reply:
        asked.append(one)
        return Reply(text="Well.")

    crm, agent = Crm(), built()
    await run(page, agent=agent, adapter=ScriptedAdapter(answer), crm=crm)
    assert crm.synced[0] == "demo-prospect"
    texts = await stored(agent)
    assert texts[0].startswith("[goals: sales] version 1")
    assert sum("39 USD" in text for text in texts) == 1
    assert [one.by for one in asked] == ["request", "request"], "the greeting, then the offer"


@about("Permissions 1")
async def test_a_supervisor_is_asked(page: Block) -> None:
    crm = Crm()
    names = await run(page, agent=built(), adapter=ScriptedAdapter(), crm=crm)
    policy = names["session"].config.permissions
    assert await policy(PermissionRequest("refund", {"euros": 3}))
    assert await policy(PermissionRequest("stock", {})) and crm.asked == [{"euros": 3}]


@about("Compaction 1")
async def test_compaction_is_configured(page: Block) -> None:
    model = ScriptedModel(())
    names = await run(page, agent=built(), adapter=ScriptedAdapter(), model=model)
    assert names["session"].config.compaction.model is model


@about("What resumes and what does not 1")
async def test_a_handle_restores_the_conversation(page: Block) -> None:
    adapter = ScriptedAdapter()
    names = await run(page, agent=built(), adapter=adapter)
    handle = names["handles"][-1]
    assert handle and [one.resume_handle for one in adapter.setups] == [None, handle]


@about("GPT-Live 1")
async def test_a_host_of_gpt_live_tells_what_it_hears(page: Block) -> None:
    adapter = ScriptedAdapter(capabilities=adapters()["openai-live"].capabilities)
    speaker = Speaker()
    names = await run(page, agent=built(), adapter=adapter, speaker=speaker)
    assert speaker.flushed == 1 and names["used"].seconds is not None


@about("Testing without a provider 1")
async def test_the_scripted_provider_calls_a_tool(page: Block) -> None:
    names = await run(page, stock=stock)
    assert [one.tool_name for one in await results(names["agent"])] == ["stock"]


async def results(agent: Agent) -> list[Any]:
    return [one for message in await agent.store.get_messages() for one in message.tool_results]


def test_every_block_has_a_test() -> None:
    assert set(TESTED) == BLOCKS.keys()


def test_the_configuration_of_the_page_is_read() -> None:
    (block,) = blocks(PAGE, "yaml", "python", "sh")
    brain = read_section(Config, yaml.safe_load(block.source)).brain
    assert (brain.name, set(brain.options)) == ("gemini", {"voice", "greeting"})


def test_commands_of_the_page_are_run_somewhere() -> None:
    """Those of the README run there; the example's own test reads its configuration."""
    here = [line for block in blocks(PAGE, "sh", "python", "yaml") for line in lines(block)]
    readme = commands(README)
    assert here == ["voxglove serve --brain openai"] + [
        line for line in readme if line.startswith("voxglove call") and "gemini" in line
    ] + ["voxglove serve --config examples/sales_call/voxglove.yaml"]
    assert here[0] in readme


def lines(block: Block) -> list[str]:
    return commands(f"```sh\n{block.source}```\n")


# ---- tables


def test_the_table_of_events_is_complete() -> None:
    named = {code(cells[0])[0] for cells in rows("The session", PAGE)}
    assert set(EVENT_NAMES) <= named


def test_the_table_of_methods_is_complete() -> None:
    public = {name for name in vars(RealtimeSession) if not name.startswith("_")}
    told = {
        word.partition("(")[0].removeprefix("await ") for word in code(section("The session", PAGE))
    }
    assert public <= told | {"user_speech"}, "user_speech is notify_user_speech without waiting"


def test_the_table_of_settings_is_complete() -> None:
    told = {code(cells[0])[0]: cells[1] for cells in rows("The session", PAGE)}
    for one in fields(SessionConfig):
        default: object = one.default
        assert told[one.name].startswith(shown(default))


def shown(default: object) -> str:
    """A default as the page writes it; None is told in words."""
    if isinstance(default, bool):
        return "on" if default else "off"
    return "" if default is None else str(default).removesuffix(".0")


def provider_rows() -> dict[str, list[str]]:
    return {cells[0]: cells[1:] for cells in rows("Providers", PAGE)}


def facts(name: str) -> list[object]:
    return [getattr(adapter.capabilities, name) for adapter in adapters().values()]


def test_every_capability_is_on_the_page() -> None:
    told = {word for cells in rows("Providers", PAGE) for word in code(cells[0])}
    names = {one.name for one in fields(Capabilities)}
    inner = {"response_request", "context_usage", "idle_s", "due_s"}
    assert names - inner <= told and inner <= names


def cell(prefix: str) -> list[str]:
    (found,) = [cells for head, cells in provider_rows().items() if prefix in head]
    return found


def test_the_table_of_providers_says_what_adapters_declare() -> None:
    for value, told in zip(facts("turn_taking"), cell("`turn_taking`"), strict=True):
        assert value in code(told)
    for value, told in zip(facts("inputs"), cell("`inputs`"), strict=True):
        assert value == set(told.split(", "))
    for name in ("can_cancel", "resume", "closes_first", "out_of_band", "paced_input"):
        for value, told in zip(facts(name), cell(f"`{name}`"), strict=True):
            assert bool(value) == (not told.startswith("no")), (name, told)
    for value, told in zip(facts("max_session_s"), cell("`max_session_s`"), strict=True):
        assert isinstance(value, float) and told.startswith(f"{value / 60:g} min")
    for adapter, told in zip(adapters().values(), cell("name, default"), strict=True):
        assert code(told) == [adapter.provider, adapter.model]
    for adapter, told in zip(adapters().values(), cell("`input_format`"), strict=True):
        assert f"{adapter.capabilities.input_format.rate // 1000}" in told
    for name, wanted in (("usage", "duration"), ("transcripts", "fragments")):
        found = [wanted in told for told in cell(f"`{name}`")]
        assert found == [value == wanted for value in facts(name)]
    deletes = [told.startswith("cut to") for told in cell("`item_truncate`")]
    assert deletes == facts("item_truncate") == facts("item_delete")
