"""The sales conversation of examples/sales_call, held with each simulated provider."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from tests.examples.page import ROOT
from tests.examples.sales_call_rig import (
    KEYS,
    PROVIDERS,
    Seller,
    adapter_of,
    offers,
    program,
    simulated,
    verify,
    versions,
)
from tests.examples.test_examples import environment
from tests.simulators.realtime_script import Fault
from voxglove.core import Message


@pytest.fixture(params=PROVIDERS)
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_folder_of_the_examples_is_tested_and_mentioned() -> None:
    folders = {one.parent.name for one in (ROOT / "examples").glob("*/__init__.py")}
    assert folders == {"sales_call"}
    assert "(../examples/sales_call/__init__.py)" in (ROOT / "docs" / "realtime.md").read_text()


# ---- the command


async def test_the_sale_is_verified_with_each_provider(
    provider: str, capsys: pytest.CaptureFixture[str]
) -> None:
    seller = Seller()
    async with simulated(provider, seller) as (server, address):
        code = await verify.verify(["--provider", provider, "--base-url", address], KEYS)
    out = capsys.readouterr().out
    assert (code, server.violations) == (0, []), out
    assert out.splitlines()[-1] == "all checks hold"
    assert (seller.greeted, seller.offers) == (1, 1), "one greeting; the news is told at a pause"


def test_without_a_key_the_command_says_so() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.sales_call.verify"],
        cwd=ROOT,
        env=environment() | {"REALTIME_PROVIDER": "gemini"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout == (
        "nothing was verified: api_key: gemini needs a key, give api_key or set GEMINI_API_KEY or"
        " GOOGLE_API_KEY\n"
    )


async def test_a_conversation_that_cannot_be_held_is_a_failure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    refused = Fault(point="connect", action="refuse", code=401, connection=0)
    async with simulated("openai", Seller(), refused) as (_, address):
        code = await verify.verify(["--provider", "openai", "--base-url", address], KEYS)
    assert code == 1
    assert "WRONG     the conversation broke off: CredentialsRejected" in capsys.readouterr().out


# ---- what it leaves behind


async def test_goals_move_by_versions_and_every_snapshot_is_stored(provider: str) -> None:
    async with simulated(provider, Seller()) as (_, address):
        held = await verify.hold(adapter_of(provider, address))
    goals = held.goals
    assert [(one.id, one.status) for one in goals.goals] == [
        ("needs", "met"),
        ("fit", "met"),
        ("next_step", "refused"),
    ]
    assert [(one.version, one.author) for one in goals.history] == [
        (2, "model"),
        (3, "model"),
        (4, "model"),
    ]
    # Versions 2 and 3 came within one turn: the model knew them by the results of its tools, and
    # the store is told at the next turn. The last one has no turn behind it.
    assert versions(held.messages) == [1, 3]
    updates = [
        (result.result.status, call.input_args["expected_version"])
        for call, result in calls(held.messages)
        if call.tool_name == "glove_goal_update"
    ]
    assert updates == [("error", 0), ("success", 1), ("success", 2), ("success", 3)]
    assert held.problems == []


def calls(messages: Sequence[Message]) -> list[tuple[Any, Any]]:
    """Every call with its result, which stands directly behind it."""
    return [
        pair
        for one, behind in pairwise(messages)
        for pair in zip(one.tool_calls, behind.tool_results, strict=False)
    ]


async def test_the_store_reads_as_the_call_was_held(provider: str) -> None:
    async with simulated(provider, Seller()) as (_, address):
        held = await verify.hold(adapter_of(provider, address))
    told = [
        *(["agent: Hello, this is Nova."]),
        *(["prospect: physiotherapy", "glove_goal_status", "agent: How many a month"]),
        *(["prospect: About 300", "glove_goal_update", "glove_goal_update", "find_plan"]),
        *(["glove_goal_update", "agent: Growth fits", "offer", "agent: News: Growth costs"]),
        *(["prospect: What would that cost", "plan_details", "agent: Growth is 39"]),
        *(["prospect: No demonstration", "glove_goal_update", "agent: Thank you"]),
    ]
    found = [line for one in held.messages for line in lines(one)]
    assert len(found) == len(told), found
    for line, wanted in zip(found, told, strict=True):
        kind, _, words = wanted.partition(": ")
        assert line.startswith(kind) and words in line, (line, wanted)


def lines(message: Message) -> list[str]:
    """A message of the conversation in a few words; none for what the framework wrote."""
    if message.tool_calls:
        return [call.tool_name for call in message.tool_calls]
    if program.OFFER.content in message.text:
        return ["offer"]
    if message.sender == "agent" and message.text:
        return [f"agent: {message.text}"]
    return [f"prospect: {message.text}"] if message.is_user_turn else []


# ---- what the checks of the command are worth


async def wrong_after(change: Callable[[Any], None]) -> str:
    """What the checks say of a conversation that was good before `change`."""
    async with simulated("openai", Seller()) as (_, address):
        held = await verify.hold(adapter_of("openai", address))
    assert verify.faults(held) == []
    change(held)
    return "; ".join(verify.faults(held))


def without(held: Any, *wanted: Callable[[Message], object]) -> None:
    held.messages = [one for one in held.messages if not any(want(one) for want in wanted)]


CHANGES: dict[str, Callable[[Any], None]] = {
    "the program never began": lambda held: setattr(held, "goals", None),
    "goal fit is still open": lambda held: setattr(
        held, "goals", replace(held.goals, goals=(replace(held.goals.goals[1], status="open"),))
    ),
    "versions of the goals have gaps": lambda held: setattr(
        held, "goals", replace(held.goals, history=held.goals.history[1:])
    ),
    "somebody else than the model": lambda held: setattr(
        held,
        "goals",
        replace(held.goals, history=tuple(replace(o, author="app") for o in held.goals.history)),
    ),
    "without glove_goal_update": lambda held: without(held, lambda one: one.tool_results),
    "have the results": lambda held: without(held, lambda one: one.tool_results),
    "no product tool was asked": lambda held: without(held, lambda one: one.tool_calls),
    "did not open the conversation": lambda held: without(
        held, lambda one: "this is Nova" in one.text
    ),
    "the prospect's turns": lambda held: held.messages.reverse(),
    "the offer is stored 2 times": lambda held: held.messages.append(offers(held.messages)[0]),
    "never mentioned the new price": lambda held: without(
        held, lambda one: one.sender == "agent" and "39" in one.text
    ),
    "stored snapshots": lambda held: without(held, lambda one: one.framework_context == "history"),
}


@pytest.mark.parametrize("complaint", CHANGES)
async def test_each_check_can_fail(complaint: str) -> None:
    assert complaint in await wrong_after(CHANGES[complaint])
