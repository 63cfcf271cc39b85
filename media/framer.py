"""Cuts a PCM byte stream of any chunking into frames of one length.

Owned by the stream it cuts. Never pads, drops or reorders: every byte that goes in comes out once,
at its position.
"""

from __future__ import annotations

from .errors import MediaValueError
from .format import PIPELINE, AudioFormat
from .frame import AudioFrame
from .pcm import Samples, pcm_of


class Framer:
    """Frames of exactly `samples` samples per channel, numbered from `at`.

    A chunk may end in the middle of a sample; the odd bytes wait for the next one.
    """

    def __init__(
        self,
        samples: int = 320,
        format: AudioFormat = PIPELINE,
        *,
        at: int = 0,
        source: str | None = None,
    ) -> None:
        if samples < 1:
            raise MediaValueError("samples", str(samples), "use a frame of 1 sample or more")
        self.samples = samples
        self.format = format
        self.source = source
        self._bytes = samples * format.bytes_per_sample
        self._carry = bytearray()
        self.at = at
        """Position of the next frame's first sample."""

    @property
    def pending(self) -> int:
        """Bytes that wait for the rest of their frame."""
        return len(self._carry)

    def feed(self, chunk: bytes | Samples) -> list[AudioFrame]:
        """The frames that `chunk` completes, in order; may be none or many."""
        if isinstance(chunk, bytes) and (frame := self.whole(chunk)) is not None:
            return [frame]
        self._carry += chunk if isinstance(chunk, bytes) else pcm_of(chunk)
        whole = len(self._carry) // self._bytes
        frames = [self._frame(index * self._bytes, self._bytes) for index in range(whole)]
        del self._carry[: whole * self._bytes]
        return frames

    def whole(self, pcm: bytes, source: str | None = None) -> AudioFrame | None:
        """`pcm` as the next frame, of `source` if that is known; None, and nothing is done, unless
        it is one as it stands: nothing waits, and its length is right."""
        if self._carry or len(pcm) != self._bytes:
            return None
        frame = AudioFrame(pcm, self.format, self.at, self.source if source is None else source)
        self.at += self.samples
        return frame

    def flush(self) -> AudioFrame | None:
        """The last, shorter frame, or None; a torn final sample is dropped with the stream."""
        whole = len(self._carry) - len(self._carry) % self.format.bytes_per_sample
        frame = self._frame(0, whole) if whole else None
        self._carry.clear()
        return frame

    def reset(self, at: int = 0) -> None:
        """Start a new stream at position `at`; what waited is forgotten."""
        self._carry.clear()
        self.at = at

    def _frame(self, offset: int, length: int) -> AudioFrame:
        pcm = bytes(self._carry[offset : offset + length])
        frame = AudioFrame(pcm, self.format, self.at, self.source)
        self.at = frame.end
        return frame
