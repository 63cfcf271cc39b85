"""The door to the fixtures: `fixture(name)`, the sets, and the forms other lines need.

Lives here: lookup by name, the 8 kHz and 48 kHz forms. Owned by `tests/audio_fixtures`; what it
returns is shared and read-only. Derived rates are made when asked, never committed.

Human recordings are `jfk` and the files in human/, voice clips the files in voice/ (`make.py`),
scenes the names of `scenes.SCENES`, variants come from `variants.variants(kind)`.
"""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from tests.audio_fixtures.dsp import RATE, Pcm, join, mulaw_round_trip, resample, write_wav
from tests.audio_fixtures.fixture import FOLDERS, Fixture, Kind, Meta, committed, wav_path
from tests.audio_fixtures.scenes import SCENES
from tests.audio_fixtures.variants import VARIANT_CLASSES, Variant, VariantClass, variants
from tests.support.audio import Span

__all__ = [
    "BROWSER_RATE",
    "PHONE_RATE",
    "VARIANT_CLASSES",
    "Fixture",
    "Kind",
    "Meta",
    "Span",
    "Variant",
    "VariantClass",
    "browser_wav",
    "dialogue",
    "fixture",
    "human_set",
    "names",
    "phone",
    "variants",
]

PHONE_RATE = 8_000
BROWSER_RATE = 48_000


def names(kind: Kind) -> list[str]:
    """All fixture names of a kind, sorted."""
    if kind == "scene":
        return sorted(SCENES)
    found = {path.stem for path in FOLDERS[kind].glob("*.wav")}
    return sorted(found | {"jfk"} if kind == "human" else found)


@lru_cache(maxsize=64)
def fixture(name: str) -> Fixture:
    """A fixture by name: committed sound first, else a scene. 16 kHz, read-only samples.

    Raises KeyError with the known names.
    """
    if wav_path(name) is not None:
        return committed(name)
    if name not in SCENES:
        known = ", ".join(kind_name for kind in FOLDERS for kind_name in names(kind))
        raise KeyError(f"no fixture {name!r}; scenes: {', '.join(SCENES)}; files: {known}")
    made = SCENES[name]()
    made.pcm.flags.writeable = False
    return made


def human_set(*, safe: bool = True) -> list[Fixture]:
    """The free human recordings; `safe` leaves out those without a certain transcript."""
    found = [fixture(name) for name in names("human")]
    return [item for item in found if item.meta.safe or not safe]


def dialogue(*turns: str, gap_ms: int = 0, lead_ms: int = 0) -> Fixture:
    """Clips one after the other as one caller track, `gap_ms` of silence after each.

    For a scripted caller who does not listen; a test that waits for answers plays the clips itself.
    """
    parts: list[Pcm | int] = [lead_ms * RATE // 1000]
    spans: list[Span] = []
    at = lead_ms * RATE // 1000
    for turn in turns:
        clip = fixture(turn)
        spans += [Span(at + span.start, at + span.end) for span in clip.spans]
        parts += [clip.pcm, gap_ms * RATE // 1000]
        at += clip.pcm.size + gap_ms * RATE // 1000
    text = " ".join(fixture(turn).transcript for turn in turns)
    meta = Meta(kind="scene", licence="as its clips", source="dialogue: " + ", ".join(turns))
    return Fixture("+".join(turns), join(parts), text, tuple(spans), meta)


def _at_rate(source: Fixture, rate: int, pcm: Pcm) -> Fixture:
    spans = tuple(
        Span(span.start * rate // source.rate, -(-span.end * rate // source.rate))
        for span in source.spans
    )
    return replace(source, pcm=pcm, rate=rate, spans=spans)


def phone(source: Fixture, *, mulaw: bool = True) -> Fixture:
    """The fixture as a phone line carries it: 8 kHz, through G.711 mu-law unless told not to.

    Raises ValueError for a fixture that is not at 16 kHz.
    """
    if source.rate != RATE:
        raise ValueError(f"{source.name}: rate {source.rate}, expected {RATE}")
    narrow = resample(source.pcm, 1, 2)
    pcm = mulaw_round_trip(narrow) if mulaw else narrow
    return _at_rate(replace(source, name=f"{source.name}@8k"), PHONE_RATE, pcm)


def browser_wav(source: Fixture, path: Path, *, lead_ms: int = 1000, tail_ms: int = 0) -> Fixture:
    """Write the fixture for a browser's fake microphone: 48 kHz mono, silence first.

    Returns what was written, its spans moved. `tail_ms` matters because Chromium loops the file
    unless it is told `%noloop`.
    """
    lead = lead_ms * BROWSER_RATE // 1000
    wide = resample(source.pcm, BROWSER_RATE // source.rate, 1)
    pcm = np.concatenate(
        [
            np.zeros(lead, dtype=np.int16),
            wide,
            np.zeros(tail_ms * BROWSER_RATE // 1000, dtype=np.int16),
        ]
    )
    written = _at_rate(replace(source, name=f"{source.name}@48k"), BROWSER_RATE, pcm)
    moved = tuple(Span(span.start + lead, span.end + lead) for span in written.spans)
    write_wav(path, pcm, BROWSER_RATE)
    return replace(written, spans=moved)
