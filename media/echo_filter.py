"""What a voice detector says, without what it says of the agent's own voice (field fault 24).

Between the detector and whoever decides about turns, on both kinds of brain. Owned by one run of a
brain; it asks the echo guard, keeps back or takes back, and decides nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from .echo import RATE, EchoGuard
from .recent import Recent
from .vad.port import VadEvent

ECHO_CHECK = RATE // 10
"""A voice under the agent's own is checked for echo this often, in samples: a check costs a
millisecond, too much for every frame."""

NoticeKind = Literal["start", "confirmed", "misfire", "end", "echo"]
Sounding = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Notice:
    """A decision about the caller's voice, dated to `position`. `echo`: what was told of it since
    its start is taken back."""

    kind: NoticeKind
    position: int


@dataclass(slots=True)
class _Suspect:
    """A voice that began under the agent's own."""

    start: int
    told: list[NoticeKind]
    """What the machine was told of it."""
    kept: list[Notice]
    """What it was not told, because it looks like echo."""
    checked: int
    echo: bool = False


class EchoFilter:
    """Keeps back what the detector says of the agent's own voice (field fault 24).

    A voice that begins while the agent sounds is compared with what is played; while it looks like
    it, the machine hears nothing of it. A later look may free it, or take back what was told.
    """

    def __init__(self, guard: EchoGuard, heard: Recent, sounding: Sounding) -> None:
        self._guard = guard
        self._heard = heard
        self._sounding = sounding
        self.suspect: _Suspect | None = None
        """While there is one, it is looked at again without any news of the detector."""

    @property
    def is_echo(self) -> bool:
        """The voice that is heard now looks like the agent's own."""
        return self.suspect is not None and self.suspect.echo

    def sift(self, events: Iterable[VadEvent], at: int) -> list[Notice]:
        """What of `events` to tell, now that the input stands at `at`."""
        told: list[Notice] = []
        for event in events:
            told += self._take(Notice(event.kind, event.position), at)
        suspect = self.suspect
        if suspect is not None and at - suspect.checked >= ECHO_CHECK:
            told += self._look(suspect, at)
        return told

    def _take(self, notice: Notice, at: int) -> list[Notice]:
        if notice.kind == "start":
            self.suspect = None
            if not self._sounding():
                return [notice]
            self.suspect = _Suspect(notice.position, [], [notice], at)
            return self._look(self.suspect, at)
        suspect = self.suspect
        if suspect is None:
            return [notice]
        suspect.kept.append(notice)
        told = self._look(suspect, at)
        if notice.kind in ("misfire", "end"):
            self.suspect = None
        return told

    def _look(self, suspect: _Suspect, at: int) -> list[Notice]:
        suspect.checked = at
        self._guard.hear(*self._heard.unbroken(self._guard.window))
        suspect.echo = self._guard.verdict(suspect.start).is_echo
        if suspect.echo:
            if suspect.told and suspect.told[-1] not in ("echo", "misfire", "end"):
                suspect.told.append("echo")
                suspect.kept = [Notice("start", suspect.start)]
                return [Notice("echo", at)]
            return []
        free, suspect.kept = suspect.kept, []
        if "echo" in suspect.told:
            suspect.told = []
        suspect.told += [notice.kind for notice in free]
        return free
