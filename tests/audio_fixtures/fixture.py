"""What a fixture is, and how a committed one is read and written.

Lives here: `Fixture`, its provenance, and the WAV + TOML pair on disk. Owned by
`tests/audio_fixtures`. Holds no sound of its own and synthesises nothing.
"""

import hashlib
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import soundfile as sf

from tests.audio_fixtures.dsp import RATE, Pcm
from tests.support.audio import Span

ROOT = Path(__file__).parent
Kind = Literal["human", "voice", "scene"]
FOLDERS: dict[Kind, Path] = {"human": ROOT / "human", "voice": ROOT / "voice"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """Where a fixture comes from.

    `safe`: the transcript is certain enough to count in a word error rate.
    `sha256` is of the WAV file ("" for a scene, which exists only in memory); `source_sha256` of
    the upstream file it was made from. `values` holds a scene's numbers (dB, ms, ppm).
    """

    kind: Kind
    licence: str
    source: str
    safe: bool = True
    note: str = ""
    sha256: str = ""
    source_sha256: str = ""
    values: tuple[tuple[str, float], ...] = ()

    def value(self, name: str) -> float:
        """A scene's number. Raises KeyError naming what there is."""
        try:
            return dict(self.values)[name]
        except KeyError:
            raise KeyError(f"{name!r}; this fixture has {dict(self.values)}") from None


@dataclass(frozen=True, slots=True)
class Fixture:
    """Mono int16 sound with what is said in it and where.

    `spans` are in samples of `rate`, ordered, disjoint; a pause under 240 ms lies inside a span.
    Noise fixtures have no transcript, and their spans mark the event instead.
    """

    name: str
    pcm: Pcm
    transcript: str
    spans: tuple[Span, ...]
    meta: Meta
    rate: int = RATE

    @property
    def seconds(self) -> float:
        """Length."""
        return self.pcm.size / self.rate


def wav_path(name: str) -> Path | None:
    """The committed WAV of that name, or None."""
    for folder in (ROOT, *FOLDERS.values()):
        path = folder / f"{name}.wav"
        if path.is_file():
            return path
    return None


@lru_cache(maxsize=128)
def committed(name: str) -> Fixture:
    """Read a committed fixture; its samples are read-only.

    Raises KeyError for an unknown name and ValueError when the sound is not the one that its
    TOML describes.
    """
    path = wav_path(name)
    if path is None:
        raise KeyError(f"no committed fixture {name!r} under {ROOT.name}/")
    facts = tomllib.loads(path.with_suffix(".toml").read_text(encoding="utf-8"))
    if hashlib.sha256(path.read_bytes()).hexdigest() != facts["sha256"]:
        raise ValueError(f"{path.name}: sha256 differs from its .toml; restore it from git")
    data, rate = sf.read(path, dtype="int16")
    pcm = np.asarray(data, dtype=np.int16)
    if rate != RATE or pcm.ndim != 1 or pcm.size != facts["samples"]:
        raise ValueError(f"{path.name}: expected {facts['samples']} mono samples at {RATE} Hz")
    pcm.flags.writeable = False
    meta = Meta(
        kind=facts["kind"],
        licence=facts["licence"],
        source=facts["source"],
        safe=facts["safe"],
        note=facts["note"],
        sha256=facts["sha256"],
        source_sha256=facts["source_sha256"],
    )
    spans = tuple(Span(start, end) for start, end in facts["spans"])
    return Fixture(name, pcm, facts["transcript"], spans, meta)


def toml_text(fixture: Fixture) -> str:
    """The TOML that `committed` reads back."""

    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    meta = fixture.meta
    spans = ", ".join(f"[{span.start}, {span.end}]" for span in fixture.spans)
    return "".join(
        f"{key} = {value}\n"
        for key, value in {
            "transcript": quoted(fixture.transcript),
            "safe": str(meta.safe).lower(),
            "spans": f"[{spans}]",
            "samples": fixture.pcm.size,
            "kind": quoted(meta.kind),
            "licence": quoted(meta.licence),
            "source": quoted(meta.source),
            "source_sha256": quoted(meta.source_sha256),
            "sha256": quoted(meta.sha256),
            "note": quoted(meta.note),
        }.items()
    )
