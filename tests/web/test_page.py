"""The page in Chromium against a real server: it connects, speaks, interrupts, comes back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from tests.web import browser
from tests.web.client import config, eventually, site
from tests.web.echo import EchoBrain

pytestmark = [pytest.mark.browser, pytest.mark.slow]

RATE = 16_000
ON_SOCKET = "/?line=websocket"
"""For what only a socket shows: reports of playback, a line that can be torn."""


def tone_file(path: Path) -> str:
    wave = (12_000 * np.sin(2 * np.pi * 440 * np.arange(3 * RATE) / RATE)).astype(np.int16)
    return browser.microphone_file(path, wave)


def only(brains: dict[str, EchoBrain]) -> EchoBrain:
    (brain,) = brains.values()
    return brain


async def test_it_connects_listens_and_hears(tmp_path: Path) -> None:
    async with site() as here:
        microphone = tone_file(tmp_path / "tone.wav")
        async with browser.opened(here.url + "/", microphone=microphone) as chrome:
            await chrome.start()
            await chrome.wait_state("listening")
            brain = only(here.calls.brains)
            await eventually(lambda: brain.loud_samples > RATE, 10)
            assert await chrome.texts("#talk-label") == ["Hang up"]
            await chrome.screenshot(tmp_path / "listening.png")
            await chrome.page.click("#mute")
            await chrome.wait_state("muted")
            await asyncio.sleep(0.3)
            before = brain.loud_samples
            await asyncio.sleep(1.0)
            assert brain.loud_samples == before, "muted, no sound leaves the page"
            assert await chrome.page.get_attribute("#mute", "aria-pressed") == "true"
            await chrome.page.click("#talk")
            await eventually(lambda: here.server.registry.active == 0)
            assert await chrome.page.get_attribute("html", "data-phase") == "idle"
            assert chrome.errors == []


async def test_typed_words_are_answered_and_an_interruption_is_struck_through(
    tmp_path: Path,
) -> None:
    async with site() as here, browser.opened(here.url + "/") as chrome:
        await chrome.start()
        await chrome.page.fill("#text", "hello there")
        await chrome.page.press("#text", "Enter")
        await chrome.wait_state("speaking")
        await chrome.wait_state("listening")
        assert await chrome.texts(".user .words") == ["hello there"]
        assert await chrome.texts(".agent .words") == ["You said: hello there"]
        await chrome.page.fill("#text", "this is a much longer sentence that I shall cut")
        await chrome.page.press("#text", "Enter")
        await chrome.wait_state("speaking")
        await asyncio.sleep(1.2)
        await chrome.page.press("#text", "Escape")
        await chrome.page.wait_for_selector(".words s")
        struck = (await chrome.texts(".words s"))[0]
        whole = (await chrome.texts(".agent .words"))[-1]
        assert whole == "You said: this is a much longer sentence that I shall cut"
        assert 10 < len(struck) < len(whole) - 10
        await chrome.screenshot(tmp_path / "struck.png")
        assert chrome.errors == []


async def test_the_playback_clock_of_the_page_is_exact(tmp_path: Path) -> None:
    """What the page reports as played is every sample that was sent, no more and no fewer."""
    async with site() as here, browser.opened(here.url + ON_SOCKET) as chrome:
        reports: list[str] = []
        chrome.page.on(
            "websocket", lambda ws: ws.on("framesent", lambda data: _keep(reports, data))
        )
        await chrome.start()
        await chrome.page.fill("#text", "count me")
        await chrome.page.press("#text", "Enter")
        await chrome.wait_state("speaking")
        await chrome.wait_state("listening")
        samples = len("You said: count me") * 60 * 16
        await eventually(lambda: any(f'"pos":{samples}' in text for text in reports))
        assert len(reports) >= samples // 1_600


def _keep(reports: list[str], data: object) -> None:
    if isinstance(data, str) and "playback" in data:
        reports.append(data)


async def test_a_lost_socket_comes_back_by_itself_with_the_answer(tmp_path: Path) -> None:
    sentence = "a sentence long enough to lose the line in the middle of it"
    async with site() as here, browser.opened(here.url + ON_SOCKET) as chrome:
        await chrome.start()
        await chrome.page.fill("#text", sentence)
        await chrome.page.press("#text", "Enter")
        await chrome.wait_state("speaking")
        await asyncio.sleep(1)
        brain = only(here.calls.brains)
        call = next(iter(here.calls.calls.values()))
        assert call.transport is not None
        call.transport._client._socket._request.transport.abort()  # type: ignore[attr-defined]
        await chrome.page.wait_for_selector('html[data-phase="lost"]')
        await chrome.page.wait_for_selector('html[data-phase="live"]')
        await chrome.wait_state("listening")
        assert only(here.calls.brains) is brain
        assert await chrome.texts(".agent .words") == [f"You said: {sentence}"]
        assert await chrome.texts(".words s") == []


async def test_a_slot_is_shown_and_answered(tmp_path: Path) -> None:
    async with site() as here, browser.opened(here.url + "/", dark=True) as chrome:
        await chrome.start()
        await chrome.page.fill("#text", "ask")
        await chrome.page.press("#text", "Enter")
        await chrome.page.wait_for_selector(".slot")
        await chrome.screenshot(tmp_path / "slot.png")
        await chrome.page.get_by_role("button", name="Yes").click()
        await chrome.wait_state("speaking")
        assert await chrome.texts(".slot") == []
        assert await chrome.texts(".agent .words") == ["You said: Yes"]
        await chrome.wait_state("listening")
        await chrome.page.fill("#text", "permit")
        await chrome.page.press("#text", "Enter")
        await chrome.page.wait_for_selector(".slot")
        assert "May the agent use book table?" in (await chrome.texts(".slot"))[0]
        await chrome.screenshot(tmp_path / "permission.png")
        await chrome.page.get_by_role("button", name="Deny").click()
        await chrome.wait_state("speaking")
        assert (await chrome.texts(".agent .words"))[-1] == "You said: False"


async def test_a_refused_microphone_is_said_in_words_and_typing_works(tmp_path: Path) -> None:
    async with site() as here, browser.opened(here.url + "/", allow=False) as chrome:
        await chrome.start()
        assert "refused" in (await chrome.texts("#notice"))[0]
        assert await chrome.page.is_disabled("#mute")
        await chrome.page.fill("#text", "hi")
        await chrome.page.press("#text", "Enter")
        await chrome.page.wait_for_selector(".agent .words")
        await chrome.screenshot(tmp_path / "refused.png")


async def test_it_works_by_keyboard_alone() -> None:
    async with site() as here, browser.opened(here.url + "/") as chrome:
        await chrome.page.keyboard.press("Tab")
        await chrome.page.keyboard.press("Enter")
        await chrome.wait_state("listening")
        await chrome.page.keyboard.press("m")
        await chrome.wait_state("muted")
        await chrome.page.keyboard.press("m")
        await chrome.wait_state("listening")
        await chrome.page.keyboard.press("Enter")
        await chrome.page.wait_for_selector('html[data-phase="idle"]')
        await eventually(lambda: here.server.registry.active == 0)


RESAMPLE = """async ([from, to]) => {
  const { Resampler } = await import("/static/resample.js");
  const sine = (_, n) => Math.sin((2 * Math.PI * 440 * n) / from);
  const tone = Float32Array.from({ length: from }, sine);
  const whole = Array.from(new Resampler(from, to).feed(tone));
  const cut = new Resampler(from, to);
  const pieces = [];
  for (let at = 0, size = 1; at < tone.length; at += size, size = (size * 7) % 523 || 1) {
    pieces.push(...cut.feed(tone.slice(at, at + size)));
  }
  const same = pieces.length === whole.length && pieces.every((value, n) => value === whole[n]);
  return { whole, same };
}"""


async def test_the_pages_resampler_is_clean_and_does_not_care_how_it_is_fed() -> None:
    async with site() as here, browser.opened(here.url + "/") as chrome:
        for rates in ((48_000, 16_000), (44_100, 16_000), (16_000, 48_000)):
            check_resampled(await chrome.page.evaluate(RESAMPLE, list(rates)), rates[1])


def check_resampled(found: dict[str, list[float]], rate: int) -> None:
    """A second of 440 Hz, resampled: clean, whole, and the same in pieces."""
    assert found["same"]
    wave = np.array(found["whole"])[200:]
    n = np.arange(len(wave)) / rate
    basis = np.stack([np.sin(2 * np.pi * 440 * n), np.cos(2 * np.pi * 440 * n)])
    fit = np.linalg.lstsq(basis.T, wave, rcond=None)[0] @ basis
    snr = 10 * np.log10(np.sum(fit**2) / np.sum((wave - fit) ** 2))
    assert snr > 60, f"{snr:.0f} dB"
    assert abs(len(found["whole"]) - rate) < 100


OTHER_RATE = """
const Real = window.AudioContext;
window.AudioContext = class extends Real {
  constructor() { super({ latencyHint: "interactive", sampleRate: 44100 }); }
};
"""


async def test_a_browser_that_insists_on_its_own_rate_works_as_well(tmp_path: Path) -> None:
    microphone = tone_file(tmp_path / "tone.wav")
    async with (
        site() as here,
        browser.opened(here.url + ON_SOCKET, microphone=microphone) as chrome,
    ):
        await chrome.context.add_init_script(OTHER_RATE)
        await chrome.page.reload()
        reports: list[str] = []
        chrome.page.on(
            "websocket", lambda ws: ws.on("framesent", lambda data: _keep(reports, data))
        )
        await chrome.start()
        brain = only(here.calls.brains)
        await eventually(lambda: brain.loud_samples > RATE, 10)
        assert abs(brain.pitch() - 440) < 5, "the caller's voice keeps its pitch"
        await chrome.page.fill("#text", "count me")
        await chrome.page.press("#text", "Enter")
        samples = len("You said: count me") * 60 * 16
        await eventually(lambda: any(f'"pos":{samples}' in text for text in reports), 10)
        assert chrome.errors == []


async def test_a_full_server_says_so_in_words() -> None:
    async with site(config(max_calls=1)) as here:
        client = await here.connect()
        async with browser.opened(here.url + "/") as chrome:
            await chrome.page.click("#talk")
            await chrome.page.wait_for_selector("#notice:not([hidden])")
            assert "busy" in (await chrome.texts("#notice"))[0]
            assert await chrome.page.get_attribute("html", "data-phase") == "idle"
            assert await chrome.page.get_attribute("html", "data-view") == "first"
        await client.ws.close(code=1000)
