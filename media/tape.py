"""A call's two tracks on their way to the recorder.

Owned by the `Call`. A recording that fails is told once and given up; it never touches the call.
Converts the caller's track to the recorder's rate; does no I/O itself.
"""

from __future__ import annotations

from collections.abc import Callable

from .errors import MediaValueError
from .events import RATE
from .frame import AudioFrame
from .pcm import Samples
from .recorder import Recorder
from .resample import Resampler


class Tape:
    """Raises MediaValueError for a recorder that does not run at the timeline's 16 kHz."""

    def __init__(
        self, recorder: Recorder, caller_rate: int, failed: Callable[[Exception], None]
    ) -> None:
        if recorder.rate != RATE:
            raise MediaValueError("recorder.rate", f"{recorder.rate} Hz", f"record at {RATE} Hz")
        self._recorder: Recorder | None = recorder
        self._failed = failed
        self._resampler = Resampler(caller_rate, RATE)
        self._at = -self._resampler.delay * RATE // caller_rate
        """Where the caller's next sample sounded: the resampler is late by a constant."""

    def caller(self, frame: AudioFrame) -> None:
        """The next 20 ms of the caller; frames come without a hole from 0 on."""
        pcm = self._resampler.feed(frame.array())
        self._put(lambda recorder: recorder.caller(self._at, pcm))
        self._at += len(pcm)

    def agent(self, at: int, pcm: Samples) -> None:
        """What the caller heard at input sample `at`, 16 kHz."""
        self._put(lambda recorder: recorder.agent(at, pcm))

    async def aclose(self) -> None:
        """Finish the file. Raises what the recorder raises."""
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            await recorder.aclose()

    def _put(self, write: Callable[[Recorder], None]) -> None:
        if self._recorder is None:
            return
        try:
            write(self._recorder)
        except Exception as error:
            self._recorder = None
            self._failed(error)
