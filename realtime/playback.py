"""How much of an answer was heard: the port a session asks at a cut, and an estimate of it.

A brain on a Line brings the truth of the carrier (`brain`); a host that plays the sound itself
and tells nothing gets the estimate here: sound plays from its first sample on without a pause.
Positions are milliseconds of one item's sound.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Played:
    """`ms` of an item were heard. `complete`: all there was and will be. `estimated`: the clock
    that says so is an estimate."""

    ms: int
    complete: bool
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class OutputCut:
    """What was heard of the items that were sounding or waiting when the sound was stopped:
    `now` as far as known, `settled` for good (at most 300 ms later, DESIGN 2)."""

    now: Mapping[str, Played]
    settled: asyncio.Future[Mapping[str, Played]]


class Playback(Protocol):
    """What a session needs of whoever plays its sound. Synchronous, on the session's loop."""

    def add(self, item_id: str, samples: int, rate: int) -> None:
        """So many more samples of an item were handed out to be played."""
        ...

    def done(self, item_id: str) -> None:
        """There will be no more sound of this item."""
        ...

    def cut(self) -> OutputCut:
        """Fall silent now: nothing handed out so far is played any more."""
        ...


def settled(played: Mapping[str, Played]) -> OutputCut:
    """A cut about which everything is known."""
    future: asyncio.Future[Mapping[str, Played]] = asyncio.get_running_loop().create_future()
    future.set_result(played)
    return OutputCut(played, future)


@dataclass(slots=True)
class _Item:
    """`start`: loop time at which its first sample sounds, if nothing stops it. `rate` in Hz."""

    start: float
    samples: int = 0
    rate: int = 24_000
    done: bool = False

    @property
    def end(self) -> float:
        return self.start + self.samples / self.rate


class EstimatedPlayback:
    """Playback of a host that tells at most when it has played all (`ran_out`). Loop time only."""

    def __init__(self) -> None:
        self._items: dict[str, _Item] = {}

    def add(self, item_id: str, samples: int, rate: int) -> None:
        """See Playback. Items play one after the other."""
        now = asyncio.get_running_loop().time()
        item = self._items.get(item_id)
        if item is None:
            self._forget(now)
            last = max((one.end for one in self._items.values()), default=now)
            item = self._items[item_id] = _Item(max(now, last))
        elif item.end < now:
            item.start += now - item.end  # it ran dry: the rest plays later by that
        item.samples += samples
        item.rate = rate

    def done(self, item_id: str) -> None:
        """See Playback."""
        item = self._items.get(item_id)
        if item is not None:
            item.done = True

    def ran_out(self) -> None:
        """The host's own word: everything handed out so far was heard."""
        now = asyncio.get_running_loop().time()
        for item in self._items.values():
            item.start -= max(0.0, item.end - now)

    def finished(self) -> list[str]:
        """Items whose sound has ended since this was asked last; each is named once."""
        now = asyncio.get_running_loop().time()
        over = [key for key, item in self._items.items() if item.done and item.end <= now]
        for key in over:
            del self._items[key]
        return over

    @property
    def holds(self) -> bool:
        """There are items that are not known to be over."""
        return bool(self._items)

    @property
    def ends_at(self) -> float | None:
        """Loop time at which the sound runs out; None when nothing plays."""
        now = asyncio.get_running_loop().time()
        last = max((item.end for item in self._items.values()), default=now)
        return last if last > now else None

    def cut(self) -> OutputCut:
        """See Playback."""
        now = asyncio.get_running_loop().time()
        played = {key: _played(item, now) for key, item in self._items.items()}
        self._items.clear()
        return settled(played)

    def _forget(self, now: float) -> None:
        """Long past items that nobody asked for."""
        for key in [key for key, item in self._items.items() if item.done and item.end < now - 60]:
            del self._items[key]


def _played(item: _Item, now: float) -> Played:
    heard = min(item.samples, max(0, int((now - item.start) * item.rate)))
    complete = item.done and heard >= item.samples
    return Played(heard * 1000 // item.rate, complete, estimated=True)
