"""Each tool of the kit on a real agent: what is shown, may be answered, and is told the model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.core.support import ScriptedModel, call, make_agent, results, until
from voxglove.core import Agent, Slot, ToolResultData
from voxglove.core.renderers import InvalidAnswer
from voxglove.core.toolkit import close_question, show_info_card, toolkit

OPTIONS = [{"label": "By the window", "value": "window"}, "Bar"]
FORM = {
    "title": "Your details",
    "fields": [
        {"name": "name", "label": "Name", "required": True},
        {"name": "people", "label": "People", "type": "number", "min": 1, "max": 8},
        {"name": "day", "label": "Day", "type": "date", "min": "2030-01-01"},
        {"name": "table", "label": "Table", "type": "select", "options": OPTIONS},
        {"name": "news", "label": "Newsletter", "type": "checkbox"},
    ],
}
PLAN = {"title": "Move house", "steps": [{"title": "Pack"}, {"title": "Drive"}]}


@dataclass(frozen=True, slots=True)
class Answered:
    """A call, an answer of a person, the sentence for the model, and the kept value."""

    name: str
    input: Mapping[str, Any]
    answer: object
    told: str
    kept: object


ANSWERS = [
    Answered("confirm_action", {"title": "Go?"}, True, 'The user confirmed: "Go?".', True),
    Answered("confirm_action", {"title": "Go?"}, False, 'The user refused: "Go?".', False),
    Answered(
        "ask_preference",
        {"question": "Which table?", "options": OPTIONS},
        "window",
        'Asked "Which table?", the user chose By the window (window).',
        "window",
    ),
    Answered(
        "suggest_options",
        {"question": "Toppings?", "options": OPTIONS, "allow_other": True},
        {"selected": ["Bar", "window"], "other": " ham "},
        'Asked "Toppings?", the user chose Bar; By the window (window); in own words: ham.',
        {"selected": ["Bar", "window"], "other": "ham"},
    ),
    Answered(
        "suggest_options",
        {"question": "Toppings?", "options": OPTIONS},
        {},
        'Asked "Toppings?", the user chose none of them.',
        {"selected": [], "other": ""},
    ),
    Answered(
        "text_input",
        {"question": "Your code?", "min_length": 3},
        " abc ",
        'Asked "Your code?", the user wrote: abc',
        "abc",
    ),
    Answered(
        "collect_form",
        FORM,
        {"name": " Anna ", "people": 4, "day": "2030-05-03", "table": "window", "news": True},
        'The user filled in "Your details": Name is Anna; People is 4; Day is 2030-05-03;'
        " Table is By the window (window); Newsletter is ticked.",
        {"name": "Anna", "people": 4, "day": "2030-05-03", "table": "window", "news": True},
    ),
    Answered(
        "collect_form",
        FORM,
        {"name": "Anna", "people": ""},
        'The user filled in "Your details": Name is Anna; People was left empty;'
        " Day was left empty; Table was left empty; Newsletter is not ticked.",
        {"name": "Anna", "people": None, "day": None, "table": None, "news": False},
    ),
    Answered(
        "approve_plan",
        PLAN,
        {"approved": True},
        'The user approved the plan "Move house".',
        {"approved": True, "comment": ""},
    ),
    Answered(
        "approve_plan",
        PLAN,
        {"approved": False, "comment": "rest first"},
        'The user did not approve the plan "Move house". The user commented: rest first',
        {"approved": False, "comment": "rest first"},
    ),
]

ASKING: dict[str, Mapping[str, Any]] = {case.name: case.input for case in ANSWERS}


@dataclass
class Asked:
    """A request that waits for a person."""

    agent: Agent
    request: asyncio.Task[Any]
    slot: Slot

    async def result(self) -> ToolResultData:
        await self.request
        return (await results(self.agent))["c"].result


async def asked(name: str, input: Mapping[str, Any]) -> Asked:
    """The model calls `name`; its question is on the display."""
    agent = agent_that_calls(name, input)
    agent.display.subscribe(lambda change: None)
    request = asyncio.create_task(agent.process_request("go"))
    await until(lambda: agent.display.pending == 1)
    (slot,) = agent.display.stack
    return Asked(agent, request, slot)


def agent_that_calls(name: str, input: Mapping[str, Any]) -> Agent:
    return make_agent(ScriptedModel(call((name, dict(input)), ids=["c"]), "ok"), *toolkit())


@pytest.mark.parametrize("case", ANSWERS, ids=lambda case: f"{case.name}-{case.told[:20]}")
async def test_an_answer_is_told_in_a_sentence_and_kept_for_history(case: Answered) -> None:
    open_question = await asked(case.name, case.input)
    slot = open_question.slot
    assert (slot.renderer, slot.strategy) == (case.name, "hide-on-complete")
    assert (slot.tool_call_id, slot.tool_name) == ("c", case.name)
    assert open_question.agent.display.resolve(slot.id, case.answer)
    result = await open_question.result()
    assert (result.status, result.data) == ("success", case.told)
    assert result.render_data == {"renderer": case.name, "input": slot.input, "value": case.kept}


REFUSED: list[tuple[str, Mapping[str, Any], object, list[str]]] = [
    ("confirm_action", {}, "yes", ["value"]),
    ("ask_preference", {}, "balcony", ["value"]),
    ("ask_preference", {}, ["window"], ["value"]),
    ("suggest_options", {}, {"selected": ["balcony"]}, ["value"]),
    ("suggest_options", {}, {"selected": ["Bar", "Bar"]}, ["value"]),
    ("suggest_options", {"allow_other": False}, {"other": "ham"}, ["value"]),
    ("suggest_options", {"min_choices": 1}, {"selected": []}, ["value"]),
    ("suggest_options", {"max_choices": 1}, {"selected": ["Bar", "window"]}, ["value"]),
    ("suggest_options", {}, ["Bar"], ["value"]),
    ("text_input", {}, "ab", ["value"]),
    ("text_input", {"max_length": 3}, "abcd", ["value"]),
    ("text_input", {}, None, ["value"]),
    ("collect_form", {}, {}, ["name"]),
    ("collect_form", {}, {"name": "A", "people": 9, "day": "2029-12-31"}, ["people", "day"]),
    ("collect_form", {}, {"name": "A", "people": "many", "table": "none"}, ["people", "table"]),
    ("collect_form", {}, {"name": "A", "news": "yes", "extra": 1}, ["news", "extra"]),
    ("collect_form", {}, "Anna", ["value"]),
    ("approve_plan", {}, {"comment": "hm"}, ["approved"]),
    ("approve_plan", {}, {"approved": "yes"}, ["approved"]),
    ("approve_plan", {}, {"approved": True, "comment": "x" * 2_001}, ["comment"]),
]


@pytest.mark.parametrize(("name", "options", "answer", "fields"), REFUSED)
async def test_a_bad_answer_names_its_fields_and_the_question_stays(
    name: str, options: Mapping[str, Any], answer: object, fields: list[str]
) -> None:
    open_question = await asked(name, {**ASKING[name], **options})
    display = open_question.agent.display
    with pytest.raises(InvalidAnswer) as refused:
        display.resolve(open_question.slot.id, answer)
    assert [problem.field for problem in refused.value.problems] == fields
    assert all(problem.message for problem in refused.value.problems)
    assert display.stack == (open_question.slot,) and display.pending == 1
    display.reject(open_question.slot.id, "dismissed")
    assert (await open_question.result()).status == "success"


@pytest.mark.parametrize("name", ASKING)
async def test_a_dismissal_is_an_outcome_and_no_error(name: str) -> None:
    open_question = await asked(name, ASKING[name])
    open_question.agent.display.reject(open_question.slot.id, "dismissed")
    result = await open_question.result()
    title = ASKING[name].get("title") or ASKING[name]["question"]
    assert result.status == "success"
    assert result.data == f'The user dismissed "{title}" without an answer.'
    assert isinstance(result.render_data, dict) and result.render_data["value"] is None


@pytest.mark.parametrize("name", [*ASKING, "show_info_card"])
async def test_without_a_display_the_model_is_told_to_ask_by_voice(name: str) -> None:
    input = ASKING.get(name, {"title": "Opening hours"})
    agent = agent_that_calls(name, input)
    agent.display.subscribe(lambda change: None, answers=False)  # a brain watches, nobody sees
    await agent.process_request("go")
    result = (await results(agent))["c"].result
    assert result.status == "error" and result.message is not None
    assert "ask by voice" in result.message
    assert (input.get("title") or input["question"]) in result.message
    assert agent.display.stack == ()


async def test_a_card_is_shown_at_once_and_waits_for_nobody() -> None:
    facts = [{"label": "Day", "value": "3 May"}]
    agent = agent_that_calls("show_info_card", {"title": "Booked", "facts": facts})
    agent.display.subscribe(lambda change: None)
    await agent.process_request("go")
    (slot,) = agent.display.stack
    result = (await results(agent))["c"].result
    assert result.data == 'The card "Booked" is on the display.'
    assert slot.input == {"title": "Booked", "content": "", "variant": "info", "facts": facts}
    assert result.render_data == {
        "renderer": "show_info_card",
        "input": slot.input,
        "value": None,
    }
    assert agent.display.resolve(slot.id) and agent.display.stack == ()


MISTAKES: list[tuple[str, Mapping[str, Any], str]] = [
    ("confirm_action", {"title": ""}, "title"),
    ("confirm_action", {"title": "Go?", "colour": "red"}, "colour"),
    ("ask_preference", {"options": ["one"]}, "options"),
    ("ask_preference", {"options": ["same", "same"]}, "same comes twice"),
    ("suggest_options", {"min_choices": 3}, "min_choices"),
    ("suggest_options", {"min_choices": 2, "max_choices": 1}, "min_choices"),
    ("text_input", {"min_length": 10, "max_length": 9}, "min_length"),
    ("collect_form", {"fields": []}, "fields"),
    ("collect_form", {"fields": [{"name": "a", "label": "A"}] * 2}, "a name of its own"),
    ("approve_plan", {"steps": []}, "steps"),
    ("show_info_card", {"title": "T", "variant": "loud"}, "variant"),
]


@pytest.mark.parametrize(("name", "options", "words"), MISTAKES)
async def test_a_models_mistake_is_named_before_anything_is_shown(
    name: str, options: Mapping[str, Any], words: str
) -> None:
    agent = agent_that_calls(name, {**ASKING.get(name, {}), **options})
    agent.display.subscribe(lambda change: None)
    await agent.process_request("go")
    result = (await results(agent))["c"].result
    assert (result.status, result.message) == ("error", "TOOL_INPUT_INVALID")
    assert words in str(result.data)
    assert agent.display.stack == ()


async def test_a_card_too_big_for_a_page_is_refused_instead_of_waiting_for_ever() -> None:
    options = [
        {"label": f"{n}{'é' * 100}", "value": str(n), "description": "é" * 300} for n in range(40)
    ]
    field = {"name": "a", "label": "A", "type": "select", "options": options}
    fields = [{**field, "name": f"f{n}"} for n in range(2)]
    agent = agent_that_calls("collect_form", {"title": "Big", "fields": fields})
    agent.display.subscribe(lambda change: None)
    await agent.process_request("go")
    result = (await results(agent))["c"].result
    assert result.status == "error" and "Ask for less" in str(result.message)


def test_the_kit_is_seven_tools_that_say_what_they_take() -> None:
    tools = toolkit()
    assert [tool.name for tool in tools] == [
        "confirm_action",
        "collect_form",
        "ask_preference",
        "text_input",
        "show_info_card",
        "suggest_options",
        "approve_plan",
    ]
    for tool in tools:
        assert tool.read_only and not tool.un_abortable and not tool.retries
        schema: Any = tool.spec.parameters
        undescribed = [
            name
            for name, field in schema["properties"].items()
            if "description" not in field and name not in ("placeholder", "variant")
        ]
        assert undescribed == []
    assert not close_question().read_only


async def test_an_answer_by_voice_closes_the_question_and_each_call_keeps_one_result() -> None:
    """The caller speaks while the question waits: the model is asked beside the running tool,
    takes the card away, and goes on with what it heard."""
    model = ScriptedModel(
        call(("ask_preference", dict(ASKING["ask_preference"])), ids=["asks"]),
        call(("close_question", {}), ids=["closes"]),
        "The window it is.",
        "unused",
    )
    agent = make_agent(model, *toolkit(), close_question())
    agent.display.subscribe(lambda change: None)
    async with agent.running():
        first = asyncio.create_task(agent.process_request("a table"))
        await until(lambda: agent.display.pending == 1)
        shown = agent.display.push_and_forget("show_info_card", {"title": "stays"})
        first.cancel()  # barge-in: the request ends, its tool goes on
        await asyncio.gather(first, return_exceptions=True)
        assert agent.display.pending == 1
        answer = await agent.process_request("by the window please")
        await until(lambda: not agent.outstanding)
    assert answer.text == "The window it is."
    assert [slot.id for slot in agent.display.stack] == [shown]
    kept = await results(agent)
    closed = kept["asks"].result
    assert closed.status == "success" and "taken off the display" in str(closed.data)
    assert kept["closes"].result.data == "The question is off the display."


async def test_closing_grants_no_permission_and_says_when_there_is_nothing_to_close() -> None:
    agent = make_agent(
        ScriptedModel(call(("close_question", {}), ids=["c"]), "ok"), close_question()
    )
    wait = asyncio.create_task(
        agent.display.push_and_wait("permission_request", {"toolName": "pay"})
    )
    await until(lambda: agent.display.pending == 1)
    await agent.process_request("go")
    assert (await results(agent))["c"].result.data == "No question is open on the display."
    assert agent.display.pending == 1
    wait.cancel()
    await asyncio.gather(wait, return_exceptions=True)


def test_a_factory_makes_equal_tools_that_share_nothing() -> None:
    assert show_info_card() == show_info_card()
