"""Calls queued behind another of the same reply, when the request is cut (rows 19, 20; DESIGN 5.6).

A stop word or a hang-up refuses what has not started, un_abortable or not; what runs goes on. After
a plain barge-in the queued calls of a committed turn go on, one after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest

from tests.core.support import (
    ScriptedModel,
    call,
    make_agent,
    make_tool,
    results,
    until,
)
from voxglove.core import AbortError, Agent, CancelToken, Committed, MemoryStore, RequestResult


class Bookings:
    """The un_abortable `first` waits until it is let go; `second` is queued behind it."""

    def __init__(
        self, *, first_un_abortable: bool = True, store: MemoryStore | None = None
    ) -> None:
        self.log: list[str] = []
        self.go_on = asyncio.Event()
        self.agent = make_agent(
            ScriptedModel(call(("first", {}), ("second", {}), ids=["1", "2"]), "later"),
            make_tool(self.first, "first", un_abortable=first_un_abortable),
            make_tool(self.second, "second", un_abortable=True),
            store=store,
        )

    async def first(self, value: object) -> str:
        self.log.append("first")
        await self.go_on.wait()
        self.log.append("first done")
        return "booked"

    async def second(self, value: object) -> str:
        self.log.append("second")
        return "paid"

    async def ask(
        self, token: CancelToken, committed: Committed | None = None
    ) -> asyncio.Future[RequestResult]:
        """A request whose first tool runs."""
        request = asyncio.ensure_future(
            self.agent.process_request("book and pay", token=token, committed=committed)
        )
        await until(lambda: self.log == ["first"])
        return request

    async def statuses(self) -> dict[str, str]:
        return {key: one.result.status for key, one in (await results(self.agent)).items()}


Stop = Callable[[Agent, CancelToken], None]
STOPS: dict[str, Stop] = {
    "stop word": lambda agent, token: token.abort("stop", tools=True),
    "interrupt": lambda agent, token: agent.interrupt("stop"),
}


@pytest.mark.parametrize("owned", [True, False])
@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS)
async def test_core_row_020_a_stop_refuses_a_queued_un_abortable_call(
    owned: bool, stop: Stop
) -> None:
    desk, token = Bookings(), CancelToken()
    async with AsyncExitStack() as life:
        if owned:
            await life.enter_async_context(desk.agent.running())
        request = await desk.ask(token)
        stop(desk.agent, token)
        await asyncio.sleep(1)
        desk.go_on.set()
        with pytest.raises(AbortError, match="stop"):
            await request
    assert desk.log == ["first", "first done"]
    assert await desk.statuses() == {"1": "success", "2": "aborted"}
    assert "stop" in str((await results(desk.agent))["2"].result.message)


async def test_core_row_020_a_hang_up_refuses_a_queued_un_abortable_call() -> None:
    desk = Bookings()
    async with asyncio.TaskGroup() as server:
        async with desk.agent.running(server):
            request = await desk.ask(CancelToken())
        with pytest.raises(AbortError, match="the call ended"):
            await request
        assert desk.log == ["first"]
        desk.go_on.set()
    assert desk.log == ["first", "first done"]
    assert await desk.statuses() == {"1": "success", "2": "aborted"}


async def test_a_hang_up_waits_for_a_batch_whose_un_abortable_call_never_started() -> None:
    """The abortable call before it ends, and nothing is left to the server's group."""
    desk = Bookings(first_un_abortable=False)
    async with asyncio.TaskGroup() as server:
        async with desk.agent.running(server):
            request = await desk.ask(CancelToken())
        assert not desk.agent.outstanding
        with pytest.raises(AbortError):
            await request
    assert desk.log == ["first"]
    assert await desk.statuses() == {"1": "aborted", "2": "aborted"}


@pytest.mark.parametrize("how", ["free", "event", "future"])
async def test_core_row_020_queued_calls_go_on_serially_after_a_barge_in(how: str) -> None:
    desk, token = Bookings(), CancelToken()
    event = asyncio.Event()
    event.set()
    future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    future.set_result(True)
    kinds: dict[str, Committed | None] = {"free": None, "event": event, "future": future}
    async with desk.agent.running():
        request = await desk.ask(token, kinds[how])
        token.abort("barge-in")
        with pytest.raises(AbortError):
            await request
        assert desk.log == ["first"]
        desk.go_on.set()
        await until(lambda: not desk.agent.outstanding)
    assert desk.log == ["first", "first done", "second"]
    assert await desk.statuses() == {"1": "success", "2": "success"}


async def test_without_an_owner_a_barge_in_still_runs_queued_un_abortable_calls() -> None:
    desk, token = Bookings(first_un_abortable=False), CancelToken()
    request = await desk.ask(token)
    token.abort("barge-in")
    with pytest.raises(AbortError):
        await request
    assert desk.log == ["first", "second"]
    assert await desk.statuses() == {"1": "aborted", "2": "success"}


async def test_a_stop_after_a_barge_in_reaches_what_is_still_queued() -> None:
    desk, token = Bookings(), CancelToken()
    async with desk.agent.running():
        request = await desk.ask(token)
        token.abort("barge-in")
        with pytest.raises(AbortError):
            await request
        desk.agent.interrupt("stop word")
        desk.go_on.set()
        await until(lambda: not desk.agent.outstanding)
    assert desk.log == ["first", "first done"]
    assert await desk.statuses() == {"1": "success", "2": "aborted"}


@pytest.mark.parametrize("commit_first", [True, False])
async def test_a_queued_write_runs_if_its_turn_was_committed_when_it_was_cut(
    commit_first: bool,
) -> None:
    """The gate is asked only after the cut, by the second call; a later commit is too late."""
    log: list[str] = []
    started, go_on, committed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def read(value: object) -> str:
        started.set()
        await go_on.wait()
        return "read"

    agent = make_agent(
        ScriptedModel(call(("read", {}), ("write", {}))),
        make_tool(read, "read", read_only=True),
        make_tool(lambda value: log.append("write"), "write", un_abortable=True),
    )
    token = CancelToken()
    async with agent.running():
        request = asyncio.ensure_future(
            agent.process_request("go", token=token, committed=committed)
        )
        await started.wait()
        if commit_first:
            committed.set()
        token.abort("barge-in")
        committed.set()
        with pytest.raises(AbortError):
            await request
        go_on.set()
        await asyncio.sleep(1)
        assert not agent.outstanding
    assert log == (["write"] if commit_first else [])


async def test_a_stop_while_its_permission_is_looked_up_refuses_an_un_abortable_call() -> None:
    looking, found = asyncio.Event(), asyncio.Event()
    log: list[str] = []

    class Slow(MemoryStore):
        async def get_permission(self, tool: str, key: str | None = None):  # type: ignore[no-untyped-def]
            looking.set()
            await found.wait()
            return "granted"

    agent = make_agent(
        ScriptedModel(call(("pay", {}), ids=["1"])),
        make_tool(
            lambda value: log.append("pay"), "pay", un_abortable=True, requires_permission=True
        ),
        store=Slow(),
    )
    async with agent.running():
        request = asyncio.ensure_future(agent.process_request("pay"))
        await looking.wait()
        agent.interrupt("stop word")
        found.set()
        with pytest.raises(AbortError):
            await request
        await until(lambda: not agent.outstanding)
    assert log == []
    assert (await results(agent))["1"].result.status == "aborted"


async def test_abort_tools_leaves_generation_alone_also_without_an_owner() -> None:
    started = asyncio.Event()

    async def stuck(value: object) -> None:
        started.set()
        await asyncio.Event().wait()

    agent = make_agent(ScriptedModel(call(("act", {}), ids=["1"]), "never mind"), make_tool(stuck))
    request = asyncio.ensure_future(agent.process_request("go"))
    await started.wait()
    agent.abort_tools("not needed")
    assert (await request).text == "never mind"
    assert (await results(agent))["1"].result.status == "aborted"


@pytest.mark.parametrize("owned", [True, False])
async def test_abort_tools_refuses_what_is_queued_and_the_model_is_told(owned: bool) -> None:
    desk = Bookings()
    async with AsyncExitStack() as life:
        if owned:
            await life.enter_async_context(desk.agent.running())
        request = await desk.ask(CancelToken())
        desk.agent.abort_tools("not needed")
        desk.go_on.set()
        assert (await request).text == "later"
    assert desk.log == ["first", "first done"]
    assert await desk.statuses() == {"1": "success", "2": "aborted"}
