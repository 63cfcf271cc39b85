"""The main job, whole: a person books a table in Chromium by voice, on the keyless stack.

A real `voxglove serve`, a real Chromium with a recorded microphone, real local models. The caller
is a recording with fixed pauses, long enough for the answers on two busy cores; the second turn
interrupts the first answer. The other test drops the socket in the middle of an answer.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from tests.audio_fixtures.load import fixture
from tests.support.chaos import chaos_proxy
from tests.web import browser
from tests.web.serving import served
from voxglove.media.pcm import Samples

pytestmark = [pytest.mark.browser, pytest.mark.local_speech, pytest.mark.slow]

RATE = 16_000


def caller(*parts: float | str) -> Samples:
    """Seconds of silence and names of clips, in order."""
    pieces = [
        np.zeros(round(part * RATE), np.int16) if isinstance(part, float) else fixture(part).pcm
        for part in parts
    ]
    return np.concatenate(pieces)


async def spoken(chrome: browser.Browser, wanted: str, within_s: float) -> None:
    """Wait until the agent's transcript holds `wanted`."""
    words = chrome.page.locator(".agent .words", has_text=wanted)
    await words.first.wait_for(timeout=within_s * 1000)


async def test_a_table_is_booked_by_voice_one_turn_by_interrupting(tmp_path: Path) -> None:
    # The name comes while the agent asks for it; the confirmation after the read-back was heard.
    speech = caller("booking_1", 4.3, "booking_2", 8.5, "booking_3", 15.0)
    microphone = browser.microphone_file(tmp_path / "caller.wav", speech)
    async with (
        served(tmp_path) as server,
        browser.opened(server.url, microphone=microphone) as chrome,
    ):
        await chrome.start()
        await spoken(chrome, "Anna Smith", 30)
        assert await chrome.texts(".words s"), "the second turn did not interrupt the first answer"
        await spoken(chrome, "booked", 30)
        await chrome.screenshot(tmp_path / "booked.png")
        users = await chrome.texts(".user .words")
        assert len(users) == 3, users
        assert "table for two" in users[0] and "Anna" in users[1] and "right" in users[2]
        await chrome.wait_state("listening")
        assert chrome.errors == []
    assert booked(tmp_path) == [("Anna Smith", 2, "19:30")]


async def test_a_socket_lost_in_the_middle_of_an_answer_loses_nothing(tmp_path: Path) -> None:
    speech = caller("booking_1", 14.0, "booking_2", 9.5, "booking_3", 15.0)
    microphone = browser.microphone_file(tmp_path / "caller.wav", speech)
    async with served(tmp_path) as server:
        host, port = server.url.removeprefix("http://").split(":")
        async with (
            chaos_proxy(host, int(port)) as proxy,
            browser.opened(
                "http://{}:{}/?line=websocket".format(*proxy.address), microphone=microphone
            ) as chrome,
        ):
            await chrome.start()
            await chrome.wait_state("speaking", 30_000)
            await asyncio.sleep(1.0)
            proxy.drop()
            await chrome.page.wait_for_selector('html[data-phase="lost"]', timeout=10_000)
            await chrome.page.wait_for_selector('html[data-phase="live"]', timeout=20_000)
            await spoken(chrome, "What name is it under?", 20)
            await chrome.wait_state("listening", 20_000)
            assert await chrome.texts(".words s") == []
            await spoken(chrome, "booked", 45)
            await chrome.screenshot(tmp_path / "resumed.png")
    assert booked(tmp_path) == [("Anna Smith", 2, "19:30")]


def booked(folder: Path) -> list[tuple[str, int, str]]:
    """What stands in the book."""
    from voxglove.web.frontdesk.bookings import Bookings

    book = Bookings(str(folder / "book.db"))
    try:
        return [(one.name, one.party, f"{one.time:%H:%M}") for one in book.all_active()]
    finally:
        book.close()
