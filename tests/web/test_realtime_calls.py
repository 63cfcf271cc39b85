"""Realtime calls as the server sees them: many at once, hung up in every state, drained."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest
from pydantic import BaseModel

from tests.simulators.realtime_script import Asked, Fault, Reply, Script
from tests.simulators.realtime_script import Call as ModelCall
from tests.web.cli.program import PROGRAM, plain_environment
from tests.web.client import Client, eventually
from tests.web.realtime_site import (
    KEY,
    Provider,
    RealtimeSite,
    base_url,
    codes,
    events,
    heard,
    on_the_line,
    realtime_site,
    simulator,
)
from tests.web.sessions_site import KeptInMemory
from voxglove.core import Tool, ToolContext
from voxglove.core.toolkit import toolkit

CALLS = 20


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["openai", "gpt-live"])
async def test_twenty_calls_at_once_are_all_answered(
    provider: Provider, tell: Callable[[str], None]
) -> None:
    async with realtime_site(provider, Script()) as here:
        began = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            done = [group.create_task(one_call(here, number)) for number in range(CALLS)]
        took = asyncio.get_running_loop().time() - began
        tell(f"{CALLS} calls on {provider} in one process: {took:.1f} s")
        assert all(task.result() == [] for task in done), "no problem was told"
        await eventually(lambda: here.server.registry.active == 0)
        # Twenty microphones in one loop may stutter, and a word that is torn is read twice.
        assert [turn.split()[0] for turn in here.provider.turns] == ["alpha"] * CALLS
        assert {word for turn in here.provider.turns for word in turn.split()} == {"alpha", "bravo"}


async def one_call(here: RealtimeSite, number: int) -> list[object]:
    """A call that says something and hears the answer; problems it was told."""
    await asyncio.sleep(number * 0.03)
    async with on_the_line(here) as (client, mouth):
        mouth.say("alpha bravo")
        await client.until(lambda one: heard(one, "echo alpha"), 20)
        return codes(client)


def slow(asked: Asked) -> Reply:
    """Thinks for a while, or calls a tool that never ends."""
    if asked.text == "kilo":
        return Reply(calls=(ModelCall(name="wait", arguments={}),))
    return Reply(text="alpha bravo charlie delta " * 5, after_s=0.5)


class Nothing(BaseModel):
    """No input."""


async def wait(given: Nothing, context: ToolContext) -> str:
    await asyncio.sleep(600)
    return "never"


WAIT = Tool(name="wait", description="Waits.", input_model=Nothing, do=wait)
STATES = ("connecting", "listening", "talking", "thinking", "speaking", "tool", "reconnecting")


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("provider", ["openai", "gpt-live"])
async def test_a_hang_up_in_any_state_leaves_nothing(provider: Provider, state: str) -> None:
    script = Script(answer=slow)
    if state == "connecting":
        script.faults = [Fault(point="setup", action="stall")]
    if state == "reconnecting":
        script.faults = [
            Fault(point="caller_silent", action="drop", nth=3),
            Fault(point="connect", action="stall", connection=2),
        ]
    async with realtime_site(provider, script, tools=[WAIT]) as here:
        client = await here.connect()
        await reach(client, state, here)
        began = asyncio.get_running_loop().time()
        await client.say(t="hangup")
        await client.until_closed(3)
        await eventually(lambda: here.server.registry.active == 0, 3)
        assert asyncio.get_running_loop().time() - began < 2.5
        tasks = {task.get_name() for task in asyncio.all_tasks()}
        assert "realtime session" not in tasks and not any("call" in name for name in tasks), tasks


async def reach(client: Client, state: str, here: RealtimeSite) -> None:
    """Bring the call into `state`."""
    quiet = bytes(640)
    if state in ("listening", "talking", "reconnecting"):
        for n in range(30):
            loud = bytes([0, 40] * 320)
            await client.ws.send_bytes(loud if state == "talking" and n > 10 else quiet)
            await asyncio.sleep(0.02)
    elif state in ("thinking", "speaking"):
        await client.say(t="say", text="lima")
        for _ in range(20):
            await client.ws.send_bytes(quiet)
            await asyncio.sleep(0.01)
        await client.until(lambda one: state in one.states(), 6)
    elif state == "tool":
        await client.say(t="say", text="kilo")
        for _ in range(60):
            await client.ws.send_bytes(quiet)
            await asyncio.sleep(0.01)
        await client.until(lambda one: bool(events(one, "tool")), 6)
    else:
        await asyncio.sleep(0.2)


async def test_an_answer_from_outside_and_an_event_are_spoken_on_the_call() -> None:
    """The store door on a realtime call: the agent posts a request, the manager answers it, and an
    event comes from a program (rows 85, 86)."""
    post = ModelCall(name="glove_post_to_inbox", arguments={"tag": "m", "request": "dogs?"})
    plan = ModelCall(
        name="glove_update_tasks",
        arguments={"todos": [{"content": "Ask", "activeForm": "Asking", "status": "in_progress"}]},
    )

    def answer(asked: Asked) -> Reply:
        if asked.by in ("speech", "text"):
            return Reply(calls=(post, plan))
        if asked.by == "results":
            return Reply(text="india")
        told = " ".join(text for _, text in asked.history)
        return Reply(text="juliet" if "the taxi waits" in told else "kilo")

    async with (
        realtime_site(
            "openai", Script(answer=answer), stores=KeptInMemory().stores, tools=toolkit()
        ) as here,
        on_the_line(here) as (client, _),
    ):
        await client.say(t="say", text="alpha")
        await client.until(lambda one: heard(one, "india"), 8)
        assert events(client, "tasks")[-1]["tasks"] != []
        assert events(client, "inbox")[-1]["items"] != []
        door = f"{here.url}/sessions/{here.call_id}"
        async with here.http.get(f"{door}/inbox") as found:
            (item,) = await found.json()
        body = {"response": "small ones"}
        async with here.http.post(f"{door}/inbox/{item['id']}/resolve", json=body) as told:
            assert await told.json() == {"resolved": True}
        await client.until(lambda one: heard(one, "kilo"), 8)
        event = {"event": {"source": "desk", "content": "the taxi waits", "id": "e1"}}
        async with here.http.post(f"{door}/events", json=event) as taken:
            assert await taken.json() == {"accepted": True}
        await client.until(lambda one: heard(one, "juliet"), 8)
        alone = [one for one in client.texts if one["t"] == "heard"][1:]
        assert [one["turnId"] for one in alone] == [None, None], "they belong to no turn"


@pytest.mark.slow
@pytest.mark.real_loop
async def test_a_server_told_to_stop_lets_a_realtime_call_end_in_order(tmp_path: Path) -> None:
    async with simulator("openai", Script()) as provider, aiohttp.ClientSession() as http:
        config = tmp_path / "v.yaml"
        config.write_text(
            f"{{brain: {{name: openai, base_url: '{base_url('openai', provider)}'}},"
            " server: {drain_s: 0.5}}\n"
        )
        process = await asyncio.create_subprocess_exec(
            PROGRAM,
            *("serve", "--port", "0", "--config", str(config)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=plain_environment({"OPENAI_API_KEY": KEY, "VOXGLOVE_STORE": "memory"}),
        )
        assert process.stdout is not None and process.stderr is not None
        lines: list[str] = []
        while not lines or "ready: open" not in lines[-1]:
            lines.append((await process.stdout.readline()).decode())
            assert lines[-1], "the server ended before it was ready"
        assert any("realtime openai gpt-realtime-2 at 127.0.0.1" in line for line in lines)
        url = lines[-1].split("open ")[1].split("/ ")[0]
        async with http.post(f"{url}/session", json={}) as answer:
            offer = await answer.json()
        client = Client(await http.ws_connect(offer["ws_url"]))
        await client.say(t="say", text="kilo")
        await client.until(lambda one: heard(one, "echo kilo"), 10)
        process.send_signal(signal.SIGTERM)
        bye = await client.until_kind("bye", 10)
        assert bye["reason"] == "drain"
        await client.until_closed()
        async with asyncio.timeout(10):
            assert await process.wait() == 0
        errors = (await process.stderr.read()).decode()
        assert "Traceback" not in errors and KEY not in errors, errors
        process._transport.close()  # type: ignore[attr-defined]  # 3.11 leaves its pipes open
