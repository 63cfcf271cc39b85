"""The page in Chromium on calls that a simulated realtime model answers.

Real: the page, Opus and ICE (or the socket), the server, the session, the codec. The caller speaks
tone words into the page's microphone, so what the model heard and what the page played are read to
the word.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
from pydantic import BaseModel

from tests.simulators import tone_words
from tests.simulators.realtime_script import Asked, Fault, Reply, Script
from tests.simulators.realtime_script import Call as ModelCall
from tests.web import browser
from tests.web.realtime_site import RATE, Provider, RealtimeSite, realtime_site
from voxglove.core import Tool, ToolContext

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LONG = " ".join(tone_words.WORDS[10:28])


class Booking(BaseModel):
    """A table."""

    name: str


async def book(given: Booking, context: ToolContext) -> str:
    return "mike"


BOOK = Tool(
    name="book_table",
    description="Books a table.",
    input_model=Booking,
    do=book,
    requires_permission=True,
)


def answer(asked: Asked) -> Reply:
    """Does what one word of the caller names."""
    if asked.by == "results":
        return Reply(text=f"golf {' '.join(asked.results.values())}")
    if "alpha" in asked.text:
        return Reply(text=LONG)
    if "sierra" in asked.text:
        return Reply(calls=(ModelCall(name="book_table", arguments={"name": "Anna"}),))
    return Reply(text=f"echo {asked.text}")


@asynccontextmanager
async def page_on(
    provider: Provider, line: str, script: Script, **options: object
) -> AsyncIterator[tuple[RealtimeSite, browser.Browser]]:
    """The page on a live call, its microphone silent."""
    async with (
        realtime_site(provider, script, tools=[BOOK], options=dict(options)) as here,
        browser.opened(f"{here.url}/?line={line}", scripts=(browser.MOUTH,)) as chrome,
    ):
        await chrome.start()
        yield here, chrome
        assert chrome.errors == []
        assert await chrome.page.evaluate("document.documentElement.dataset.phase") == "live"


async def says(chrome: browser.Browser, text: str) -> None:
    await chrome.utter(tone_words.speak(text, RATE))


async def bubbles(chrome: browser.Browser) -> list[tuple[str, str]]:
    """The conversation from above: who, and the words."""
    found = await chrome.page.evaluate(
        """() => [...document.querySelectorAll("#transcript .said")].filter(
          (one) => !one.hidden).map((one) => [one.classList.contains("user") ? "user" : "agent",
          one.querySelector(".words").textContent.trim()])"""
    )
    return [(who, words) for who, words in found]


LINES = [("openai", "webrtc"), ("openai", "websocket"), ("gpt-live", "webrtc")]


@pytest.mark.parametrize(("provider", "line"), LINES)
async def test_speech_goes_both_ways_and_both_are_shown(
    tmp_path: Path, provider: Provider, line: str
) -> None:
    async with page_on(provider, line, Script(answer=answer)) as (here, chrome):
        await says(chrome, "bravo charlie")
        await chrome.spoken("echo bravo charlie")
        await chrome.wait_state("listening")
        assert here.provider.turns == ["bravo charlie"]
        assert await bubbles(chrome) == [
            ("user", "bravo charlie"),
            ("agent", "echo bravo charlie"),
        ]
        await chrome.page.get_by_text("answered in").wait_for()
        await chrome.type("kilo")
        await chrome.spoken("echo kilo")
        await chrome.wait_state("listening")
        assert (await bubbles(chrome))[2:] == [("user", "kilo"), ("agent", "echo kilo")]
        heard, played = await chrome.recording()
        assert tone_words.read(heard.copy(), RATE) == ["bravo", "charlie"]
        assert tone_words.read(played.copy(), RATE) == [
            *("echo", "bravo", "charlie", "echo", "kilo"),
        ]
        assert here.provider.violations == []


async def test_a_caller_who_speaks_cuts_and_the_unheard_words_are_struck(tmp_path: Path) -> None:
    async with page_on("openai", "webrtc", Script(answer=answer)) as (here, chrome):
        await says(chrome, "alpha")
        await chrome.wait_state("speaking")
        await chrome.page.wait_for_timeout(1_500)
        await says(chrome, "bravo charlie delta")
        await chrome.spoken("echo bravo charlie delta")
        await chrome.page.get_by_text("you interrupted").wait_for()
        (struck,) = await chrome.texts(".words s")
        assert struck and here.provider.turns == ["alpha", "bravo charlie delta"]
        await chrome.wait_state("listening")
        _, played = await chrome.recording()
        words = tone_words.read(played.copy(), RATE)
        after = words.index("echo", 5)
        assert words[:2] == ["alpha", "bravo"] and len(words[:after]) < 14, "silence soon after"
        assert words[after:] == ["echo", "bravo", "charlie", "delta"]


async def test_gpt_live_falls_silent_and_answers_what_was_said_into_its_speech(
    tmp_path: Path,
) -> None:
    async with page_on("gpt-live", "webrtc", Script(answer=answer)) as (here, chrome):
        await says(chrome, "alpha")
        await chrome.wait_state("speaking")
        await chrome.page.wait_for_timeout(1_500)
        await says(chrome, "bravo charlie delta")
        await chrome.spoken("echo bravo charlie delta")
        shown = await bubbles(chrome)
        assert [who for who, _ in shown] == ["user", "agent", "user", "agent"], shown
        assert shown[1][1].startswith("alpha bravo") and "romeo" not in shown[1][1]
        assert await chrome.texts(".words s") == [], "what it said was heard"


async def test_a_tool_call_is_allowed_on_the_page(tmp_path: Path) -> None:
    async with page_on("gpt-live", "webrtc", Script(answer=answer)) as (here, chrome):
        await says(chrome, "sierra")
        card = chrome.page.locator(".slot", has_text="May the agent use book table?")
        await card.wait_for(timeout=20_000)
        await card.get_by_role("button", name="Allow").click()
        await chrome.spoken("golf")
        assert "You allowed it" in (await chrome.texts(".slot-done"))[0]
        assert "book table" in " ".join(await chrome.texts("#transcript .did"))
        (output,) = here.provider.outputs.values()  # type: ignore[union-attr]
        assert "mike" in output


async def test_the_page_stays_in_the_call_while_the_provider_is_away(tmp_path: Path) -> None:
    script = Script(answer=answer, faults=[Fault(point="turn_taken", action="drop", nth=2)])
    async with page_on("openai", "webrtc", script) as (here, chrome):
        await says(chrome, "bravo")
        await chrome.spoken("echo bravo")
        await chrome.wait_state("listening")
        await says(chrome, "charlie delta")
        await chrome.page.locator(".rule", has_text="The model was away for").wait_for()
        await chrome.spoken("echo charlie delta")
        assert [one for one in await bubbles(chrome) if one[0] == "user"] == [
            ("user", "bravo"),
            ("user", "charlie delta"),
        ]
        assert here.provider.faults == []


async def test_an_answer_in_writing_is_a_bubble_and_makes_no_sound(tmp_path: Path) -> None:
    script = Script(answer=lambda asked: Reply(text=f"echo {asked.text}", text_only=True))
    async with page_on("openai", "websocket", script, text_only=True) as (_, chrome):
        await says(chrome, "bravo")
        await chrome.spoken("echo bravo")
        assert await bubbles(chrome) == [("user", "bravo"), ("agent", "echo bravo")]
        _, played = await chrome.recording()
        assert not played.any()


def sees(asked: Asked) -> Reply:
    """Says how many pictures came with the words."""
    return Reply(text=f"{('zero', 'one', 'two', 'three')[min(asked.images, 3)]} kilo")


async def test_a_picture_and_the_camera_reach_the_model(tmp_path: Path) -> None:
    silence = browser.microphone_file(tmp_path / "quiet.wav", np.zeros(RATE, np.int16), loop=True)
    async with (
        realtime_site("gemini", Script(answer=sees)) as here,
        browser.opened(f"{here.url}/?line=webrtc", microphone=silence) as chrome,
    ):
        await chrome.start()
        picture = tmp_path / "menu.png"
        picture.write_bytes(await chrome.page.screenshot())
        await chrome.page.set_input_files("#picture-file", picture)
        await chrome.page.get_by_alt_text("Picture you showed: menu.png").wait_for()
        await chrome.type("alpha")
        await chrome.spoken("one kilo")
        await chrome.page.click("#camera")
        await chrome.page.wait_for_selector('#camera[aria-pressed="true"]')
        await chrome.page.wait_for_timeout(1_500)
        await chrome.type("bravo")
        await chrome.page.wait_for_timeout(2_000)
        last = (await bubbles(chrome))[-1]
        assert last[0] == "agent" and not last[1].startswith("zero"), last
        assert here.provider.violations == [] and chrome.errors == []


async def test_a_reload_finds_the_conversation_once(tmp_path: Path) -> None:
    async with page_on("openai", "webrtc", Script(answer=answer)) as (_, chrome):
        await says(chrome, "bravo")
        await chrome.spoken("echo bravo")
        await chrome.wait_state("listening")
        await chrome.type("alpha")
        await chrome.wait_state("speaking")
        await chrome.page.wait_for_timeout(700)
        await chrome.page.reload()
        await chrome.phase("live")
        await chrome.page.get_by_text("Continued after reload").wait_for()
        await chrome.spoken("romeo")
        shown = await bubbles(chrome)
        assert shown == [
            ("user", "bravo"),
            ("agent", "echo bravo"),
            ("user", "alpha"),
            ("agent", LONG),
        ]
        await chrome.wait_state("listening")
        assert await bubbles(chrome) == shown
