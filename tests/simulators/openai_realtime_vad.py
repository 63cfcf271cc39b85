"""The input audio buffer of an OpenAI realtime session, and its detector of speech.

Pure; time is the audio that was appended, in milliseconds from the session's first sample. The
detector goes by loudness: good for tone words and silence, no match for a real one. Owned by
`openai_realtime_wire`, which turns its findings into events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tests.simulators.openai_realtime_checks import Json, Refused, whole
from tests.simulators.openai_realtime_config import SAMPLE_RATES
from voxglove.media import g711
from voxglove.media.pcm import Samples

WINDOW_MS = 20
ONSET_WINDOWS = 3
"""Loud windows in a row that make speech: 60 ms."""
HALF_SURE_RMS = 500.0
"""The loudness at which the detector gives speech a probability of one half."""
LEAST_COMMIT_MS = 100
KEPT_MS = 2_000
"""Of silence that waits for speech; more than any prefix padding in use."""


def decode(data: bytes, kind: str, where: str = "audio") -> Samples:
    """Sound of a session's format as samples of SAMPLE_RATES[kind]. Raises Refused for half a
    sample."""
    if kind == "audio/pcmu":
        return g711.ulaw_decode(data)
    if kind == "audio/pcma":
        return g711.alaw_decode(data)
    if len(data) % 2:
        text = f"Invalid '{where}': {len(data)} bytes are no whole number of 16-bit samples."
        raise Refused("invalid_value", text, where)
    return np.frombuffer(data, "<i2").astype(np.int16)


def encode(samples: Samples, kind: str) -> bytes:
    """The reverse of `decode`."""
    if kind == "audio/pcmu":
        return g711.ulaw_encode(samples)
    if kind == "audio/pcma":
        return g711.alaw_encode(samples)
    return samples.astype("<i2").tobytes()


@dataclass(frozen=True, slots=True)
class Sound:
    """A stretch of the caller's sound, as it was committed."""

    samples: Samples
    rate: int
    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class Heard:
    """What the detector found at a position. `started` counts from the prefix padding on, `stopped`
    to the end of the silence; `step` comes every 100 ms."""

    kind: Literal["started", "stopped", "step"]
    at_ms: int
    loud: bool = False


class InputBuffer:
    """What was appended and not committed yet."""

    def __init__(self) -> None:
        self.rate = 24_000
        self.now_ms = 0.0
        """The end of what the detector has heard, in whole session time."""
        self.speaking = False
        self._kept: deque[Samples] = deque()
        """Windows that the detector has heard."""
        self._unread: Samples = np.zeros(0, np.int16)
        """Less than a window, between two appends."""
        self._loud = 0
        self._quiet = 0
        """Windows in a row."""

    def set_format(self, kind: str) -> None:
        """Sound comes in this format now; what is kept of another rate is dropped."""
        if self.rate != SAMPLE_RATES[kind]:
            self.clear()
            self.rate = SAMPLE_RATES[kind]

    @property
    def kept_ms(self) -> float:
        """What a commit would take."""
        return len(self._kept) * WINDOW_MS + self._unread_ms

    @property
    def _unread_ms(self) -> float:
        return len(self._unread) * 1_000 / self.rate

    def append(self, samples: Samples, detection: Json | None) -> Iterator[Heard]:
        """Take sound and tell what the detector hears, window by window; the caller may commit
        between two findings. Without `detection` only steps are told."""
        self._unread = np.concatenate([self._unread, samples])
        window = self.rate * WINDOW_MS // 1_000
        while len(self._unread) >= window:
            now, self._unread = self._unread[:window], self._unread[window:]
            self._kept.append(now)
            self.now_ms += WINDOW_MS
            yield from self._listen(now, detection)
            if detection is not None and not self.speaking:
                self._keep(KEPT_MS)

    def take(self, *, all: bool = True) -> Sound:
        """Empty the buffer and wait for new speech. Without `all`, what the detector has not heard
        yet stays: it comes after the speech that just ended."""
        end_ms = self.now_ms + (self._unread_ms if all else 0.0)
        pieces = [*self._kept, *([self._unread] if all else [])]
        samples = np.concatenate(pieces) if pieces else np.zeros(0, np.int16)
        start_ms = end_ms - len(samples) * 1_000 / self.rate
        self.now_ms = end_ms
        self._reset(np.zeros(0, np.int16) if all else self._unread)
        return Sound(samples, self.rate, round(start_ms), round(end_ms))

    def clear(self) -> None:
        """Drop what was not committed; session time goes on."""
        self.take()

    def _keep(self, ms: int) -> None:
        """Keep the newest sound only."""
        while len(self._kept) * WINDOW_MS > ms:
            self._kept.popleft()

    def _reset(self, rest: Samples) -> None:
        self._kept.clear()
        self._unread = rest
        self.speaking, self._loud, self._quiet = False, 0, 0

    def _listen(self, window: Samples, detection: Json | None) -> Iterator[Heard]:
        wave = window.astype(np.float64)
        rms = float(np.sqrt(wave @ wave / len(wave)))
        probability = rms / (rms + HALF_SURE_RMS)
        threshold = 0.5 if detection is None else _number(detection.get("threshold"), 0.5)
        loud = probability >= threshold
        if detection is not None:
            yield from self._turn(loud, detection)
        if round(self.now_ms) % 100 < WINDOW_MS:
            yield Heard("step", round(self.now_ms), loud)

    def _turn(self, loud: bool, detection: Json) -> Iterator[Heard]:
        """The beginning or the end of speech, if this window decides it."""
        self._loud = self._loud + 1 if loud else 0
        self._quiet = 0 if loud else self._quiet + 1
        if not self.speaking and self._loud >= ONSET_WINDOWS:
            self.speaking = True
            padding = whole(detection.get("prefix_padding_ms"), 300)
            self._keep(padding + ONSET_WINDOWS * WINDOW_MS)
            yield Heard("started", round(self.now_ms - len(self._kept) * WINDOW_MS), True)
        elif self.speaking and self._quiet * WINDOW_MS >= _silence_ms(detection):
            yield Heard("stopped", round(self.now_ms))


def _silence_ms(detection: Json) -> int:
    """How long silence ends a turn; a semantic detector is given the usual time by its owner."""
    return max(WINDOW_MS, whole(detection.get("silence_duration_ms"), 500))


def _number(value: object, otherwise: float) -> float:
    return float(value) if isinstance(value, (int, float)) else otherwise
