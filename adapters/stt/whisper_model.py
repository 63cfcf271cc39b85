"""Whisper on CTranslate2: one utterance of audio to text, with the guards a small model needs.

The only file that knows `ctranslate2`. One `WhisperModel` serves the whole process; its methods
run on the inference pool, never on the loop, and keep no state between calls, so the text depends
on the audio alone. It never decides what an utterance is.

Findings (findings/local-speech 4, spine-checks a): the encoder's cost goes with the window, so it
gets 12 s in place of Whisper's 30; below about 8 s tiny.en begins to loop; silence decodes as a
confident "you". Paper: Radford et al., "Robust Speech Recognition via Large-Scale Weak
Supervision" (2022).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from ...media.errors import MediaValueError
from ...media.mel import whisper_mel
from ...media.models import ModelMissing, locate
from ...media.pcm import Samples, dbfs
from .hum import is_hum

RATE = 16_000
LONGEST_S = 30
"""What one call of the model can take at all."""

SHORT_WINDOW_S = 12
NO_SPEECH = 0.6
"""Above this the text is dropped: OpenAI's own threshold."""

COMMAND_NO_SPEECH = 0.9
"""The same for `_COMMANDS`: a slow "stop" at 5 dB over a fan reaches 0.85, no cough or key of the
fixtures is ever read as one."""

DOUBTFUL_NO_SPEECH = 0.25
"""Above this a known phantom is dropped; a caller who says "thank you" scores far below."""

UNLIKELY_NO_SPEECH = 0.5
UNLIKELY_SCORE = -0.9
"""Text that is both, by no-speech rating and mean log probability per token, is dropped. Short
real words over noise reach 0.45 and -2.2; coughs and keys begin at 0.7."""

MARGIN = RATE * 4 // 10
"""Quiet audio kept around the part that sounds: Whisper rates long silence as no speech."""

QUIET_DBFS = -62.0
"""Audio whose loudest 100 ms stays below this holds no speech; the model is not asked."""

_PHANTOMS = frozenset(
    {
        "you",
        "bye",
        "thank you",
        "thanks for watching",
        "thank you for watching",
        "thank you very much",
        "thank you so much for watching",
        "please subscribe",
        "subscribe",
        "so",
        "the end",
    }
)
"""What Whisper writes over noise: subtitles of its training videos. Dropped only in doubt."""

_COMMANDS = frozenset({"stop", "wait", "no", "yes"})
"""Kept at any score, up to `COMMAND_NO_SPEECH`: over noise a shouted "stop" scores as low as a
phantom, and is never one."""

_HUMS = frozenset({"mm", "mhm", "mmhm", "mmhmm", "hm", "hmm", "uhhuh"})
"""Kept always: Whisper counts a hum as no speech, and a call must know it from a word."""

HUM = "Mm-hmm."
"""What a hum is written as, however it was misheard."""

MOST_HUM_WORDS = 2
"""A hum is misheard as at most this many words."""

_NOISE = re.compile(r"\[[^\]]*\]|\([^)]*\)|\*[^*]*\*|[♪♫]+")
_SPECIAL = re.compile(r"<\|[^|]*\|>")


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What the model wrote, before and beside our guards."""

    text: str
    no_speech: float
    score: float
    capped: bool


class WhisperModel:
    """A CTranslate2 Whisper folder, loaded. Thread-safe; two calls run at once.

    Raises media.models.ModelMissing when a file or the runtime is missing.
    """

    def __init__(self, folder: Path, *, inter_threads: int = 2, intra_threads: int = 1) -> None:
        for name in ("model.bin", "config.json"):
            if not (folder / name).is_file():
                raise ModelMissing(
                    f"whisper: {folder / name} is missing; give a CTranslate2 folder"
                )
        try:
            import ctranslate2
        except ImportError as error:
            raise ModelMissing(
                "whisper needs ctranslate2; pip install 'voxglove[local]'"
            ) from error
        self._ct2 = ctranslate2
        self._model = ctranslate2.models.Whisper(
            str(folder),
            device="cpu",
            compute_type="int8",
            inter_threads=inter_threads,
            intra_threads=intra_threads,
        )
        self._vocabulary = _vocabulary(folder)
        language = ["<|en|>", "<|transcribe|>"] if self._model.is_multilingual else []
        self._prompt = ["<|startoftranscript|>", *language, "<|notimestamps|>"]

    def warm(self) -> None:
        """Run once: the first call is about 70 ms slower than those after it."""
        self.hypothesis(np.zeros(RATE, np.int16), SHORT_WINDOW_S)

    def transcribe(self, samples: Samples) -> str:
        """Text of up to 30 s of 16 kHz audio; empty when nobody spoke.

        Raises MediaValueError for longer audio.
        """
        if len(samples) > LONGEST_S * RATE:
            raise MediaValueError("samples", f"{len(samples) / RATE:.1f} s", "cut to 30 s or less")
        if loudest_dbfs(samples) < QUIET_DBFS:
            return ""
        samples = sounding_part(samples)
        window = min(LONGEST_S, max(SHORT_WINDOW_S, int(len(samples) / RATE) + 2))
        heard = self.hypothesis(samples, window)
        if heard.capped and window < LONGEST_S:
            heard = self.hypothesis(samples, LONGEST_S)
        text = accepted(heard)
        if len(text.split()) <= MOST_HUM_WORDS and _plain(text) not in _COMMANDS:
            return HUM if is_hum(samples) else text
        return text

    def hypothesis(self, samples: Samples, window_s: int) -> Hypothesis:
        """One greedy pass over a window of `window_s` seconds, unguarded."""
        cap = token_cap(len(samples) / RATE)
        features = np.ascontiguousarray(whisper_mel(samples, window_s * 100)[None])
        result = self._model.generate(
            self._ct2.StorageView.from_array(features),
            [self._prompt],
            beam_size=1,
            sampling_temperature=0.0,
            max_length=2 * cap,  # the runtime keeps half of it for the prompt
            return_scores=True,
            return_no_speech_prob=True,
        )[0]
        ids: Sequence[int] = result.sequences_ids[0]
        text = detokenise([self._vocabulary[i] for i in ids])
        return Hypothesis(text, result.no_speech_prob, result.scores[0], len(ids) >= cap)


@lru_cache(maxsize=4)
def whisper_model(path: Path | None = None) -> WhisperModel:
    """The process's model: tiny.en from its locked package, or the CTranslate2 folder `path`."""
    if path is not None and path.is_dir():
        return WhisperModel(path)
    return WhisperModel(locate("whisper-tiny.en", path).parent)


def accepted(heard: Hypothesis) -> str:
    """The text a caller may be shown: no noise marks, no loops, nothing written over silence."""
    text = one_cycle(" ".join(_NOISE.sub(" ", heard.text).split()))
    plain = _plain(text)
    if plain in _HUMS:
        return text
    limit = COMMAND_NO_SPEECH if plain in _COMMANDS else NO_SPEECH
    if heard.no_speech > limit or not plain:
        return ""
    phantom = heard.no_speech > DOUBTFUL_NO_SPEECH and plain in _PHANTOMS
    unlikely = heard.no_speech > UNLIKELY_NO_SPEECH and heard.score < UNLIKELY_SCORE
    return "" if phantom or (unlikely and plain not in _COMMANDS) else text


def one_cycle(text: str) -> str:
    """One round of a text that is a phrase said three times or more, as a looping model does.

    Up to four words may follow as the beginning of one more round. Two rounds may be meant
    ("bye bye"), so they stay.
    """
    words = text.split()
    plain = [_plain(word) for word in words]
    for size in range(1, len(words) // 3 + 1):
        cycle = plain[:size]
        if all(word == cycle[place % size] for place, word in enumerate(plain)):
            return " ".join(words[:size])
    return text


def token_cap(seconds: float) -> int:
    """Most tokens that `seconds` of speech can have: beyond that the model loops."""
    return min(224, 12 + round(8 * seconds))


def sounding_part(samples: Samples) -> Samples:
    """`samples` without quiet beyond `MARGIN` at either end.

    The gate sends all audio while the agent speaks, so a short answer may come behind many seconds
    of room. Quiet means 35 dB below the loudest 100 ms. Where the room itself is louder than that,
    or nobody pauses, nothing is left out: a quiet word must not be taken for room.
    """
    size = RATE // 50
    count = len(samples) // size
    if count * size <= 2 * MARGIN:
        return samples
    frames = samples[: count * size].reshape(count, size).astype(np.float64)
    power = np.convolve((frames**2).mean(axis=1), np.full(5, 0.2), mode="same")
    floor, loud = float(np.percentile(power, 20)), float(power.max())
    quiet = loud * 10**-3.5
    if 2 * floor > quiet:
        return samples
    sounding = np.flatnonzero(power > quiet)
    start = int(sounding[0]) * size - MARGIN
    return samples[max(0, start) : int(sounding[-1] + 1) * size + MARGIN]


def loudest_dbfs(samples: Samples) -> float:
    """Level of the loudest 100 ms."""
    size = RATE // 10
    pieces = [samples[at : at + size] for at in range(0, max(len(samples), 1), size)]
    return max(dbfs(piece) for piece in pieces)


def detokenise(tokens: Sequence[str]) -> str:
    """Text of byte-level BPE tokens; special tokens are left out.

    Every character of a token stands for one byte (Radford et al., "Language Models are
    Unsupervised Multitask Learners", 2019), so a letter may be spread over two tokens.
    """
    joined = "".join(token for token in tokens if not _SPECIAL.fullmatch(token))
    data = bytes(_BYTES[char] for char in joined if char in _BYTES)
    return data.decode("utf-8", errors="replace").strip()


def _byte_alphabet() -> dict[str, int]:
    """Printable Latin-1 stands for itself; every other byte for a character from 256 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    own = {chr(byte): byte for byte in printable}
    return own | {chr(256 + place): byte for place, byte in enumerate(others)}


_BYTES = _byte_alphabet()


def _vocabulary(folder: Path) -> list[str]:
    """Token texts by id, from either form CTranslate2 writes."""
    listed = folder / "vocabulary.json"
    if listed.is_file():
        found: list[str] = json.loads(listed.read_text("utf-8"))
        return found
    plain = folder / "vocabulary.txt"
    if plain.is_file():
        return plain.read_text("utf-8").removesuffix("\n").split("\n")
    raise ModelMissing(f"whisper: {folder} holds no vocabulary; give a CTranslate2 folder")


def _plain(text: str) -> str:
    return "".join(char for char in text.lower() if char.isalnum() or char == " ").strip()
