"""The brain's ear: the local detector, without the agent's own voice, and closed when it must be.

Plain calls, frame by frame. Owned by one run of a brain; what it notices is for the brain alone:
the provider gets the sound and has an ear of its own. A detector that raises is told and skipped,
for the call goes on without it.
"""

from __future__ import annotations

from collections.abc import Callable

from ..media.echo import EchoGuard
from ..media.echo_filter import EchoFilter, Notice, Sounding
from ..media.frame import FRAME_MS
from ..media.pcm import Samples
from ..media.recent import Recent
from ..media.vad.port import Vad

TELL_EVERY = 10_000 // FRAME_MS
"""A detector that raises at every frame is told every 10 s."""


class Ear:
    """See the module. `vad` None: nothing is noticed. `echo` compares with what is played while
    `sounding`. `broken` is told what the detector raised."""

    def __init__(
        self,
        vad: Vad | None,
        echo: EchoGuard | None,
        sounding: Sounding,
        broken: Callable[[Exception], None],
    ) -> None:
        self._vad = vad
        self._broken = broken
        self._raised = 0
        self._closed = False
        self.speaks = False
        """The session was told that the caller speaks."""
        self._recent: Recent | None = None
        self._filter: EchoFilter | None = None
        if vad is not None and echo is not None:
            self._recent = Recent(echo.window)
            self._filter = EchoFilter(echo, self._recent, sounding)

    @property
    def voiced(self) -> bool:
        """The caller's voice is heard now, and is not the agent's own."""
        echo = self._filter is not None and self._filter.is_echo
        return self._vad is not None and self._vad.voiced and not echo

    def notice(self, at: int, samples: Samples) -> list[Notice]:
        """Detect voice in the frame `samples` at `at`."""
        self._closed = False
        if self._vad is None:
            return []
        if self._recent is not None:
            self._recent.add(at, samples)
        try:
            events = self._vad.process(samples, at)
        except Exception as error:  # a model's runtime may raise anything
            if self._raised % TELL_EVERY == 0:
                self._broken(error)
            self._raised += 1
            return []
        if self._filter is not None:
            return self._filter.sift(events, at + len(samples))
        return [Notice(event.kind, event.position) for event in events]

    def close(self) -> bool:
        """Forget the voice that is being heard, until the next frame that is noticed; whether that
        is news."""
        if self._closed:
            return False
        self._closed = True
        if self._vad is not None:
            self._vad.reset()
        if self._filter is not None:
            self._filter.suspect = None
        return True
