"""Chromium with a recorded microphone, for tests of the page.

The fake microphone plays a WAV file (48 kHz mono, 1 s of silence first, because the first 0.2 s are
gone before media flows). Everything stays on loopback; every page error and every refused request
is collected and fails the test that looks.
"""

from __future__ import annotations

import tempfile
import wave
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from playwright.async_api import BrowserContext, Page, async_playwright

from tests.support.peers import require_peer
from voxglove.media.pcm import Samples
from voxglove.media.resample import resample_all

MICROPHONE_RATE = 48_000

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--allow-loopback-in-peer-connection",
)


@dataclass
class Browser:
    """An open page and what went wrong in it."""

    page: Page
    context: BrowserContext
    errors: list[str] = field(default_factory=list)

    async def start(self) -> None:
        """Press the button and wait until the call is up."""
        await self.page.click("#talk")
        await self.page.wait_for_selector('html[data-phase="live"]', timeout=15_000)

    async def wait_state(self, state: str, timeout_ms: float = 15_000) -> None:
        """Wait until the page shows `state`."""
        await self.page.wait_for_selector(f'html[data-state="{state}"]', timeout=timeout_ms)

    async def texts(self, selector: str) -> list[str]:
        """Visible texts of all that matches."""
        return [text.strip() for text in await self.page.locator(selector).all_inner_texts()]

    async def screenshot(self, path: Path) -> Path:
        """Write a picture of the window."""
        await self.page.screenshot(path=path)
        return path


def microphone_file(path: Path, samples: Samples, rate: int = 16_000, *, loop: bool = False) -> str:
    """Write `samples` as the fake microphone wants them; the value of its flag."""
    wide = resample_all(samples, rate, MICROPHONE_RATE) if rate != MICROPHONE_RATE else samples
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(MICROPHONE_RATE)
        file.writeframes(np.zeros(MICROPHONE_RATE, "<i2").tobytes() + wide.astype("<i2").tobytes())
    return str(path) if loop else f"{path}%noloop"


@asynccontextmanager
async def opened(
    url: str,
    *,
    microphone: str | None = None,
    allow: bool = True,
    dark: bool = False,
    size: tuple[int, int] = (900, 820),
    autoplay: bool = True,
) -> AsyncIterator[Browser]:
    """`url` in a fresh Chromium. `microphone` from `microphone_file`; `allow` False refuses it;
    `autoplay` False wants a press before any sound, as browsers do."""
    program = require_peer("chromium")
    flags = [*FLAGS, "--use-fake-device-for-media-stream"]
    if autoplay:
        flags.append("--autoplay-policy=no-user-gesture-required")
    if allow:
        flags.append("--use-fake-ui-for-media-stream")
    else:
        flags.append("--deny-permission-prompts")
    if microphone:
        flags.append(f"--use-file-for-fake-audio-capture={microphone}")
    with tempfile.TemporaryDirectory() as profile:
        async with async_playwright() as playwright:
            context = await playwright.chromium.launch_persistent_context(
                profile,
                executable_path=program,
                headless=True,
                args=flags,
                viewport={"width": size[0], "height": size[1]},
                color_scheme="dark" if dark else "light",
            )
            try:
                page = context.pages[0]
                browser = Browser(page, context)
                page.on("pageerror", lambda error: browser.errors.append(str(error)))
                page.on("console", lambda said: _note(browser, said.type, said.text))
                await page.goto(url)
                yield browser
            finally:
                await context.close()


def _note(browser: Browser, kind: str, text: str) -> None:
    if kind in ("error", "warning"):
        browser.errors.append(text)
