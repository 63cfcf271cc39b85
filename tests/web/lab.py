"""A bare page of the server's origin in Chromium, with one `Call` of call.js and all it tells.

No view is loaded: what these tests see is the line and the sound alone. The page is an answer of
the server that is no page, with the server's content policy. `Lab.wait` reads the page; what the
server heard is kept by `listen_in`.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO

import numpy as np
import soundfile
from playwright.async_api import Page

from tests.web import browser
from tests.web.client import Site
from tests.web.echo import EchoBrain
from voxglove.media.frame import AudioFrame
from voxglove.media.pcm import Samples
from voxglove.media.transport import Image, Signal
from voxglove.web.config import Config, ServerConfig
from voxglove.web.config_webrtc import WebRtcSection

RATE = 16_000
PAGE = "/livez"

MAKE = """async () => {
  const { Call } = await import("/static/call.js");
  const media = navigator.mediaDevices;
  const real = media.getUserMedia.bind(media);
  // Chromium's cleaning changes the sound: without it a correlation measures the line.
  media.getUserMedia = (wanted) => {
    const raw = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
    return real(wanted.audio ? { audio: { ...wanted.audio, ...raw } } : wanted);
  };
  const lab = { messages: [], phases: [], lines: [], notices: [], waves: { in: [], out: [] },
                levels: 0, lists: [] };
  lab.call = new Call({
    message: (message) => lab.messages.push({ ...message, arrived: performance.now() }),
    phase: (phase, words) => { lab.phase = phase; lab.phases.push([phase, words]); },
    line: (kind, words) => lab.lines.push([kind, words]),
    notice: (words) => lab.notices.push(words),
    wave: (side, wave) => lab.waves[side].push({ ...wave, arrived: performance.now() }),
    level: () => { lab.levels += 1; },
    devices: (list) => lab.lists.push(list),
  });
  window.lab = lab;
  return Call.resumable();
}"""

RECORDING = """async () => {
  const bytes = new Uint8Array(await lab.call.recording().arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 9000) {
    text += String.fromCharCode(...bytes.subarray(at, at + 9000));
  }
  return btoa(text);
}"""


@dataclass
class Lab:
    """The page and its call."""

    page: Page
    chrome: browser.Browser
    resumable: bool = False

    @property
    def errors(self) -> list[str]:
        """What went wrong in the page. (The browser asks for an icon that this page has not.)"""
        return [error for error in self.chrome.errors if "404" not in error]

    async def make(self) -> None:
        """A call that has not begun."""
        self.resumable = bool(await self.page.evaluate(MAKE))

    async def start(self, line: str = "auto", *, resume: bool = False) -> None:
        """Begin, and wait until the line is up."""
        await self.page.evaluate(
            f"lab.call.start({{line: '{line}', resume: {str(resume).lower()}}})"
        )
        await self.wait("lab.phase === 'live'")

    async def wait(self, condition: str, within_s: float = 15.0) -> None:
        """Until `condition` (JavaScript) holds in the page."""
        try:
            async with asyncio.timeout(within_s):
                while not await self.get(f"Boolean({condition})"):  # noqa: ASYNC110 - its world
                    await asyncio.sleep(0.05)
        except TimeoutError:
            told = await self.get("JSON.stringify([lab.phases, lab.lines, lab.notices])")
            raise AssertionError(f"not {condition}: {told} {self.chrome.errors}") from None

    async def get(self, expression: str) -> object:
        """The value of `expression` in the page."""
        return await self.page.evaluate(expression)

    async def recording(self) -> tuple[Samples, Samples]:
        """Left and right of the recording."""
        data = b64decode(str(await self.page.evaluate(RECORDING)))
        sound, rate = soundfile.read(BytesIO(data), dtype="int16")
        assert rate == RATE and sound.ndim == 2
        return sound[:, 0], sound[:, 1]


@asynccontextmanager
async def opened(
    site: Site, microphone: str | None = None, **options: object
) -> AsyncIterator[Lab]:
    """A page with a call that has not begun."""
    started = browser.opened(f"{site.url}{PAGE}", microphone=microphone, **options)  # type: ignore[arg-type]
    async with started as chrome:
        lab = Lab(chrome.page, chrome)
        await lab.make()
        yield lab


def loopback(**webrtc: object) -> Config:
    """A server whose WebRTC lines offer 127.0.0.1."""
    section = WebRtcSection(**{"host_addresses": ("127.0.0.1",), **webrtc})  # type: ignore[arg-type]
    return Config(server=ServerConfig(port=0), webrtc=section)


@dataclass
class Ear:
    """All the caller's sound and pictures that a brain was given."""

    pieces: list[Samples] = field(default_factory=list)
    images: list[Image] = field(default_factory=list)

    @property
    def samples(self) -> Samples:
        return np.concatenate(self.pieces) if self.pieces else np.zeros(0, np.int16)

    @property
    def seconds(self) -> float:
        return sum(len(piece) for piece in self.pieces) / RATE

    def last(self, seconds: float) -> Samples:
        """The newest stretch."""
        return self.samples[-int(seconds * RATE) :]


def only(site: Site) -> EchoBrain:
    """The brain of the one call there is."""
    (brain,) = site.calls.brains.values()
    return brain


def listen_in(brain: EchoBrain) -> Ear:
    """Keep what `brain` hears and sees from now on."""
    ear, hear, signal = Ear(), brain.hear, brain.signal

    def both(frame: AudioFrame) -> None:
        ear.pieces.append(frame.array().copy())
        hear(frame)

    def look(given: Signal) -> None:
        if isinstance(given, Image):
            ear.images.append(given)
        signal(given)

    brain.hear = both  # type: ignore[method-assign]
    brain.signal = look  # type: ignore[method-assign,assignment]
    return ear


def likeness(heard: Samples, source: Samples) -> tuple[float, int]:
    """Best correlation of `source` in `heard`, and the lag (samples) where it is."""
    a, b = heard.astype(float), source.astype(float)
    size = 1 << (len(a) + len(b)).bit_length()
    found = np.fft.irfft(np.fft.rfft(a, size) * np.conj(np.fft.rfft(b, size)), size)
    lag = int(np.argmax(found[: max(1, len(a) - len(b) // 2)]))
    part = a[lag : lag + len(b)]
    own = b[: len(part)]
    return float(part @ own / (np.linalg.norm(part) * np.linalg.norm(own) + 1e-9)), lag


def loudness(samples: Samples) -> float:
    """RMS."""
    return float(np.sqrt(np.mean(samples.astype(float) ** 2))) if len(samples) else 0.0


def sounds(samples: Samples) -> bool:
    """Whether there is anything but a codec's idea of silence."""
    return bool(np.abs(samples.astype(int)).max(initial=0) > 50)


def pitch(samples: Samples) -> float:
    """Strongest frequency, Hz."""
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return float(np.argmax(spectrum)) * RATE / len(samples)


def onset(samples: Samples, level: int = 1_500) -> int:
    """First sample louder than `level`."""
    loud = np.abs(samples.astype(int)) > level
    assert loud.any(), "nothing is loud"
    return int(np.argmax(loud))
