"""What is stored of a spoken answer, and what the model sees of it (DESIGN 5.4; row 94)."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.support import (
    Recorder,
    ScriptedModel,
    SlowStore,
    call,
    hang,
    make_agent,
    make_tool,
    say,
    stored,
    until,
)
from voxglove.core import (
    AbortError,
    CancelToken,
    ContentPart,
    ContentSource,
    MemoryStore,
    Message,
    ModelError,
    ToolCall,
    ToolResult,
    ToolResultData,
    UnknownMessageError,
    UsageError,
    decode_message,
    encode_message,
)

NOTICE = "[the user interrupted before anything was heard]"


def texts(messages: object) -> list[str]:
    return [message.text for message in messages]  # type: ignore[attr-defined]


async def test_spoken_answers_are_pending_until_they_are_settled() -> None:
    recorder = Recorder()
    agent = make_agent(ScriptedModel("one two three"))
    await agent.process_request("hi", playback=True, subscriber=recorder)
    answer = (await stored(agent))[1]
    assert (answer.playback, answer.heard) == ("pending", None)
    assert {one.message_id for one in recorder.of("text_delta")} == {answer.id}
    await agent.amend_heard(answer.id, "one two three")
    answer = (await stored(agent))[1]
    assert (answer.playback, answer.heard, answer.interrupted) == (
        "settled",
        "one two three",
        False,
    )


async def test_a_pending_answer_is_shown_whole() -> None:
    model = ScriptedModel("one two", "ok")
    agent = make_agent(model)
    await agent.process_request("hi", playback=True)
    await agent.process_request("and?", playback=True)
    assert texts(model.requests[1].messages) == ["hi", "one two", "and?"]


async def test_core_row_094_an_interrupted_turn_shows_what_was_heard() -> None:
    model = ScriptedModel("one two three four", "ok")
    agent = make_agent(model)
    await agent.process_request("count", playback=True)
    answer = (await stored(agent))[1]
    await agent.amend_heard(answer.id, "one two", " three four", interrupted=True, estimated=True)
    await agent.process_request("wait")
    assert texts(model.requests[1].messages) == ["count", "one two [interrupted]", "wait"]
    kept = (await stored(agent))[1]
    assert (kept.text, kept.heard, kept.unheard, kept.estimated) == (
        "one two three four",
        "one two",
        " three four",
        True,
    )


async def test_nothing_heard_leaves_the_answer_out_and_tells_once() -> None:
    model = ScriptedModel("one two", "three", "ok", "fine")
    agent = make_agent(model)
    for question in ("first", "second"):
        await agent.process_request(question, playback=True)
        await agent.amend_heard((await stored(agent))[-1].id, " ", "x", interrupted=True)
    picture = ContentPart("image", source=ContentSource("url", "image/png", url="https://x/y"))
    await agent.process_request([picture, ContentPart("text", text="third")])
    await agent.process_request("fourth")
    shown = model.requests[2].messages
    assert texts(shown) == ["first", f"{NOTICE}\nsecond", f"{NOTICE}\nthird"]
    assert shown[-1].content[0] == ContentPart("text", text=NOTICE)
    assert shown[-1].content[1] == picture
    assert texts(model.requests[3].messages)[-1] == "fourth"


async def test_nothing_heard_keeps_tool_calls_and_their_results() -> None:
    model = ScriptedModel(call(("act", {}), text="Let me see."), "It is five.", "ok")
    agent = make_agent(model, make_tool(lambda value: "5"))
    await agent.process_request("time?", playback=True)
    for message in await stored(agent):
        if message.playback == "pending":
            await agent.amend_heard(message.id, "", message.text, interrupted=True)
    await agent.process_request("well?")
    shown = model.requests[2].messages
    assert texts(shown) == ["time?", "", "tool results", f"{NOTICE}\nwell?"]


async def test_an_unheard_second_part_marks_the_heard_first_part() -> None:
    model = ScriptedModel(call(("act", {}), text="Let me see."), "It is five.", "ok")
    agent = make_agent(model, make_tool(lambda value: "5"))
    await agent.process_request("time?", playback=True)
    _, first, _, second = await stored(agent)
    await agent.amend_heard(first.id, "Let me see.")
    await agent.amend_heard(second.id, "", "It is five.", interrupted=True)
    await agent.process_request("well?")
    assert texts(model.requests[2].messages) == [
        "time?",
        "Let me see. [interrupted]",
        "tool results",
        "well?",
    ]


async def test_an_amendment_may_come_before_its_message_is_stored() -> None:
    recorder, token = Recorder(), CancelToken()
    model = ScriptedModel(hang("one two three"), "ok")
    agent = make_agent(model)
    request = asyncio.ensure_future(
        agent.process_request("count", playback=True, token=token, subscriber=recorder)
    )
    await until(lambda: bool(recorder.of("text_delta")))
    message_id = recorder.of("text_delta")[0].message_id
    await agent.amend_heard(message_id, "one", " two three", interrupted=True)
    assert message_id not in [message.id for message in await stored(agent)]
    token.abort("barge-in")
    with pytest.raises(AbortError):
        await request
    assert (await stored(agent))[-1].heard == "one"
    await agent.process_request("wait")
    assert texts(model.requests[1].messages) == ["count", "one [interrupted]", "wait"]


async def test_amending_nothing_is_an_error() -> None:
    agent = make_agent(ScriptedModel())
    with pytest.raises(UnknownMessageError, match="nope"):
        await agent.amend_heard("nope", "x")


async def test_pending_answers_are_settled_after_a_crash() -> None:
    store = MemoryStore()
    first = make_agent(ScriptedModel("one two", "three four", "five six"), store=store)
    ids = []
    for question in "abc":
        await first.process_request(question, playback=True)
        ids.append((await stored(first))[-1].id)
    await first.report_heard(ids[1], "three")
    assert (await stored(first))[3].playback == "pending"
    model = ScriptedModel("ok")
    second = make_agent(model, store=store)
    assert await second.settle_pending({ids[0]: 7}) == ids
    assert await second.settle_pending() == []
    await second.process_request("d")
    assert texts(model.requests[0].messages) == [
        "a",
        "one two",
        "b",
        "three [interrupted]",
        "c",
        f"{NOTICE}\nd",
    ]
    assert (await stored(second))[1].estimated


async def test_the_users_words_can_be_corrected() -> None:
    recorder, model = Recorder(), ScriptedModel("ok", "ok")
    agent = make_agent(model)
    agent.add_subscriber(recorder)
    result = await agent.process_request("book a cable")
    assert result.user_message_id is not None
    await agent.amend_user(result.user_message_id, "book a table")
    await agent.amend_user(result.user_message_id, "book a table for two")
    await agent.process_request("thanks")
    assert texts(model.requests[1].messages)[0] == "book a table for two"
    assert (await stored(agent))[0].pre_modified_text == "book a cable"
    assert recorder.of("message_amended")[0].patch["text"] == "book a table"
    with pytest.raises(UsageError, match="not a user turn"):
        await agent.amend_user(result.messages[0].id, "x")


async def test_the_users_words_can_be_corrected_before_they_are_stored() -> None:
    model = ScriptedModel("first", "second")
    agent = make_agent(model, store=SlowStore())
    first = asyncio.ensure_future(agent.process_request("one"))
    picture = ContentPart("image", source=ContentSource("url", "image/png", url="https://x/y"))
    parts = [ContentPart("text", text="to"), picture]
    second = asyncio.ensure_future(agent.process_request(parts, message_id="u2"))
    await asyncio.sleep(0.01)
    await agent.amend_user("u2", "two")
    await asyncio.gather(first, second)
    shown = model.requests[1].messages[-1]
    assert (shown.text, shown.pre_modified_text) == ("two", "to")
    assert shown.content == (ContentPart("text", text="two"), picture)


async def test_fixed_words_are_history_too() -> None:
    model = ScriptedModel("At six.")
    agent = make_agent(model)
    async with agent.turn_queue.hold("call") as hold:
        greeting = await agent.append_answer("Hello, front desk!", hold=hold, playback=True)
        assert (await stored(agent))[0].playback == "pending"
        await agent.amend_heard(greeting, "Hello,", " front desk!", interrupted=True)
        await agent.process_request("when do you open?", hold=hold)
    assert texts(model.requests[0].messages) == ["Hello, [interrupted]", "when do you open?"]


async def test_an_answer_without_text_is_never_pending() -> None:
    agent = make_agent(ScriptedModel(call(("act", {})), "ok"), make_tool(lambda value: "x"))
    await agent.process_request("go", playback=True)
    assert [message.playback for message in await stored(agent)] == [None, None, None, "pending"]


# -- compaction


async def test_core_row_050_compaction_keeps_the_store_and_shortens_the_view() -> None:
    model = ScriptedModel("one", "the summary", "two")
    agent = make_agent(model)
    await agent.process_request("first")
    assert await agent.compact()
    await agent.process_request("second")
    assert texts(await stored(agent))[:2] == ["first", "one"]
    shown = model.requests[2].messages
    assert "the summary" in shown[0].text and texts(shown)[1:] == ["second"]
    assert model.requests[1].messages[-1].is_compaction_request
    assert model.requests[1].tools == ()


@pytest.mark.parametrize("outcome", ["ok", "failed", "aborted"])
async def test_core_row_052_compaction_events_come_in_pairs(outcome: str) -> None:
    steps = {
        "ok": say("summary"),
        "failed": say(""),
        "aborted": hang("sum"),
    }
    recorder, token = Recorder(), CancelToken()
    agent = make_agent(ScriptedModel("one", steps[outcome]))
    agent.add_subscriber(recorder)
    await agent.process_request("first")
    if outcome == "aborted":
        asyncio.get_running_loop().call_later(1, token.abort, "enough")
    assert await agent.compact(token) is (outcome == "ok")
    assert [one for one in recorder.wires if one.startswith("compaction")] == [
        "compaction_start",
        "compaction_end",
    ]
    end = recorder.of("compaction_end")[0]
    assert end.status == outcome
    assert (end.summary_message is not None) is (outcome == "ok")
    assert any(message.is_compaction for message in await stored(agent)) is (outcome == "ok")


async def test_core_row_053_summary_deltas_are_not_answer_deltas() -> None:
    recorder = Recorder()
    agent = make_agent(ScriptedModel("one", "a b c"))
    agent.add_subscriber(recorder)
    await agent.process_request("first")
    await agent.compact()
    start, end = (recorder.wires.index(f"compaction_{one}") for one in ("start", "end"))
    between = recorder.events[start + 1 : end]
    assert {one.phase for one in between if one.wire == "text_delta"} == {"compaction"}  # type: ignore[union-attr]
    assert "model_response_complete" not in [one.wire for one in between]


async def test_fault_13_and_17_text_only_sessions_compact_and_totals_survive() -> None:
    from voxglove.core import CompactionConfig, Usage

    model = ScriptedModel(say("one", usage=Usage(90, 20)), say("sum", usage=Usage(100, 8)), "two")
    agent = make_agent(model, compaction=CompactionConfig(context_limit=100))
    await agent.process_request("first")
    assert len(model.requests) == 2
    assert await agent.store.get_token_consumption() == Usage(190, 28)  # type: ignore[attr-defined]
    assert await agent.store.get_token_count() == 108


async def test_core_row_048_compaction_runs_before_calls_are_stored_at_ninety_percent() -> None:
    from voxglove.core import CompactionConfig, Usage

    recorder = Recorder()
    model = ScriptedModel(call(("act", {})), say("sum", usage=Usage(5, 1)), "two")
    agent = make_agent(
        model, make_tool(lambda value: "x"), compaction=CompactionConfig(context_limit=16)
    )
    await agent.process_request("first", subscriber=recorder)
    flags = [
        "summary" if one.is_compaction else "call" if one.tool_calls else ""
        for one in await stored(agent)
    ]
    assert flags == ["", "summary", "call", "", ""]
    assert "compaction_end" in recorder.wires


async def test_background_compaction_waits_for_playback_and_gives_way() -> None:
    from voxglove.core import CompactionConfig, Usage

    recorder = Recorder()
    big = Usage(100, 20)
    model = ScriptedModel(say("one", usage=big), hang("su"), say("two", usage=big), say("sum"))
    agent = make_agent(model, compaction=CompactionConfig(context_limit=100))
    agent.add_subscriber(recorder)
    async with agent.running(), agent.turn_queue.hold("call") as hold:
        await agent.process_request("first", playback=True, hold=hold)
        await asyncio.sleep(1)
        assert "compaction_start" not in recorder.wires
        await agent.amend_heard((await stored(agent))[-1].id, "one")
        await until(lambda: "compaction_start" in recorder.wires)
        before = asyncio.get_running_loop().time()
        await agent.process_request("second", playback=True, hold=hold)
        assert asyncio.get_running_loop().time() == before
        assert recorder.of("compaction_end")[0].status == "aborted"
        await agent.amend_heard((await stored(agent))[-1].id, "two")
        await until(lambda: len(recorder.of("compaction_end")) == 2)
        assert recorder.of("compaction_end")[1].status == "ok"


async def test_fault_18_a_failing_model_still_ends_the_compaction() -> None:
    async def down(*_: object) -> None:
        raise ModelError("down")

    agent = make_agent(ScriptedModel("one", down))  # type: ignore[arg-type]
    await agent.process_request("first")
    assert await agent.compact() is False


# -- storing messages

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
words = st.text(max_size=12)
flags = st.booleans()
message_values = st.builds(
    Message,
    sender=st.sampled_from(["user", "agent"]),
    text=words,
    id=words,
    content=st.just(()) | st.just((ContentPart("text", text="x"),)),
    tool_calls=st.lists(st.builds(ToolCall, words, json_values, words), max_size=2).map(tuple),
    tool_results=st.lists(
        st.builds(
            ToolResult,
            words,
            words,
            st.builds(
                ToolResultData,
                st.sampled_from(["success", "error", "aborted"]),
                json_values,
                st.none() | words,
                json_values,
            ),
            st.floats(0, 1e6),
        ),
        max_size=2,
    ).map(tuple),
    playback=st.sampled_from([None, "pending", "settled"]),
    heard=st.none() | words,
    unheard=st.none() | words,
    interrupted=flags,
    estimated=flags,
    is_tool_results=flags,
    is_compaction=flags,
    is_compaction_request=flags,
    is_skill_injection=flags,
    pre_modified_text=st.none() | words,
    reasoning_content=st.none() | words,
    framework_context=st.sampled_from([None, "runtime", "inbox", "event", "history"]),
    provider_options=st.none() | st.dictionaries(words, json_values, max_size=2),
)


@given(message_values)
def test_fault_04_every_field_survives_json(message: Message) -> None:
    assert decode_message(encode_message(message)) == message


def test_data_json_does_not_know_is_written_as_text() -> None:
    odd = ToolResult("t", "1", ToolResultData("success", {"when": object}))
    message = Message(sender="user", id="1", tool_results=(odd,))
    data = decode_message(encode_message(message)).tool_results[0].result.data
    assert isinstance(data, dict) and "object" in data["when"]


async def test_memory_store_wants_unique_ids() -> None:
    store = MemoryStore()
    one = Message(sender="user", id="1")
    await store.append_messages([one])
    for bad in ([one], [Message(sender="user")], [Message(sender="user", id="2")] * 2):
        with pytest.raises(UsageError, match="id of its own"):
            await store.append_messages(bad)
    assert await store.get_messages() == [one]
    child = await store.create_sub_agent_store("x", durable=True)
    assert child is await store.create_sub_agent_store("x", durable=True)
    assert child is not await store.create_sub_agent_store("x")


@pytest.mark.parametrize("kind", ["answer", "calls"])
async def test_what_was_heard_is_kept_though_the_write_of_the_answer_was_cancelled(
    kind: str,
) -> None:
    """DESIGN 5.4: the store had written it, so it is no draft whose amendments wait."""
    for step in range(40):
        steps = (
            [say("Let me see.")] if kind == "answer" else [call(("act", {}), text="Let me see.")]
        )
        agent = make_agent(
            ScriptedModel(*steps, "done"), make_tool(lambda value: "ok"), store=SlowStore()
        )
        asked = asyncio.ensure_future(agent.process_request("go", playback=True))
        await asyncio.sleep(0.02 * step)
        asked.cancel()
        await asyncio.wait([asked])
        for message in await stored(agent):
            if message.playback == "pending":
                await agent.amend_heard(message.id, "Let", " me see.", interrupted=True)
        kept = [one for one in await stored(agent) if one.sender == "agent" and one.text]
        assert all((one.playback, one.heard) == ("settled", "Let") for one in kept[:1]), step
