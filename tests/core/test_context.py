"""Context providers and turn preparers: when they are asked, and what a failing one costs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.core.support import (
    Recorder,
    ScriptedModel,
    SlowStore,
    call,
    fail,
    hang,
    make_agent,
    make_tool,
    say,
    stored,
)
from voxglove.core import (
    AbortError,
    AgentEvent,
    CancelToken,
    CompactionConfig,
    Glove,
    MemoryStore,
    ModelError,
    ModelRequest,
    SubscriberEvent,
    TurnPreparation,
    Usage,
    UsageError,
)


def tail(request: ModelRequest) -> list[str]:
    """The runtime context that one model call was shown."""
    return [one.text for one in request.messages if one.framework_context == "runtime"]


def told(request: ModelRequest) -> list[str]:
    return [one.text for one in request.messages if one.framework_context == "history"]


def counting(prefix: str) -> Callable[[CancelToken], str]:
    """A provider that says another text each time it is asked."""
    count = 0

    def provide(token: CancelToken) -> str:
        nonlocal count
        count += 1
        return f"{prefix} {count}"

    return provide


def three_calls() -> ScriptedModel:
    return ScriptedModel(call(("act", {})), call(("act", {})), "done")


async def test_core_row_068_providers_are_asked_in_order_each_call_and_not_stored() -> None:
    model = three_calls()
    agent = make_agent(model, make_tool(lambda value: "ok"))
    gone = agent.add_context_provider(counting("first"))

    async def second(token: CancelToken) -> str:
        await asyncio.sleep(0.1)
        return "second"

    agent.add_context_provider(second)
    agent.add_context_provider(lambda token: None)
    agent.add_context_provider(lambda token: "  ")
    await agent.process_request("go")
    assert [tail(one) for one in model.requests] == [[f"first {n}", "second"] for n in (1, 2, 3)]
    assert all(one.messages[-1].text == "second" for one in model.requests), "at the tail"
    assert all(one.framework_context is None for one in await stored(agent))
    assert {one.system_prompt for one in model.requests} == {"You are a test."}
    gone()
    gone()
    model.steps.append(say("again"))
    await agent.process_request("more")
    assert tail(model.requests[-1]) == ["second"]


async def test_core_row_069_deliveries_over_a_request_of_three_calls() -> None:
    model = three_calls()
    agent = make_agent(model, make_tool(lambda value: "ok"))
    agent.add_context_provider(counting("each call"))
    agent.add_context_provider(counting("frozen"), delivery="request")
    agent.add_context_provider(counting("kept"), delivery="history", id="k")
    await agent.process_request("go")
    assert [tail(one) for one in model.requests] == [
        [f"each call {n}", "frozen 1"] for n in (1, 2, 3)
    ]
    assert [told(one) for one in model.requests] == [["kept 1"]] * 3
    first, second = (await stored(agent))[:2]
    assert (first.text, first.context_id, second.text) == ("kept 1", "k", "go"), "before the user"


async def test_core_row_069_history_is_told_once_until_it_changes_and_after_a_restart() -> None:
    store = MemoryStore()

    async def shown_by_a_new_agent(offer: str) -> list[str]:
        model = ScriptedModel("well")
        agent = make_agent(model, store=store)
        agent.add_context_provider(lambda token: offer, delivery="history", id="offer")
        await agent.process_request("hello")
        return told(model.requests[0])

    assert await shown_by_a_new_agent("offer A") == ["offer A"]
    assert await shown_by_a_new_agent("offer A") == ["offer A"]
    assert await shown_by_a_new_agent("offer B") == ["offer A", "offer B"]


async def test_core_row_069_history_is_told_again_after_a_compaction_took_it_away() -> None:
    model = ScriptedModel("one", say("two", usage=Usage(200, 1)), "summary", "three")
    agent = make_agent(model, compaction=CompactionConfig(context_limit=100))
    agent.add_context_provider(lambda token: "the offer", delivery="history", id="offer")
    for text in ("a", "b", "c"):
        await agent.process_request(text)
    assert [told(one) for one in model.requests] == [["the offer"]] * 4


async def test_core_row_070_its_event_holds_what_was_shown() -> None:
    model, recorder = three_calls(), Recorder()
    agent = make_agent(model, make_tool(lambda value: "ok"))
    agent.add_subscriber(recorder)
    agent.add_context_provider(counting("now"))
    quiet = agent.add_context_provider(lambda token: None)
    await agent.process_request("go")
    shown = [[one.text for one in event.messages] for event in recorder.of("runtime_context")]
    assert shown == [["now 1"], ["now 2"], ["now 3"]]
    with pytest.raises(AttributeError):
        recorder.of("runtime_context")[0].messages[0].text = "changed"
    assert quiet() is None


async def test_core_row_070_is_sent_when_all_are_silent_but_not_without_providers() -> None:
    recorder = Recorder()
    agent = make_agent(ScriptedModel("one", "two"))
    agent.add_subscriber(recorder)
    await agent.process_request("go")
    assert recorder.of("runtime_context") == []
    agent.add_context_provider(lambda token: None)
    await agent.process_request("go")
    assert [event.messages for event in recorder.of("runtime_context")] == [()]


async def test_core_row_071_preparers_run_first_and_their_changes_are_seen() -> None:
    seen: list[str] = []
    model = ScriptedModel("one", "two")
    agent = make_agent(model)

    async def prepare(turn: TurnPreparation) -> None:
        seen.append(turn.reason)
        turn.agent.set_system_prompt(f"prompt {len(seen)}")
        if len(seen) == 1:
            turn.agent.fold(make_tool(lambda value: "x", "late"))

    gone = agent.add_turn_preparer(prepare)
    agent.add_turn_preparer(lambda turn: seen.append("second"))
    agent.add_context_provider(lambda token: f"after {len(seen)}")
    await agent.process_request("go")
    assert seen == ["request", "second"]
    request = model.requests[0]
    assert (request.system_prompt, [one.name for one in request.tools]) == ("prompt 1", ["late"])
    assert tail(request) == ["after 2"]
    gone()
    await agent.process_request("go")
    assert seen == ["request", "second", "second"]


async def test_core_row_071_a_wake_is_prepared_as_an_event() -> None:
    seen: list[str] = []
    agent = make_agent(ScriptedModel("noted"))
    agent.add_turn_preparer(lambda turn: seen.append(turn.reason))
    async with agent.running():
        await agent.emit_event(AgentEvent(source="shop", content="new offer"))
        await asyncio.sleep(1)
    assert seen == ["event"]


async def test_core_row_071_a_failing_preparer_raises_in_text_and_is_reported_on_a_call() -> None:
    recorder = Recorder()
    model = ScriptedModel("spoken", "spoken again")
    agent = make_agent(model)
    agent.add_subscriber(recorder)

    def broken(turn: TurnPreparation) -> None:
        raise LookupError("no such customer")

    async def hanging(turn: TurnPreparation) -> None:
        await asyncio.Event().wait()

    gone = agent.add_turn_preparer(broken)
    with pytest.raises(LookupError):
        await agent.process_request("go")
    assert await stored(agent) == [], "the caller may send the words again"
    async with agent.turn_queue.hold("call") as hold:
        assert (await agent.process_request("go", hold=hold)).text == "spoken"
        gone()
        agent.add_turn_preparer(hanging)
        assert (await agent.process_request("go", hold=hold)).text == "spoken again"
    problems = recorder.of("error")
    assert [one.stage for one in problems] == ["turn_preparer"] * 3
    assert problems[0].message == "no such customer"


async def test_core_row_071_a_session_prepares_when_it_opens_and_when_the_user_speaks() -> None:
    seen: list[str] = []
    agent, recorder = make_agent(ScriptedModel()), Recorder()
    agent.add_subscriber(recorder)

    def broken(turn: TurnPreparation) -> None:
        raise LookupError("no crm")

    agent.add_turn_preparer(broken)
    agent.add_turn_preparer(lambda turn: seen.append(turn.reason))
    agent.add_context_provider(lambda token: "rain")
    agent.add_context_provider(lambda token: "sale", delivery="request")
    agent.add_context_provider(lambda token: "offer", delivery="history", id="o")
    async with agent.running():
        await agent.prepare_turn("session_open")
        await agent.prepare_turn("user_speech")
        assert [one.text for one in await agent.get_runtime_context()] == ["rain", "sale"]
        await agent.get_runtime_context()
    assert seen == ["session_open", "user_speech"]
    assert len(recorder.of("error")) == 2 and len(recorder.of("runtime_context")) == 2
    assert [one.text for one in await stored(agent)] == ["offer"], "told once"
    token = CancelToken()
    token.abort()
    with pytest.raises(AbortError):
        await agent.prepare_turn("user_speech", token)


async def test_fault_28_a_failing_or_hanging_provider_is_left_out() -> None:
    model, recorder = ScriptedModel("fine"), Recorder()
    agent = make_agent(model, context_timeout_s=0.5)
    agent.add_subscriber(recorder)

    async def hangs(token: CancelToken) -> str:
        await asyncio.Event().wait()
        return "never"

    def fails(token: CancelToken) -> str:
        raise OSError("no connection")

    agent.add_context_provider(hangs, id="slow")
    agent.add_context_provider(fails, id="broken", delivery="request")
    agent.add_context_provider(fails, id="lost", delivery="history")
    agent.add_context_provider(lambda token: "good")
    loop = asyncio.get_running_loop()
    started = loop.time()
    assert (await agent.process_request("go")).text == "fine"
    assert loop.time() - started < 0.6
    assert tail(model.requests[0]) == ["good"]
    assert [one.name for one in recorder.of("error")] == ["broken", "lost", "slow"]


async def test_an_abort_ends_a_hanging_provider_at_once() -> None:
    agent = make_agent(ScriptedModel())
    token = CancelToken()

    async def hangs(token: CancelToken) -> None:
        await asyncio.Event().wait()

    agent.add_context_provider(hangs, timeout_s=60)
    asyncio.get_running_loop().call_later(0.1, token.abort)
    with pytest.raises(AbortError):
        await agent.process_request("go", token=token)


async def test_fault_23_extensions_stand_beside_each_other_and_beside_a_new_prompt() -> None:
    model = ScriptedModel("one", "two")
    agent = make_agent(model, system_prompt="Base.")
    agent.add_context_provider(lambda token: "[form: order] step 1/3")
    agent.add_context_provider(lambda token: "[goal: sale] open")
    await agent.process_request("go")
    agent.set_system_prompt("Changed.")
    await agent.process_request("go on")
    assert [one.system_prompt for one in model.requests] == ["Base.", "Changed."]
    for request in model.requests:
        assert tail(request) == ["[form: order] step 1/3", "[goal: sale] open"]
    first, second = (one.messages for one in model.requests)
    assert second[: len(first) - 2] == first[:-2], "the cacheable prefix grows and never changes"


async def test_a_voice_prompt_stands_in_while_a_call_holds_the_queue() -> None:
    model = ScriptedModel("typed", "spoken", "typed again")
    glove = Glove(model=model, system_prompt="Write.", voice_prompt="Speak in one sentence.")
    agent = glove.build()
    await agent.process_request("a")
    async with agent.turn_queue.hold("call") as hold:
        await agent.process_request("b", hold=hold)
    await agent.process_request("c")
    assert [one.system_prompt for one in model.requests] == [
        "Write.",
        "Speak in one sentence.",
        "Write.",
    ]
    assert model.prompts == ["Write.", "Speak in one sentence.", "Write."]
    assert agent.voice_prompt == "Speak in one sentence."


def test_registrations_are_checked() -> None:
    agent = make_agent(ScriptedModel())
    agent.add_context_provider(lambda token: "", id="a")
    agent.add_context_provider(lambda token: "", id="provider_1")
    agent.add_context_provider(lambda token: "")
    with pytest.raises(UsageError, match="'a' is registered"):
        agent.add_context_provider(lambda token: "", id="a")
    with pytest.raises(UsageError, match="delivery"):
        agent.add_context_provider(lambda token: "", delivery="always")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="timeout_s"):
        agent.add_context_provider(lambda token: "", timeout_s=0)


async def test_core_row_071_a_preparer_sees_the_words_as_they_were_corrected() -> None:
    seen: list[str | None] = []
    model = ScriptedModel("one", "two", "three")
    agent = make_agent(model, store=SlowStore())
    agent.add_turn_preparer(lambda turn: seen.append(turn.user.text if turn.user else None))
    await agent.process_request("hello")
    async with agent.turn_queue.hold("call") as hold:
        first = asyncio.ensure_future(agent.process_request("two", hold=hold))
        second = asyncio.ensure_future(agent.process_request("tree", hold=hold, message_id="u"))
        await asyncio.sleep(0)
        await agent.amend_user("u", "three")
        await asyncio.gather(first, second)
    assert seen == ["hello", "two", "three"]


async def test_events_of_history_and_inbox_belong_to_the_request_they_happen_in() -> None:
    recorder = Recorder()
    model = ScriptedModel(call(("glove_post_to_inbox", {"tag": "t", "request": "r"})), "done")
    agent = make_agent(model, builtin_tools=("inbox",))
    agent.add_subscriber(recorder)
    result = await agent.process_request("go")
    assert {event.run_id for event in recorder.events} == {result.request_id}
    (item,) = await agent.get_inbox_items()
    assert (item.tag, await agent.get_tasks()) == ("t", [])


async def test_a_request_that_ends_badly_says_why_and_flush_waits_for_the_last_word() -> None:
    recorder, slow = Recorder(), []

    async def hear(event: SubscriberEvent) -> None:
        await asyncio.sleep(0.1)
        slow.append(event.wire)

    agent = make_agent(ScriptedModel(fail(ModelError("no credit")), hang("so")), close_timeout_s=9)
    agent.add_subscriber(recorder).add_subscriber(hear)
    async with agent.running():
        with pytest.raises(ModelError):
            await agent.process_request("go")
        assert slow[-1:] != ["request_ended"]
        await agent.flush()
        assert slow[-1] == "request_ended"
        token = CancelToken()
        asyncio.get_running_loop().call_later(0.1, token.abort, "barge-in")
        with pytest.raises(AbortError):
            await agent.process_request("go", token=token)
        await agent.flush()
    ends = [(event.status, event.error) for event in recorder.of("request_ended")]
    assert ends == [("failed", "no credit"), ("aborted", "barge-in")]
