"""Hooks, skills and sub-agents: what a user's `/name` or the model's choice sets going."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.support import (
    Recorder,
    ScriptedModel,
    Step,
    call,
    hang,
    make_agent,
    make_tool,
    results,
    stored,
)
from voxglove.core import (
    AbortError,
    Agent,
    CancelToken,
    ContentPart,
    ContentSource,
    DisplayStack,
    HookContext,
    HookOutcome,
    MemoryStore,
    Message,
    SkillContext,
    SubAgentContext,
    ToolContext,
    UsageError,
)
from voxglove.core.directives.parser import parse

PICTURE = ContentPart("image", source=ContentSource("url", "image/png", url="https://x/y.png"))


def shown(model: ScriptedModel, at: int = -1) -> list[str]:
    return [message.text for message in model.requests[at].messages]


# -- the parser


@pytest.mark.parametrize(
    ("text", "parsed", "names"),
    [
        ("/save", "[invoked_extension__hook_save]", ["hook save"]),
        ("please /save now", "please [invoked_extension__hook_save] now", ["hook save"]),
        ("/brief /save", "[invoked_extension__skill_brief] [invoked_extension__hook_save]", None),
        ("line\n/save\n", "line\n[invoked_extension__hook_save]\n", ["hook save"]),
        ("see /etc/save and /save/x", None, []),
        ("a/save 1/save http://x/save", None, []),
        ("/save.", None, []),
        ("/Save /SAVE", None, []),
        ("/1save /-save /save-it /_", None, []),
        ("@save @brief", None, []),
        ("/unknown /", None, []),
        ("/both", "[invoked_extension__hook_both]", ["hook both"]),
        ("", None, []),
    ],
)
def test_core_row_064_the_directive_parser(
    text: str, parsed: str | None, names: list[str] | None
) -> None:
    found = parse(text, {"save", "both"}, {"brief", "both"})
    assert found.text == (text if parsed is None else parsed)
    if names is not None:
        assert [f"{one.kind} {one.name}" for one in found.directives] == names


@given(st.text(alphabet="/ab- \n@._1", max_size=30))
def test_core_row_064_a_placeholder_is_never_a_directive(text: str) -> None:
    names = {"a", "b", "ab", "a-b"}
    first = parse(text, names, names)
    assert parse(first.text, names, names).directives == ()
    assert (first.text == text) == (not first.directives)


# -- hooks


async def test_core_row_062_hooks_run_in_order_and_rewrite() -> None:
    ran: list[tuple[str, str]] = []

    def loud(context: HookContext) -> HookOutcome:
        ran.append((context.name, context.parsed_text))
        return HookOutcome(rewrite_text=context.parsed_text.upper())

    async def look(context: HookContext) -> None:
        await asyncio.sleep(0)
        ran.append((context.name, context.raw_text))
        assert context.controls.agent.name == "agent"

    model, recorder = ScriptedModel("fine"), Recorder()
    agent = make_agent(model)
    agent.define_hook("look", look).define_hook("loud", loud).add_subscriber(recorder)
    await agent.process_request("a /loud b /look c")
    working = "a [invoked_extension__hook_loud] b [invoked_extension__hook_look] c"
    assert ran == [("loud", working), ("look", "a /loud b /look c")]
    (user,) = (await stored(agent))[:1]
    assert user.text == working.upper() == shown(model)[0]
    assert user.pre_modified_text == "a /loud b /look c"
    assert [event.name for event in recorder.of("hook_invoked")] == ["loud", "look"]


async def test_core_row_062_a_hook_may_answer_by_itself() -> None:
    model, recorder = ScriptedModel("not reached"), Recorder()
    agent = make_agent(model)
    agent.add_subscriber(recorder)
    agent.define_hook("text", lambda context: HookOutcome(short_circuit="Saved."))
    agent.define_hook(
        "message", lambda context: HookOutcome(short_circuit=Message(sender="agent", text="One."))
    )
    both = [Message(sender="agent", text="One."), Message(sender="agent", text="Two.")]
    agent.define_hook("several", lambda context: HookOutcome(short_circuit=both))
    agent.define_hook("later", lambda context: pytest.fail("must not run"))
    agent.define_skill("skill", lambda context: pytest.fail("must not run"))
    assert (await agent.process_request("/text /later /skill")).text == "Saved."
    result = await agent.process_request("/message")
    assert (result.text, result.model_calls, result.stop) == ("One.", 0, "hook")
    assert (await agent.process_request("/several")).text == "One.\nTwo."
    assert model.requests == []
    senders = [(one.sender, one.text[:12]) for one in await stored(agent)]
    assert senders[:2] == [("user", "[invoked_ext"), ("agent", "Saved.")]
    assert len(senders) == 7
    assert [event.text for event in recorder.of("model_response")] == [
        "Saved.",
        "One.",
        "One.",
        "Two.",
    ], "on a call it is spoken"


async def test_core_row_062_a_short_circuit_on_a_call_waits_to_be_heard() -> None:
    agent = make_agent(ScriptedModel())
    agent.define_hook("hi", lambda context: HookOutcome(short_circuit="Hello."))
    result = await agent.process_request("/hi", playback=True)
    assert (await stored(agent))[-1].playback == "pending"
    await agent.amend_heard(result.messages[0].id, "Hello.")


async def test_core_row_062_a_hook_can_compact_and_pictures_keep_their_place() -> None:
    model = ScriptedModel("one", "the summary", "two")
    agent = make_agent(model)

    async def tidy(context: HookContext) -> HookOutcome:
        assert await context.controls.force_compaction()
        return HookOutcome(rewrite_text="go on")

    agent.define_hook("tidy", tidy)
    await agent.process_request("hello")
    words = [PICTURE, ContentPart("text", text="/tidy"), ContentPart("text", text="please")]
    await agent.process_request(words)
    assert "the summary" in shown(model)[0]
    content = model.requests[-1].messages[-1].content
    assert content == (PICTURE, ContentPart("text", text="go on"))


async def test_core_row_062_a_failing_hook_raises_in_text_and_is_left_out_on_a_call() -> None:
    def broken(context: HookContext) -> None:
        raise LookupError("no such order")

    model, recorder = ScriptedModel("spoken"), Recorder()
    agent = make_agent(model)
    agent.define_hook("order", broken).add_subscriber(recorder)
    with pytest.raises(LookupError):
        await agent.process_request("/order 5")
    async with agent.turn_queue.hold("call") as hold:
        assert (await agent.process_request("/order 5", hold=hold)).text == "spoken"
    assert shown(model)[-1] == "/order 5", "the words are not lost"
    assert [one.message for one in recorder.of("error")] == ["no such order"] * 2


async def test_a_hook_waits_for_the_turn_and_ends_with_its_abort() -> None:
    committed, ran = asyncio.Event(), []

    async def save(context: HookContext) -> None:
        ran.append(committed.is_set())
        await asyncio.Event().wait()

    agent = make_agent(ScriptedModel())
    agent.define_hook("save", save)
    token = CancelToken()
    asked = asyncio.ensure_future(agent.process_request("/save", committed=committed, token=token))
    await asyncio.sleep(1)
    assert ran == []
    committed.set()
    await asyncio.sleep(1)
    token.abort("stop")
    with pytest.raises(AbortError):
        await asked
    assert ran == [True]


async def test_fault_12_a_rewritten_message_keeps_its_first_wording() -> None:
    agent = make_agent(ScriptedModel("ok"))
    agent.define_hook("x", lambda context: HookOutcome(rewrite_text="rewritten"))
    await agent.process_request("first /x")
    user = (await stored(agent))[0]
    assert (user.text, user.pre_modified_text) == ("rewritten", "first /x")


# -- skills


def brief(context: SkillContext) -> str:
    return f"Be brief ({context.source}, {context.args})."


async def test_core_row_063_a_user_reads_a_skill_before_his_message() -> None:
    model, recorder = ScriptedModel("ok", "ok"), Recorder()
    agent = make_agent(model)
    agent.add_subscriber(recorder)
    agent.define_skill("brief", brief)
    agent.define_skill("look", lambda context: [ContentPart("text", text="See:"), PICTURE])
    await agent.process_request("/brief /look why?")
    first, second, user, _ = await stored(agent)
    assert first.text == "[Skill: brief]\nBe brief (user, None)."
    assert first.is_skill_injection and not first.is_user_turn
    assert second.content == (
        ContentPart("text", text="[Skill: look]"),
        ContentPart("text", text="See:"),
        PICTURE,
    )
    assert user.is_user_turn and user.pre_modified_text == "/brief /look why?"
    assert [(one.name, one.source) for one in recorder.of("skill_invoked")] == [
        ("brief", "user"),
        ("look", "user"),
    ]
    assert agent.tools == (), "nothing is exposed"


async def test_core_row_063_the_model_calls_exposed_skills_only() -> None:
    invoke = "glove_invoke_skill"
    model = ScriptedModel(
        call(
            (invoke, {"name": "brief", "args": "now"}),
            (invoke, {"name": "hidden"}),
            (invoke, {"name": "look"}),
        ),
        "done",
    )
    recorder = Recorder()
    agent = make_agent(model)
    agent.add_subscriber(recorder)
    agent.define_skill("hidden", brief)
    agent.define_skill("brief", brief, description="Answer shortly", expose_to_agent=True)
    agent.define_skill(
        "look",
        lambda context: [ContentPart("text", text="See."), PICTURE],
        description="A picture",
        expose_to_agent=True,
    )
    assert [tool.name for tool in agent.tools] == [invoke]
    assert "- brief: Answer shortly\n- look: A picture" in agent.tools[0].description
    await agent.process_request("go")
    first, second, third = (one.result for one in (await results(agent)).values())
    assert first.data == {"skill": "brief", "content": "Be brief (agent, now)."}
    assert second.status == "error" and second.message is not None
    assert "brief, look" in second.message and "hidden," not in second.message
    assert (third.data, third.render_data) == (
        {"skill": "look", "content": "See."},
        (ContentPart("text", text="See."), PICTURE),
    )
    assert [one.source for one in recorder.of("skill_invoked")] == ["agent", "agent"]


def test_core_row_063_a_skill_is_replaced_by_name_and_needs_a_description() -> None:
    agent = make_agent(ScriptedModel())
    for text in ("old", "new"):
        agent.define_skill("a", brief, description=text, expose_to_agent=True)
    assert "- a: new" in agent.tools[0].description and "old" not in agent.tools[0].description
    with pytest.raises(UsageError, match="description"):
        agent.define_skill("b", brief, expose_to_agent=True)


# -- sub-agents

INVOKE = "glove_invoke_subagent"


def ask(name: str = "worker", prompt: str = "count the hats") -> tuple[str, dict[str, str]]:
    return (INVOKE, {"name": name, "prompt": prompt})


def parent_with(
    child_steps: Sequence[Step | str], *steps: Step | str, durable: bool = False
) -> tuple[Agent, ScriptedModel, list[Agent], Recorder]:
    """A parent with the sub-agent `worker`, the child's model, the children, what is heard."""
    child_model, children, recorder = ScriptedModel(*child_steps), [], Recorder()

    async def factory(context: SubAgentContext) -> Agent:
        child = make_agent(
            child_model,
            make_tool(lambda value: "3 hats", "count"),
            store=await context.store(durable=durable),  # type: ignore[arg-type]
            display=context.parent.display,
            name=context.name,
        )
        children.append(child)
        return child

    agent = make_agent(ScriptedModel(*steps), store=MemoryStore("mother"))
    agent.define_sub_agent("worker", factory, description="Counts things")
    agent.add_subscriber(recorder)
    return agent, child_model, children, recorder


async def test_core_row_066_a_sub_agent_has_its_own_history_and_answers_in_text() -> None:
    agent, child_model, children, recorder = parent_with(
        [call(("count", {})), "There are three."], call(ask()), "Three hats."
    )
    assert agent.tools[0].description.endswith("- worker: Counts things")
    result = await agent.process_request("How many hats?")
    assert result.text == "Three hats."
    assert [one.text for one in child_model.requests[0].messages] == ["count the hats"]
    (told,) = (await results(agent)).values()
    assert told.result.data == {"subagent": "worker", "content": "There are three."}
    assert "How many hats?" not in str(await stored(children[0]))
    assert "count the hats" not in [one.text for one in await stored(agent)]
    assert children[0].display is agent.display
    assert children[0].subscriber_statistics() == [], "detached"


async def test_fault_15_events_of_a_sub_agent_come_wrapped_and_named() -> None:
    agent, _, _, recorder = parent_with(
        [call(("count", {})), "There are three."], call(ask()), "Three hats."
    )
    await agent.process_request("How many?")
    spoken = "".join(event.text for event in recorder.of("text_delta"))
    assert spoken == "Three hats.", "nobody takes the child's words for the agent's"
    wrapped = recorder.of("subagent_event")
    inside = [event.event.wire for event in wrapped]
    assert inside.count("tool_use_result") == 1 and "text_delta" in inside
    assert {(event.name, event.event.agent) for event in wrapped} == {("worker", "worker")}
    assert len({event.event.run_id for event in wrapped if event.event.run_id}) == 1


async def test_core_row_066_a_durable_child_remembers_and_a_fresh_one_does_not() -> None:
    for durable, messages in ((True, 3), (False, 1)):
        agent, child_model, _, _ = parent_with(
            ["one", "two"], call(ask()), "a", call(ask()), "b", durable=durable
        )
        await agent.process_request("x")
        await agent.process_request("y")
        assert len(child_model.requests[1].messages) == messages


async def test_core_row_067_brackets_pair_on_success_error_and_abort() -> None:
    async def boom(request: object, notify: object, token: object) -> object:
        raise RuntimeError("child broke")

    agent, _, _, recorder = parent_with(
        ["fine", boom, hang("thinking")],  # type: ignore[list-item]
        call(ask(), ask("nobody"), ask(), ("glove_invoke_subagent", {"name": "worker"})),
        "said",
        call(ask()),
    )
    await agent.process_request("go")
    token = CancelToken()
    asked = asyncio.ensure_future(agent.process_request("again", token=token))
    await asyncio.sleep(1)
    token.abort("stop", tools=True)
    with pytest.raises(AbortError):
        await asked
    kinds = [
        (event.wire, getattr(event, "status", ""))
        for event in recorder.events
        if event.wire in ("subagent_invoked", "subagent_completed")
    ]
    opened = ("subagent_invoked", "")
    assert kinds == [
        opened,
        ("subagent_completed", "success"),
        opened,
        ("subagent_completed", "error"),
        opened,
        ("subagent_completed", "aborted"),
    ]
    statuses = [one.result.status for one in (await results(agent)).values()]
    assert statuses == ["success", "error", "error", "error", "aborted"]
    messages = [one.result.message or "" for one in (await results(agent)).values()]
    assert "Sub-agents: worker" in messages[1] and "child broke" in messages[2]


async def test_a_failing_factory_is_an_error_result() -> None:
    def factory(context: SubAgentContext) -> Agent:
        raise LookupError("no model for it")

    agent = make_agent(ScriptedModel(call(ask()), "sorry"), display=DisplayStack())
    agent.define_sub_agent("worker", factory)
    await agent.process_request("go")
    (told,) = (await results(agent)).values()
    assert told.result.message == "LookupError: no model for it"


async def test_nested_sub_agents_wrap_their_events_again() -> None:
    agent, _, _, recorder = parent_with([], call(ask("outer")), "done")

    def inner(context: SubAgentContext) -> Agent:
        return make_agent(ScriptedModel("deep"), name="inner")

    def outer(context: SubAgentContext) -> Agent:
        child = make_agent(ScriptedModel(call(ask("inner")), "middle"), name="outer")
        return child.define_sub_agent("inner", inner)

    agent.define_sub_agent("outer", outer)
    await agent.process_request("go")
    deep = [
        event.event.event.text
        for event in recorder.of("subagent_event")
        if event.event.wire == "subagent_event" and event.event.event.wire == "text_delta"
    ]
    assert deep == ["deep"]


async def test_core_row_020_an_un_abortable_tool_of_a_sub_agent_runs_to_its_end() -> None:
    """An abort of the parent is an abort of the child, not a cancellation of its task."""
    ran: list[str] = []

    async def checkout(value: object) -> str:
        await asyncio.sleep(5)
        ran.append("paid")
        return "paid"

    for owned in (True, False):
        ran.clear()
        agent, child_model, children, recorder = parent_with(
            [call(("checkout", {}), ("count", {})), "never"], call(ask())
        )

        def factory(context: SubAgentContext, model: ScriptedModel = child_model) -> Agent:
            child = make_agent(model, make_tool(checkout, "checkout", un_abortable=True))
            child.fold(make_tool(lambda value: "3", "count"))
            children.append(child)  # noqa: B023
            return child

        agent.define_sub_agent("worker", factory, description="Pays")
        token = CancelToken()
        asyncio.get_running_loop().call_later(1, lambda: token.abort("stop", tools=True))  # noqa: B023
        if owned:
            async with agent.running():
                await asyncio.gather(
                    agent.process_request("x", token=token), return_exceptions=True
                )
                await agent.join_tools(10)
        else:
            await asyncio.gather(agent.process_request("x", token=token), return_exceptions=True)
        assert ran == ["paid"], owned
        told = {one.tool_name: one.result.status for one in (await results(children[0])).values()}
        assert told == {"checkout": "success", "count": "aborted"}
        assert [one.result.status for one in (await results(agent)).values()] == ["aborted"]
        assert recorder.wires.count("subagent_completed") == 1


async def test_core_row_066_a_stop_of_the_parent_stops_the_tools_of_a_child_that_is_running() -> (
    None
):
    stopped: list[str] = []

    async def watch(value: object, ctx: ToolContext) -> str:
        stopped.append(await ctx.token.wait())
        return "ok"

    agent, child_model, children, _ = parent_with([call(("watch", {})), "never"], call(ask()))
    child = make_agent(child_model, make_tool(watch, "watch"))
    agent.define_sub_agent("worker", lambda context: child, description="Watches")
    token = CancelToken()
    asyncio.get_running_loop().call_later(1, lambda: token.abort("stop", tools=True))
    async with child.running(), agent.running():
        await asyncio.gather(agent.process_request("x", token=token), return_exceptions=True)
        await asyncio.sleep(0.1)
        assert not child.outstanding


async def test_fault_15_a_running_childs_last_words_reach_the_parents_subscribers() -> None:
    agent, child_model, _, recorder = parent_with(["There are three."], call(ask()), "Three hats.")
    child = make_agent(child_model)
    agent.define_sub_agent("worker", lambda context: child)
    async with child.running(), agent.running():
        await agent.process_request("x")
    inside = [event.event.wire for event in recorder.of("subagent_event")]
    assert inside[-1] == "request_ended" and "model_response_complete" in inside


async def test_fault_15_a_shared_childs_words_come_to_the_parent_that_asked() -> None:
    child = make_agent(ScriptedModel("for one", "for two"))
    heard = []
    parents = []
    for _ in range(2):
        agent, _, _, recorder = parent_with([], call(ask()), "done")
        agent.define_sub_agent("worker", lambda context: child)
        heard.append(recorder)
        parents.append(agent)
    async with child.running():
        await asyncio.gather(*(agent.process_request("x") for agent in parents))
    texts = [
        "".join(
            one.event.text
            for one in recorder.of("subagent_event")
            if one.event.wire == "text_delta"
        )
        for recorder in heard
    ]
    assert sorted(texts) == ["for one", "for two"]


async def test_a_factory_that_hangs_ends_with_its_abort() -> None:
    async def factory(context: SubAgentContext) -> Agent:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    agent = make_agent(ScriptedModel(call(ask())))
    agent.define_sub_agent("worker", factory)
    token = CancelToken()
    asyncio.get_running_loop().call_later(1, token.abort)
    with pytest.raises(AbortError):
        await agent.process_request("go", token=token)


async def test_a_parent_that_asks_itself_is_refused() -> None:
    agent = make_agent(ScriptedModel(call(ask()), "so not"))
    agent.define_sub_agent("worker", lambda context: agent)
    await agent.process_request("go")
    (told,) = (await results(agent)).values()
    assert "would wait for itself" in (told.result.message or "")


async def test_a_new_turn_does_not_wait_for_a_question_that_a_sub_agent_asks() -> None:
    """CONTRACTS E: no time of ours would answer it."""

    async def confirm(value: object, ctx: ToolContext) -> object:
        return await ctx.display.push_and_wait("confirm")

    agent, child_model, _, _ = parent_with(
        [call(("confirm", {})), "they agreed"], call(ask(), ids=["outer"])
    )

    def factory(context: SubAgentContext) -> Agent:
        confirming = make_tool(confirm, "confirm")
        return make_agent(child_model, confirming, display=context.parent.display)

    agent.define_sub_agent("worker", factory, description="Asks")
    token, loop = CancelToken(), asyncio.get_running_loop()
    async with agent.running():
        loop.call_later(1, token.abort)
        with pytest.raises(AbortError):
            await agent.process_request("go", token=token)
        agent.model.then("still asking", "so it is")  # type: ignore[attr-defined]
        began = loop.time()
        await agent.process_request("well?")
        assert loop.time() - began < 0.5
        (slot,) = agent.display.pending_ids
        agent.display.resolve(slot, True)
        await agent.join_tools(5)
        await agent.process_request("and now?")
    (told,) = (await results(agent)).values()
    assert told.result.data == {"subagent": "worker", "content": "they agreed"}
