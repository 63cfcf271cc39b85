"""The loop: answers, tools, limits, events, usage (spec core 2, 6, 9)."""

from __future__ import annotations

import asyncio

import pytest

from tests.core.support import (
    Recorder,
    ScriptedModel,
    call,
    fail,
    hang,
    make_agent,
    make_tool,
    results,
    say,
    stored,
    until,
)
from voxglove.core import (
    AbortError,
    CancelToken,
    ContentPart,
    ContentSource,
    Message,
    ModelError,
    ModelResult,
    SubscriberEvent,
    ToolCall,
    ToolContext,
    ToolResult,
    ToolResultData,
    Usage,
    UsageError,
    Wake,
    merge_user_messages,
    model_view,
    result_text,
)


async def test_core_row_013_loop_ends_on_text() -> None:
    model = ScriptedModel("hello there")
    result = await make_agent(model).process_request("hi")
    assert (result.text, result.model_calls, result.stop) == ("hello there", 1, "text")


async def test_core_row_014_several_tools_run_serially_in_call_order() -> None:
    log: list[str] = []

    async def work(value: dict[str, str]) -> str:
        log.append(f"start {value['n']}")
        await asyncio.sleep(0.01)
        log.append(f"end {value['n']}")
        return value["n"]

    model = ScriptedModel(call(("act", {"n": "1"}), ("act", {"n": "2"})), "done")
    await make_agent(model, make_tool(work)).process_request("go")
    assert log == ["start 1", "end 1", "start 2", "end 2"]


async def test_parallel_tools_overlap_and_keep_the_order_of_results() -> None:
    started: list[str] = []

    async def work(value: dict[str, float]) -> float:
        started.append(str(value["s"]))
        await asyncio.sleep(value["s"])
        return value["s"]

    model = ScriptedModel(call(("act", {"s": 0.2}), ("act", {"s": 0.1})), "done")
    agent = make_agent(model, make_tool(work, parallel=True))
    before = asyncio.get_running_loop().time()
    await agent.process_request("go")
    assert asyncio.get_running_loop().time() - before < 0.25
    shown = model.requests[1].messages[-1].tool_results
    assert [one.result.data for one in shown] == [0.2, 0.1]


async def test_core_row_015_results_are_one_user_message_behind_the_call() -> None:
    model = ScriptedModel(call(("act", {}), ("act", {}), ids=["x", "y"]), "done")
    agent = make_agent(model, make_tool(lambda value: "ok"))
    await agent.process_request("go")
    _, asked, answered, _ = await stored(agent)
    assert [one.id for one in asked.tool_calls] == ["x", "y"]
    assert answered.sender == "user" and answered.is_tool_results
    assert [one.call_id for one in answered.tool_results] == ["x", "y"]


async def test_core_row_016_max_turns_ends_with_a_canned_message() -> None:
    model = ScriptedModel(call(("act", {})), call(("act", {})))
    agent = make_agent(model, make_tool(lambda value: "ok"), max_turns=2)
    result = await agent.process_request("go")
    assert (result.model_calls, result.stop) == (2, "max_turns")
    assert (await stored(agent))[-1].text == result.text
    assert "limit of 2" in result.text


async def test_core_row_017_abort_before_the_model_calls_nothing() -> None:
    model, token = ScriptedModel(), CancelToken()
    token.abort("no")
    agent = make_agent(model)
    with pytest.raises(AbortError, match="no"):
        await agent.process_request("hi", token=token)
    assert model.requests == []
    assert await stored(agent) == []


async def test_core_row_018_abort_during_the_model_cancels_it_and_keeps_the_partial() -> None:
    model, token = ScriptedModel(hang("Once upon a")), CancelToken()
    agent = make_agent(model)
    request = asyncio.ensure_future(agent.process_request("tell", token=token))
    await until(lambda: bool(model.requests))
    token.abort("barge-in")
    with pytest.raises(AbortError, match="barge-in"):
        await request
    assert model.cancelled == 1
    last = (await stored(agent))[-1]
    assert (last.text, last.interrupted, last.playback) == ("Once upon a", True, None)


async def test_abort_from_a_delta_listener_ends_the_request_there() -> None:
    token = CancelToken()
    agent = make_agent(ScriptedModel(say("one two three")))

    def listener(event: SubscriberEvent) -> None:
        if event.wire == "text_delta":
            token.abort("heard enough")

    with pytest.raises(AbortError):
        await agent.process_request("go", token=token, subscriber=listener)
    assert (await stored(agent))[-1].interrupted
    await asyncio.sleep(0)  # nothing of the abort may hit a later await


async def test_cancelling_the_task_keeps_the_partial_and_stays_a_cancellation() -> None:
    model = ScriptedModel(hang("half"))
    agent = make_agent(model)
    request = asyncio.ensure_future(agent.process_request("go"))
    await until(lambda: bool(model.requests))
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    assert (await stored(agent))[-1].text == "half"
    assert not agent.busy


async def test_model_failure_reaches_the_caller_and_history_stays_usable() -> None:
    model = ScriptedModel(fail(ModelError("down", retryable=True), "Well,"), "back")
    agent = make_agent(model)
    with pytest.raises(ModelError, match="down"):
        await agent.process_request("one")
    await agent.process_request("two")
    shown = [message.text for message in model.requests[1].messages]
    assert shown == ["one", "Well, [interrupted]", "two"]


async def test_a_model_without_an_answer_is_an_error() -> None:
    async def nothing(*_: object) -> ModelResult:
        return ModelResult(messages=())

    with pytest.raises(ModelError, match="no message"):
        await make_agent(ScriptedModel(nothing)).process_request("hi")


async def test_core_row_029_streaming_order_and_message_ids() -> None:
    recorder = Recorder()
    model = ScriptedModel(call(("act", {}), text="Let me look."), "It is five.")
    agent = make_agent(model, make_tool(lambda value: "5"))
    await agent.process_request("time?", subscriber=recorder)
    shown = [one for one in recorder.wires if one not in ("token_consumption", "text_delta")]
    assert shown == [
        "request_started",
        "tool_use",
        "model_response_complete",
        "tool_started",
        "tool_use_result",
        "model_response_complete",
        "request_ended",
    ]
    messages = await stored(agent)
    first, second = messages[1].id, messages[3].id
    assert [one.message_id for one in recorder.of("text_delta")] == [first, second, second, second]
    assert [one.message_id for one in recorder.of("model_response_complete")] == [first, second]
    assert recorder.of("tool_use")[0].message_id == first
    assert recorder.of("request_started")[0].user_message_id == messages[0].id
    assert len({one.run_id for one in recorder.events}) == 1


async def test_core_row_030_non_streaming_gives_one_model_response() -> None:
    recorder = Recorder()
    agent = make_agent(ScriptedModel("hello", stream=False))
    await agent.process_request("hi", subscriber=recorder)
    assert [one.text for one in recorder.of("model_response")] == ["hello"]
    assert recorder.of("text_delta") == recorder.of("model_response_complete") == []


async def test_core_row_031_images_reach_the_model_in_their_order() -> None:
    picture = ContentPart("image", source=ContentSource("base64", "image/png", data="aGk="))
    parts = [picture, ContentPart("text", text="what is it?")]
    model = ScriptedModel("a cat")
    await make_agent(model).process_request(parts)
    (shown,) = model.requests[0].messages
    assert shown.content == tuple(parts)
    assert shown.text == "what is it?"
    with pytest.raises(UsageError, match="empty list"):
        await make_agent(ScriptedModel()).process_request([])


async def test_core_row_032_tokens_are_stored_reported_and_summed() -> None:
    recorder = Recorder()
    model = ScriptedModel(call(("act", {})), say("done", usage=Usage(100, 20, 7, 50)))
    agent = make_agent(model, make_tool(lambda value: "ok"))
    result = await agent.process_request("go", subscriber=recorder)
    assert result.usage == Usage(110, 25, 7, 50)
    assert [one.consumption for one in recorder.of("token_consumption")] == [
        Usage(10, 5),
        Usage(100, 20, 7, 50),
    ]
    assert await agent.store.get_token_count() == 135
    await agent.store.reset_counters()
    assert await agent.store.get_token_consumption() == result.usage  # type: ignore[attr-defined]


def _call_message(*ids: str) -> Message:
    calls = tuple(ToolCall("act", {}, one) for one in ids)
    return Message(sender="agent", id="a" + ids[0], tool_calls=calls)


def _results_message(*ids: str) -> Message:
    answers = tuple(ToolResult("act", one, ToolResultData("success", one)) for one in ids)
    return Message(sender="user", id="r" + ids[0], tool_results=answers, is_tool_results=True)


def test_core_row_033_history_is_repaired_for_the_model() -> None:
    user = Message(sender="user", id="u", text="and?")
    stray = _results_message("stray")
    view = model_view(
        [_call_message("1", "2"), user, _results_message("2"), _results_message("2"), stray],
        running={"1"},
    )
    assert [message.id for message in view] == ["a1", "r2", "u"]
    texts = [(one.call_id, one.result.data) for one in view[1].tool_results]
    assert texts == [("1", "still running"), ("2", "2")]
    orphan = model_view([_call_message("9"), user])
    assert orphan[1].tool_results[0].result.data == "No result available"


def test_core_row_033_merging_user_messages_keeps_media() -> None:
    picture = ContentPart("image", source=ContentSource("url", "image/png", url="https://x/y.png"))
    merged = merge_user_messages(
        [
            Message(sender="user", id="1", text="one"),
            Message(sender="user", id="2", text="two", content=(picture,)),
            Message(sender="agent", id="3", text="three"),
        ]
    )
    assert [message.id for message in merged] == ["1", "3"]
    assert merged[0].text == "one\n\ntwo"
    words = [part.text for part in merged[0].content]
    assert words == ["one", "two", None]
    assert merged[0].content[2] is picture


async def test_core_row_046_a_raising_subscriber_breaks_nothing() -> None:
    class Raising:
        async def record(self, event: SubscriberEvent) -> None:
            raise RuntimeError("subscriber")

    def raising(event: SubscriberEvent) -> None:
        raise RuntimeError("temporary")

    recorder = Recorder()
    agent = make_agent(ScriptedModel("hello"))
    agent.add_subscriber(Raising())
    agent.add_subscriber(recorder)
    assert (await agent.process_request("hi", subscriber=raising)).text == "hello"
    assert "".join(one.text for one in recorder.of("text_delta")) == "hello"
    broken, fine = (statistics for _, statistics in agent.subscriber_statistics())
    assert broken.failed == fine.delivered > 0


async def test_fault_09_a_slow_subscriber_delays_nobody_and_stays_ordered() -> None:
    class Slow:
        def __init__(self) -> None:
            self.texts: list[str] = []

        async def record(self, event: SubscriberEvent) -> None:
            await asyncio.sleep(0.01)
            if event.wire == "text_delta":
                self.texts.append(event.text)  # type: ignore[union-attr]

    slow, loop = Slow(), asyncio.get_running_loop()
    agent = make_agent(ScriptedModel("a b c d"))
    agent.add_subscriber(slow)
    async with agent.running():
        before = loop.time()
        await agent.process_request("go")
        assert loop.time() - before < 0.005
    assert "".join(slow.texts) == "a b c d"


async def test_a_stuck_subscriber_overflows_by_dropping_deltas_first() -> None:
    class Stuck:
        async def record(self, event: SubscriberEvent) -> None:
            await asyncio.Event().wait()

    agent = make_agent(ScriptedModel("a b c d e f"), queue_size=4, close_timeout_s=0.1)
    agent.add_subscriber(Stuck())
    async with agent.running():
        await agent.process_request("go")
        ((_, statistics),) = agent.subscriber_statistics()
        assert statistics.dropped > 0 and statistics.queued <= 4


async def test_core_row_047_tool_use_result_has_aliases_on_the_event_only() -> None:
    recorder = Recorder()
    agent = make_agent(
        ScriptedModel(call(("act", {}), ids=["k1"]), "done"), make_tool(lambda v: "ok")
    )
    await agent.process_request("go", subscriber=recorder)
    payload = recorder.of("tool_use_result")[0].payload()
    assert (payload["id"], payload["name"]) == (payload["call_id"], payload["tool_name"])
    assert (payload["id"], payload["name"]) == ("k1", "act")


async def test_repeated_and_missing_call_ids_are_made_unique() -> None:
    recorder = Recorder()
    model = ScriptedModel(
        call(("act", {}), ("act", {}), ids=["call_0", ""]), call(("act", {}), ids=["call_0"]), "ok"
    )
    agent = make_agent(model, make_tool(lambda value: "ok"))
    await agent.process_request("go", subscriber=recorder)
    announced = [one.id for one in recorder.of("tool_use")]
    assert len(set(announced)) == 3 and all(announced)
    assert [*await results(agent)] == announced


async def test_wakes_answer_without_a_user_message() -> None:
    model = ScriptedModel("Welcome!", "Anything else?")
    agent = make_agent(model)
    first = await agent.process_request(Wake(note="[Greet the caller.]"))
    assert first.user_message_id is None
    await agent.process_request(None)
    assert [message.text for message in model.requests[0].messages] == ["[Greet the caller.]"]
    assert model.requests[1].messages[-1].framework_context == "runtime"
    assert [message.text for message in await stored(agent)] == ["Welcome!", "Anything else?"]
    with pytest.raises(UsageError, match="message_id"):
        await agent.process_request(None, message_id="x")


async def test_the_user_message_id_can_be_chosen() -> None:
    agent = make_agent(ScriptedModel("hello"))
    result = await agent.process_request("hi", message_id="u-7")
    assert result.user_message_id == "u-7" == (await stored(agent))[0].id


async def test_child_events_are_attributed() -> None:
    recorder = Recorder()

    async def delegate(value: object, ctx: ToolContext) -> str:
        child = make_agent(ScriptedModel("inner"), name="child")
        child.add_subscriber(recorder)
        return (await child.process_request("sub")).text

    agent = make_agent(ScriptedModel(call(("act", {})), "outer"), make_tool(delegate), name="main")
    agent.add_subscriber(recorder)
    await agent.process_request("go")
    spoken = {(one.agent, one.text) for one in recorder.of("text_delta")}
    assert spoken == {("child", "inner"), ("main", "outer")}


def test_result_text_never_shows_null() -> None:
    assert result_text(ToolResultData("success", {"a": 1})) == '{"a":1}'
    assert result_text(ToolResultData("error", "more", "bad")) == "Error: bad\nmore"
    assert result_text(ToolResultData("aborted", None, "stopped")) == "Aborted: stopped"
