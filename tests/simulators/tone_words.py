"""Words as tones: speech that a simulator can read without a model, to the word.

Each word of the codebook is a chord of two tones that lasts 240 ms, with 40 ms of quiet behind it.
So a test can say exactly which words were lost, came twice, or were heard; and both sides of a
call can be read, at any sample rate, after resampling and mu-law. Words outside the codebook are
spelled by a hash, so any text can be spoken, but only known words are read back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.int16]

LOW = (520, 620, 740, 880, 1_040)
HIGH = (1_240, 1_480, 1_760, 2_100, 2_500, 2_980)
WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliet"),
    *("kilo", "lima", "mike", "november", "oscar", "papa", "quebec", "romeo", "sierra", "tango"),
)
"""Thirty words, one for each pair of tones."""
WORD_MS, GAP_MS = 240, 40
STEP_MS = WORD_MS + GAP_MS
LEVEL = 6_000


def words_of(text: str) -> list[str]:
    """The words of a text, lower case, without punctuation."""
    return re.findall(r"[a-z0-9']+", text.lower())


def speak(text: str, rate: int) -> Samples:
    """The sound of `text`: STEP_MS a word. Shape [samples]."""
    pieces = [_word(word, rate) for word in words_of(text)]
    return np.concatenate(pieces) if pieces else np.zeros(0, np.int16)


def read(pcm: Samples | bytes, rate: int) -> list[str]:
    """The codebook's words in `pcm`, in order; a word cut to less than about 100 ms is not read."""
    samples = np.frombuffer(pcm, np.int16) if isinstance(pcm, bytes) else pcm
    hop = rate // 50
    labels = [
        _label(samples[at : at + 2 * hop], rate)
        for at in range(0, max(0, len(samples) - 2 * hop + 1), hop)
    ]
    return _runs(labels)


def duration_ms(text: str) -> int:
    """How long `text` sounds."""
    return len(words_of(text)) * STEP_MS


def _pair(word: str) -> tuple[int, int]:
    at = WORDS.index(word) if word in WORDS else sum(map(ord, word)) % len(WORDS)
    return LOW[at // len(HIGH)], HIGH[at % len(HIGH)]


def _word(word: str, rate: int) -> Samples:
    low, high = _pair(word)
    time = np.arange(rate * WORD_MS // 1000) / rate
    wave = np.sin(2 * np.pi * low * time) + np.sin(2 * np.pi * high * time)
    edge = np.minimum(1.0, np.minimum(time, time[::-1]) / 0.008)
    gap = np.zeros(rate * GAP_MS // 1000)
    return np.concatenate([wave * edge * LEVEL, gap]).astype(np.int16)


def _label(window: Samples, rate: int) -> str:
    """The word in 40 ms of sound, "" for quiet or for what is no word."""
    wave = window.astype(np.float64)
    total = float(wave @ wave)
    if total / max(1, len(wave)) < 400.0**2:
        return ""
    time = np.arange(len(wave)) / rate
    power = {
        tone: abs(np.exp(-2j * np.pi * tone * time) @ wave) ** 2 * 2 / len(wave)
        for tone in (*LOW, *HIGH)
    }
    low, high = max(LOW, key=power.__getitem__), max(HIGH, key=power.__getitem__)
    if power[low] + power[high] < 0.6 * total or min(power[low], power[high]) < 0.1 * total:
        return ""
    at = LOW.index(low) * len(HIGH) + HIGH.index(high)
    return WORDS[at]


def _runs(labels: Sequence[str]) -> list[str]:
    """Words that hold for four windows (100 ms of sound), a new one after quiet or a change."""
    found: list[str] = []
    current, count = "", 0
    for label in labels:
        if label != current:
            current, count = label, 0
        count += 1
        if current and count == 4:
            found.append(current)
    return found
