"""DESIGN 5.6 and 5.7 for a model that answers by itself, under random orders of what can happen."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.live_rig import assert_view_valid
from tests.core.support import Recorder, ScriptedModel, SlowStore, make_agent, make_tool
from tests.support.vloop import run_virtual
from voxglove.core import (
    AbortError,
    Agent,
    AgentEvent,
    CancelToken,
    LiveConversation,
    MemoryStore,
    Message,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
)

TOOLS = ("quick", "slow", "stuck", "checkout", "gated", "boom", "beside", "missing")

act = st.one_of(
    st.tuples(st.just("calls"), st.lists(st.sampled_from(TOOLS), min_size=1, max_size=3)),
    st.tuples(st.just("calls"), st.lists(st.sampled_from(TOOLS), min_size=1, max_size=3)),
    st.tuples(st.just("withdraw"), st.sampled_from(["c0", "c1", "c2", "c9"])),
    st.tuples(st.just("abort"), st.sampled_from(["generation", "tools"])),
    st.tuples(st.just("stop"), st.sampled_from(["interrupt", "abort_tools"])),
    st.tuples(st.just("cancel"), st.just("")),
    st.tuples(st.just("commit"), st.sampled_from(["yes", "no"])),
    st.tuples(st.just("user"), st.sampled_from(["hello", ""])),
    st.tuples(st.just("answer"), st.integers(0, 12)),
    st.tuples(st.just("event"), st.just("")),
    st.tuples(st.just("join"), st.just("")),
    st.tuples(st.just("compact"), st.sampled_from([0.0, 0.3])),
    st.tuples(st.just("sleep"), st.sampled_from([0.0, 0.05, 0.1, 0.3, 1.0])),
    st.tuples(st.just("sleep"), st.sampled_from([0.0, 0.06, 0.12, 0.5])),
)


@dataclass(slots=True)
class Reply:
    """One batch: who waits for it, what can end the wait, what may commit its turn."""

    task: asyncio.Future[tuple[ToolResult, ...]]
    token: CancelToken
    gate: asyncio.Future[bool]


@dataclass(slots=True)
class World:
    """A session on one agent, and what was done to it."""

    agent: Agent
    live: LiveConversation
    tasks: asyncio.TaskGroup
    replies: list[Reply] = field(default_factory=list)
    side_effects: int = 0
    committed: int = 0
    told: int = 0

    async def do(self, what: str, how: Any) -> None:
        await getattr(self, f"do_{what}")(how)

    async def do_calls(self, names: list[str]) -> None:
        """The provider numbers its calls anew in every reply."""
        calls = [ToolCall(name, {}, f"c{at}") for at, name in enumerate(names)]
        token, gate = CancelToken(), asyncio.get_running_loop().create_future()
        work = self.live.run_calls(calls, token=token, gate=gate, run_id="r")

        self.replies.append(Reply(asyncio.ensure_future(work), token, gate))

    async def do_withdraw(self, call_id: str) -> None:
        self.live.abort_calls([call_id])

    async def do_abort(self, how: str) -> None:
        for reply in self.replies[-1:]:
            reply.token.abort("cut", tools=how == "tools")

    async def do_stop(self, how: str) -> None:
        getattr(self.agent, how)("stop word")

    async def do_cancel(self, how: str) -> None:
        for reply in self.replies[-1:]:
            reply.task.cancel()

    async def do_commit(self, how: str) -> None:
        for reply in self.replies:
            if not reply.gate.done():
                reply.gate.set_result(how == "yes")
                self.committed += how == "yes"

    async def do_user(self, text: str) -> None:
        await self.live.add_user(text, directives=False)

    async def do_answer(self, heard: int) -> None:
        name, text = self.live.open_answer(), "one two three"
        await self.agent.amend_heard(name, text[:heard], text[heard:], interrupted=heard < 13)
        await self.live.add_answer(text, message_id=name, playback=True)

    async def do_event(self, how: str) -> None:
        self.told += 1
        await self.agent.emit_event(AgentEvent(source="s", content=f"news {self.told}."))

    async def do_join(self, how: str) -> None:
        await self.live.join_outside()

    async def do_compact(self, seconds: float) -> None:
        async def summarise(
            view: list[Message], instructions: str, token: CancelToken
        ) -> tuple[str, Usage]:
            await asyncio.sleep(seconds)
            return " ".join(f"<{one.id}>" for one in view), Usage(1, 1)

        self.tasks.create_task(self.live.compact(summarise))

    async def do_sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def tools(world: list[World]) -> list[Tool]:
    async def slow(value: object) -> str:
        await asyncio.sleep(0.4)
        return "done"

    async def stuck(value: object) -> None:
        await asyncio.Event().wait()

    async def checkout(value: object) -> str:
        world[0].side_effects += 1
        await asyncio.sleep(0.4)
        return "bought"

    def boom(value: object) -> None:
        raise OSError("boom")

    return [
        make_tool(lambda value: "ok", "quick", read_only=True),
        make_tool(slow, "slow", read_only=True),
        make_tool(stuck, "stuck", read_only=True),
        make_tool(checkout, "checkout", un_abortable=True),
        make_tool(lambda value: "ok", "gated", requires_permission=True),
        make_tool(boom, "boom", read_only=True),
        make_tool(slow, "beside", read_only=True, parallel=True),
    ]


async def assert_everything(world: World, recorder: Recorder) -> None:
    """Each call has one result in the store and one that was reported; a result is shown to whoever
    waits for it or announced, never both; nothing from outside is told twice."""
    messages = await world.agent.store.get_messages()
    asked = [call.id for one in messages for call in one.tool_calls]
    kept = {one.call_id: one for message in messages for one in message.tool_results}
    assert len(asked) == len(set(asked)), "a call id was used twice"
    answered = [one.call_id for message in messages for one in message.tool_results]
    assert sorted(answered) == sorted(asked)
    for at, message in enumerate(messages):
        if message.tool_calls:
            behind = [one.call_id for one in messages[at + 1].tool_results]
            assert sorted(behind) == sorted(call.id for call in message.tool_calls)
    reported = [one.call_id for one in recorder.of("tool_use_result")]
    assert len(reported) == len(set(reported))
    assert set(asked) <= set(reported), "a result nobody was told of"
    assert {one.run_id for one in recorder.of("tool_use_result")} <= {"r"}

    returned: list[ToolResult] = []
    for reply in world.replies:
        if reply.task.cancelled() or isinstance(reply.task.exception(), AbortError):
            continue
        returned += reply.task.result()
    assert [kept[one.call_id] for one in returned] == returned
    announced = [one.call_id for one in recorder.of("tool_settled_idle")]
    assert len(announced) == len(set(announced))
    shown = {one.call_id for one in returned}
    assert not shown & set(announced)
    for call_id, one in kept.items():
        assert one.result.status == "aborted" or call_id in shown or call_id in announced
    assert_nothing_hidden(messages)
    text = "\n".join(message.text for message in messages)
    assert all(text.count(f"news {at}.") <= 1 for at in range(1, world.told + 1))


def assert_nothing_hidden(messages: list[Message]) -> None:
    """What stands before a summary was shown to whoever wrote it."""
    since: list[Message] = []
    for message in messages:
        if message.is_compaction:
            wrote = [one for one in since if one.sender == "user" or one.tool_calls]
            assert all(f"<{one.id}>" in message.text for one in wrote), "hidden by a summary"
            since = []
        since.append(message)


async def play(acts: list[tuple[str, Any]], slow: bool) -> None:
    worlds: list[World] = []
    recorder = Recorder()
    agent = make_agent(
        ScriptedModel(),
        *tools(worlds),
        store=SlowStore() if slow else MemoryStore(),
        un_abortable_timeout_s=5,
    ).add_subscriber(recorder)
    async with agent.running(), agent.turn_queue.hold("a session"):
        async with asyncio.TaskGroup() as tasks:
            world = World(agent, agent.live(permissions="deny"), tasks)
            worlds.append(world)
            for what, how in acts:
                await world.do(what, how)
                await assert_view_valid(world.live)
            await world.do_sleep(0.5)
            agent.interrupt("the call ends")
            for reply in world.replies:
                if not reply.gate.done():
                    reply.gate.set_result(False)
        await asyncio.gather(*(one.task for one in world.replies), return_exceptions=True)
        await agent.join_tools(10)
        assert not agent.outstanding
        await assert_view_valid(world.live)
        await agent.flush()
    await assert_everything(world, recorder)
    assert world.side_effects == 0 or world.committed > 0


@settings(max_examples=150, deadline=None)
@given(st.lists(act, min_size=1, max_size=14), st.booleans())
def test_every_call_has_one_result_and_every_view_is_valid(
    acts: list[tuple[str, Any]], slow: bool
) -> None:
    run_virtual(play(acts, slow))
