"""Chromium with a recorded microphone, for tests of the page.

The fake microphone plays a WAV file (48 kHz mono, 1 s of silence first, because the first 0.2 s are
gone before media flows). Everything stays on loopback; every page error and every refused request
is collected and fails the test that looks.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import wave
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from playwright.async_api import BrowserContext, Page, async_playwright
from playwright.async_api import TimeoutError as PlaywrightTimeout

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


MOUTH = """
(() => {
  // A microphone that is silent until a test speaks into it.
  let live = null;
  navigator.mediaDevices.getUserMedia = async () => {
    const context = new AudioContext({ sampleRate: 16000 });
    live = new MediaStreamAudioDestinationNode(context, { channelCount: 1 });
    return live.stream;
  };
  window.utter = (pcm) => new Promise((done) => {
    const bytes = Uint8Array.from(atob(pcm), (letter) => letter.charCodeAt(0));
    const values = Float32Array.from(new Int16Array(bytes.buffer), (value) => value / 32768);
    const buffer = live.context.createBuffer(1, values.length, 16000);
    buffer.copyToChannel(values, 0);
    const source = new AudioBufferSourceNode(live.context, { buffer });
    source.connect(live);
    source.onended = () => done();
    source.start();
  });
})();
"""
"""Give it to `opened` as a script, and `Browser.utter` speaks when the test wants it to."""


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

    async def type(self, text: str) -> None:
        """Say `text` by hand."""
        await self.page.fill("#text", text)
        await self.page.press("#text", "Enter")

    async def utter(self, samples: Samples) -> None:
        """Speak 16 kHz sound into the microphone MOUTH, to its end."""
        pcm = b64encode(samples.astype("<i2").tobytes()).decode()
        await self.page.evaluate("(pcm) => utter(pcm)", pcm)

    async def spoken(self, wanted: str, within_s: float = 30) -> None:
        """Wait until the agent's words on the page hold `wanted`."""
        words = self.page.locator(".agent .words", has_text=wanted)
        try:
            await words.first.wait_for(timeout=within_s * 1000)
        except PlaywrightTimeout:
            said = await self.texts(".said")
            raise AssertionError(f"no {wanted!r} in {within_s} s: {said} {self.errors}") from None

    async def until(self, condition: str, within_s: float = 20) -> object:
        """Wait until `condition` (JavaScript) holds in the page; its value. (The page's policy
        forbids Playwright's own way to do this.)"""
        async with asyncio.timeout(within_s):
            while not (found := await self.page.evaluate(condition)):  # noqa: ASYNC110
                await asyncio.sleep(0.03)
            return found

    async def phase(self, phase: str, within_s: float = 20) -> None:
        """Wait until the call is `live`, `lost` or `idle`."""
        await self.page.wait_for_selector(f'html[data-phase="{phase}"]', timeout=within_s * 1000)

    async def kept(self) -> list[dict[str, object]]:
        """The messages of the call that the page keeps over a reload, but for the last 0.4 s."""
        text = await self.page.evaluate("sessionStorage['voxglove.conversation']")
        return list(json.loads(text)["messages"])

    async def recording(self) -> tuple[Samples, Samples]:
        """Press Save recording: the microphone and what was played, at 16 kHz, on one clock."""
        async with self.page.expect_download() as pending:
            await self.page.get_by_role("button", name="Save recording").click()
        with wave.open(str(await (await pending.value).path())) as file:
            sound = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, 2)
        return sound[:, 0], sound[:, 1]

    async def texts(self, selector: str) -> list[str]:
        """Visible texts of all that matches."""
        return [text.strip() for text in await self.page.locator(selector).all_inner_texts()]

    async def screenshot(self, path: Path) -> Path:
        """Write a picture of the window."""
        await self.page.screenshot(path=path, animations="disabled")
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
    scripts: tuple[str, ...] = (),
) -> AsyncIterator[Browser]:
    """`url` in a fresh Chromium. `microphone` from `microphone_file`; `allow` False refuses it;
    `autoplay` False wants a press before any sound, as browsers do; `scripts` run in each page
    before its own."""
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
                for script in scripts:
                    await context.add_init_script(script)
                await page.goto(url)
                yield browser
            finally:
                await context.close()


def _note(browser: Browser, kind: str, text: str) -> None:
    if kind in ("error", "warning"):
        browser.errors.append(text)
