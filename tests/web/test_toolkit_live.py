"""The kit on a real call: Chromium, `voxglove serve`, an agent with the kit, and the answers.

The samples are those of toolkit_slots.py; the desk is desks/toolkit_desk.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.async_api import Locator

from tests.web import browser
from tests.web.serving import served
from tests.web.toolkit_slots import SAMPLES

pytestmark = [pytest.mark.browser, pytest.mark.local_speech, pytest.mark.slow]


async def ask(chrome: browser.Browser, tool: str) -> Locator:
    """The agent calls `tool`; its open card."""
    await chrome.type(tool)
    title = SAMPLES[tool].get("title") or SAMPLES[tool]["question"]
    card = chrome.page.get_by_role("article", name=f"The agent shows: {title}")
    await card.wait_for(timeout=20_000)
    return card


@pytest.mark.timeout(240)
async def test_cards_are_answered_on_a_call_and_a_bad_answer_is_put_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = tmp_path / "samples.json"
    samples.write_text(json.dumps(SAMPLES))
    monkeypatch.setenv("SAMPLES", str(samples))
    async with (
        served(tmp_path, "toolkit_desk:factory") as server,
        browser.opened(server.url) as chrome,
    ):
        await chrome.start()
        await _form(chrome)
        await _choices(chrome)
        await _answered_by_voice(chrome)
        assert chrome.errors == []


async def _form(chrome: browser.Browser) -> None:
    form = await ask(chrome, "collect_form")
    await form.get_by_label("E-mail").fill("anna@example")
    await form.get_by_label("People").fill("9")
    await form.get_by_role("button", name="Send details").click()
    faults = form.locator(".slot-fault")
    await faults.nth(2).wait_for(timeout=5_000)
    assert await faults.all_inner_texts() == [
        "Fill this in.",
        "Write an address such as name@example.org.",
        "Choose 8 or less.",
    ]
    await form.get_by_label("Full name").fill("Anna Smith")
    await form.get_by_label("E-mail").fill("anna@example.org")
    await form.get_by_label("People").fill("4")
    await form.get_by_label("People").press("Enter")
    await chrome.page.locator(".slot-done", has_text="anna@example.org").wait_for(timeout=5_000)
    await chrome.spoken("Full name is Anna Smith; E-mail is anna@example.org")


async def _choices(chrome: browser.Browser) -> None:
    suggestions = await ask(chrome, "suggest_options")
    await suggestions.get_by_role("button", name="Send").click()
    await suggestions.get_by_role("alert").get_by_text("Choose at least 1.").wait_for(timeout=5_000)
    await suggestions.get_by_label("A high chair").check()
    await suggestions.get_by_role("button", name="Send").click()
    await chrome.spoken("the user chose A high chair")
    text = await ask(chrome, "text_input")
    await text.get_by_role("textbox").fill("no")
    await text.get_by_role("textbox").press("Enter")
    await text.get_by_text("Write at least 3 characters.").wait_for(timeout=5_000)
    await text.get_by_role("textbox").fill("VOX-1")
    await text.get_by_role("textbox").press("Enter")
    await chrome.spoken("the user wrote: VOX-1")
    confirm = await ask(chrome, "confirm_action")
    await confirm.get_by_role("button", name="Dismiss").click()
    await chrome.spoken("without an answer")
    card = await ask(chrome, "show_info_card")
    await chrome.spoken("is on the display")
    await card.get_by_role("button", name="Got it").click()
    await chrome.page.locator(".slot-done", has_text="Read").wait_for(timeout=5_000)


async def _answered_by_voice(chrome: browser.Browser) -> None:
    """The caller talks past an open question: the agent takes it away."""
    question = await ask(chrome, "ask_preference")
    await chrome.type("close_question")
    await (
        chrome.page.locator(".slot-done", has_text="Which table would you like?")
        .get_by_text("No longer asked")
        .wait_for(timeout=20_000)
    )
    assert await question.count() == 0
    await chrome.spoken("The question is off the display.")
