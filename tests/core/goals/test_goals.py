"""Goals: progress with versions, on text and on calls."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.support import Recorder, ScriptedModel, call, make_agent, make_tool, results, stored
from voxglove.core import (
    AbortError,
    CancelToken,
    MemoryStore,
    ModelRequest,
    StoreError,
    UsageError,
)
from voxglove.core.goals import (
    Goal,
    GoalConflict,
    GoalHooks,
    GoalInstance,
    GoalSpec,
    MemoryGoalAdapter,
    Program,
    Scope,
    use_goal_runner,
)
from voxglove.core.goals.values import STATUSES, begin, change, migrate

SCOPE = Scope(subject="anna", key="sales")
SALES = Program(
    id="sales",
    goals=[
        GoalSpec(id="discover", title="Discover needs", done_when="workflow and volume are known"),
        GoalSpec(id="recommend", title="Recommend a fit", done_when="one plan was named"),
        GoalSpec(id="next", title="Agree a next step", done_when="a date or a no"),
    ],
)
UPDATE = "glove_goal_update"


def update(goal_id: str, status: str, version: int, note: str = "") -> tuple[str, dict[str, Any]]:
    fields = {"goal_id": goal_id, "status": status, "expected_version": version, "note": note}
    return (UPDATE, fields)


def statuses(instance: GoalInstance | None) -> list[str]:
    assert instance is not None
    return [goal.status for goal in instance.goals]


def told(request: ModelRequest) -> list[str]:
    kinds = ("runtime", "history")
    return [one.text for one in request.messages if one.framework_context in kinds]


async def test_core_row_079_a_program_runs_from_start_to_end() -> None:
    model = ScriptedModel(
        call(("glove_goal_status", {})),
        call(update("discover", "met", 1, "paper, 40 a week")),
        call(update("recommend", "met", 2)),
        call(update("next", "refused", 3, "not this year")),
        call(("glove_goal_history", {})),
        "Thank you anyway.",
    )
    agent = make_agent(model)
    adapter = MemoryGoalAdapter()
    runner = use_goal_runner(agent, adapter, scope=SCOPE)
    await runner.start(SALES)
    await agent.process_request("hello")
    instance = await runner.status()
    assert statuses(instance) == ["met", "met", "refused"]
    assert instance is not None and instance.complete and instance.current is None
    outputs = [str(one.result.data) for one in (await results(agent)).values()]
    assert "1. discover - Discover needs: active; done when: workflow" in outputs[0]
    assert "expected_version 2" in outputs[1] and "2. recommend" in outputs[1]
    assert outputs[3].endswith("All goals have ended; nothing is left to pursue.")
    assert outputs[4].splitlines() == [
        "version 2: discover active -> met by model (paper, 40 a week)",
        "version 3: recommend active -> met by model",
        "version 4: next active -> refused by model (not this year)",
    ]


async def test_core_row_079_a_stale_version_is_refused_with_the_present_state() -> None:
    model = ScriptedModel(
        call(update("discover", "met", 1)), call(update("recommend", "met", 1)), "ok"
    )
    agent = make_agent(model)
    runner = use_goal_runner(agent, MemoryGoalAdapter(), scope=SCOPE)
    await runner.start(SALES)
    await agent.process_request("go")
    _, stale = (one.result for one in (await results(agent)).values())
    assert stale.status == "error" and stale.message is not None
    assert "version 2, not 1" in stale.message and "version 2" in str(stale.data)
    assert statuses(await runner.status()) == ["met", "active", "open"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (update("nothing", "met", 1)[1], "there is no goal 'nothing'; goals: discover"),
        (update("discover", "won", 1)[1], "TOOL_INPUT_INVALID"),
        (update("discover", "met", 1)[1] | {"expected_version": None}, "TOOL_INPUT_INVALID"),
    ],
)
async def test_core_row_079_a_bad_update_is_a_result(fields: dict[str, Any], words: str) -> None:
    agent = make_agent(ScriptedModel(call((UPDATE, fields)), "sorry"))
    runner = use_goal_runner(agent, MemoryGoalAdapter(), scope=SCOPE)
    await runner.start(SALES)
    await agent.process_request("go")
    (refused,) = (await results(agent)).values()
    assert refused.result.status == "error" and words in (refused.result.message or "")


async def test_core_row_079_delivery_history_stores_a_snapshot_when_it_changed() -> None:
    model = ScriptedModel("a", call(update("discover", "met", 1)), "b", "c", "d")
    store = MemoryStore()
    agent = make_agent(model, store=store)
    runner = use_goal_runner(agent, MemoryGoalAdapter(), scope=SCOPE, delivery="history")
    await runner.start(SALES)
    for text in ("one", "two", "three", "four"):
        await agent.process_request(text)
    kept = [one for one in await stored(agent) if one.framework_context == "history"]
    assert [one.text.splitlines()[0] for one in kept] == [
        "[goals: sales] version 1",
        "[goals: sales] version 2",
    ]
    texts = [one.text for one in await stored(agent)]
    assert texts.index("three") == texts.index(kept[1].text) + 1, "before the next user turn"
    fresh = make_agent(ScriptedModel("again"), store=store)
    use_goal_runner(fresh, runner._adapter, scope=SCOPE, delivery="history")
    await fresh.process_request("five")
    kept = [one for one in await stored(fresh) if one.framework_context == "history"]
    assert len(kept) == 2, "a new agent knows what was told"


async def test_core_row_079_tools_can_be_chosen_and_taken_away() -> None:
    agent = make_agent(ScriptedModel("a", "b"), make_tool(print, "mine"))
    runner = use_goal_runner(
        agent, MemoryGoalAdapter(), scope=SCOPE, allow=["status", "update"], deny=["update"]
    )
    await runner.start(SALES)
    assert [tool.name for tool in agent.tools] == ["mine", "glove_goal_status"]
    await agent.process_request("go")
    model = agent.model
    assert isinstance(model, ScriptedModel)
    assert UPDATE not in told(model.requests[0])[0]
    runner.unmount()
    runner.unmount()
    await agent.process_request("go")
    assert [tool.name for tool in agent.tools] == ["mine"]
    assert told(model.requests[1]) == []
    with pytest.raises(UsageError, match="wrong"):
        use_goal_runner(agent, MemoryGoalAdapter(), scope=SCOPE, allow=["wrong"])  # type: ignore[list-item]


async def test_configure_is_applied_before_every_turn() -> None:
    model = ScriptedModel(call(update("discover", "met", 1)), "one", "two")
    agent = make_agent(model)

    def configure(host: Any, instance: GoalInstance) -> None:
        goal = instance.current
        host.set_system_prompt(f"Now: {goal.id if goal else 'done'}")

    runner = use_goal_runner(
        agent, MemoryGoalAdapter(), scope=SCOPE, hooks=GoalHooks(configure=configure)
    )
    await runner.start(SALES)
    await agent.process_request("a")
    await agent.process_request("b")
    prompts = [one.system_prompt for one in model.requests]
    assert prompts == ["Now: discover", "Now: discover", "Now: recommend"]


async def test_hooks_run_once_per_edge_and_again_when_interrupted() -> None:
    ran: list[str] = []
    broken = True

    async def on_end(goal: Goal, instance: GoalInstance) -> None:
        ran.append(f"end {goal.id}")
        if broken:
            raise OSError("crm is down")

    def on_complete(instance: GoalInstance) -> None:
        ran.append("complete")

    adapter, hooks = MemoryGoalAdapter(), GoalHooks(on_end=on_end, on_complete=on_complete)
    runner = use_goal_runner(make_agent(ScriptedModel()), adapter, scope=SCOPE, hooks=hooks)
    await runner.start(SALES)
    await runner.update("discover", "met")
    assert ran == ["end discover"]
    broken = False
    agent = make_agent(ScriptedModel("hi"))  # another process, later
    again = use_goal_runner(agent, adapter, scope=SCOPE, hooks=hooks)
    await agent.process_request("hello")
    assert ran == ["end discover", "end discover"], "it was owed"
    await again.update("discover", "met", "a note")
    for goal_id in ("recommend", "next"):
        await again.update(goal_id, "refused")
    assert ran[2:] == ["end recommend", "end next", "complete"]


async def test_a_hook_may_change_goals() -> None:
    async def on_end(goal: Goal, instance: GoalInstance) -> None:
        if goal.id == "discover":
            await runner.update("recommend", "met", "implied")

    agent = make_agent(ScriptedModel())
    runner = use_goal_runner(
        agent, MemoryGoalAdapter(), scope=SCOPE, hooks=GoalHooks(on_end=on_end)
    )
    await runner.start(SALES)
    after = await runner.update("discover", "met")
    assert statuses(after) == ["met", "met", "active"] and after.due == ()


async def test_starting_again_goes_on_and_a_new_version_migrates() -> None:
    runner = use_goal_runner(make_agent(ScriptedModel()), MemoryGoalAdapter(), scope=SCOPE)
    await runner.start(SALES)
    await runner.update("discover", "met", "known")
    assert statuses(await runner.start(SALES)) == ["met", "active", "open"]
    changed = Program(
        id="sales",
        version=2,
        goals=[*SALES.goals[:1], GoalSpec(id="demo", title="Show it", done_when="it was seen")],
    )
    moved = await runner.start(changed)
    assert [(goal.id, goal.status, goal.note) for goal in moved.goals] == [
        ("discover", "met", "known"),
        ("demo", "active", ""),
    ]
    assert len(moved.history) == 1
    with pytest.raises(UsageError, match="another key"):
        await runner.start(Program(id="support", goals=SALES.goals))


async def test_changes_before_a_start_and_of_two_writers() -> None:
    adapter = MemoryGoalAdapter()
    one = use_goal_runner(make_agent(ScriptedModel()), adapter, scope=SCOPE)
    two = use_goal_runner(make_agent(ScriptedModel()), adapter, scope=SCOPE)
    with pytest.raises(UsageError, match="start"):
        await one.update("discover", "met")
    await one.start(SALES)
    await asyncio.gather(one.update("discover", "met"), two.update("recommend", "met"))
    assert statuses(await one.status()) == ["met", "met", "active"]
    stored_now = await one.status()
    assert stored_now is not None
    with pytest.raises(GoalConflict):
        await adapter.commit(stored_now, if_revision=1)
    with pytest.raises(GoalConflict):
        await adapter.create(stored_now)
    with pytest.raises(GoalConflict):
        await two.update("next", "met", expected_version=1)


async def test_goals_work_on_a_call() -> None:
    model = ScriptedModel(call(update("discover", "met", 1)), "Noted.")
    agent = make_agent(model)
    runner = use_goal_runner(agent, MemoryGoalAdapter(), scope=SCOPE)
    await runner.start(SALES)
    async with agent.running(), agent.turn_queue.hold("call") as hold:
        await agent.process_request("x", hold=hold, playback=True, token=CancelToken())
    assert statuses(await runner.status())[0] == "met"


def test_programs_are_checked() -> None:
    with pytest.raises(UsageError, match="done_when"):
        GoalSpec(id="a", title="b", done_when=" ")
    with pytest.raises(UsageError, match="empty"):
        Program(id="p", goals=[])
    with pytest.raises(UsageError, match="a stands twice"):
        Program(id="p", goals=[GoalSpec(id="a", title="b", done_when="c")] * 2)


goal_ids = st.sampled_from(["discover", "recommend", "next"])
moves = st.lists(
    st.tuples(goal_ids, st.sampled_from(STATUSES), st.sampled_from(["model", "app"])), max_size=12
)


@given(moves)
def test_any_order_of_changes_keeps_one_goal_active_and_history_whole(moves: Any) -> None:
    instance = begin(SALES, SCOPE)
    for goal_id, status, author in moves:
        try:
            after = change(instance, goal_id, status, "", author)
        except UsageError:
            assert author == "model"
            continue
        active = [goal for goal in after.goals if goal.status == "active"]
        left = [goal for goal in after.goals if goal.status == "open"]
        assert len(active) <= 1 and (active or not left)
        assert after.history[: len(instance.history)] == instance.history
        assert after.version - instance.version == len(after.history) - len(instance.history)
        assert after.complete == all(one.status in ("met", "refused") for one in after.goals)
        instance = after
    moved = migrate(instance, Program(id="sales", version=2, goals=SALES.goals))
    assert statuses(moved) == statuses(instance)


def test_core_row_079_a_second_runner_is_refused_whole_and_says_why() -> None:
    agent, adapter = make_agent(ScriptedModel()), MemoryGoalAdapter()
    first = use_goal_runner(agent, adapter, scope=SCOPE, allow=["history"])
    other = Scope(subject="anna", key="support")
    with pytest.raises(UsageError, match="allow=\\(\\)"):
        use_goal_runner(agent, adapter, scope=other)
    with pytest.raises(UsageError, match="goals:anna:sales"):
        use_goal_runner(agent, adapter, scope=SCOPE, allow=["status"])
    assert [tool.name for tool in agent.tools] == ["glove_goal_history"], "nothing is left of them"
    assert agent.tools[0] is first._tools[0]
    beside = use_goal_runner(agent, adapter, scope=other, allow=())
    beside.unmount()
    assert len(agent.tools) == 1


async def test_core_row_079_unmounting_takes_only_its_own_tools_away() -> None:
    agent = make_agent(ScriptedModel("hi"))
    runner = use_goal_runner(agent, MemoryGoalAdapter(), scope=SCOPE)
    mine = make_tool(lambda value: "mine", "glove_goal_status")
    agent.replace_tools(["glove_goal_status"], [mine])
    runner.unmount()
    runner.unmount()
    assert agent.tools == (mine,)


class SlowGoals(MemoryGoalAdapter):
    """Takes time before each step, as a database does."""

    async def get(self, scope: Scope) -> GoalInstance | None:
        await asyncio.sleep(0.1)
        found = await super().get(scope)
        await asyncio.sleep(0.1)
        return found


async def test_core_row_079_two_starts_at_once_begin_one_program() -> None:
    adapter = SlowGoals()
    one = use_goal_runner(make_agent(ScriptedModel()), adapter, scope=SCOPE)
    two = use_goal_runner(make_agent(ScriptedModel()), adapter, scope=SCOPE)
    first, second = await asyncio.gather(one.start(SALES), two.start(SALES))
    assert first == second
    newer = replace(SALES, version=2)
    first, second = await asyncio.gather(one.start(newer), two.start(newer))
    assert first == second and first.program_version == 2


async def test_core_row_079_a_hook_that_was_paid_is_no_change_of_the_goals() -> None:
    """The model's version is still the present one, only the revision grew."""

    async def on_end(goal: Goal, instance: GoalInstance) -> None:
        await asyncio.sleep(0.25)

    adapter = SlowGoals()
    hooks = GoalHooks(on_end=on_end)
    one = use_goal_runner(make_agent(ScriptedModel()), adapter, scope=SCOPE, hooks=hooks)
    two = use_goal_runner(make_agent(ScriptedModel()), adapter, scope=SCOPE)
    await one.start(SALES)

    async def by_the_model(after_s: float) -> None:
        await asyncio.sleep(after_s)
        now = await two.status()
        assert now is not None
        note = f"note {after_s}"
        await two.update("next", "open", note, expected_version=now.version, author="model")

    changing = asyncio.ensure_future(one.update("discover", "met"))
    await asyncio.sleep(0.45)
    for step in range(10):
        await by_the_model(step * 0.03)
    await changing


async def test_a_hook_that_aborts_or_cancels_itself_stays_owed_and_hurts_nobody() -> None:
    ran: list[str] = []

    async def on_end(goal: Goal, instance: GoalInstance) -> None:
        ran.append(goal.id)
        if len(ran) == 1:
            raise AbortError("stop")
        if len(ran) == 2:
            gone = asyncio.get_running_loop().create_future()
            gone.cancel()
            await gone

    agent = make_agent(ScriptedModel("hi", "hi"))
    adapter = MemoryGoalAdapter()
    hooks = GoalHooks(on_end=on_end)
    runner = use_goal_runner(agent, adapter, scope=SCOPE, hooks=hooks)
    await runner.start(SALES)
    await runner.update("discover", "met")
    for _ in range(2):
        await agent.process_request("hello")
    assert ran == ["discover"] * 3
    now = await runner.status()
    assert now is not None and now.due == ()


async def test_an_adapter_that_fails_does_not_silence_a_call() -> None:
    class Down(MemoryGoalAdapter):
        async def get(self, scope: Scope) -> GoalInstance | None:
            raise StoreError("goals are down")

    recorder = Recorder()
    agent = make_agent(ScriptedModel(call(update("discover", "met", 1)), "spoken"))
    agent.add_subscriber(recorder)
    use_goal_runner(agent, Down(), scope=SCOPE)
    async with agent.running(), agent.turn_queue.hold("call") as hold:
        assert (await agent.process_request("x", hold=hold)).text == "spoken"
    assert {one.stage for one in recorder.of("error")} == {"turn_preparer", "context_provider"}
    assert [one.result.status for one in (await results(agent)).values()] == ["error"]
