"""How the simulated Gemini hears: sound of any rate, cut into turns by energy or by the client.

Time is the count of samples that came, never a clock: a client that sends nothing is not silent,
it is absent, and its turn stays open (protocols/gemini-live 4: audioStreamEnd).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from tests.simulators.gemini_live_rules import Fields, need
from tests.simulators.tone_words import Samples

RATE = 16_000
FRAME = RATE // 50
LOUD = 400.0
"""Root mean square above which 20 ms count as voice."""
START_FRAMES = 3
PADDING_FRAMES = 15
EVERY_FRAMES = 5
Heard = Literal["started", "stopped", "speaking", "silent"]


def samples_of(blob: Fields) -> Samples:
    """The sound of an audio blob at 16 kHz. Raises Refusal."""
    named = re.fullmatch(r"audio/pcm(?:;\s*rate=(\d+))?", blob["mimeType"])
    need(named, f"audio.mimeType: {blob['mimeType']} is not supported")
    rate = int(named[1] or RATE) if named else RATE
    need(4_000 <= rate <= 96_000, f"audio.mimeType: rate {rate} is not supported")
    need(len(blob["data"]) % 2 == 0, "audio.data: half a sample")
    pcm = np.frombuffer(blob["data"], "<i2").astype(np.int16)
    if rate == RATE or not len(pcm):
        return pcm
    count = len(pcm) * RATE // rate
    at = np.arange(count) * (rate / RATE)
    resampled: Samples = np.interp(at, np.arange(len(pcm)), pcm).astype(np.int16)
    return resampled


@dataclass(slots=True)
class Ear:
    """Collects the caller's sound of one turn at a time.

    silence_ms  of quiet ends a turn
    manual      the client says where a turn begins and ends; sound outside is not heard
    open        a turn is being heard
    samples     that came so far, at 16 kHz
    """

    silence_ms: int
    manual: bool
    open: bool = False
    samples: int = 0
    _rest: Samples = field(default_factory=lambda: np.zeros(0, np.int16))
    _turn: list[Samples] = field(default_factory=list)
    _before: deque[Samples] = field(default_factory=lambda: deque(maxlen=PADDING_FRAMES))
    _loud: int = 0
    _quiet: int = 0

    def hear(self, pcm: Samples) -> Iterator[Heard]:
        """Take sound; says what happened, as it happens, and each 100 ms whether a turn is open."""
        whole = np.concatenate([self._rest, pcm])
        used = len(whole) // FRAME * FRAME
        self._rest = whole[used:]
        for at in range(0, used, FRAME):
            change = self._frame(whole[at : at + FRAME])
            self.samples += FRAME
            if change is not None:
                yield change
            if self.samples // FRAME % EVERY_FRAMES == 0:
                yield "speaking" if self.open else "silent"

    def begin(self) -> None:
        """The client says that the user speaks from here."""
        self.open = True

    def end(self) -> None:
        """The turn is over, whatever comes next."""
        if self.open:
            self._turn.append(self._rest)
        self._rest = np.zeros(0, np.int16)
        self.open = False
        self._loud = self._quiet = 0

    def take(self) -> Samples:
        """The sound of the turn that is over."""
        turn = self._turn
        self._turn = []
        return np.concatenate(turn) if turn else np.zeros(0, np.int16)

    def _frame(self, frame: Samples) -> Heard | None:
        if self.open:
            self._turn.append(frame)
        if self.manual:
            return None
        voiced = float(np.sqrt(np.mean(frame.astype(np.float64) ** 2))) > LOUD
        if self.open:
            self._quiet = 0 if voiced else self._quiet + 1
            if self._quiet * 20 < self.silence_ms:
                return None
            self.open = False
            self._loud = self._quiet = 0
            return "stopped"
        self._before.append(frame)
        self._loud = self._loud + 1 if voiced else 0
        if self._loud < START_FRAMES:
            return None
        self.open = True
        self._turn = list(self._before)
        self._before.clear()
        return "started"
