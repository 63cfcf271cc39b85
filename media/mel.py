"""Log-mel spectrograms as Whisper and smart-turn want them. numpy only.

Free functions on whole windows of 16 kHz audio; the filter bank is built once. Never decides how
long a window should be.

80 triangular filters on Slaney's mel scale (linear to 1 kHz, then logarithmic), area-normalised;
25 ms periodic Hann windows every 10 ms, centred with reflection; power; log10 with floor 1e-10;
clamped to 8 decades below the maximum; (x + 4) / 4. Radford et al., "Robust Speech Recognition via
Large-Scale Weak Supervision" (2022), 2.2; the scale after Slaney, "Auditory Toolbox" (1998).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .errors import MediaValueError
from .pcm import Floats, Samples, to_float

RATE = 16_000
BANDS = 80
HOP = 160
_WINDOW = 400
_SMART_TURN_SAMPLES = 8 * RATE


def whisper_mel(samples: Samples | Floats, frames: int) -> Floats:
    """Whisper's features, shape [80, frames]; silence is added behind up to `frames` x 10 ms.

    Raises MediaValueError when the audio is longer than that or `frames` is below 3.
    """
    if frames < 3:
        raise MediaValueError("frames", str(frames), "use at least 3 frames (30 ms)")
    wave = _wave(samples)
    if len(wave) > frames * HOP:
        given = f"{len(wave)} samples"
        raise MediaValueError("samples", given, f"cut to {frames * HOP} or ask for more frames")
    return _log_mel(np.pad(wave, (0, frames * HOP - len(wave))))


def smart_turn_mel(samples: Samples | Floats) -> Floats:
    """smart-turn's features, shape [80, 800]: the last 8 s, silence in front of shorter audio.

    The padded waveform is brought to zero mean and unit variance first.
    """
    wave = _wave(samples)[-_SMART_TURN_SAMPLES:]
    wave = np.pad(wave, (_SMART_TURN_SAMPLES - len(wave), 0))
    return _log_mel((wave - wave.mean()) / np.sqrt(wave.var() + np.float32(1e-7)))


def _wave(samples: Samples | Floats) -> Floats:
    if samples.ndim != 1:
        raise MediaValueError("samples", f"{samples.ndim} dimensions", "send mono (pcm.downmix)")
    if samples.dtype == np.int16:
        return to_float(samples.astype(np.int16, copy=False))
    return samples.astype(np.float32, copy=False)


def _hz_to_mel(hz: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    logarithmic = 15 + np.log(np.maximum(hz, 1_000) / 1_000) * 27 / np.log(6.4)
    mels: npt.NDArray[np.float64] = np.where(hz < 1_000, hz * 3 / 200, logarithmic)
    return mels


def _mel_to_hz(mels: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    logarithmic = 1_000 * np.exp((mels - 15) * np.log(6.4) / 27)
    hz: npt.NDArray[np.float64] = np.where(mels < 15, mels * 200 / 3, logarithmic)
    return hz


def _filters() -> npt.NDArray[np.float64]:
    """Shape [80, 201]: weight of each FFT bin in each band."""
    top = _hz_to_mel(np.array([RATE / 2.0]))[0]
    corners = _mel_to_hz(np.linspace(0, top, BANDS + 2))
    bins = np.linspace(0, RATE / 2, _WINDOW // 2 + 1)
    low, middle, high = corners[:-2, None], corners[1:-1, None], corners[2:, None]
    rising, falling = (bins - low) / (middle - low), (high - bins) / (high - middle)
    weights: npt.NDArray[np.float64] = np.maximum(0, np.minimum(rising, falling))
    return weights * 2 / (high - low)


_FILTERS = _filters()
_HANN = np.hanning(_WINDOW + 1)[:-1]


def _log_mel(wave: Floats) -> Floats:
    padded = np.pad(wave.astype(np.float64), _WINDOW // 2, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[::HOP][:-1]
    spectrum = np.fft.rfft(windows * _HANN, axis=-1)
    power = spectrum.real**2 + spectrum.imag**2
    logs = np.log10(np.maximum(_FILTERS @ power.T, 1e-10))
    logs = np.maximum(logs, logs.max() - 8)
    features: Floats = ((logs + 4) / 4).astype(np.float32)
    return features
