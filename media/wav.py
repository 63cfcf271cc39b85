"""Audio files in and out: any format libsndfile knows, as mono int16 at the rate one wants.

Free functions, blocking: call them before a call starts or in a thread. Never touches a live
stream (see `recorder`).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import soundfile

from .errors import MediaError, MediaValueError
from .format import PIPELINE
from .pcm import Samples, downmix, to_int16
from .resample import Resampler

_BLOCK = 48_000
"""Frames read at a time: an hour of 48 kHz stereo must not lie in memory as floats."""


class AudioFileError(MediaError):
    """A file that cannot be read or written as audio; the message names it."""

    code = "ERR_AUDIO_FILE"


def read(path: Path | str, rate: int = PIPELINE.rate) -> Samples:
    """The whole file as mono int16 at `rate` Hz, channels averaged, no delay, shape [samples].

    WAV (8 to 32 bit, float, A-law, mu-law), FLAC, Ogg, MP3, AIFF and what else libsndfile reads.
    16-bit mono at `rate` comes out bit for bit. Raises AudioFileError for a missing, empty or
    unreadable file.
    """
    path = Path(path)
    if not path.is_file():
        raise AudioFileError(f"{path}: no such file")
    try:
        with soundfile.SoundFile(path) as file:
            resampler = Resampler(file.samplerate, rate, aligned=True)
            blocks = file.blocks(_BLOCK, dtype="float32", always_2d=True)
            parts = [resampler.feed(downmix(to_int16(block))) for block in blocks]
    except soundfile.SoundFileError as error:
        raise AudioFileError(f"{path}: not an audio file that can be read: {error}") from error
    except MediaValueError as error:
        raise AudioFileError(f"{path}: {error}") from error
    samples = np.concatenate([*parts, resampler.flush()])
    if not len(samples):
        raise AudioFileError(f"{path}: holds no audio")
    return samples


def write(path: Path | str, samples: Samples, rate: int = PIPELINE.rate) -> None:
    """A 16-bit WAV of mono [samples] or [samples, channels]. Raises AudioFileError."""
    try:
        soundfile.write(path, samples, rate, subtype="PCM_16", format="WAV")
    except (soundfile.SoundFileError, OSError) as error:
        raise AudioFileError(f"{path}: cannot be written: {error}") from error
