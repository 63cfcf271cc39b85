"""Calls over WebRTC that are cut, reloaded, muted, typed into and clicked, in Chromium.

Real: `voxglove serve`, the page, Opus and ICE, the keyless recogniser, voice and front desk. The
microphone is silent until a test speaks into it, and each step begins when the page shows that the
one before is done, so nothing waits for a busy machine. One call carries several steps: a start of
server and browser costs more than most of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.audio_fixtures.load import fixture
from tests.support.audio import energy_spans
from tests.support.wer import normalise
from tests.web import browser
from tests.web.serving import booked, served
from tests.web.wire_cut import Wire, wire_of

pytestmark = [pytest.mark.browser, pytest.mark.local_speech, pytest.mark.slow]

Tell = Callable[[str], None]

QUESTION = "Are you a robot?"
WISH = "I'd like a table for two tomorrow at 7:30 pm. My name is Anna Smith"
MOUTH = (browser.MOUTH,)


async def test_a_call_survives_a_cut_wire_typing_and_a_reload(tmp_path: Path, tell: Tell) -> None:
    """A picture is shown; the wire is cut in the answer to it; the next answer is interrupted by
    typing; the page is reloaded in the one after that; and a table is booked all the same."""
    async with (
        served(tmp_path) as server,
        browser.opened(f"{server.url}/?line=webrtc", scripts=MOUTH) as chrome,
        wire_of(chrome.page) as wire,
    ):
        await chrome.start()
        call = await call_of(chrome)
        await show_a_picture(chrome, tmp_path)
        await cut_the_wire(chrome, wire, tmp_path, tell)
        await type_into_an_answer(chrome, tmp_path)
        await reload_in_an_answer(chrome, tmp_path)
        assert await call_of(chrome) == call, "one call from the first word to the last"
        await chrome.type("Yes, that's right")
        await chrome.spoken("booked")
        await chrome.screenshot(tmp_path / "6-booked.png")
        assert await chrome.texts(".user .words") == [
            "[picture]",
            QUESTION,
            WISH,
            "Sorry, make it three people",
            "Yes, that's right",
        ]
    assert booked(tmp_path) == [("Anna Smith", 3, "19:30")]


async def show_a_picture(chrome: browser.Browser, folder: Path) -> None:
    """A picture attached on the page reaches the agent with the next words."""
    picture = folder / "menu.png"
    picture.write_bytes(await chrome.page.screenshot())
    await chrome.page.set_input_files("#picture-file", picture)
    await chrome.page.get_by_alt_text("Picture you showed: menu.png").wait_for()
    await chrome.type(QUESTION)
    await chrome.spoken("I got your picture")


async def cut_the_wire(chrome: browser.Browser, wire: Wire, folder: Path, tell: Tell) -> None:
    """In the middle of an answer the whole network goes, and comes back while ICE restarts."""
    await sounds(chrome)
    await chrome.screenshot(folder / "1-picture.png")
    begun = asyncio.get_running_loop().time()
    wire.http_down = True
    wire.cut()
    await chrome.phase("lost", 10)
    noticed = asyncio.get_running_loop().time()
    await chrome.screenshot(folder / "2-lost.png")
    while not wire.refused:  # noqa: ASYNC110 - the page asks when it wants to
        await asyncio.sleep(0.02)
    wire.http_down = False
    await chrome.phase("live")
    back = asyncio.get_running_loop().time()
    tell(f"a cut wire: noticed after {noticed - begun:.1f} s, live {back - noticed:.1f} s later")
    assert wire.offers == 2, "the first line and the one after the cut"
    await chrome.page.get_by_text("Connected · WebRTC").wait_for()
    await sounds(chrome)
    answer = await answered(chrome, "I got your picture")
    assert answer["unheard"] == "" and not answer["interrupted"], answer
    understood = await sounded(chrome)
    tell(f"of {len(normalise(str(answer['heard'])))} words {len(understood)} sounded")
    assert understood[-2:] == ["anything", "else"], understood
    assert await chrome.texts(".words s") == [], "nothing of it is struck"


async def type_into_an_answer(chrome: browser.Browser, folder: Path) -> None:
    """Typed words cut the answer; what was not heard of it is struck; the new answer knows both."""
    await chrome.type(WISH)
    await chrome.spoken("for Anna Smith")
    await sounds(chrome)
    await asyncio.sleep(0.7)
    await chrome.type("Sorry, make it three people")
    cut = await answered(chrome, "for Anna Smith")
    assert cut["interrupted"] and str(cut["heard"]).strip(), cut
    assert await chrome.texts(".words s") == [str(cut["unheard"]).strip()]
    await chrome.spoken("for three")
    await chrome.screenshot(folder / "3-typed.png")


async def reload_in_an_answer(chrome: browser.Browser, folder: Path) -> None:
    """The same call goes on in the reloaded page; the answer is finished there, none of it lost."""
    await sounds(chrome)
    before = await chrome.texts(".user .words")
    await chrome.page.reload()
    await chrome.phase("live")
    await chrome.page.get_by_text("Continued after reload").wait_for()
    await chrome.screenshot(folder / "4-reloaded.png")
    assert (await chrome.texts(".user .words"))[1:] == before[1:], "but for the picture's bytes"
    await sounds(chrome)
    answer = await answered(chrome, "for three")
    assert answer["unheard"] == "" and str(answer["heard"]).endswith("Is that right?")
    understood = await sounded(chrome)
    assert understood[-3:] == ["is", "that", "right"] and "smith" in understood, understood
    assert len(await chrome.texts(".words s")) == 1, "nothing but the typed cut is struck"
    await chrome.screenshot(folder / "5-finished.png")


async def test_mute_push_to_talk_and_a_question_answered_by_click(
    tmp_path: Path, tell: Tell
) -> None:
    """The front desk of `desks/careful_desk.py` asks on the page before it books."""
    async with (
        served(tmp_path, "careful_desk:factory") as server,
        browser.opened(f"{server.url}/?line=webrtc", scripts=MOUTH) as chrome,
    ):
        await chrome.start()
        await hold_space(chrome, tmp_path, tell)
        await mute_by_button(chrome, tmp_path)
        await chrome.type("My name is Anna Smith")
        await answered(chrome, "Is that right?")
        await chrome.type("Yes, that's right")
        await click_the_answer(chrome, tmp_path)
        assert chrome.errors == []
    assert booked(tmp_path) == [("Anna Smith", 2, "19:30")]


async def hold_space(chrome: browser.Browser, folder: Path, tell: Tell) -> None:
    """Words are heard only while Space is held, and letting it go ends the turn: the digits at its
    end would keep it open for two seconds more."""
    page = chrome.page
    await page.get_by_role("radio", name="Push to talk").check()
    await chrome.utter(fixture("ask_hours").pcm)
    await page.keyboard.down("Space")
    await page.wait_for_selector('#ptt[aria-pressed="true"]')
    await chrome.utter(fixture("booking_1").pcm)
    await chrome.screenshot(folder / "1-held.png")
    begun = asyncio.get_running_loop().time()
    await page.keyboard.up("Space")
    await page.locator(".user:not(.partial) .words", has_text="table for two").wait_for()
    tell(f"push to talk: the turn stands {asyncio.get_running_loop().time() - begun:.2f} s later")
    await chrome.wait_state("speaking")
    await asyncio.sleep(0.5)  # what is kept is a little behind
    said = [one for one in await events_of(chrome, "turn") if one["event"] == "committed"]
    assert [turn["reason"] for turn in said] == ["talk"], said
    assert "hours" not in str(said[0]["text"]), "words were heard before Space was held"
    await page.get_by_role("radio", name="Open mic").check()


async def mute_by_button(chrome: browser.Browser, folder: Path) -> None:
    """Muted in the middle of an answer: loud words neither interrupt it nor become a turn."""
    await sounds(chrome)
    voices = len(await events_of(chrome, "vad"))
    await chrome.page.click("#mute")
    await chrome.utter(fixture("ask_hours").pcm)
    await chrome.screenshot(folder / "2-muted.png")
    answer = await answered(chrome, "What name is it under?")
    assert answer["unheard"] == "" and not answer["interrupted"], answer
    assert len(await chrome.texts(".user .words")) == 1, "what was said into a muted microphone"
    assert len(await events_of(chrome, "vad")) == voices, "a voice was noticed while muted"
    await chrome.page.click("#mute")
    await chrome.wait_state("listening")


async def click_the_answer(chrome: browser.Browser, folder: Path) -> None:
    """The agent waits for a click before it books, and books after it."""
    card = chrome.page.locator(".slot", has_text="May the agent use book table?")
    await card.wait_for(timeout=20_000)
    await chrome.screenshot(folder / "3-question.png")
    assert booked(folder) == []
    await card.get_by_role("button", name="Allow").click()
    await chrome.spoken("booked")
    assert "You allowed it" in (await chrome.texts(".slot-done"))[0]
    await chrome.screenshot(folder / "4-allowed.png")


async def sounds(chrome: browser.Browser) -> None:
    """Wait until the agent's voice is heard in the page."""
    await chrome.until(
        "Number(document.getElementById('meter-out').style.getPropertyValue('--fill')) > 0.2"
    )


async def sounded(chrome: browser.Browser) -> list[str]:
    """The words that a listener understands of what this page has played since it was loaded."""
    from voxglove.adapters.stt.whisper_model import whisper_model

    _, played = await chrome.recording()
    # One stretch of sound at a time: across the silence of a cut a recogniser may give up.
    spans = energy_spans(played, merge_ms=800)
    heard = [whisper_model().transcribe(played[one.start : one.end]) for one in spans]
    return normalise(" ".join(heard))


async def answered(chrome: browser.Browser, words: str) -> dict[str, object]:
    """What was heard and not heard of the answer with these `words`, once it is over."""
    async with asyncio.timeout(30):
        while True:
            for told in await chrome.kept():
                if told["t"] == "heard" and words in f"{told['heard']}{told['unheard']}":
                    return told
            await asyncio.sleep(0.05)


async def events_of(chrome: browser.Browser, kind: str) -> list[dict[str, object]]:
    """The events of the timeline of that kind that the page was told."""
    events = [told["event"] for told in await chrome.kept() if told["t"] == "event"]
    return [one for one in events if isinstance(one, dict) and one["type"] == kind]


async def call_of(chrome: browser.Browser) -> object:
    """The id of the page's call."""
    return await chrome.until("JSON.parse(sessionStorage['voxglove.conversation'] ?? '{}').call")
