"""The tool path of a call on every provider: results, changes, permissions (rows 81 to 83)."""

from __future__ import annotations

import asyncio

import pytest

from tests.realtime.rigs import PROVIDERS, Answer, Provider, quiet, rig
from tests.realtime.sessions import built
from tests.simulators.realtime_script import Asked, Call, Reply
from voxglove.core.agent import Agent
from voxglove.core.config import AgentConfig
from voxglove.core.messages import ToolResultData
from voxglove.core.permissions import PermissionPolicy, PermissionRequest
from voxglove.core.stores.memory import MemoryStore
from voxglove.core.tool import Tool, ToolContext, tool
from voxglove.realtime.config import SessionConfig
from voxglove.realtime.link import Reconnected

each = pytest.mark.parametrize("provider", PROVIDERS)
SECRET = "for the screen alone"
OUTCOMES = {
    "alpha": (Call(name="book", arguments={"word": "kilo"}), "booked kilo"),
    "bravo": (Call(name="BOOK", arguments={"word": "lima"}), "booked lima"),
    "charlie": (Call(name="book", arguments={"word": 7}), "word"),
    "delta": (Call(name="refund", arguments={"word": "kilo"}), "nobody can be asked"),
    "echo": (Call(name="broken", arguments={"word": "kilo"}), "no line to the till"),
    "foxtrot": (Call(name="unheard", arguments={}), "unheard"),
    "golf": (Call(name="book", arguments='{"word": '), "JSON"),
}
"""What is said -> the call the model makes of it, and words of the result it is told."""


async def book(word: str, ctx: ToolContext) -> ToolResultData:
    """Book a word."""
    return ToolResultData("success", data=f"booked {word}", render_data=SECRET)


async def broken(word: str, ctx: ToolContext) -> str:
    """Fail."""
    raise OSError("no line to the till")


def calling(calls: dict[str, Call]) -> Answer:
    """A model that calls these when it hears their word, and else answers shortly."""

    def answer(asked: Asked) -> Reply:
        call = calls.get(asked.text) if asked.by == "speech" else None
        return quiet(asked) if call is None else Reply(calls=(call,))

    return answer


# ---- row 81


@each
async def test_voice_row_081_every_outcome_of_a_tool_is_one_result(provider: Provider) -> None:
    outcomes = dict(OUTCOMES)
    if provider == "gemini":
        del outcomes["golf"]  # its calls are objects on the wire: there is no bad JSON
    refund = tool(name="refund", description="Pay back.", requires_permission=True)(_booked)
    answer = calling({word: call for word, (call, _) in outcomes.items()})
    config = SessionConfig(permissions="deny")
    async with rig(
        provider, answer, tools=[tool(book), tool(broken), refund], config=config
    ) as call:
        for word in outcomes:
            await call.say(word)
            await call.rest(0.4)
        results = call.results
        assert len({call_id for call_id, _ in results}) == len(results) == len(outcomes)
        for (_, told), (_, words) in zip(results, outcomes.values(), strict=True):
            assert words in told
        assert SECRET not in call.sent_text()
        assert call.heard == ["golf"] * len(outcomes), "each result is spoken about once"
    kept = [one for message in await call.history() for one in message.tool_results]
    assert len(kept) == len(outcomes)
    assert kept[0].result.render_data == SECRET
    call.assert_clean()


@each
async def test_voice_row_081_two_calls_of_one_response_ask_for_one_answer(
    provider: Provider,
) -> None:
    calls = (
        Call(name="book", arguments={"word": "kilo"}),
        Call(name="book", arguments={"word": "lima"}),
    )

    def answer(asked: Asked) -> Reply:
        return Reply(calls=calls) if asked.by == "speech" else quiet(asked)

    async with rig(provider, answer, tools=[tool(book)]) as call:
        await call.say("alpha")
        await call.rest()
        told = [text for _, text in call.results]
        assert len(told) == 2 and "kilo" in told[0] and "lima" in told[1]
        assert call.heard == ["golf"]
        assert [asked.by for asked in call.asked if asked.by != "context"] == ["speech", "results"]
    call.assert_clean()


async def _booked(word: str, ctx: ToolContext) -> str:
    return f"booked {word}"


# ---- row 82


@each
@pytest.mark.parametrize("change", ["tool", "prompt"])
async def test_voice_row_082_what_a_tool_changed_is_known_before_its_result(
    provider: Provider, change: str
) -> None:
    agent: Agent

    async def unlock(word: str, ctx: ToolContext) -> str:
        """Open the safe."""
        if change == "tool":
            agent.fold(tool(book))
        else:
            agent.set_system_prompt("speak like a banker")
        return "unlocked"

    agent = built(tool(unlock))
    answer = calling({"alpha": Call(name="unlock", arguments={"word": "kilo"})})
    new = "Book a word" if change == "tool" else "speak like a banker"
    async with rig(provider, answer, agent=agent) as call:
        await call.say("alpha")
        await call.rest()
        how = call.can.update_tools if change == "tool" else call.can.update_instructions
        assert how in ("live", "append")
        assert call.place(new) < call.place(call.results[0][0])
        assert len(call.results) == 1 and "unlocked" in call.results[0][1]
        assert call.heard == ["golf"]
        if change == "tool":
            assert set(call.tools) == {"unlock", "book"}
    call.assert_clean()


@pytest.mark.parametrize("change", ["tool", "prompt"])
async def test_voice_row_082_where_only_a_new_connection_brings_it_the_result_is_known_there(
    change: str,
) -> None:
    agent: Agent

    async def unlock(word: str, ctx: ToolContext) -> str:
        """Open the safe."""
        if change == "tool":
            agent.fold(tool(book))
        else:
            agent.set_system_prompt("speak like a banker")
        return "unlocked"

    agent = built(tool(unlock))
    answer = calling({"alpha": Call(name="unlock", arguments={"word": "kilo"})})
    async with rig("gemini", answer, agent=agent, generation="3.1") as call:
        assert call.can.update_tools == "reconnect"
        await call.say("alpha")
        await call.rest()
        (moved,) = call.all(Reconnected)
        assert moved.planned
        new = "Book a word" if change == "tool" else "speak like a banker"
        assert call.place(new, "setup", connection=2) == 0
        assert call.place("unlocked", connection=2) == 1, "the result is in the seed"
        assert call.heard == ["tango"], "one answer, from the connection that knows the change"
        await call.say("november")
        await call.rest()
        assert call.heard == ["tango", "echo"]
    call.assert_clean()


# ---- row 83


async def ask_for_refund(
    provider: Provider,
    *,
    policy: PermissionPolicy | None = None,
    server_mode: bool = False,
    remembered: str | None = None,
) -> tuple[list[str], str]:
    """Hold a call in which the model wants a gated tool; words it ran with, and what was told."""
    ran: list[str] = []

    async def refund(word: str, ctx: ToolContext) -> str:
        """Pay back."""
        ran.append(word)
        return "paid"

    store = MemoryStore("call")
    if remembered is not None:
        await store.set_permission("refund", remembered, '{"word":"kilo"}')  # type: ignore[arg-type]
    gated = tool(requires_permission=True)(refund)
    agent = built(gated, store=store, config=AgentConfig(builtin_tools=(), server_mode=server_mode))
    answer = calling({"alpha": Call(name="refund", arguments={"word": "kilo"})})
    async with rig(provider, answer, agent=agent, config=SessionConfig(permissions=policy)) as call:
        await call.say("alpha")
        await call.rest()
        ((_, told),) = call.results
    call.assert_clean()
    return ran, told


@each
async def test_voice_row_083_a_headless_agent_refuses_by_default(provider: Provider) -> None:
    ran, told = await ask_for_refund(provider, server_mode=True)
    assert ran == [] and "nobody can be asked" in told


@each
@pytest.mark.parametrize("allows", [True, False])
async def test_voice_row_083_a_function_is_awaited(provider: Provider, allows: bool) -> None:
    asked: list[PermissionRequest] = []

    async def policy(request: PermissionRequest) -> bool:
        await asyncio.sleep(0.5)
        asked.append(request)
        return allows

    ran, told = await ask_for_refund(provider, policy=policy, server_mode=True)
    assert [(one.tool, str(one.input)) for one in asked] == [("refund", "word='kilo'")]
    assert ran == (["kilo"] if allows else [])
    assert ("paid" in told) is allows


@pytest.mark.parametrize(("remembered", "policy"), [("granted", "deny"), ("denied", "allow")])
async def test_voice_row_083_the_stores_decision_comes_first(
    remembered: str, policy: PermissionPolicy
) -> None:
    ran, told = await ask_for_refund("openai", policy=policy, remembered=remembered)
    assert ran == (["kilo"] if remembered == "granted" else [])
    assert ("paid" if remembered == "granted" else "refused") in told


@pytest.mark.parametrize("policy", ["allow", "deny"])
async def test_voice_row_083_a_policy_decides_what_nobody_remembers(
    policy: PermissionPolicy,
) -> None:
    ran, _ = await ask_for_refund("openai", policy=policy)
    assert ran == (["kilo"] if policy == "allow" else [])


async def test_voice_row_083_a_policy_that_fails_refuses() -> None:
    def policy(request: PermissionRequest) -> bool:
        raise OSError("the supervisor is away")

    ran, told = await ask_for_refund("openai", policy=policy)
    assert ran == [] and "paid" not in told


async def test_voice_row_083_a_screen_is_asked_by_a_slot_while_the_call_goes_on() -> None:
    ran: list[str] = []

    async def refund(word: str, ctx: ToolContext) -> str:
        """Pay back."""
        ran.append(word)
        return "paid"

    gated: Tool = tool(requires_permission=True)(refund)
    agent = built(gated)
    agent.display.subscribe(lambda change: None)
    answer = calling({"alpha": Call(name="refund", arguments={"word": "kilo"})})
    async with rig("openai", answer, agent=agent) as call:
        await call.say("alpha")
        await call.until(lambda: agent.display.stack)
        (slot,) = agent.display.stack
        assert slot.renderer == "permission_request"
        assert ran == [] and call.results == []
        await call.say("bravo")
        assert agent.display.resolve(slot.id, True)
        await call.rest()
        assert ran == ["kilo"]
        assert [text for _, text in call.results] == ["paid"]
    call.assert_clean()
