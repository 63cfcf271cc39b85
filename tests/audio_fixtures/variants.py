"""Seeded variants of the sounds that decide a barge-in: at least 50 of each class.

Lives here: the full factorial of speed x SNR x onset for cough, keyboard, mm-hm, stop, wait, no
and echo, and how one variant is rendered. Owned by `tests/audio_fixtures`; files are never written.
The same class and index give the same bytes on every machine (see `dsp`).

Speed: words come from clips spoken at five tempos, other sounds are resampled. Voice: words are
resampled to four pitches, sounds change their seed. Background: room tone or fan, from the first
sample to the last, at the SNR below the event's RMS.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Literal, get_args

import numpy as np

from tests.audio_fixtures import sounds
from tests.audio_fixtures.dsp import Pcm, at_level, mix, pcm16, resample, rms, samples
from tests.audio_fixtures.echo import EchoPath
from tests.audio_fixtures.fixture import committed
from tests.support.audio import Span

VariantClass = Literal["cough", "keyboard", "mm_hm", "stop", "wait", "no", "echo"]
VARIANT_CLASSES: tuple[VariantClass, ...] = get_args(VariantClass)

SNRS_DB = (20, 10, 5)
ONSETS_MS = (300, 520, 810, 1170)
TEMPOS = (80, 90, 100, 112, 125)
SPEEDS = ((4, 5), (9, 10), (1, 1), (9, 8), (5, 4))
PITCHES = {"joe": (1, 1), "low": (8, 7), "high": (8, 9), "higher": (5, 6)}
ECHO_GAINS_DB = (-12, -20, -26, -32, -40)
ECHO_DELAYS_MS = (60, 110, 180, 240, 300)
AGENT_LINES = ("agent_hours", "agent_booked", "agent_moment")
EVENT_DBFS: dict[VariantClass, float] = {
    "cough": -20,
    "keyboard": -30,
    "mm_hm": -24,
    "stop": -20,
    "wait": -20,
    "no": -20,
}
PEAK = 24_000
TAIL_MS = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One rendering recipe. `speed` > 1 is slower (longer), as a Piper length scale is.

    `transcript` is what a person says ("" for noises and echo, which are nobody's words).
    For echo: `gain_db`, `delay_ms` and the agent line that leaks; else 0, 0 and "".
    """

    kind: VariantClass
    index: int
    speed: float
    snr_db: int
    onset_ms: int
    voice: str
    background: Literal["room", "fan"]
    seed: int
    transcript: str = ""
    gain_db: int = 0
    delay_ms: int = 0
    agent_line: str = ""

    @property
    def name(self) -> str:
        """Stable id for test reports, e.g. `cough-007`."""
        return f"{self.kind}-{self.index:03}"

    def event(self) -> Pcm:
        """The sound alone, without background or onset."""
        return _event(self)

    def span(self, at: int = 0) -> Span:
        """Where the event lies in `render(at=at)`."""
        start = at + samples(self.onset_ms)
        return Span(start, start + self.event().size)

    def reference(self) -> Pcm:
        """Echo only: what the agent played, to start at sample `at + onset` (empty otherwise)."""
        return committed(self.agent_line).pcm if self.agent_line else sounds.silence(0)

    def echo_path(self) -> EchoPath:
        """Echo only: the leak itself, for a test that feeds it the agent's real output."""
        if self.kind != "echo":
            raise ValueError(f"{self.name}: only echo variants have an echo path")
        return EchoPath(delay_ms=self.delay_ms, gain_db=self.gain_db, seed=self.seed)

    def render(self, *, at: int = 0, length: int | None = None, over: Pcm | None = None) -> Pcm:
        """The caller's track: background throughout, the event `onset_ms` after sample `at`.

        `over` is mixed in from sample 0 (what the caller said before). Without `length` the track
        ends 900 ms after the event or with `over`, whichever is later.
        """
        event, span = self.event(), self.span(at)
        speech = np.zeros(0, dtype=np.int16) if over is None else over
        total = max(span.end + samples(TAIL_MS), speech.size) if length is None else length
        level = 20 * float(np.log10(max(rms(event), 1.0) / 32768)) - self.snr_db
        make = sounds.room_tone if self.background == "room" else sounds.fan
        bed = make(total, self.seed + 7)
        return mix([(at_level(bed, level), 0), (event, span.start), (speech, 0)], total)


def variants(kind: VariantClass) -> list[Variant]:
    """All variants of a class, in a fixed order: 60, and 75 for echo.

    Raises ValueError for an unknown class.
    """
    if kind not in VARIANT_CLASSES:
        raise ValueError(f"kind {kind!r}: expected one of {', '.join(VARIANT_CLASSES)}")
    return list(_echoes() if kind == "echo" else _table(kind))


def _table(kind: VariantClass) -> tuple[Variant, ...]:
    grid = product(range(len(SPEEDS)), SNRS_DB, ONSETS_MS)
    voices = tuple(PITCHES)
    first_seed = 1_000_000 * (VARIANT_CLASSES.index(kind) + 1)
    return tuple(
        Variant(
            kind=kind,
            index=index,
            speed=TEMPOS[speed] / 100,
            snr_db=snr,
            onset_ms=onset,
            voice=voices[(index + speed) % len(voices)],
            background="fan" if (index // 2 + speed) % 2 else "room",
            seed=first_seed + 1000 * index,
            transcript=_words(kind, index),
        )
        for index, (speed, snr, onset) in enumerate(grid)
    )


def _echoes() -> tuple[Variant, ...]:
    grid = product(ECHO_GAINS_DB, ECHO_DELAYS_MS, SNRS_DB)
    return tuple(
        Variant(
            kind="echo",
            index=index,
            speed=1.0,
            snr_db=snr,
            onset_ms=ONSETS_MS[index % len(ONSETS_MS)],
            voice="joe",
            background="fan" if index % 2 else "room",
            seed=9_000_000 + 1000 * index,
            gain_db=gain_db,
            delay_ms=delay,
            agent_line=AGENT_LINES[index % len(AGENT_LINES)],
        )
        for index, (gain_db, delay, snr) in enumerate(grid)
    )


def _words(kind: VariantClass, index: int) -> str:
    """What is said: the word itself; of three mm-hms two are hummed and one is "uh huh"."""
    if kind == "mm_hm":
        return "uh huh" if index % 3 == 2 else "mm hm"
    return kind if kind in ("stop", "wait", "no") else ""


def _noise(make: Callable[[int], Pcm], variant: Variant) -> Pcm:
    up, down = SPEEDS[TEMPOS.index(round(100 * variant.speed))]
    return resample(make(variant.seed), up, down)


def _spoken(clip: str, variant: Variant) -> Pcm:
    up, down = PITCHES[variant.voice]
    name = f"{clip}_{round(100 * variant.speed)}"
    return resample(committed(name).pcm, up, down)


@lru_cache(maxsize=64)
def _event(variant: Variant) -> Pcm:
    match variant.kind:
        case "cough":
            sound = _noise(sounds.cough, variant)
        case "keyboard":
            sound = _noise(sounds.keyboard, variant)
        case "mm_hm" if variant.transcript == "uh huh":
            sound = _spoken("uh_huh", variant)
        case "mm_hm":
            sound = _noise(sounds.hummed_mm_hm, variant)
        case "stop" | "wait" | "no":
            sound = _spoken(variant.kind, variant)
        case "echo":
            return variant.echo_path().feed_all(variant.reference())
    return pcm16(at_level(sound, EVENT_DBFS[variant.kind], PEAK))
