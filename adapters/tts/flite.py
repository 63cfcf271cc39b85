"""Debian's `flite` as the voice of last resort: small, quick, understandable, not pretty.

The only file that starts the program. One `FliteVoice` serves the process and is used through
`LocalTts`; the program runs on the inference pool, one process per sentence, bounded by a
deadline. Text goes in as an argument, never through a shell.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from ...media import wav
from ...media.errors import MediaValueError
from ...media.format import AudioFormat
from ...media.inference import Jobs
from ...media.models import ModelMissing
from ...media.pcm import samples_of
from ..errors import ProviderRefused, ProviderStalled
from .local import Clip, LocalTts, aligned, trimmed

DEADLINE_S = 10.0
VOICES = ("slt", "awb", "rms", "kal16")
"""The voices of Debian's package that speak at 16 kHz."""


class FliteVoice:
    """Raises media.models.ModelMissing where flite is not installed, MediaValueError for a voice
    that it does not have at 16 kHz."""

    def __init__(self, voice: str = "slt", *, program: str | None = None) -> None:
        found = program or shutil.which("flite")
        if found is None:
            raise ModelMissing("flite is not installed; apt-get install flite, or choose piper")
        if voice not in VOICES:
            raise MediaValueError("voice", repr(voice), f"use one of {', '.join(VOICES)}")
        self._program = found
        self._voice = voice
        self._format = AudioFormat(16_000)

    @property
    def name(self) -> str:
        return "flite"

    @property
    def format(self) -> AudioFormat:
        return self._format

    def synthesise(self, text: str) -> Clip:
        """Raises ProviderStalled past the deadline, ProviderRefused when flite fails."""
        spoken = " ".join(text.replace("\0", " ").split())
        if not any(char.isalnum() for char in spoken):
            return Clip(samples_of(b""), ())
        with tempfile.TemporaryDirectory(prefix="voxglove-") as folder:
            out = Path(folder) / "speech.wav"
            self._run([self._program, "-voice", self._voice, "-t", spoken, "-o", str(out)])
            sound = wav.read(out, self._format.rate)
        return aligned(text, trimmed(sound, self._format))

    def _run(self, command: list[str]) -> None:
        try:
            done = subprocess.run(command, capture_output=True, timeout=DEADLINE_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise ProviderStalled("ERR_TTS_STALLED", f"flite took over {DEADLINE_S:g} s") from error
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()[:200]
            raise ProviderRefused("ERR_TTS_FAILED", f"flite ended with {done.returncode}: {said}")


def flite_tts(voice: FliteVoice, jobs: Jobs) -> LocalTts:
    """A synthesiser for one response."""
    return LocalTts(voice, jobs)
