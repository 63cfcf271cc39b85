"""Each example runs as a user runs it: a process of its own, anywhere, without a key."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.examples.page import ROOT, scripted, text
from tests.simulators.openai_chat import (
    KEY,
    OpenAIChatSimulator,
    Scripted,
    call_chunk,
    finish,
    text_chunk,
)
from tests.web.sessions_site import store_site
from voxglove.adapters.models.scripted import Call, say
from voxglove.core import CallInfo

EXAMPLES = ROOT / "examples"
MOST_LINES = 120
FACTORIES = ("keyless_agent", "own_agent")
"""Agents for a line: they have a factory and no main, and the README runs one of them."""

PRINTED: dict[str, str] = {
    "chat_in_terminal": """\
No provider named, so this is a script. Ready here: .*
> Let me look. 
  [look_up {'order': '17'}]
  [success: 42.00 euros]

  [refund {'order': '17', 'euros': 10}]
  may it refund (order='17' euros=10.0)? y/n:   [success: 10.00 euros are on their way.]
The 10 euros are on their way.
> """,
    "support_inbox": """\
customer: Do you still have lamp L4?
agent:    I have asked the warehouse. You will hear from me.
warehouse, for Bea: When is lamp L4 back, and in which colour?
customer: Any news about my lamp?
agent:    The lamp is back on Friday, in blue.
(in the history: - [stock] Request: "When is lamp L4 back, and in which colour?" -> Response: \
"Friday, blue only" (resolved .*))
""",
    "goals_sales": """\
customer: Hi.
agent:    Hello! How many of you answer calls?
customer: There are twelve of us.
          (Need: met, 12 people)
agent:    Twelve, thank you. Shall we talk on Tuesday?
          (an event came: woke)
          (Offer: met, 20 % less until Friday)
agent:    This just came in: until Friday a team of twelve pays 20 % less.
customer: Tuesday at ten is fine.
          (Date: met, Tuesday at ten)
agent:    Tuesday at ten it is.
          (complete: True, at version 4)
""",
    "booking_form": """\
guest:    A table for four, please. I am Ada.
agent:    Gladly, Ada, for four. Inside or in the garden?
line:     [form: table] step 1/2 "Table" · pending: Area
guest:    The garden. And we are nine, sorry.
booked:   {'party': 9, 'area': 'garden', 'name': 'Ada'}
agent:    Nine in the garden, it is booked.
line:     (nothing is open)
""",
    "two_agents": """\
guest: I must not eat nuts. What can I have?
  desk sends: Is there anything without nuts today?
  kitchen sends: Yes, the lentil soup.
kitchen: Done.
desk: I am asking the kitchen.
desk: The soup has no nuts.
""",
    "own_store": """\
You said: My name is Ada.  (2 messages; tools: 0)
You said: What is my name?  (4 messages; tools: 0)
""",
    "research_subagent": """\
agent: One moment.
  > reader: Compare Opus and G.711.
  | reader read: Opus is an audio codec of 2012, RFC 6716.
  | reader read: G.711 is a codec of 1972.
  < reader: success
agent: Opus is the younger one, by 40 years.
""",
}
"""What each prints, whole; `.*` stands for what depends on machine or time."""

TYPED = {"chat_in_terminal": "Please pay back 10 euros of order 17.\ny\n\n"}


@dataclass(frozen=True, slots=True)
class Ran:
    code: int
    out: str
    err: str


def environment() -> dict[str, str]:
    """This one without keys, and without a path that would hide a broken installation."""
    key = re.compile(r"_(API_KEY|BASE_URL)$|^PYTHON|^VOXGLOVE_")
    return {name: value for name, value in os.environ.items() if not key.search(name)}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    """All of them at once: they mostly import."""
    started = {
        name: subprocess.Popen(
            [sys.executable, str(EXAMPLES / f"{name}.py")],
            cwd=tmp_path_factory.mktemp(name),
            env={**environment(), "PYTHONIOENCODING": "utf-8"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        for name in PRINTED
    }
    found: dict[str, Ran] = {}
    try:
        for name, process in started.items():
            out, err = process.communicate(TYPED.get(name), timeout=60)
            found[name] = Ran(process.returncode, out, err)
    finally:
        for process in started.values():
            process.kill()
            process.communicate()
    return found


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_should(name: str, ran: dict[str, Ran]) -> None:
    assert (ran[name].code, ran[name].err) == (0, "")
    wanted = re.escape(PRINTED[name]).replace(r"\.\*", ".*")
    assert re.fullmatch(wanted, ran[name].out), ran[name].out


def test_every_example_is_run_mentioned_and_short() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == {*PRINTED, *FACTORIES, "remote_brain"}
    for name in names:
        source = (EXAMPLES / f"{name}.py").read_text()
        assert f"(../examples/{name}.py)" in text(), name
        assert source.count("\n") <= MOST_LINES, name
        assert name in FACTORIES or "def main(" in source, name


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port of this machine at which nobody listens, and nobody else can begin to."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


async def started(name: str, *arguments: str, typed: str = "", **env: str) -> Ran:
    """An example beside a server of this process."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(EXAMPLES / f"{name}.py"), *arguments),
        env={**environment(), **env},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate(typed.encode())
    process._transport.close()  # type: ignore[attr-defined]  # 3.11 leaves its pipes open
    return Ran(process.returncode or 0, out.decode(), err.decode())


@pytest.mark.real_loop
async def test_remote_brain_uses_a_servers_model() -> None:
    model = scripted(say(Call("temperature", {"room": "cellar"})), "Twelve degrees.")
    async with store_site(model=lambda: model) as server:
        done = await started("remote_brain", f"{server.url}/chat")
    assert done == Ran(0, "Twelve degrees.  (2 calls, 0 tokens)\n", "")
    assert model.requests[1].messages[2].tool_results[0].result.data == "12 degrees"
    model.verify()


@pytest.mark.real_loop
async def test_remote_brain_says_when_there_is_no_server(closed_port: int) -> None:
    done = await started("remote_brain", f"http://127.0.0.1:{closed_port}/chat")
    assert (done.code, done.err) == (1, "")
    assert done.out.startswith("ERR_MODEL_CONNECTION, try again later: ")


@pytest.mark.real_loop
async def test_the_chat_switches_to_a_provider_and_outlives_its_errors() -> None:
    refund = [call_chunk(0, "c1", "refund", '{"order": "17", "euros": 4}'), finish("tool_calls")]
    script = (
        Scripted(choices=refund),
        Scripted(choices=[text_chunk("Paid."), finish("stop")]),
        Scripted(status=401, error={"message": "no such key", "type": "invalid_request_error"}),
    )
    async with OpenAIChatSimulator(*script).running() as server:
        done = await started(
            "chat_in_terminal",
            *("openai", "gpt-4.1"),
            typed="4 euros of 17, please.\nMore!\n\n",
            OPENAI_API_KEY=KEY,
            OPENAI_BASE_URL=server.base_url,
        )
    assert (done.code, done.err) == (0, "")
    assert "[success: 4.00 euros are on their way.]\nPaid.\n> [ERR_MODEL_AUTH]" in done.out
    assert "may it" not in done.out, "a small sum needs no permission"


def example(name: str) -> Any:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_the_keyless_agent_counts_words() -> None:
    agent = example("keyless_agent").factory(CallInfo(call_id="c"))
    result = await agent.process_request("one two three")
    assert result.text == "I heard 3 words. Say some more."


async def test_the_own_agent_has_its_tool_and_needs_no_key() -> None:
    agent = example("own_agent").factory(CallInfo(call_id="c"))
    assert [tool.name for tool in agent.tools][0] == "stock"
    assert agent.model.name == "openai:llama3.2"
    await agent.model.aclose()
