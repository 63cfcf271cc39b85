"""Forms on an agent: row 80 from end to end, and fault 23."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.core.forms.rig import Diary, claim
from tests.core.support import Recorder, ScriptedModel, call, make_agent, results, stored
from voxglove.core import AbortError, DuplicateToolError, Glove, ModelRequest, UsageError
from voxglove.core.forms import (
    Effect,
    Fail,
    FieldSpec,
    FormInstance,
    HookContext,
    MemoryFormAdapter,
    Patch,
    define_form,
    use_form_runner,
)


def told(request: ModelRequest) -> list[str]:
    """The runtime context of one model call."""
    return [one.text for one in request.messages if one.framework_context == "runtime"]


def visit() -> Any:
    form = define_form(id="visit", version=1, name="Visit", description="d")
    return form.step("s", title="When", fields={"day": FieldSpec(schema=str)}).build()


async def test_core_row_080_forms_runner_fill_held_undo_checkpoint_and_the_line_of_each_turn() -> (
    None
):
    diary = Diary()
    form = (
        claim()
        .checkpoint(
            "cap",
            when=lambda a: (a.total or 0) > 750,
            blocking=True,
            wait_message="Finance looks at it.",
            run=diary.hook(None),
        )
        .on_complete(diary.hook())
        .build()
    )
    model = ScriptedModel(
        call(("glove_form_start", {"form": "claim", "values": {"Full name": "Ada"}}), ids=["c1"]),
        call(("glove_form_fill", {"values": {"email": "a@b", "miles": 40}}), ids=["c2"]),
        call(("glove_form_fill", {"values": {"mode": "rail", "total": 800}}), ids=["c3"]),
        call(("glove_form_fill", {"values": {"total": 1}}), ids=["c4"]),
        "One moment, finance looks at it.",
        call(("glove_form_revise", {"action": "undo"}), ids=["c5"]),
        call(("glove_form_revise", {"action": "set", "field": "total", "value": 90}), ids=["c6"]),
        "It is done.",
    )
    agent = make_agent(model, system_prompt="Help with claims.")
    forms = use_form_runner(agent, [form], scope="call_1")
    await agent.process_request("I am Ada, I drove 40 miles, no, took the train, 800 dollars")
    await forms.resolve_checkpoint("cap", Fail("above the limit"))
    await agent.process_request("Ah, that was wrong, it was 90")

    lines = [told(one) for one in model.requests]
    travel = '[form: claim] step 2/2 "Travel" · pending:'
    waiting = "[form: claim] waiting: Finance looks at it. · it cannot change until then"
    assert lines[0] == []
    assert lines[1] == [
        '[form: claim] step 1/2 "Claimant" · pending: Work email\nlater: Travel (how, how far)'
    ]
    assert lines[2] == [f"{travel} Mode, Total, Note (optional)"]
    assert lines[3] == lines[4] == [waiting]
    assert lines[5] == ["[form: claim] all answered, but refused: above the limit"]
    assert lines[6] == [f"{travel} Total, Note (optional)"]
    assert lines[7] == []

    found = {key: one.result for key, one in (await results(agent)).items()}
    data: dict[str, Any] = {key: one.data for key, one in found.items()}
    assert data["c1"]["written"] == ["Full name"]
    assert data["c2"]["held"] == ["Miles"]
    assert data["c3"]["status"] == "awaiting"
    assert found["c4"].status == "error" and data["c4"]["code"] == "form_blocked"
    assert data["c5"]["changed"] == {"label": "Total", "state": "pending"}
    assert data["c6"]["status"] == "complete"
    assert diary.hooks == ["checkpoint.cap:1", "form.complete:1"]
    assert "miles" not in diary.contexts[1].values
    assert {one.system_prompt for one in model.requests} == {"Help with claims."}
    assert not [one for one in await stored(agent) if one.framework_context == "runtime"]


async def test_fault_23_two_runners_and_a_later_prompt_do_not_overwrite_each_other() -> None:
    model = ScriptedModel(
        call(("glove_form_start", {"form": "claim"})),
        call(("glove_second_form_start", {"form": "visit"})),
        "one",
        "two",
        "three",
    )
    agent = make_agent(model, system_prompt="Base.")
    process = agent.process_request
    first = use_form_runner(agent, [claim().build()], scope="a")
    second = use_form_runner(agent, [visit()], scope="b", namespace="second")
    assert agent.process_request == process
    await agent.process_request("go")
    agent.set_system_prompt("Changed.")
    await agent.process_request("on")
    both = ["[form: claim]", "[form: visit]"]
    assert [one[:13] for one in told(model.requests[3])] == both
    assert [one.system_prompt for one in model.requests] == ["Base."] * 3 + ["Changed."]
    first.unmount()
    await agent.process_request("on")
    assert [one[:13] for one in told(model.requests[4])] == both[1:]
    assert agent.system_prompt == "Changed."
    before, after = (one.messages for one in model.requests[3:])
    assert after[: len(before) - 2] == before[:-2], "the cacheable prefix only grows"
    assert (await second.status()).instance.scope == "b"


async def test_a_builder_takes_forms_before_and_after_it_is_built() -> None:
    model = ScriptedModel(call(("glove_form_start", {"form": "claim"})), "ok", "ok")
    glove = Glove(model=model)
    forms = use_form_runner(glove, [claim().build()], scope="s")
    agent = glove.build()
    later = use_form_runner(glove, [visit()], scope="s2", namespace="visits")
    await later.start("visit")
    await agent.process_request("go")
    assert (await forms.status()).instance.form_id == "claim"
    assert len(told(model.requests[1])) == 2
    tools = {one.name for one in agent.tools}
    assert {"glove_form_fill", "glove_visits_form_fill"} <= tools


async def test_a_second_runner_without_a_namespace_is_refused_and_adds_nothing() -> None:
    agent = make_agent(ScriptedModel("ok"))
    forms = use_form_runner(agent, [claim().build()], scope="s")
    await forms.start("claim")
    before = agent.tools
    with pytest.raises(DuplicateToolError):
        use_form_runner(agent, [visit()], scope="s")
    with pytest.raises(UsageError, match="namespace"):
        use_form_runner(agent, [visit()], scope="s", namespace="a b")
    assert agent.tools == before


async def test_unmount_takes_everything_back_and_the_forms_stay() -> None:
    model = ScriptedModel("one", "two")
    agent = make_agent(model)
    tools = agent.tools
    forms = use_form_runner(agent, [claim().build()], scope="s")
    await forms.start("claim")
    agent.replace_tools(["glove_form_history"], [])
    forms.unmount()
    forms.unmount()
    assert agent.tools == tools
    await agent.process_request("go")
    assert told(model.requests[0]) == []
    again = use_form_runner(agent, [claim().build()], scope="s", line=False)
    await again.start("claim")
    await agent.process_request("go")
    assert told(model.requests[1]) == []
    assert len((await forms.status()).instance.id) > 0


class Broken(MemoryFormAdapter):
    async def list(self, scope: str, *, form_id: str | None = None) -> list[FormInstance]:
        raise OSError("no connection")


class Hanging(MemoryFormAdapter):
    async def list(self, scope: str, *, form_id: str | None = None) -> list[FormInstance]:
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_line_that_cannot_be_shown_costs_no_turn() -> None:
    model, recorder = ScriptedModel("fine"), Recorder()
    agent = make_agent(model)
    agent.add_subscriber(recorder)
    use_form_runner(agent, [claim().build()], scope="s", adapter=Broken())
    assert (await agent.process_request("go")).text == "fine"
    assert told(model.requests[0]) == []
    assert [one.name for one in recorder.of("error")] == ["glove_form_line"]


async def test_a_store_that_hangs_delays_a_turn_by_its_limits_only() -> None:
    model = ScriptedModel("fine")
    agent = make_agent(model, context_timeout_s=0.5)
    use_form_runner(agent, [claim().build()], scope="s", adapter=Hanging(), hook_timeout_s=2.0)
    loop = asyncio.get_running_loop()
    began = loop.time()
    assert (await agent.process_request("go")).text == "fine"
    assert loop.time() - began < 4.0


async def test_a_store_that_fails_is_an_error_result_of_the_tool() -> None:
    model = ScriptedModel(call(("glove_form_status", {}), ids=["c1"]), "sorry")
    agent = make_agent(model)
    use_form_runner(agent, [claim().build()], scope="s", adapter=Broken())
    await agent.process_request("go")
    assert (await results(agent))["c1"].result.status == "error"


async def test_an_interrupted_hook_is_resumed_before_the_next_turn() -> None:
    """The call's process ended in the middle of a hook; the next turn of another one repairs it."""
    keys: list[str] = []

    class Crash(BaseException):
        pass

    async def hook(context: HookContext) -> Effect:
        keys.append(context.key)
        if len(keys) == 1:
            raise Crash
        return Patch({"total": 3.0})

    adapter = MemoryFormAdapter()
    form = claim().on_fill("mode", hook).build()
    first = use_form_runner(make_agent(ScriptedModel()), [form], scope="s", adapter=adapter)
    with pytest.raises(Crash):
        await first.start("claim", {"mode": "rail", "full_name": "Ada", "email": "a@b"})
    model = ScriptedModel("hello again")
    agent = make_agent(model)
    use_form_runner(agent, [form], scope="s", adapter=adapter)
    await agent.process_request("back again")
    assert len(keys) == 2 and len(set(keys)) == 1
    assert told(model.requests[0]) == []
    (stored_form,) = await adapter.list("s")
    assert stored_form.status == "complete"


async def test_an_answer_survives_an_interruption_of_its_hook() -> None:
    """The user speaks while a hook works: the answer is stored, the run owed and made good."""
    began = asyncio.Event()
    keys: list[str] = []

    async def hook(context: HookContext) -> None:
        keys.append(context.key)
        if len(keys) == 1:
            began.set()
            await asyncio.Event().wait()

    model = ScriptedModel(
        call(("glove_form_start", {"form": "claim", "values": {"mode": "car"}})), "and now?"
    )
    agent = make_agent(model)
    forms = use_form_runner(agent, [claim().on_fill("mode", hook).build()], scope="s")

    async def ask() -> None:
        with pytest.raises(AbortError, match="stop"):
            await agent.process_request("by car")

    async with asyncio.TaskGroup() as group:
        group.create_task(ask())
        await began.wait()
        agent.interrupt("stop")
    await agent.process_request("go on")
    assert len(keys) == 2 and len(set(keys)) == 1
    assert (await forms.status()).instance.logs["mode"].answer is not None
