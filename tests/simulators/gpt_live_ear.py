"""How the simulated Live model hears its caller: speech by loudness, words by the script.

Pure; fed blocks of 100 ms. Words are told as the real model tells them: with the times of the
frames of 200 ms from where they began to where they ended. Owned by `gpt_live_session`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tests.simulators.tone_words import Samples

STEP_MS = 100
FRAME_MS = 200
WINDOW_MS = 20
LOUD_RMS = 300.0
ONSET_WINDOWS = 3
BEFORE_STEPS = 2
"""What is kept from before the onset."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of a transcript, as it goes out."""

    text: str
    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class Turn:
    """What the caller said until they were silent for long enough; `untold`: words of it that no
    frame told."""

    text: str
    untold: tuple[str, ...]


class Ear:
    """`read` makes words of sound; `silence_ms` of quiet end a turn."""

    def __init__(self, read: Callable[[Samples, int], str], rate: int, silence_ms: int) -> None:
        self._read = read
        self._rate = rate
        self._silence_ms = silence_ms
        self._before: deque[Samples] = deque(maxlen=BEFORE_STEPS)
        self._sound: list[Samples] = []
        self._loud = 0
        self._quiet_ms = 0
        self._told = 0
        self._whole = 0
        """Samples of this turn up to the last quiet: no word in them goes on."""
        self._clock_ms = 0
        self._from_ms = 0
        """Where the words that are told next began."""
        self.spoken_ms = 0
        """How long the caller has been speaking, since the onset."""
        self.loud = False
        """The last block had speech in it."""

    @property
    def speaking(self) -> bool:
        return bool(self._sound)

    @property
    def words(self) -> str:
        """What was heard of this turn so far."""
        return self._words(len(self._sound) * self._rate)

    def _words(self, samples: int) -> str:
        if not self._sound:
            return ""
        return self._read(np.concatenate(self._sound)[:samples], self._rate)

    def hear(self, block: Samples) -> Turn | None:
        """The next 100 ms; a turn when it is over."""
        self.loud = False
        before_ms, self._clock_ms = self._quiet_ms, self._clock_ms + STEP_MS
        heard = sum(map(len, self._sound))
        for window in np.split(block, STEP_MS // WINDOW_MS):
            heard += len(window)
            rms = float(np.sqrt(np.mean(np.square(window, dtype=np.float64))))
            self._loud = self._loud + 1 if rms >= LOUD_RMS else 0
            self._quiet_ms = 0 if self._loud else self._quiet_ms + WINDOW_MS
            self._whole = self._whole if self._loud else heard
            enough = 1 if self.speaking else ONSET_WINDOWS
            self.loud = self.loud or self._loud >= enough
        if self.loud and (before_ms >= FRAME_MS or not self.speaking):
            self._from_ms = (self._clock_ms - STEP_MS) // FRAME_MS * FRAME_MS
        if not self.speaking:
            if self.loud:
                self._sound, self._whole = [*self._before, block], 0
                self.spoken_ms = STEP_MS
            self._before.append(block)
            return None
        self._sound.append(block)
        self.spoken_ms += STEP_MS
        return self._end() if self._quiet_ms >= self._silence_ms else None

    def frame(self, end_ms: int) -> Fragment | None:
        """The words that ended in the frame up to `end_ms`, if any."""
        words = self._words(self._whole).split()
        new = words[self._told :]
        self._told = max(self._told, len(words))
        found = fragment(new, self._from_ms, end_ms)
        self._from_ms = end_ms if found else self._from_ms
        return found

    def _end(self) -> Turn:
        words = self.words
        turn = Turn(words, tuple(words.split()[self._told :]))
        self._sound, self._told, self.spoken_ms = [], 0, 0
        self._before.clear()
        return turn


class Voice:
    """What the model says, in blocks of 100 ms, silence where it says nothing."""

    def __init__(self, speak: Callable[[str, int], Samples], rate: int) -> None:
        self._speak = speak
        self._rate = rate
        self._sound: Samples = np.zeros(0, np.int16)
        self._words: list[str] = []
        self._length = 0
        """Of the whole utterance, in samples."""
        self._frame: list[str] = []
        self._told = 0

    @property
    def speaking(self) -> bool:
        return len(self._sound) > 0

    def say(self, text: str) -> None:
        """Begin an utterance; there must be none."""
        self._sound = self._speak(text, self._rate)
        self._length, self._told = len(self._sound), 0
        self._words = text.split() if self._length else []

    def play(self, sound: Samples) -> None:
        """Sound without words (a fixture)."""
        self._sound, self._length, self._words = sound, len(sound), []

    def stop(self) -> None:
        """Fall silent in mid-word."""
        self._sound, self._words = np.zeros(0, np.int16), []

    def block(self) -> Samples:
        """The next 100 ms."""
        size = self._rate * STEP_MS // 1_000
        now, self._sound = self._sound[:size], self._sound[size:]
        played = self._length - len(self._sound)
        while self._told < len(self._words) and self._told * self._length < played * len(
            self._words
        ):
            self._frame.append(self._words[self._told])
            self._told += 1
        return np.concatenate([now, np.zeros(size - len(now), np.int16)])

    def frame(self, end_ms: int) -> Fragment | None:
        """The words that began in the frame up to `end_ms`, if any."""
        new, self._frame = self._frame, []
        return fragment(new, end_ms - FRAME_MS, end_ms)


def fragment(words: Sequence[str], start_ms: int, end_ms: int) -> Fragment | None:
    """Words with the times of their frames; each has the space before it, so that fragments are
    joined as they come."""
    if not words:
        return None
    return Fragment("".join(f" {word}" for word in words), start_ms, end_ms)
