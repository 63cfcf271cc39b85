"""The input timeline: one unbroken 20 ms stream out of whatever a carrier delivers.

Owned by the `Call`. Holes become silence paced by the loop's clock, a burst that arrives late is
shed by as much as was filled, so that input positions stay on the clock (DTX, hold, a muted
track, a lost carrier: holds and sweeps of a brain never freeze). Reads no clock itself: it is
told the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .errors import MediaValueError
from .format import AudioFormat
from .frame import FRAME_MS, AudioFrame, silence
from .framer import Framer
from .pcm import downmix
from .resample import Resampler

FILL_AFTER_MS = 60
"""A hole this long is filled (DESIGN 2)."""

AHEAD_MS = 160
"""How far delivered audio may run ahead of the clock before what was filled is shed: such a lead
is what the next late burst is bridged with (docs/webrtc.md has the choice and its table). As far
behind or ahead, the sender's clock is taken to be the slower or faster one, and followed."""

SLEW = 0.002
"""How fast a sender's clock is followed: 2,000 ppm, ten times what sound cards are off by."""

FLOOR_RISE = 0.01
"""How fast the least lag seen is forgotten: jitter hardly moves it, a slow sender's clock does."""

FORGIVE_MS = 5_000
"""A stream that has flowed this long after a hole has nothing late in it any more."""


@dataclass(slots=True)
class IntakeStatistics:
    """Samples of the brain's rate: invented as silence, and shed because they came too late."""

    filled: int = 0
    shed: int = 0
    skew_ms: float = 0.0
    """How far the sender's clock was followed: positive where it is the faster one."""


class Intake:
    """Frames of exactly 20 ms in `format`, numbered from 0 for the whole call."""

    def __init__(self, format: AudioFormat) -> None:
        self.format = format
        self.statistics = IntakeStatistics()
        self._frame = format.samples(FRAME_MS)
        self._ahead = format.samples(AHEAD_MS)
        self._framer = Framer(self._frame, format)
        self._resampler = Resampler(format.rate, format.rate)
        self._gapless = True
        self._started: float | None = None
        self._last = 0.0
        self._filled_at = 0.0
        self._debt = 0
        """Samples of silence whose sound may still come late."""
        self._behind = 0.0
        """Samples that even the promptest sound lies behind the clock: the sender's is slower."""

    @property
    def at(self) -> int:
        """Input sample after the last frame that was completed."""
        return self._framer.at

    def attach(self, rate: int, *, gapless: bool, now: float) -> None:
        """A carrier of `rate` begins; its clock need not be filled when it is `gapless`."""
        if rate != self._resampler.src:
            self._resampler = Resampler(rate, self.format.rate)
        self._gapless = gapless
        self._last = now
        self._debt = 0
        self._behind = 0.0
        if self._started is None:
            self._started = now

    def detach(self) -> None:
        """No carrier: time goes on in silence."""
        self._gapless = False

    def take(self, frame: AudioFrame, now: float) -> Sequence[AudioFrame]:
        """The frames that `frame` (any length, the carrier's rate, any channels) completes.

        Raises MediaValueError, and time goes on, when its rate is not the carrier's.
        """
        self._last = now
        rate = frame.format.rate
        if rate != self._resampler.src:
            raise MediaValueError(
                "frame.format.rate",
                f"{rate} Hz",
                f"deliver the {self._resampler.src} Hz of the carrier's info.input",
            )
        if not self._debt and (frame.format is self.format or frame.format == self.format):
            # What a browser or a carrier of 16 kHz sends, all day long: the bytes stay as they are.
            whole = self._framer.whole(frame.pcm, frame.source)
            if whole is not None:
                self._follow(self._frame / rate, now)
                return (whole,)
        samples = frame.samples
        if self._shed(samples * self.format.rate // rate, now):
            return ()
        frames = self._framed(frame)
        self._follow(samples / rate, now)
        return frames

    def gap(self, samples: int, now: float) -> Iterator[AudioFrame]:
        """The carrier says that `samples` (its rate) are lost: silence of that length, but for
        what was filled in their place already. Raises MediaValueError for a negative number."""
        self._last = now
        lost = self._resampler.gap(samples)
        known = min(self._debt, len(lost))
        self._debt -= known
        self.statistics.filled += len(lost) - known
        yield from self._framer.feed(lost[known:])

    def fill_due(self) -> float | None:
        """The time at which the stream counts as broken, or None where it never does."""
        return None if self._gapless or self._started is None else self._last + FILL_AFTER_MS / 1000

    def broken(self, now: float) -> bool:
        """Whether nothing has come for so long that the hole is to be filled."""
        due = self.fill_due()
        # A timer may fire a hair before the time it was set to.
        return due is not None and now >= due - 0.001

    def fill(self, now: float) -> Iterator[AudioFrame]:
        """Silence for as long as the stream has been broken at `now`, if it has.

        It ends at the clock, or behind it by what a slow sender's stream was before: a hole is
        never made longer by what its clock has lost over the call.
        """
        if not self.broken(now):
            return
        behind = int(self._behind) // self._frame * self._frame
        while self.at + self._frame <= self._clock(now) - behind:
            self._debt += self._frame
            self._filled_at = now
            self.statistics.filled += self._frame
            yield from self._framer.feed(silence(self._frame, self.format).pcm)

    def _framed(self, frame: AudioFrame) -> Sequence[AudioFrame]:
        frames = self._framer.feed(self._resampler.feed(downmix(frame.array())))
        if frame.source is None:
            return frames
        return [AudioFrame(done.pcm, done.format, done.at, frame.source) for done in frames]

    def _clock(self, now: float) -> int:
        started = now if self._started is None else self._started
        return round((now - started) * self.format.rate)

    def _shed(self, samples: int, now: float) -> bool:
        """Whether this delivery is late sound whose place silence already took."""
        if now - self._filled_at > FORGIVE_MS / 1000:
            self._debt = 0
        if self._gapless or self._debt < samples:
            return False
        if self.at + samples - self._clock(now) <= self._ahead:
            return False
        self._debt -= samples
        self.statistics.shed += samples
        return True

    def _follow(self, seconds: float, now: float) -> None:
        """Move the clock towards a sender that is steadily faster or slower than ours."""
        if self._started is None:
            return
        rate, bound = self.format.rate, self._ahead
        ahead = self._framer.at - round((now - self._started) * rate)
        least = self._behind + seconds * FLOOR_RISE * rate
        if -ahead < least:
            least = -ahead
        self._behind = 0.0 if least <= 0 else bound if least > bound else least
        if not -bound <= ahead <= bound:
            step = seconds * SLEW if ahead > 0 else -seconds * SLEW
            self._started -= step
            self.statistics.skew_ms += 1000 * step
