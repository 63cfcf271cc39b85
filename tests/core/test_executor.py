"""Running tools, and what a cut does to them (spec core 3; rows 19-28; DESIGN 5.6)."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.core.support import (
    Recorder,
    ScriptedModel,
    call,
    hang,
    make_agent,
    make_tool,
    results,
    stored,
    until,
)
from voxglove.core import (
    AbortError,
    Agent,
    CancelToken,
    Committed,
    MemoryStore,
    Message,
    MessagePatch,
    RequestResult,
    StoreError,
    ToolContext,
    ToolResultData,
    Wake,
    result_text,
)


class Work:
    """A tool body that waits until it is told to finish."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.finish = asyncio.Event()
        self.runs = 0

    async def __call__(self, value: object) -> str:
        self.runs += 1
        self.started.set()
        await self.finish.wait()
        return "finished"


async def cut_while_running(
    agent: Agent, work: Work, *, tools: bool = False
) -> asyncio.Future[RequestResult]:
    """Send a request, and abort it once the tool runs; the request has ended afterwards."""
    token = CancelToken()
    request = asyncio.ensure_future(agent.process_request("go", token=token))
    await work.started.wait()
    token.abort("barge-in", tools=tools)
    with pytest.raises(AbortError):
        await request
    return request


async def test_core_row_019_abort_during_a_tool_ends_at_once_and_stores_aborted() -> None:
    work = Work()
    agent = make_agent(
        ScriptedModel(call(("act", {}), ("act", {}), ids=["1", "2"])), make_tool(work)
    )
    await cut_while_running(agent, work)  # no owner: any scope stops abortable tools
    assert {one.result.status for one in (await results(agent)).values()} == {"aborted"}
    assert work.runs == 1
    assert agent.outstanding == frozenset()


async def test_core_row_019_interrupt_reaches_tools_of_a_running_agent() -> None:
    work = Work()
    agent = make_agent(ScriptedModel(call(("act", {}))), make_tool(work))
    async with agent.running():
        request = asyncio.ensure_future(agent.process_request("go"))
        await work.started.wait()
        agent.interrupt("stop word")
        with pytest.raises(AbortError, match="stop word"):
            await request
        await until(lambda: not agent.outstanding)
    (result,) = (await results(agent)).values()
    assert "stop word" in str(result.result.message)


async def test_core_row_020_un_abortable_runs_to_its_end_without_an_owner() -> None:
    work = Work()
    model = ScriptedModel(call(("act", {})), "thanks")
    agent = make_agent(model, make_tool(work, un_abortable=True))
    token = CancelToken()
    request = asyncio.ensure_future(agent.process_request("buy", token=token))
    await work.started.wait()
    token.abort("stop", tools=True)
    await asyncio.sleep(1)
    assert not request.done()
    work.finish.set()
    with pytest.raises(AbortError):
        await request
    (result,) = (await results(agent)).values()
    assert result.result == ToolResultData("success", "finished")
    await agent.process_request("so?")
    assert model.requests[1].messages[2].tool_results[0].result.data == "finished"


async def test_core_row_020_un_abortable_outlives_the_call_in_the_servers_group() -> None:
    work = Work()
    agent = make_agent(ScriptedModel(call(("act", {}))), make_tool(work, un_abortable=True))
    async with asyncio.TaskGroup() as server:
        async with agent.running(server):
            await cut_while_running(agent, work, tools=True)
        assert agent.outstanding
        work.finish.set()
    (result,) = (await results(agent)).values()
    assert result.result.data == "finished"


async def test_un_abortable_has_a_deadline_of_its_own() -> None:
    work = Work()
    agent = make_agent(
        ScriptedModel(call(("act", {}))),
        make_tool(work, un_abortable=True),
        un_abortable_timeout_s=5,
    )
    async with agent.running():
        await cut_while_running(agent, work, tools=True)
    (result,) = (await results(agent)).values()
    assert "within 5 s" in str(result.result.message)


@pytest.mark.parametrize(("retries", "attempts"), [(0, 1), (2, 3)])
async def test_core_row_021_retries_are_opt_in(retries: int, attempts: int) -> None:
    tries = 0

    async def flaky(value: object) -> None:
        nonlocal tries
        tries += 1
        raise OSError("flaky")

    agent = make_agent(ScriptedModel(call(("act", {})), "ok"), make_tool(flaky, retries=retries))
    await agent.process_request("go")
    assert tries == attempts


async def test_a_returned_error_is_not_retried() -> None:
    tries: list[int] = []

    def refuse(value: object) -> ToolResultData:
        tries.append(1)
        return ToolResultData("error", None, "no")

    agent = make_agent(ScriptedModel(call(("act", {})), "ok"), make_tool(refuse, retries=3))
    await agent.process_request("go")
    assert len(tries) == 1


async def test_core_row_022_a_throwing_tool_gives_an_error_and_the_loop_goes_on() -> None:
    def boom(value: object) -> None:
        raise ValueError("no such table")

    agent = make_agent(ScriptedModel(call(("act", {})), "sorry"), make_tool(boom))
    assert (await agent.process_request("go")).text == "sorry"
    (result,) = (await results(agent)).values()
    assert (result.result.status, result.result.message) == ("error", "ValueError: no such table")


async def test_core_row_023_unknown_tool_lists_near_and_all_names() -> None:
    tools = [make_tool(print, name) for name in ("get_time", "book")]
    agent = make_agent(ScriptedModel(call(("get_time_now", {})), "ok"), *tools)
    await agent.process_request("go")
    (result,) = (await results(agent)).values()
    text = str(result.result.message)
    assert "'get_time_now'" in text and "Did you mean get_time?" in text
    assert "Available tools: get_time, book." in text


async def test_core_row_024_tool_names_ignore_case() -> None:
    agent = make_agent(
        ScriptedModel(call(("GET_X", {})), "ok"), make_tool(lambda value: "x", "get_x")
    )
    await agent.process_request("go")
    assert [one.result.data for one in (await results(agent)).values()] == ["x"]


async def test_core_row_025_every_result_has_its_duration() -> None:
    recorder = Recorder()

    async def slow(value: object) -> str:
        await asyncio.sleep(0.25)
        return "ok"

    def boom(value: object) -> None:
        raise ValueError

    model = ScriptedModel(call(("slow", {}), ("boom", {}), ("none", {}), ("deny", {})), "ok")
    agent = make_agent(
        model,
        make_tool(slow, "slow"),
        make_tool(boom, "boom"),
        make_tool(print, "deny", requires_permission=True),
    )
    await agent.process_request("go", subscriber=recorder)
    durations = [one.duration_ms for one in recorder.of("tool_use_result")]
    assert durations[0] == pytest.approx(250)
    assert durations[1:] == pytest.approx([0, 0, 0])


async def test_core_row_026_render_data_stays_with_people() -> None:
    recorder = Recorder()
    data = ToolResultData("success", "for the model", render_data={"card": 1})
    model = ScriptedModel(call(("act", {})), "ok")
    agent = make_agent(model, make_tool(lambda value: data))
    await agent.process_request("go", subscriber=recorder)
    assert model.requests[1].messages[-1].tool_results[0].result.render_data is None
    assert recorder.of("tool_use_result")[0].result.render_data == {"card": 1}
    assert (await results(agent))["c1_0"].result.render_data == {"card": 1}


async def test_core_row_027_an_aborted_result_is_text_for_the_model() -> None:
    work, model = Work(), ScriptedModel(call(("act", {})), "ok")
    agent = make_agent(model, make_tool(work))
    await cut_while_running(agent, work)
    await agent.process_request("again")
    shown = result_text(model.requests[1].messages[2].tool_results[0].result)
    assert shown == "Aborted: This tool call was stopped: barge-in."


async def test_core_row_028_summaries_replace_old_results_only() -> None:
    def report(value: object) -> ToolResultData:
        return ToolResultData("success", "long " * 50, generate_summary_args={"n": 50})

    act = make_tool(report, generate_summary=lambda args: f"{args['n']} words")
    model = ScriptedModel(call(("act", {})), "first", call(("act", {})), "second")
    agent = make_agent(model, act, tool_result_summaries=True)
    await agent.process_request("one")
    await agent.process_request("two")

    def data(request: int) -> list[object]:
        shown = model.requests[request].messages
        return [one.result.data for message in shown for one in message.tool_results]

    assert data(1) == ["long " * 50]
    assert data(2) == ["50 words"]
    assert data(3) == ["50 words", "long " * 50]
    assert {one.result.data for one in (await results(agent)).values()} == {"long " * 50}


async def test_fault_08_a_failing_summary_does_not_run_the_tool_again() -> None:
    runs: list[int] = []

    def once(value: object) -> ToolResultData:
        runs.append(1)
        return ToolResultData("success", "ok", generate_summary_args=1)

    def broken(args: object) -> str:
        raise RuntimeError("summary")

    agent = make_agent(
        ScriptedModel(call(("act", {})), "done"),
        make_tool(once, retries=3, generate_summary=broken),
    )
    await agent.process_request("go")
    assert len(runs) == 1
    assert (await results(agent))["c1_0"].result.status == "success"


async def test_a_tool_has_a_deadline_and_its_own_timeouterror_is_its_own() -> None:
    async def slow(value: object) -> None:
        await asyncio.sleep(100)

    async def own(value: object) -> None:
        raise TimeoutError("upstream")

    model = ScriptedModel(call(("slow", {}), ("own", {})), "ok")
    agent = make_agent(model, make_tool(slow, "slow", timeout_s=2), make_tool(own, "own"))
    await agent.process_request("go")
    slow_result, own_result = (one.result.message for one in (await results(agent)).values())
    assert slow_result == "slow did not finish within 2 s"
    assert own_result == "TimeoutError: upstream"


async def test_a_tool_that_cancels_itself_is_an_error_not_an_end() -> None:
    async def odd(value: object) -> None:
        raise asyncio.CancelledError

    agent = make_agent(ScriptedModel(call(("act", {})), "fine"), make_tool(odd))
    assert (await agent.process_request("go")).text == "fine"
    assert (await results(agent))["c1_0"].result.status == "error"


async def test_sync_tools_run_off_the_loop() -> None:
    threads: list[int] = []
    agent = make_agent(
        ScriptedModel(call(("act", {})), "ok"),
        make_tool(lambda value: threads.append(threading.get_ident())),
    )
    await agent.process_request("go")
    assert threads != [threading.get_ident()]


async def test_cancelling_the_request_task_still_leaves_one_result_per_call() -> None:
    work = Work()
    model = ScriptedModel(call(("act", {}), ("act", {}), ids=["1", "2"]), "on we go")
    agent = make_agent(model, make_tool(work))
    request = asyncio.ensure_future(agent.process_request("go"))
    await work.started.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    assert [one.result.status for one in (await results(agent)).values()] == ["aborted"] * 2
    await agent.process_request("still there?")


# -- joining turns: DESIGN 5.6, CONTRACTS E last row


async def test_fault_03_barge_in_leaves_the_tool_running_and_the_next_turn_joins() -> None:
    work, recorder = Work(), Recorder()
    model = ScriptedModel(call(("act", {}), ids=["k"]), "I am still on it.", "It is done.")
    agent = make_agent(model, make_tool(work))
    agent.add_subscriber(recorder)
    loop = asyncio.get_running_loop()
    async with agent.running():
        await cut_while_running(agent, work)
        assert agent.outstanding == {"k"}
        assert (await stored(agent))[-1].is_tool_results  # reserved directly behind its call
        before = loop.time()
        await agent.process_request("hello?")
        assert loop.time() - before == pytest.approx(1.5)
        assert [one.result.data for one in model.requests[1].messages[2].tool_results] == [
            "still running"
        ]
        assert await results(agent) == {}  # transient: never stored
        work.finish.set()
        await until(lambda: "tool_settled_idle" in recorder.wires)
        settled = recorder.of("tool_settled_idle")[0]
        assert (settled.call_id, settled.status) == ("k", "success")
        await agent.process_request(Wake.tool_settled(settled))
    shown = model.requests[2].messages
    assert shown[2].tool_results[0].result.data == "finished"
    assert "has arrived" in shown[-1].text
    assert [message.is_tool_results for message in await stored(agent)][2] is True


async def test_a_tool_that_ends_within_the_wait_is_simply_seen() -> None:
    work, recorder = Work(), Recorder()
    model = ScriptedModel(call(("act", {})), "done")
    agent = make_agent(model, make_tool(work))
    agent.add_subscriber(recorder)
    async with agent.running():
        await cut_while_running(agent, work)
        asyncio.get_running_loop().call_later(0.5, work.finish.set)
        before = asyncio.get_running_loop().time()
        await agent.process_request("and?")
        assert asyncio.get_running_loop().time() - before == pytest.approx(0.5)
    assert model.requests[1].messages[2].tool_results[0].result.data == "finished"
    assert "tool_settled_idle" not in recorder.wires


async def test_no_time_is_lost_on_a_tool_that_waits_for_a_person() -> None:
    async def ask(value: object, ctx: ToolContext) -> object:
        return await ctx.display.push_and_wait("confirm")

    model = ScriptedModel(call(("act", {})), "Please confirm on the page.")
    agent = make_agent(model, make_tool(ask))
    async with agent.running():
        token = CancelToken()
        request = asyncio.ensure_future(agent.process_request("go", token=token))
        await until(lambda: agent.display.pending == 1)
        token.abort("barge-in")
        with pytest.raises(AbortError):
            await request
        assert agent.display.pending == 1  # the question survives the cut
        before = asyncio.get_running_loop().time()
        await agent.process_request("what now?")
        assert asyncio.get_running_loop().time() == before
    assert model.requests[1].messages[2].tool_results[0].result.data == "still running"
    assert agent.display.pending == 0


async def test_the_wait_for_tools_honours_the_token() -> None:
    work = Work()
    agent = make_agent(ScriptedModel(call(("act", {}))), make_tool(work))
    async with agent.running():
        await cut_while_running(agent, work)
        token = CancelToken()
        asyncio.get_running_loop().call_later(0.2, token.abort, "again")
        with pytest.raises(AbortError, match="again"):
            await agent.process_request("and?", token=token)


async def test_a_late_result_joins_at_the_next_step_of_a_running_request() -> None:
    work, recorder = Work(), Recorder()
    gate = asyncio.Event()

    async def other(value: object) -> str:
        work.finish.set()
        await gate.wait()
        return "other"

    model = ScriptedModel(call(("act", {})), call(("other", {})), "both done")
    agent = make_agent(model, make_tool(work), make_tool(other, "other"))
    agent.add_subscriber(recorder)
    async with agent.running():
        await cut_while_running(agent, work)
        request = asyncio.ensure_future(agent.process_request("more"))
        await asyncio.sleep(2)
        await until(lambda: len(recorder.of("tool_use_result")) == 1)
        gate.set()
        await request
    first, last = model.requests[1].messages, model.requests[2].messages
    assert first[2].tool_results[0].result.data == "still running"
    assert last[2].tool_results[0].result.data == "finished"
    assert "tool_settled_idle" not in recorder.wires


async def test_a_result_during_the_last_model_call_is_announced_at_the_end() -> None:
    work, recorder = Work(), Recorder()
    answer = asyncio.Event()

    async def slow_answer(request: object, notify: object, token: object) -> object:
        await answer.wait()
        return await ScriptedModel("ok").steps[0](request, notify, token)  # type: ignore[arg-type]

    agent = make_agent(
        ScriptedModel(call(("act", {})), slow_answer),  # type: ignore[arg-type]
        make_tool(work),
    )
    agent.add_subscriber(recorder)
    async with agent.running():
        await cut_while_running(agent, work)
        request = asyncio.ensure_future(agent.process_request("more"))
        await asyncio.sleep(2)
        work.finish.set()
        await until(lambda: not agent.outstanding)
        assert "tool_settled_idle" not in recorder.wires
        answer.set()
        await request
    assert recorder.wires.index("request_ended") < recorder.wires.index("tool_settled_idle", 0) or (
        recorder.wires[-1] == "tool_settled_idle"
    )


# -- the commit gate


@pytest.mark.parametrize("kind", ["event", "future", "function"])
async def test_side_effects_wait_for_the_commit_and_reads_do_not(kind: str) -> None:
    log: list[str] = []
    event: asyncio.Event = asyncio.Event()
    future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    kinds: dict[str, Committed] = {"event": event, "future": future, "function": lambda: future}
    committed = kinds[kind]
    model = ScriptedModel(call(("read", {}), ("write", {})), "done")
    agent = make_agent(
        model,
        make_tool(lambda value: log.append("read"), "read", read_only=True),
        make_tool(lambda value: log.append("write"), "write"),
    )
    request = asyncio.ensure_future(agent.process_request("go", committed=committed))
    await asyncio.sleep(1)
    assert log == ["read"]
    event.set()
    future.set_result(True)
    await request
    assert log == ["read", "write"]


async def test_a_withdrawn_turn_never_runs_its_side_effects() -> None:
    log: list[str] = []
    agent = make_agent(
        ScriptedModel(call(("write", {})), call(("write", {})), "ok"),
        make_tool(lambda value: log.append("write"), "write"),
    )
    await agent.process_request("go", committed=lambda: False)
    async with agent.running():
        token = CancelToken()
        committed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        model = ScriptedModel(call(("write", {})))
        agent.set_model(model)
        request = asyncio.ensure_future(
            agent.process_request("go", token=token, committed=committed)
        )
        await until(lambda: bool(agent.outstanding))
        token.abort("the user went on")
        with pytest.raises(AbortError):
            await request
        await until(lambda: not agent.outstanding)
        assert not committed.cancelled()
    assert log == []
    assert {one.result.status for one in (await results(agent)).values()} == {"aborted"}


async def test_tools_see_the_wider_scope_only() -> None:
    tokens: list[CancelToken] = []
    started = asyncio.Event()

    async def watch(value: object, ctx: ToolContext) -> str:
        tokens.append(ctx.token)
        started.set()
        return await ctx.token.wait()

    agent = make_agent(ScriptedModel(call(("act", {}))), make_tool(watch))
    async with agent.running():
        token = CancelToken()
        request = asyncio.ensure_future(agent.process_request("go", token=token))
        await started.wait()
        token.abort("barge-in")
        with pytest.raises(AbortError):
            await request
        assert not tokens[0].aborted
        token.abort("hang-up", tools=True)
        assert tokens[0].aborted
        await until(lambda: not agent.outstanding)


async def test_leaving_running_stops_request_tools_and_pumps() -> None:
    agent = make_agent(ScriptedModel(hang("so")))
    async with agent.running():
        request = asyncio.ensure_future(agent.process_request("go"))
        await until(lambda: agent.busy)
        await asyncio.sleep(0.1)
    with pytest.raises(AbortError, match="call ended"):
        await request


async def test_errors_leave_running_as_they_are() -> None:
    with pytest.raises(ZeroDivisionError):
        async with make_agent(ScriptedModel()).running():
            raise ZeroDivisionError


async def test_a_cancelled_owner_leaves_results_and_survivors() -> None:
    for survive, status in ((False, "aborted"), (True, "success")):
        work = Work()
        agent = make_agent(ScriptedModel(call(("act", {}))), make_tool(work, un_abortable=True))

        async def call_of(server: asyncio.TaskGroup | None, agent: Agent = agent) -> None:
            async with agent.running(server):
                await agent.process_request("go")

        async with asyncio.TaskGroup() as server:
            owner = server.create_task(call_of(server if survive else None))
            await work.started.wait()
            owner.cancel()
            await asyncio.wait([owner])
            work.finish.set()
        assert [one.result.status for one in (await results(agent)).values()] == [status]


async def test_a_server_that_shuts_down_starts_no_tools() -> None:
    runs: list[int] = []
    agent = make_agent(ScriptedModel(call(("act", {}))), make_tool(lambda value: runs.append(1)))
    server = asyncio.TaskGroup()
    async with server:
        pass
    async with agent.running(server):
        with pytest.raises(AbortError, match="shutting down"):
            await agent.process_request("go")
    assert runs == []
    assert [one.result.status for one in (await results(agent)).values()] == ["aborted"]


async def test_a_tool_that_swallows_its_abort_is_still_recorded_as_aborted() -> None:
    async def stubborn(value: object) -> str:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            await asyncio.sleep(5)
        return "too late"

    agent = make_agent(ScriptedModel(call(("act", {}))), make_tool(stubborn))
    async with asyncio.TaskGroup() as server:
        before = asyncio.get_running_loop().time()
        async with agent.running(server):
            request = asyncio.ensure_future(agent.process_request("go"))
            await until(lambda: bool(agent.outstanding))
            await asyncio.sleep(1)
        with pytest.raises(AbortError):
            await request
        assert asyncio.get_running_loop().time() - before == pytest.approx(2)
    assert [one.result.status for one in (await results(agent)).values()] == ["aborted"]


class FlakyStore(MemoryStore):
    """The first amendment fails."""

    failures = 1

    async def amend_message(self, message_id: str, patch: MessagePatch) -> Message:
        if self.failures:
            self.failures -= 1
            raise StoreError("disk full")
        return await super().amend_message(message_id, patch)


@pytest.mark.parametrize("owned", [True, False])
async def test_a_store_that_fails_once_loses_no_result(owned: bool) -> None:
    model = ScriptedModel(call(("act", {}), ("act", {}), ids=["1", "2"]), "fine")
    agent = make_agent(model, make_tool(lambda value: "ok"), store=FlakyStore())
    if owned:
        async with agent.running():
            assert (await agent.process_request("go")).text == "fine"
    else:
        with pytest.raises(StoreError, match="disk full"):
            await agent.process_request("go")
    assert [*await results(agent)] == ["1", "2"]
    assert agent.outstanding == frozenset()


@pytest.mark.parametrize("data", [b"\xff\x00", "half \ud83d", {"x": b"\xff", "y": float("nan")}])
async def test_any_data_a_tool_returns_can_be_shown_to_a_model(data: object) -> None:
    model = ScriptedModel(call(("act", {})), "done")
    agent = make_agent(model, make_tool(lambda value: data))
    await agent.process_request("go")
    (shown,) = [one for message in model.requests[1].messages for one in message.tool_results]
    assert result_text(shown.result).encode()
