"""The timeline of live events equals the timeline of history, whatever happened in between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.support import (
    ScriptedModel,
    Step,
    call,
    fail,
    hang,
    make_agent,
    make_tool,
    say,
    stored,
)
from tests.support.vloop import run_virtual
from voxglove.core import (
    AbortError,
    Agent,
    AgentEvent,
    CancelToken,
    CompactionConfig,
    ContentPart,
    ContentSource,
    HookOutcome,
    MemoryStore,
    Message,
    ModelError,
    SubAgentContext,
    TextDelta,
    ToolCall,
    ToolResultData,
    Usage,
)
from voxglove.core.timeline import TimelineBuilder, ToolEntry, entry_json

PICTURE = ContentPart(
    "image", source=ContentSource("base64", "image/png", data="AAAA"), name="hat.png"
)


def timeline_of(agent: Agent) -> TimelineBuilder:
    builder = TimelineBuilder()
    agent.add_subscriber(builder)
    return builder


async def from_history(agent: Agent) -> TimelineBuilder:
    return TimelineBuilder.from_history(await stored(agent), agent.outstanding)


def kinds(builder: TimelineBuilder) -> list[str]:
    return [entry.kind for entry in builder.entries]


async def test_core_row_092_a_whole_conversation() -> None:
    async def checkout(value: object) -> ToolResultData:
        return ToolResultData("success", "paid", render_data={"total": 5})

    model = ScriptedModel(
        call(("pay", {"what": "hat"}), ("nothing", {}), text="One moment."),
        say("Paid.", stream=False, usage=Usage(900, 1)),
        say("the summary"),
        "Good bye.",
    )
    agent = make_agent(
        model,
        make_tool(checkout, "pay"),
        compaction=CompactionConfig(context_limit=500),
        store=MemoryStore(),
    )
    agent.define_skill("polite", lambda context: "Be polite.")
    builder = timeline_of(agent)
    await agent.append_answer("Hello, how may I help?")
    await agent.process_request([ContentPart("text", text="buy this"), PICTURE])
    await agent.emit_event(AgentEvent(source="shop", content="closing soon"), when_idle="defer")
    result = await agent.process_request("/polite thanks", playback=True)
    await agent.amend_heard(result.messages[0].id, "Good", " bye.", interrupted=True)
    assert result.user_message_id is not None
    await agent.amend_user(result.user_message_id, "many thanks")
    model.steps.append(say("bye"))
    await agent.process_request("bye")
    assert builder.entries == (await from_history(agent)).entries
    assert [entry_json(entry) for entry in builder.entries] == [
        {"kind": "agent_text", "id": builder.entries[0].id, "text": "Hello, how may I help?"},
        {
            "kind": "user",
            "id": builder.entries[1].id,
            "text": "buy this",
            "images": [{"type": "image", "media_type": "image/png", "name": "hat.png"}],
        },
        {"kind": "agent_text", "id": builder.entries[2].id, "text": "One moment."},
        {
            "kind": "tool",
            "id": builder.entries[3].id,
            "name": "pay",
            "input": {"what": "hat"},
            "status": "success",
            "output": "paid",
            "renderData": {"total": 5},
        },
        {
            "kind": "tool",
            "id": builder.entries[4].id,
            "name": "nothing",
            "input": {},
            "status": "error",
            "output": "Error: There is no tool 'nothing'. Available tools: pay.",
        },
        {"kind": "agent_text", "id": builder.entries[5].id, "text": "Paid."},
        {
            "kind": "user",
            "id": builder.entries[6].id,
            "text": "many thanks",
            "original": "/polite thanks",
        },
        {
            "kind": "agent_text",
            "id": builder.entries[7].id,
            "text": "Good bye.",
            "heard": "Good",
            "unheard": " bye.",
            "interrupted": True,
        },
        {"kind": "user", "id": builder.entries[8].id, "text": "bye"},
        {"kind": "agent_text", "id": builder.entries[9].id, "text": "bye"},
    ]


async def test_core_row_092_entries_grow_while_the_model_streams_and_tools_run() -> None:
    seen: list[list[Any]] = []
    agent = make_agent(ScriptedModel(call(("act", {}), text="Well."), "Done."))

    def note() -> None:
        seen.append([getattr(one, "status", getattr(one, "text", "")) for one in builder.entries])

    async def act(value: object) -> str:
        await asyncio.sleep(1)
        note()
        return "ok"

    agent.fold(make_tool(act))
    builder = timeline_of(agent)
    async with agent.running():
        await agent.process_request("go")
        await asyncio.sleep(0)
    note()
    assert seen == [["go", "Well.", "running"], ["go", "Well.", "success", "Done."]]


async def test_core_row_092_calls_of_a_failed_answer_vanish_and_its_words_stay() -> None:
    async def calls_then_fails(request: Any, notify: Any, token: Any) -> Any:
        notify(TextDelta(text="Let me see"))
        await call(("act", {}))(request, notify, token)
        raise ModelError("broke off")

    agent = make_agent(ScriptedModel(calls_then_fails, fail(ModelError("down"))))
    builder = timeline_of(agent)
    for _ in range(2):
        with pytest.raises(ModelError):
            await agent.process_request("go")
    assert kinds(builder) == ["user", "agent_text", "user"]
    assert builder.entries == (await from_history(agent)).entries


async def test_core_row_092_outstanding_calls_run_and_lost_ones_are_aborted() -> None:
    asked = Message(
        sender="agent", id="a", tool_calls=(ToolCall("t", {}, "1"), ToolCall("t", {}, "2"))
    )
    builder = TimelineBuilder.from_history([asked], running={"1"})
    assert [one.status for one in builder.entries if isinstance(one, ToolEntry)] == [
        "running",
        "aborted",
    ]


async def test_core_row_092_a_sub_agents_words_are_no_entry() -> None:
    def worker(context: SubAgentContext) -> Agent:
        return make_agent(ScriptedModel("inner words"), name="worker")

    invoke = ("glove_invoke_subagent", {"name": "worker", "prompt": "x"})
    agent = make_agent(ScriptedModel(call(invoke), "outer words"))
    agent.define_sub_agent("worker", worker)
    builder = timeline_of(agent)
    await agent.process_request("go")
    texts = [one.text for one in builder.entries if one.kind == "agent_text"]
    assert texts == ["outer words"]
    assert builder.entries == (await from_history(agent)).entries


turn = st.tuples(
    st.sampled_from(["say", "whole", "tools", "hang", "fail", "hook", "answer"]),
    st.sampled_from([None, None, 0.05, 0.3, 1.0]),
    st.booleans(),
)


def steps_of(what: str) -> list[Step]:
    both = call(("quick", {}), ("slow", {}), text="Hm.")
    return {
        "say": [say("some words")],
        "whole": [say("some words", stream=False)],
        "tools": [both, call(("slow", {}), ("missing", {})), say("done")],
        "hang": [hang("partial words")],
        "fail": [fail(ModelError("down"), "partial")],
    }.get(what, [])


@settings(deadline=None)
@given(st.lists(turn, min_size=1, max_size=5), st.booleans())
def test_core_row_092_live_equals_history_in_random_conversations(
    turns: list[Any], owned: bool
) -> None:
    async def conversation() -> None:
        model = ScriptedModel()
        agent = make_agent(model, make_tool(lambda value: "q", "quick"))
        agent.fold(make_tool(slowly, "slow"))
        agent.define_hook("hook", lambda context: HookOutcome(short_circuit="hooked"))
        builder = timeline_of(agent)
        if not owned:
            await converse(agent, model)
        else:
            async with agent.running():
                await converse(agent, model)
        live = builder.entries
        assert live == (await from_history(agent)).entries

    async def slowly(value: object) -> str:
        await asyncio.sleep(0.2)
        return "s"

    async def converse(agent: Agent, model: ScriptedModel) -> None:
        for what, abort_after, playback in turns:
            model.steps = steps_of(what)
            token = CancelToken()
            if abort_after or what == "hang":
                asyncio.get_running_loop().call_later(abort_after or 0.4, token.abort)
            if what == "answer":
                await agent.append_answer("by itself", playback=playback)
                continue
            try:
                words = "/hook" if what == "hook" else "go"
                result = await agent.process_request(words, token=token, playback=playback)
            except (AbortError, ModelError):
                continue
            if playback:
                await agent.amend_heard(result.messages[0].id, "so", "me", interrupted=True)
        model.steps = [say("last")]
        await agent.process_request("the end")  # delivers what was amended after its request

    run_virtual(conversation())
