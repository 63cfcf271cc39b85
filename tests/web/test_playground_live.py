"""The playground on a real call: the demo agent books by typed words, and what stays of it."""

from __future__ import annotations

import json
import wave
from pathlib import Path

import numpy as np
import pytest
from playwright.async_api import Page

from tests.web import browser
from tests.web.serving import served

pytestmark = [pytest.mark.browser, pytest.mark.local_speech, pytest.mark.slow]


async def say(chrome: browser.Browser, text: str, answer: str) -> None:
    """Type `text` and wait until an answer holds `answer`."""
    await chrome.page.fill("#text", text)
    await chrome.page.press("#text", "Enter")
    words = chrome.page.locator(".agent .words", has_text=answer)
    await words.first.wait_for(timeout=30_000)


async def saved(page: Page, button: str) -> Path:
    """The file that `button` saves."""
    async with page.expect_download() as pending:
        await page.get_by_role("button", name=button).click()
    return await (await pending.value).path()


async def test_a_typed_booking_shows_its_tools_and_outlives_a_reload(tmp_path: Path) -> None:
    async with served(tmp_path) as server, browser.opened(server.url) as chrome:
        page = chrome.page
        await chrome.start()
        wish = "I'd like a table for two tomorrow at 7:30 pm. My name is Anna Smith"
        await say(chrome, wish, "Is that right?")
        await chrome.wait_state("listening", 30_000)
        chip = page.locator(".did.success", has_text="free tables")
        await chip.locator("summary").click()
        assert "19:30" in await chip.locator(".inside").inner_text()
        before = await chrome.texts(".words")

        await page.reload()
        await page.wait_for_selector('html[data-phase="live"]', timeout=20_000)
        await page.get_by_text("Continued after reload").wait_for()
        assert await chrome.texts(".words") == before
        await say(chrome, "Yes, that's right", "booked")
        card = page.locator(".slot.to-read", has_text="Anna Smith")
        await card.get_by_role("button", name="Got it").click()
        assert "Read" in await page.locator(".slot-done").inner_text()

        await chrome.wait_state("listening", 30_000)  # all of the answer was heard
        check_timeline(await saved(page, "Save timeline"))
        check_recording(await saved(page, "Save recording"))
        await page.click("#talk")
        await page.wait_for_selector('html[data-phase="idle"]')
        check_recording(await saved(page, "Save recording"))
        assert await page.locator(".did.success", has_text="book table").count() == 1
        assert chrome.errors == []


def check_timeline(file: Path) -> None:
    """JSON lines in order of time, from before and after the reload."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)
    done = [line["name"] for line in lines if line["type"] == "tool" and line["event"] == "result"]
    assert done == ["free_tables", "book_table"]
    turns = [line["text"] for line in lines if line["type"] == "turn"]
    assert len(turns) == 2 and turns[-1] == "Yes, that's right"


def check_recording(path: Path) -> None:
    """A stereo WAV in which the agent is heard, right."""
    with wave.open(str(path)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (2, 2, 16_000)
        sound = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, 2)
    assert len(sound) > 16_000
    assert np.abs(sound[:, 1]).max() > 1_000
