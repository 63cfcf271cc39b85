"""The agent's plan, inbox and compaction on a real call, and a second page that comes to it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import aiohttp
import pytest
from playwright.async_api import Page

from tests.web import browser
from tests.web.desks.manager_desk import SUMMARY
from tests.web.playground_page import CONVERSATION
from tests.web.serving import served

pytestmark = [pytest.mark.browser, pytest.mark.local_speech, pytest.mark.slow]

KEPT_CALL = "sessionStorage['voxglove.call']"
WORDS = """() => [...document.querySelectorAll(".words")].map((one) => one.textContent)"""


async def quiet(chrome: browser.Browser, said: str) -> None:
    """The answer that holds `said` was spoken to its end."""
    await chrome.spoken(said)
    await chrome.wait_state("listening", 20_000)


async def shown(page: Page) -> list[list[str]]:
    """The conversation but for the rules between its parts and the latency notes, which are the
    page's own."""
    found: list[list[str]] = await page.evaluate(CONVERSATION)
    cut = [[name, words.split("answered in ")[0]] for name, words in found]
    return [one for one in cut if one[0] != "rule"]


@pytest.mark.timeout(240)
async def test_core_row_092_plan_inbox_and_all_that_was_said_reach_every_page(
    tmp_path: Path,
) -> None:
    store = f"store: sqlite:{tmp_path / 'calls.db'}\n"
    async with (
        served(tmp_path, "manager_desk:factory", extra=store) as server,
        browser.opened(server.url) as chrome,
    ):
        assert await chrome.page.locator("#tab-agent").is_hidden()
        await chrome.start()
        await _plan(chrome)
        await _asks_the_manager(chrome, server.url)
        await _summarises(chrome)
        await _reloads_and_moves(chrome)
        assert chrome.errors == []


async def _plan(chrome: browser.Browser) -> None:
    page = chrome.page
    await chrome.type("plan")
    await page.locator("#agent-strip").get_by_text("Find a free table now").wait_for()
    await page.locator(".plan-piece").click()
    tab = page.get_by_role("tabpanel", name="Agent")
    assert await tab.get_by_role("listitem").count() == 3
    doing = await tab.locator("[aria-current=step]").inner_text()
    assert doing.split("\n") == ["◐", "Find a free table now", "(now)"]
    await quiet(chrome, "That is done.")
    await chrome.type("further")
    await tab.get_by_text("1/3").wait_for()
    assert "Ask the manager now" in await tab.locator("[aria-current=step]").inner_text()


async def _asks_the_manager(chrome: browser.Browser, url: str) -> None:
    """Once by the page, once by a program; each answer is spoken once."""
    page = chrome.page
    tab = page.get_by_role("tabpanel", name="Agent")
    await chrome.type("dog")
    item = tab.locator(".item", has_text="May a guest bring a dog?")
    field = item.get_by_role("textbox", name="Answer to: May a guest bring a dog?")
    await field.fill("Small ones")
    await field.press("Enter")
    await chrome.spoken("The manager says Small ones.")
    await item.get_by_text("passed on to the agent").wait_for()
    assert await field.count() == 0 and await page.locator(".inbox-piece").count() == 0
    await chrome.wait_state("listening", 20_000)
    await chrome.type("dog")
    await tab.locator(".item.pending").wait_for()
    call = json.loads(await page.evaluate("sessionStorage['voxglove.conversation']"))["call"]
    async with aiohttp.ClientSession() as http:
        async with http.get(f"{url}/sessions/{call}/inbox") as found:
            (pending,) = [one for one in await found.json() if one["status"] == "pending"]
        door = f"{url}/sessions/{call}/inbox/{pending['id']}/resolve"
        async with http.post(door, json={"response": "Two at most"}) as answer:
            assert await answer.json() == {"resolved": True}
    await quiet(chrome, "The manager says Two at most.")
    words = await page.evaluate(WORDS)
    assert [sum(said in one for one in words) for said in ("Small ones", "Two at most")] == [1, 1]


async def _summarises(chrome: browser.Browser) -> None:
    page = chrome.page
    await chrome.type("please summarise")
    state = page.locator("#agent-strip .resting")
    await state.wait_for(timeout=20_000)
    assert "Summarising the conversation" in await page.inner_text("#agent-said")
    await state.wait_for(state="detached", timeout=20_000)
    assert SUMMARY not in await page.content()


async def _reloads_and_moves(chrome: browser.Browser) -> None:
    """The same page after a reload, and another browser with the call's token."""
    page = chrome.page
    await chrome.type("card")
    await page.get_by_role("button", name="Got it").click()
    await quiet(chrome, "That is done.")
    await asyncio.sleep(0.5)  # what was heard is settled
    before = await shown(page)
    assert {name.split()[0] for name, _ in before} == {"said", "did", "slot-done"}
    await page.reload()
    await page.get_by_text("Continued after reload").wait_for(timeout=20_000)
    after = await shown(page)
    assert after == before
    assert await page.locator("#agent-strip .plan-piece").count() == 1
    kept = await page.evaluate(KEPT_CALL)
    assert chrome.context.browser is not None
    context = await chrome.context.browser.new_context()
    other = await context.new_page()
    await other.goto(page.url)
    await other.evaluate(f"(kept) => {{ {KEPT_CALL} = kept; }}", kept)
    await other.reload()
    await other.wait_for_selector('html[data-phase="live"]', timeout=20_000)
    await other.locator(".slot-done", has_text="The house").wait_for(timeout=20_000)
    assert await shown(other) == before
    assert SUMMARY not in await other.content()
    await context.close()
