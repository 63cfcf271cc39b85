"""The demo model behind core's port: streaming, history as the only state, never lost for words."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxglove.adapters.models.demo import DemoModel
from voxglove.adapters.models.demo.dialogue import next_step
from voxglove.adapters.models.demo.model import BLIND
from voxglove.adapters.models.demo.state import AgentSaid, Happened, ToolRan, UserSaid
from voxglove.core.cancel import CancelToken
from voxglove.core.errors import AbortError
from voxglove.core.events import ModelResponseComplete, TextDelta, ToolUse
from voxglove.core.messages import (
    ContentPart,
    ContentSource,
    Message,
    ToolCall,
    ToolResult,
    ToolResultData,
)
from voxglove.core.model import ModelEvent, ModelRequest, ModelResult, ToolSpec
from voxglove.core.view import model_view

NOW = datetime(2025, 11, 29, 12, 0)
NAMES = (
    "opening_hours free_tables find_booking current_time repeat book_table change_booking"
    " cancel_booking slower transfer end_call"
)
TOOLS = tuple(ToolSpec(name, "", {}) for name in NAMES.split())
WISH = {"date": "2025-11-30", "time": "19:30", "party": 2}
FREE = ToolResultData("success", {"verdict": "free", "alternatives": []})
READ_BACK = "A table for two tomorrow at half past seven for Anna Smith. Is that right?"


def user(text: str) -> Message:
    return Message(sender="user", text=text)


def agent(text: str = "", *calls: ToolCall, heard: str | None = None) -> Message:
    if heard is None:
        return Message(sender="agent", text=text, tool_calls=calls)
    return Message(
        sender="agent", text=text, playback="settled", heard=heard, interrupted=True, id=text
    )


def results(call: ToolCall, data: ToolResultData) -> Message:
    result = ToolResult(call.tool_name, call.id, data)
    return Message(sender="user", tool_results=(result,), is_tool_results=True)


CHECK = ToolCall("free_tables", WISH, "call_1")
WRITE = ToolCall("book_table", {"name": "Anna Smith", **WISH}, "call_2")
UP_TO_READ_BACK = [
    user("A table for two tomorrow at seven thirty, my name is Anna Smith"),
    agent("", CHECK),
    results(CHECK, FREE),
    agent(READ_BACK),
]


async def ask(
    *messages: Message, running: tuple[str, ...] = ()
) -> tuple[ModelResult, list[ModelEvent]]:
    events: list[ModelEvent] = []
    model = DemoModel(clock=lambda: NOW)
    request = ModelRequest(messages=tuple(model_view(messages, running)), tools=TOOLS)
    return await model.prompt(request, events.append, CancelToken()), events


async def test_words_are_streamed_and_add_up_to_the_message() -> None:
    result, events = await ask(*UP_TO_READ_BACK[:3])
    deltas = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(deltas) == 15
    assert "".join(deltas) == result.messages[0].text == READ_BACK
    assert isinstance(events[-1], ModelResponseComplete)
    assert events[-1].text == READ_BACK


async def test_a_call_is_reported_with_its_input() -> None:
    result, events = await ask(*UP_TO_READ_BACK, user("yes"))
    (use,) = [event for event in events if isinstance(event, ToolUse)]
    (call,) = result.messages[0].tool_calls
    assert (use.id, use.name, use.input) == (call.id, "book_table", call.input_args)
    assert call.input_args == {"name": "Anna Smith", **WISH}
    assert call.id not in ("call_1", "call_2")


async def test_the_same_history_gives_the_same_answer() -> None:
    first, _ = await ask(*UP_TO_READ_BACK, user("at eight"))
    again, _ = await ask(*UP_TO_READ_BACK, user("at eight"))
    assert first == again


async def test_a_fired_token_ends_the_answer() -> None:
    token = CancelToken()
    request = ModelRequest(messages=(user("hello"),), tools=TOOLS)

    def cut(event: ModelEvent) -> None:
        token.abort("barge-in")

    with pytest.raises(AbortError):
        await DemoModel(clock=lambda: NOW).prompt(request, cut, token)


async def test_a_tool_that_still_runs_is_not_called_again() -> None:
    said = [*UP_TO_READ_BACK, user("yes"), agent("", WRITE), user("Are you there?")]
    result, _ = await ask(*said, running=("call_2",))
    assert result.messages[0].tool_calls == ()
    assert "still working" in result.messages[0].text


async def test_a_result_that_came_after_one_moment_is_still_told() -> None:
    booked = ToolResultData("success", {"booking_id": 7, "name": "Anna Smith", **WISH})
    result, _ = await ask(
        *UP_TO_READ_BACK, user("yes"), agent("", WRITE), results(WRITE, booked),
        user("Are you there?"), agent("One moment, I'm still working on that."),
        user("Hello?"),
    )  # fmt: skip
    assert "Done, I've booked a table for two" in result.messages[0].text


async def test_a_lost_result_is_admitted_and_asked_again() -> None:
    result, _ = await ask(*UP_TO_READ_BACK, user("yes"), agent("", WRITE), user("and?"))
    assert result.messages[0].tool_calls == ()
    assert "did not go through" in result.messages[0].text


async def test_the_day_stays_the_one_that_was_checked_after_midnight() -> None:
    model = DemoModel(clock=lambda: datetime(2025, 11, 30, 0, 5))
    request = ModelRequest(messages=(*UP_TO_READ_BACK, user("yes")), tools=TOOLS)
    result = await model.prompt(request, lambda event: None, CancelToken())
    assert result.messages[0].tool_calls[0].input_args == {"name": "Anna Smith", **WISH}


async def test_turns_that_no_answer_separates_are_one_turn() -> None:
    result, _ = await ask(user("A table for two tomorrow at"), user("half past seven."))
    assert result.messages[0].tool_calls[0].input_args == WISH


@pytest.mark.parametrize(
    ("heard", "books"),
    [("", False), ("A table for two", False), (READ_BACK[:-1], True)],
)
async def test_voice_row_033_a_yes_counts_only_for_facts_that_were_heard(
    heard: str, books: bool
) -> None:
    result, _ = await ask(*UP_TO_READ_BACK[:3], agent(READ_BACK, heard=heard), user("Yes."))
    assert bool(result.messages[0].tool_calls) is books


async def test_without_the_front_desks_tools_it_says_what_it_is() -> None:
    model = DemoModel(clock=lambda: NOW)
    request = ModelRequest(messages=(user("What is a monad?"),), tools=())
    result = await model.prompt(request, lambda event: None, CancelToken())
    assert "scripted demo, not a language model" in result.messages[0].text


SPOKEN = (
    "yes no two to for at ate half past seven 7:30 730 tomorrow friday the twelfth book table"
    " cancel change my booking name is Anna Smith people o'clock second one bye what start over"
    " hours time human not 12 december 99999999999 \u00b2 \u0663 name December 31st"
)
KEYS = "verdict alternatives bookings booking_id name party date time opens"
SAID = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from(SPOKEN.split()),
        max_size=12,
    ).map(" ".join),
)
DATA = st.dictionaries(
    st.sampled_from(KEYS.split()),
    st.one_of(st.text(max_size=8), st.integers(-5, 99), st.none(), st.just(["19:30", 4, None]),
              st.just("2025-11-30"), st.just("19:30"), st.just([{"booking_id": 1}])),
)  # fmt: skip
HAPPENED: st.SearchStrategy[Happened] = st.one_of(
    SAID.map(UserSaid),
    st.builds(AgentSaid, SAID, st.booleans()),
    st.builds(
        ToolRan, st.sampled_from(NAMES.split()), DATA,
        st.sampled_from(["ok", "error", "running", "lost"]), DATA,
    ),
)  # fmt: skip


@settings(max_examples=400)
@given(st.lists(HAPPENED, max_size=10), SAID)
def test_any_text_in_any_state_is_answered(events: list[Happened], said: str) -> None:
    step = next_step([*events, UserSaid(said)], today=NOW.date(), tools=frozenset(NAMES.split()))
    assert bool(step.text.strip()) != bool(step.calls)
    assert {call.name for call in step.calls} <= set(NAMES.split())


async def test_a_picture_is_met_with_the_truth_and_does_not_disturb_the_dialogue() -> None:
    source = ContentSource("base64", "image/png", data="aGk=")
    parts = (ContentPart("text", text="at eight"), ContentPart("image", source=source))
    shown = Message(sender="user", text="at eight", content=parts)
    result, _ = await ask(*UP_TO_READ_BACK, shown)
    plain, _ = await ask(*UP_TO_READ_BACK, user("at eight"))
    text = result.messages[0].text
    assert text.startswith("I got your picture") or result.messages[0].tool_calls
    assert text.removeprefix(f"{BLIND} ") == plain.messages[0].text
    later, _ = await ask(user("hello"), agent(f"{BLIND} Hello!"), user("opening hours"))
    assert BLIND not in later.messages[0].text
    first, _ = await ask(Message(sender="user", text="hello", content=parts))
    assert first.messages[0].text.startswith(BLIND)
