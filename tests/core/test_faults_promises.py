"""Faults 12 and 13: what was promised and never done, and tokens that nobody counted."""

from __future__ import annotations

from tests.core.support import Recorder, ScriptedModel, call, make_agent, make_tool, say, stored
from voxglove.core import CompactionConfig, Glove, ToolResultData, Usage, result_text
from voxglove.core.directives.hooks import HookContext, HookOutcome


async def test_fault_12_a_plain_string_is_what_the_model_reads() -> None:
    model = ScriptedModel(call(("act", {})), "It is noon.")
    agent = make_agent(model, make_tool(lambda value: "noon"))
    await agent.process_request("what time is it?")
    told = model.requests[1].messages[-1].tool_results[0].result
    assert told == ToolResultData("success", "noon")
    assert result_text(told) == "noon"


async def test_fault_12_a_hook_that_rewrites_keeps_the_first_wording() -> None:
    def polite(context: HookContext) -> HookOutcome:
        return HookOutcome(rewrite_text="Please book a table.")

    model = ScriptedModel("Gladly.")
    agent = make_agent(model)
    agent.define_hook("polite", polite)
    await agent.process_request("/polite book a table")
    asked = (await stored(agent))[0]
    assert asked.text == "Please book a table."
    assert asked.pre_modified_text == "/polite book a table"
    assert [one.text for one in model.requests[0].messages] == ["Please book a table."]


def test_fault_12_the_tools_of_the_documentation_are_there() -> None:
    agent = Glove(model=ScriptedModel()).build()
    assert {"glove_update_tasks", "glove_post_to_inbox"} <= {tool.name for tool in agent.tools}


async def test_fault_13_the_tokens_of_a_summary_are_told_and_counted() -> None:
    recorder = Recorder()
    model = ScriptedModel(say("one", usage=Usage(90, 20)), say("sum", usage=Usage(100, 8)))
    agent = make_agent(model, compaction=CompactionConfig(context_limit=100))
    agent.add_subscriber(recorder)
    await agent.process_request("first")
    told = [one.consumption for one in recorder.of("token_consumption")]
    assert told == [Usage(90, 20), Usage(100, 8)]
    assert await agent.store.get_token_count() == 108
    total = await agent.store.get_token_consumption()  # type: ignore[attr-defined]
    assert total == Usage(190, 28)
