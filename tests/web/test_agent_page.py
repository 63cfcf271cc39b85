"""The agent's plan, inbox and compaction on the page, and a conversation told anew: by messages
that a test makes up, no server behind them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.async_api import FilePayload, Locator, Route, expect

from tests.web.playground_page import (
    PICTURE,
    Message,
    Playground,
    line,
    past_of,
    playground,
    recorded,
)

pytestmark = pytest.mark.browser

Entry = dict[str, Any]


def task(number: int, status: str) -> Entry:
    return {
        "id": f"t{number}",
        "content": f"Do thing {number}",
        "activeForm": f"Doing thing {number}",
        "status": status,
    }


def plan(*statuses: str) -> Message:
    return line("tasks", tasks=[task(n, status) for n, status in enumerate(statuses, 1)])


def item(name: str, status: str = "pending", **fields: object) -> Entry:
    asked = {"tag": "manager", "request": f"May {name} come?", "blocking": False}
    return {"id": name, "status": status, **asked, **fields}


def inbox(*items: Entry) -> Message:
    return line("inbox", items=list(items))


def panel(open_page: Playground) -> Locator:
    return open_page.page.get_by_role("tabpanel", name="Agent")


async def test_a_page_without_a_plan_or_an_inbox_is_as_before() -> None:
    async with playground() as open_page:
        page = open_page.page
        await open_page.booking()
        tabs = page.get_by_role("tab")
        assert await tabs.all_inner_texts() == ["Turns", "Events", "Developer"]
        assert await page.locator("#agent-strip").is_hidden()
        await page.get_by_role("tab", name="Turns").press("ArrowRight")
        assert await page.get_by_role("tab", name="Events").get_attribute("aria-selected") == "true"
        await open_page.hear(plan(), inbox())
        assert await tabs.count() == 3, "an empty plan is none"


async def test_the_plan_is_shown_read_out_and_goes_with_its_last_task() -> None:
    async with playground() as open_page:
        page = open_page.page
        await open_page.hear(plan("in_progress", "pending"))
        strip = page.get_by_role("region", name="What the agent is doing")
        await expect(strip.get_by_role("button")).to_have_text("Doing thing 10/2")
        await expect(page.locator("#agent-said")).to_have_text("Plan, 0/2: Doing thing 1")
        await strip.get_by_role("button").press("Enter")
        await expect(panel(open_page)).to_be_visible()
        assert await page.get_by_role("heading", name="Plan").count() == 1
        await open_page.hear(plan("completed", "in_progress"))
        items = panel(open_page).get_by_role("listitem")
        told = [words.split("\n") for words in await items.all_inner_texts()]
        assert told == [["✓", "Do thing 1", "(done)"], ["◐", "Doing thing 2", "(now)"]]
        assert await items.nth(1).get_attribute("aria-current") == "step"
        assert await panel(open_page).get_by_label("1 of 2 done").inner_text() == "1/2"
        await open_page.hear(plan("completed", "completed"))
        await expect(page.locator("#agent-said")).to_have_text("The plan is done")
        assert await strip.count() == 0, "nothing is under way"
        assert await items.count() == 2
        await open_page.hear(plan())
        assert await page.get_by_role("tab", name="Agent").count() == 0
        assert await page.get_by_role("tab", name="Turns").get_attribute("aria-selected") == "true"


async def test_the_inbox_is_answered_where_the_server_lets_the_page() -> None:
    asked: list[tuple[str, object]] = []
    answers: list[tuple[int, Entry]] = [
        (401, {"code": "no_key", "message": "send a key"}),
        (200, {"resolved": False}),
        (200, {"resolved": True}),
    ]

    async def door(route: Route) -> None:
        asked.append((route.request.url.split("/", 3)[3], route.request.post_data_json))
        status, body = answers[len(asked) - 1]
        await route.fulfill(status=status, json=body)

    async with playground() as open_page:
        page = open_page.page
        await page.route("**/inbox/**", door)
        await open_page.hear(inbox(item("a/b", blocking=True), item("cat")))
        await page.locator(".inbox-piece").click()
        rows = panel(open_page).get_by_role("listitem")
        assert "the agent waits for it" in await rows.nth(0).inner_text()
        assert await panel(open_page).get_by_role("textbox").count() == 0, "no door"
        await open_page.hear(recorded()[0][0][1] | {"inbox": "/sessions/c/inbox"})
        field = panel(open_page).get_by_role("textbox", name="Answer to: May a/b come?")
        await field.fill("Yes")
        for told in ("It was not taken: send a key.", "Somebody answered this before."):
            await field.press("Enter")
            await panel(open_page).get_by_text(told).wait_for()
        await open_page.hear(inbox(item("a/b", blocking=True), item("cat"), item("eel")))
        assert await field.input_value() == "Yes", "what was written stays while others change"
        await field.press("Enter")
        await open_page.hear(inbox(item("a/b", "resolved", response="Yes"), item("cat")))
        await expect(page.locator("#agent-said")).to_have_text("Answered: Yes")
        assert asked == [("sessions/c/inbox/a%2Fb/resolve", {"response": "Yes"})] * 3
        assert await rows.count() == 2, "eel was withdrawn"
        await open_page.hear(inbox(item("cat")))
        assert "passed on to the agent" in await rows.nth(0).inner_text()
        await expect(page.locator(".inbox-piece b")).to_have_text("1")
        assert page.url.endswith("/") and not [
            one for one in open_page.chrome.errors if "401" not in one
        ]
        open_page.chrome.errors.clear()  # the browser's own line about the 401


async def test_a_compaction_is_a_quiet_state_and_no_words() -> None:
    async with playground() as open_page:
        before = await open_page.conversation()
        await open_page.hear(line("compaction", event="start"))
        strip = open_page.page.locator("#agent-strip")
        await expect(strip).to_have_text("Summarising the conversation …")
        await expect(open_page.page.locator("#agent-said")).to_have_text(
            "Summarising the conversation"
        )
        await open_page.hear(line("compaction", event="end", status="aborted"))
        await expect(strip).to_be_hidden()
        assert await open_page.conversation() == before
        await open_page.hear(line("compaction", event="start"))
        await open_page.page.click("#talk")
        await expect(strip).to_be_hidden()


async def test_what_a_page_is_told_again_is_in_no_saved_timeline_twice() -> None:
    async with playground() as open_page:
        page = open_page.page
        await open_page.hear(plan("pending"), plan("pending") | {"again": True})
        async with page.expect_download() as pending:
            await page.get_by_role("button", name="Save timeline").click()
        saved = (await (await pending.value).path()).read_text().splitlines()
        assert [json.loads(one)["type"] for one in saved] == ["tasks"]


# ---- a conversation told anew


async def test_core_row_092_what_is_told_anew_looks_as_it_did_live() -> None:
    """Words before a tool that sound only after it, with a card between; a cut; an answer in two
    messages; words outside every turn; the agent's own words."""
    tool: Message = {"type": "tool", "id": "c1", "name": "glove_look"}
    card = {"renderer": "show_info_card", "input": {"title": "Menu"}, "strategy": "stay"}
    live: list[Message] = [
        {"t": "utterance", "turnId": 1, "text": "The menu?", "source": "typed"},
        {"t": "speech", "turnId": 1, "text": "Hm.", "source": "narration"},
        {"t": "slot", "id": "s", "tool_call_id": "c1", **card},
        line("tool", event="started", input={"a": 1}, **{k: tool[k] for k in ("id", "name")})
        | {"behind": {"turnId": 1, "chars": 11}},
        line("tool", event="result", status="success", duration_ms=4, id="c1", name="glove_look"),
        {"t": "slot_removed", "id": "s"},
        {"t": "speech", "turnId": 1, "text": "One moment."},
        {"t": "speech", "turnId": 1, "text": "One moment. Here it is."},
        {
            "t": "heard",
            "turnId": 1,
            "heard": "One moment. Here",
            "unheard": " it is.",
            "interrupted": True,
        },
        {"t": "speech", "turnId": None, "text": "By the way."},
        {"t": "heard", "turnId": None, "heard": "By the way.", "unheard": "", "interrupted": False},
    ]
    settled = {"unheard": "", "kind": "agent_text"}
    past: list[Entry] = [
        {"kind": "user", "id": "u", "turn": 1, "text": "The menu?", "source": "typed"},
        {"kind": "aside", "id": "x", "turn": 1, "text": "Hm."},
        {**settled, "id": "a1", "turn": 1, "text": "One moment.", "heard": "One moment."},
        {
            "kind": "tool",
            "id": "c1",
            "name": "glove_look",
            "input": {"a": 1},
            "status": "success",
            "duration_ms": 4,
        },
        {"kind": "slot", "id": "s", "state": "gone", "tool_call_id": "c1", **card},
        {
            **settled,
            "id": "a2",
            "turn": 1,
            "text": "Here it is.",
            "heard": "Here",
            "unheard": " it is.",
            "interrupted": True,
        },
        {**settled, "id": "a3", "text": "By the way.", "heard": "By the way."},
        {**settled, "id": "a4", "text": "Never heard.", "heard": "", "unheard": "Never heard."},
    ]
    timeline = {"t": "timeline", "entries": past, "earlier": 0}
    async with playground() as open_page:
        await open_page.hear(*live)
        before = await open_page.conversation()
        assert [words for _, words in before] == [
            "You: The menu?typed",
            "Agent: Hm.",
            "Agent: One moment.",
            "✓lookdone in 4 msa1",
            "Menu",
            "Agent: Here it is.you interrupted",
            "Agent: By the way.",
        ]
        for _ in range(2):
            await open_page.hear(timeline)
            assert await open_page.conversation() == before


async def test_an_answer_that_goes_on_goes_on_in_its_own_bubble() -> None:
    """Of a turn, and of the agent's own accord; and a page is told what it missed."""
    async with playground() as open_page:
        said = {"kind": "agent_text", "live": True}
        user = {"kind": "user", "id": "u", "turn": 4, "text": "Hello?"}
        running = [user, {**said, "id": "a", "turn": 4, "text": "Good"}]
        await open_page.hear(
            {"t": "timeline", "entries": running, "earlier": 7},
            {"t": "speech", "turnId": 4, "text": "Good day."},
        )
        assert await open_page.texts(".agent .words") == ["Good day."]
        assert await open_page.texts(".rule") == ["What was said before this is not shown"]
        own = {**said, "id": "b", "text": "By"}
        await open_page.hear(
            {"t": "timeline", "entries": [*running, own], "earlier": 0},
            {"t": "speech", "turnId": None, "text": "By the way."},
            {"t": "heard", "turnId": None, "heard": "By", "unheard": " the", "interrupted": True},
        )
        assert await open_page.texts(".agent .words") == ["Good", "By the"]


async def test_pictures_stay_where_this_page_still_has_them() -> None:
    """What another device showed is named; a camera's frames were never bubbles."""
    picture: FilePayload = {"name": "menu.png", "mimeType": "image/png", "buffer": PICTURE}
    user = {"kind": "user", "id": "u", "turn": 1, "text": "Look."}
    images = [{"type": "image"}, {"type": "image"}, {"type": "image", "name": "camera"}]
    async with playground() as open_page:
        page = open_page.page
        await page.set_input_files("#picture-file", picture)
        image = page.get_by_alt_text("Picture you showed: menu.png")
        await image.wait_for()
        await open_page.hear({"t": "timeline", "entries": [user], "earlier": 0})
        assert await open_page.texts(".user .words") == ["Look.", ""], "it waits for its turn"
        told = {"t": "timeline", "entries": [{**user, "images": images}], "earlier": 0}
        await open_page.hear(told, told)
        assert await open_page.texts(".user .words") == ["[picture]", "", "Look."]
        assert await image.count() == 1


async def test_a_card_of_a_stored_conversation_and_a_sub_agent_are_drawn() -> None:
    card = {"renderer": "ask_preference", "input": {"question": "Where?", "options": ["In", "Out"]}}
    tool = {"kind": "tool", "name": "ask_preference", "input": {}, "status": "success"}
    child = {"name": "glove_invoke_subagent", "input": {"name": "clerk", "prompt": "Look"}}
    entries = [
        {**tool, "id": "c", "output": "In", "renderData": {**card, "value": "In"}},
        {**tool, "id": "d", **child, "status": "aborted"},
    ]
    async with playground() as open_page:
        await open_page.hear({"t": "timeline", "entries": entries, "earlier": 0})
        assert "You chose: In" in (await open_page.texts(".slot-done"))[0]
        assert await open_page.texts(".did .name") == ["ask preference", "agent: clerk"]
        assert await open_page.page.locator(".did.aborted").count() == 1


async def test_on_a_phone_everything_fits_and_a_reader_finds_his_place_again() -> None:
    async with playground((360, 740), dark=True) as open_page:
        page = open_page.page
        await open_page.hear(
            plan("completed", "in_progress", "pending"),
            inbox(item("a" * 60, blocking=True), item("dog", "resolved", response="b" * 80)),
            line("compaction", event="start"),
        )
        assert await page.evaluate(TOO_WIDE) == []
        await page.locator(".plan-piece").click()
        assert await page.evaluate(TOO_WIDE) == []
        await page.keyboard.press("Escape")
        await open_page.booking()
        past = past_of([message for _, message in recorded()[0]])
        await open_page.pictures(3)
        await page.evaluate("document.querySelector('#transcript').scrollTop = 40")
        await open_page.pictures(3)
        await open_page.hear(past)
        await open_page.pictures(3)
        assert await page.evaluate("document.querySelector('#transcript').scrollTop") == 40


TOO_WIDE = """() => [...document.querySelectorAll("body *")]
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && one.offsetParent
    && !one.closest(".hidden, .waves"))
  .map((one) => one.className || one.tagName)"""
