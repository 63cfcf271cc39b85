"""Every block of docs/agent.md is run as it stands, and does what the page says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.examples.page import Block, blocks, run, scripted
from tests.simulators.openai_chat import (
    KEY,
    OpenAIChatSimulator,
    Scripted,
    call_chunk,
    finish,
    text_chunk,
)
from voxglove.adapters.models.scripted import Call, Fail, ScriptedModel, say
from voxglove.core import Agent, Message, ModelError, ToolResult
from voxglove.core.stores import SqliteStore

BLOCKS = {block.name: block for block in blocks()}
TESTED: list[str] = []
DIFFERENT = "What is different, and why it matters on a call"


def about(name: str) -> pytest.MarkDecorator:
    """Give a test the block that it is about, as `page`."""
    TESTED.append(name)
    return pytest.mark.parametrize("page", [BLOCKS[name]], ids=["block"])


async def ran(page: Block, model: ScriptedModel) -> dict[str, Any]:
    """The names of the block after its run, in which the model's script was used up."""
    names = await run(page, model=model)
    model.verify()
    return names


def shown(model: ScriptedModel, at: int = -1) -> list[str]:
    """The texts of a model request."""
    return [message.text for message in model.requests[at].messages]


async def stored(agent: Agent) -> list[Message]:
    return await agent.store.get_messages()


async def results(agent: Agent) -> dict[str, ToolResult]:
    """Every tool result in history, by the tool's name."""
    return {r.tool_name: r for message in await stored(agent) for r in message.tool_results}


def skill_folder() -> None:
    folder = Path("skills/refunds")
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\ndescription: How to refund\n---\nAsk for the order.")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that write files do so in a folder of their own."""
    monkeypatch.chdir(tmp_path)


@about("The shortest agent 1")
@pytest.mark.real_loop
async def test_the_shortest_agent_asks_a_provider(
    page: Block, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    called = [call_chunk(0, "c1", "stock", '{"item": "umbrella"}'), finish("tool_calls")]
    said = [text_chunk("Three."), finish("stop")]
    script = [Scripted(choices=called), Scripted(choices=said)]
    async with OpenAIChatSimulator(*script).running() as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        names = await run(page)
        await names["agent"].model.aclose()
    assert capsys.readouterr().out == "Three.\n"
    assert (await results(names["agent"]))["stock"].result.data == 3


@about("You know it as 1")
async def test_a_tool_stands_in_for_a_typed_output(page: Block) -> None:
    wrong = say(Call("note_lead", {"company": "Acme"}))
    right = say(Call("note_lead", {"company": "Acme", "people": 12}))
    names = await ran(page, scripted(wrong, right, "Thank you."))
    assert [(one.company, one.people) for one in names["leads"]] == [("Acme", 12)]


@about(f"{DIFFERENT} 1")
async def test_a_call_holds_the_agent_and_chooses_when_it_wakes(page: Block) -> None:
    model = scripted("Hello.", "Your parcel is here.")
    names = await ran(page, model)
    assert [wake.reason for wake in names["wakes"]] == ["event"]
    assert {request.system_prompt for request in model.requests} == {"Be kind and brief."}
    assert "Their parcel has arrived." in shown(model)[-1]
    answers = [one for one in await stored(names["agent"]) if one.sender == "agent"]
    assert [one.playback for one in answers] == ["pending", "pending"]


@about(f"{DIFFERENT} 2")
async def test_a_tool_outlives_a_barge_in_and_the_next_turn_joins(
    page: Block,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = scripted(say(Call("book", {"table": 4})), "It is booked; a chair will stand there.")
    names = await ran(page, model)
    assert capsys.readouterr().out == "True 1\n"
    (result,) = model.requests[1].messages[2].tool_results
    assert result.result.data == "table 4 is booked"
    assert names["result"].text.startswith("It is booked")


@about(f"{DIFFERENT} 3")
async def test_history_holds_what_was_heard(page: Block) -> None:
    model = scripted("Soup, salad and fish.", "A good choice.")
    await ran(page, model)
    assert shown(model) == ["What do you have?", "Soup, [interrupted]", "Soup!"]


@about("Tools 1")
async def test_the_tools_of_the_page_run(page: Block) -> None:
    calls = Call("weather", {"city": "Rome"}), Call("refund", {"order": "1", "euros": 3})
    dear = Call("refund", {"order": "1", "euros": 30})
    model = scripted(say(*calls), say(dear), "Done.")
    names = await run(page, model=model)
    agent: Agent = names["agent"]
    await agent.process_request("How is Rome?")
    model.verify()
    weather, cheap, refused = [r for one in await stored(agent) for r in one.tool_results]
    assert weather.result.data == {"city": "Rome", "degrees": 21, "unit": "C"}
    assert cheap.result.render_data == {"order": "1", "euros": 3.0}
    assert "no display" in str(refused.result.message)
    specs = {tool.name: tool.spec.parameters for tool in agent.tools}
    assert "in English" in str(specs["weather"]) and "ctx" not in str(specs["refund"])


@about("Display 1")
async def test_a_tool_waits_for_a_persons_answer(page: Block) -> None:
    model = scripted(say(Call("choose_seat", {"row": 7})), "Row 7, then.")
    names = await ran(page, model)
    assert (await results(names["agent"]))["choose_seat"].result.data == "row 7, place C"


@about("Stores 1")
async def test_a_store_in_a_file_brings_the_conversation_back(page: Block) -> None:
    await ran(page, scripted("Hello!"))
    async with SqliteStore("agent.db", "call-17") as store:
        assert [one.text for one in await store.get_messages()] == ["Hello.", "Hello!"]


@about("What the model is told 1")
async def test_context_stands_at_the_end_and_a_preparer_sets_the_prompt(page: Block) -> None:
    model = scripted("An umbrella.")
    names = await ran(page, model)
    assert shown(model) == ["What do I have?", "[cart: umbrella]"]
    assert model.requests[0].system_prompt.endswith("The till is closed.")
    assert [one.text for one in await stored(names["agent"])] == ["What do I have?", "An umbrella."]


@about("Events and wakes 1")
async def test_a_policy_decides_about_events(
    page: Block, capsys: pytest.CaptureFixture[str]
) -> None:
    model = scripted("Ada did.")
    await ran(page, model)
    assert capsys.readouterr().out == "dropped deferred duplicate\n"
    told, asked = shown(model)
    assert '<event id="crm:1" source="crm">Ada called.</event>' in told and asked == "Who called?"


@about("Inbox and tasks 1")
async def test_an_answer_of_the_inbox_stands_before_the_next_words(page: Block) -> None:
    ask = Call("glove_post_to_inbox", {"tag": "stock", "request": "When is the lamp back?"})
    model = scripted(say(ask), "I have asked.", "On Friday.")
    names = await ran(page, model)
    answer, words = shown(model)[-2:]
    assert 'Response: "On Friday."' in answer and words == "Any news?"
    items = await names["agent"].store.get_inbox_items()
    assert [one.status for one in items] == ["consumed", "pending"]


@about("Hooks, skills, sub-agents 1")
async def test_directives_and_a_sub_agent(page: Block) -> None:
    skill_folder()
    hand = Call("glove_invoke_subagent", {"name": "translator", "prompt": "hello"})
    model = scripted(say(hand), "bonjour", "Bonjour, mon ami.", "They greeted each other.")
    names = await ran(page, model)
    assert shown(model, 0)[0] == "[Skill: friendly]\nWrite as to a friend."
    assert model.requests[1].system_prompt == "Translate into French."
    assert names["answer"].text == "Bonjour, mon ami."
    assert (names["short"].text, names["short"].stop) == ("Done.", "hook")
    assert "refunds: How to refund" in str([tool.description for tool in names["agent"].tools])


@about("Compaction 1")
async def test_compaction_by_hand(page: Block) -> None:
    names = await ran(page, scripted("Hello!", "They said hello."))
    assert (await stored(names["agent"]))[-1].is_compaction


@about("Models 1")
async def test_adapters_are_made_and_a_request_has_media_and_limits(page: Block) -> None:
    model = scripted("A cat.")
    names = await ran(page, model)
    (request,) = model.requests
    assert (request.limits.max_tokens, request.limits.timeout_s) == (200, 20)
    assert [part.type for part in request.messages[0].content] == ["text", "image"]
    assert names["agent"].model is names["local"]
    for one in (names["claude"], names["local"]):
        await one.aclose()


@about("Errors 1")
async def test_a_failed_request_is_tried_again_without_its_words(page: Block) -> None:
    busy = Fail(ModelError("overloaded", retryable=True))
    names = await ran(page, scripted(say(busy), say(busy), "Hello."))
    assert names["result"].text == "Hello."
    assert [one.text for one in await stored(names["agent"])] == ["Hello?", "Hello."]


@about("Errors 1")
async def test_an_error_that_stays_is_raised(page: Block) -> None:
    with pytest.raises(ModelError, match="no such key"):
        await run(page, model=scripted(say(Fail(ModelError("no such key")))))


@about("Subscribers and their events 1")
async def test_both_kinds_of_subscriber_hear(
    page: Block, capsys: pytest.CaptureFixture[str]
) -> None:
    names = await ran(page, scripted("Good morning."))
    assert capsys.readouterr().out == "Good morning."
    heard = names["log"]
    assert [one[2] for one in heard][:2] == ["request_started", "message_stored"]
    assert {one[0] for one in heard} == {"agent"}
    assert len({one[1] for one in heard}) == 1 and heard[0][1], "all of one request"


@about("The timeline 1")
async def test_live_and_stored_timelines_are_equal(page: Block) -> None:
    names = await ran(page, scripted(say("Well. ", Call("look")), "Nothing there."))
    assert names["live"].entries == names["stored"].entries
    assert [one["kind"] for one in names["page"]] == ["user", "agent_text", "tool", "agent_text"]


@about("Testing your agent 1")
async def test_the_test_of_the_page_passes_and_would_fail(page: Block) -> None:
    await run(page)
    wrong = Block(page.heading, 1, page.source.replace('"9 euros"\n', '"8 euros"\n'), page.line)
    with pytest.raises(ModelError, match="expects '9 euros'"):
        await run(wrong)


@about("On a line 1")
async def test_a_factory_makes_the_agent_of_a_call(page: Block) -> None:
    names = await run(page, model=scripted())
    assert names["agent"].voice_prompt == "Speak briefly."


def test_every_block_has_a_test() -> None:
    assert set(TESTED) == BLOCKS.keys()
