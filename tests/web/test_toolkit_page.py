"""Every card of the kit in Chromium: answered by hand, refused, corrected, dismissed, kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.async_api import Locator

from tests.web.playground_page import Playground, past_of, playground
from tests.web.test_playground_access import TOO_WIDE
from tests.web.toolkit_slots import SAMPLES, refused, removed, slot

pytestmark = pytest.mark.browser

Hand = Callable[[Locator], Awaitable[None]]


def press(name: str) -> Hand:
    async def act(card: Locator) -> None:
        await card.get_by_role("button", name=name).click()

    return act


async def fill_form(card: Locator) -> None:
    await card.get_by_label("Full name").fill("Anna Smith")
    await card.get_by_label("E-mail").fill("anna@example.org")
    await card.get_by_label("People").fill("4")
    await card.get_by_label("Day").fill("2030-05-03")
    await card.get_by_label("Table").select_option("By the window")
    await card.get_by_label("Notes").fill("No nuts")
    await card.get_by_label("Send me the newsletter").check()
    await card.get_by_label("Full name").press("Enter")


async def write(card: Locator) -> None:
    await card.get_by_role("textbox", name="What is the code on your voucher?").fill("VOX-1")
    await card.get_by_role("button", name="Send").click()


async def pick(card: Locator) -> None:
    await card.get_by_role("group", name="What shall we prepare?").is_visible()
    await card.get_by_label("A high chair").check()
    await card.get_by_label("A quiet corner").check()
    await card.get_by_label("Something else").fill("balloons")
    await card.get_by_role("button", name="Send").click()


async def send_back(card: Locator) -> None:
    await card.get_by_label("Comment, if you like").fill("Rather Monday")
    await card.get_by_role("button", name="Send back").click()


@dataclass(frozen=True, slots=True)
class Card:
    """What a hand does, what the page sends, what stays; and a fault with where it is shown."""

    name: str
    hand: Hand
    value: object
    stays: str
    fault: str = "value"
    at: str | None = None


CARDS = [
    Card("confirm_action", press("Keep it"), False, "You answered: Keep it"),
    Card("ask_preference", press("By the window"), "window", "You chose: By the window"),
    Card("text_input", write, "VOX-1", "You wrote: VOX-1", "value", "What is the code"),
    Card("show_info_card", press("Got it"), True, "Read"),
    Card(
        "suggest_options",
        pick,
        {"selected": ["A high chair", "A quiet corner"], "other": "balloons"},
        "You chose: A high chair, A quiet corner, “balloons”",
    ),
    Card(
        "approve_plan",
        send_back,
        {"approved": False, "comment": "Rather Monday"},
        "You sent it back: “Rather Monday”",
        "comment",
        "Comment",
    ),
    Card(
        "collect_form",
        fill_form,
        {
            "name": "Anna Smith",
            "email": "anna@example.org",
            "phone": None,
            "people": 4,
            "day": "2030-05-03",
            "table": "window",
            "notes": "No nuts",
            "news": True,
        },
        "You sent this",
        "email",
        "E-mail",
    ),
]


def card_of(open_page: Playground, name: str) -> Locator:
    title = SAMPLES[name].get("title") or SAMPLES[name]["question"]
    return open_page.page.get_by_role("article", name=f"The agent shows: {title}")


async def is_focused(one: Locator) -> bool:
    return bool(await one.evaluate("e => e === document.activeElement"))


async def test_each_card_is_answered_refused_at_its_field_corrected_and_stays() -> None:
    async with playground() as open_page:
        for card in CARDS:
            await open_page.hear(slot(card.name))
            shown = card_of(open_page, card.name)
            await card.hand(shown)
            (sent,) = (await open_page.asked("send"))[-1]
            assert sent == {"id": card.name, "t": "resolve", "value": card.value}
            await open_page.hear(refused(card.name, (card.fault, "Not like this.")))
            await _fault_is_told(shown, card)
            if card.at is None:
                await card.hand(shown)
            else:
                control = shown.get_by_role("textbox", name=card.at)
                await control.press("End")
                await control.press("!")
                assert await shown.locator(".slot-fault").count() == 0, "gone with the first key"
                assert await control.get_attribute("aria-invalid") is None
                await control.press("Backspace")
                await card.hand(shown)
            (again,) = (await open_page.asked("send"))[-1]
            assert again == sent and len(await open_page.asked("send")) % 2 == 0
            await open_page.hear(removed(card.name))
            done = open_page.page.locator(".slot-done").last
            assert card.stays in await done.inner_text()
            assert await done.locator("button, input, textarea, select").count() == 0
            assert await is_focused(done), "focus is kept"
        await _history_is_drawn_alike(open_page)


async def _fault_is_told(shown: Locator, card: Card) -> None:
    fault = shown.locator(".slot-fault")
    assert await fault.inner_text() == "Not like this."
    assert await shown.get_attribute("aria-busy") is None
    if card.at is None:
        assert await fault.get_attribute("role") == "alert"
        assert await shown.locator(":focus").count() == 1
        return
    control = shown.get_by_role("textbox", name=card.at)
    assert await control.get_attribute("aria-invalid") == "true"
    described = (await control.get_attribute("aria-describedby") or "").split()
    assert await fault.get_attribute("id") in described, "a screen reader reads it with the field"
    assert await is_focused(control)


async def test_each_question_can_be_dismissed() -> None:
    async with playground() as open_page:
        questions = [name for name in SAMPLES if name != "show_info_card"]
        for name in questions:
            await open_page.hear(slot(name))
            await card_of(open_page, name).get_by_role("button", name="Dismiss").click()
            (sent,) = (await open_page.asked("send"))[-1]
            assert sent == {"id": name, "t": "reject", "reason": "dismissed"}
            await open_page.hear(removed(name))
        said = await open_page.texts(".slot-done .reply")
        assert said == ["You dismissed it"] * len(questions)
        await _an_answer_too_late(open_page)
        await _words_for_a_number(open_page)
        await _which_server(open_page)


async def _which_server(open_page: Playground) -> None:
    """The question of the search for tools (spec core 15) is drawn like any choice."""
    options = [{"label": "Notes", "value": "notion", "description": "your pages"}]
    props = {"question": "Which one do you mean?", "options": options}
    await open_page.hear(
        {**slot("ask_preference", "pick"), "renderer": "mcp_picker", "input": props}
    )
    choice = open_page.page.get_by_role("group", name="Which one do you mean?")
    await choice.get_by_role("button", name="Notes").click()
    (sent,) = (await open_page.asked("send"))[-1]
    assert sent == {"id": "pick", "t": "resolve", "value": "notion"}


async def _an_answer_too_late(open_page: Playground) -> None:
    """It is not shown as given."""
    await open_page.hear(slot("ask_preference", "late"))
    await press("Garden")(card_of(open_page, "ask_preference"))
    late = {"t": "error", "code": "unknown_slot", "id": "late", "field": "id"}
    await open_page.hear(removed("late"), {**late, "message": "no such slot"})
    assert "No longer asked" in await open_page.page.locator(".slot-done").last.inner_text()
    assert await open_page.page.locator("#notice").is_hidden(), "the card says it"


async def _words_for_a_number(open_page: Playground) -> None:
    """They never leave the page: a browser would send them as nothing."""
    before = await open_page.asked("send")
    await open_page.hear(slot("collect_form", "number"))
    form = card_of(open_page, "collect_form")
    await form.get_by_label("People").focus()
    await open_page.page.keyboard.type("1e")
    await form.get_by_role("button", name="Send details").click()
    assert await open_page.asked("send") == before
    assert await form.locator(".slot-fault").inner_text() == "Write a number."


async def _history_is_drawn_alike(open_page: Playground) -> None:
    page = open_page.page
    live = await page.locator(".slot-done").evaluate_all("all => all.map((e) => e.innerText)")
    kept = [
        {"renderer": card.name, "input": slot(card.name)["input"], "value": card.value}
        for card in CARDS
    ]
    assert await page.evaluate(DRAW, kept) == live
    unanswered = await page.evaluate(DRAW, [{**one, "value": None} for one in kept])
    for card, words in zip(CARDS, unanswered, strict=True):
        assert ("Not answered" in words) == (card.name != "show_info_card")
    foreign = {"renderer": "confirm_action", "input": "a text", "value": {"any": 1}}
    odd = {"renderer": "collect_form", "input": {"title": "Theirs"}, "value": True}
    drawn = await page.evaluate(DRAW, [foreign, odd])
    assert [words.split("\n")[0] for words in drawn] == ["A text", "Theirs"]


DRAW = """async (cards) => {
  const { drawResult } = await import("/static/slots.js");
  const place = document.querySelector("#transcript");
  return cards.map((card) => {
    const made = drawResult(card);
    place.append(made);
    const words = made.innerText;
    made.remove();
    return words;
  });
}"""


async def test_an_answer_in_flight_and_half_filled_fields_outlive_a_lost_line() -> None:
    async with playground() as open_page:
        page = open_page.page
        ready: dict[str, Any] = {"t": "ready", "callId": "c", "assistantName": "A"}
        await open_page.hear(ready, slot("collect_form"), slot("confirm_action"))
        form = card_of(open_page, "collect_form")
        await card_of(open_page, "confirm_action").get_by_role("button", name="Keep it").click()
        await form.get_by_label("Full name").fill("Anna")
        again = [slot("collect_form"), slot("confirm_action")]
        await open_page.hear(ready, past_of(again), *again)
        assert await form.get_by_label("Full name").input_value() == "Anna"
        assert await is_focused(form.get_by_label("Full name"))
        await card_of(open_page, "confirm_action").get_by_role("button", name="Keep it").click()
        assert len(await open_page.asked("send")) == 2, "the first may not have arrived"
        await open_page.hear(removed("confirm_action"))
        assert "You answered: Keep it" in await page.locator(".slot-done").inner_text()
        await _a_reload_brings_answers_back(open_page)


async def _a_reload_brings_answers_back(open_page: Playground) -> None:
    page = open_page.page
    await open_page.hear(slot("ask_preference"), slot("approve_plan"), slot("text_input"))
    await press("Garden")(card_of(open_page, "ask_preference"))
    await open_page.hear(removed("ask_preference"))
    await press("Dismiss")(card_of(open_page, "approve_plan"))
    await write(card_of(open_page, "text_input"))
    await page.evaluate("sessionStorage['fake.resumable'] = 'yes'")
    await page.reload()
    await page.wait_for_selector('html[data-phase="live"]')
    past = past_of([slot(name) for name in (*ANSWERED, "text_input")])
    for entry in past["entries"]:
        entry |= ANSWERED.get(entry["id"], {})
    await open_page.hear({"t": "ready", "callId": "c"}, past, slot("text_input"))
    said = await open_page.texts(".slot-done .reply")
    assert said == ["You answered: Keep it", "You chose: Garden", "You dismissed it"]
    asked = card_of(open_page, "text_input")
    assert await asked.get_by_role("textbox").count() == 1, "it is asked still, once"


ANSWERED: dict[str, dict[str, object]] = {
    "confirm_action": {"state": "answered", "value": False},
    "ask_preference": {"state": "answered", "value": "Garden"},
    "approve_plan": {"state": "refused", "reason": "dismissed"},
}


async def test_on_a_phone_every_card_fits_and_is_walked_by_keyboard() -> None:
    async with playground((360, 740), dark=True) as open_page:
        page = open_page.page
        await open_page.hear(*(slot("confirm_action", f"c{n}") for n in range(3)))
        await open_page.hear(slot("collect_form", "tall"))
        await open_page.pictures(6)
        top = await page.get_by_role("heading", name="Your details").bounding_box()
        room = await page.locator("#transcript").bounding_box()
        assert top and room and 0 <= top["y"] - room["y"] < 40, "a tall card is shown from its top"
        await open_page.hear(removed("tall"), *(removed(f"c{n}") for n in range(3)))
        for name in SAMPLES:
            await open_page.hear(slot(name))
            problems = [(name, "Too much of something."), ("value", "Nor this.")]
            await open_page.hear(refused(name, *problems))
        await open_page.hear(*(slot(name, f"{name}-done") for name in SAMPLES))
        await open_page.hear(*(removed(f"{name}-done") for name in SAMPLES))
        assert await page.evaluate(TOO_WIDE) == []
        controls = page.locator(".slot :is(button, input, textarea, select)")
        for one in await controls.all():
            snapshot = await one.aria_snapshot()
            assert '"' in snapshot, f"{snapshot} has no name"
        await page.locator(".slot :is(button, input)").first.focus()
        reached = 1
        while reached < await controls.count():
            await page.keyboard.press("Tab")
            inside = await page.evaluate("!!document.activeElement.closest('.slot')")
            assert inside, f"the keyboard left the cards after {reached} controls"
            # The parts of a date are stops of their own inside one control.
            reached = await page.evaluate(PLACE)
        assert reached == await controls.count()


PLACE = """() => {
  const all = [...document.querySelectorAll(".slot :is(button, input, textarea, select)")];
  return all.indexOf(document.activeElement) + 1;
}"""
