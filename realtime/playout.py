"""A session's sound on a line: items become segments, the carrier says what was heard of them.

Owned by one run of a brain; `run` is a task of its group. It waits for the line and for nothing
else, so a stop needs no waiting: the line is cut, what is queued goes (DESIGN 2, invariant 1).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Container, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass

from ..media.errors import LineClosed
from ..media.format import AudioFormat
from ..media.frame import AudioFrame
from ..media.line import Line
from ..media.segments import Heard
from .playback import OutputCut, Played

MAX_QUEUED_S = 900
"""Of sound that a provider sends ahead of its playing. More is dropped: nobody listens to a quarter
of an hour without a word."""


@dataclass(slots=True)
class _Item:
    """One item as a segment. `given`: samples handed out by the session."""

    segment: int
    given: int = 0
    done: bool = False
    sounds: bool = False


class Playout:
    """See the module. It is the session's Playback; `started` and `ended` are told items, with the
    output position; `idle` when nothing sounds or waits any more."""

    def __init__(
        self,
        line: Line,
        format: AudioFormat,
        *,
        started: Callable[[str, int], None],
        ended: Callable[[str, int], None],
        idle: Callable[[], None],
    ) -> None:
        self._line = line
        self._format = format
        self._started = started
        self._ended = ended
        self._idle = idle
        self._items: dict[str, _Item] = {}
        self._queue: deque[tuple[int, bytes | None]] = deque(maxlen=100_000)
        self._queued = 0
        self._more = asyncio.Event()
        self._count = 0
        self.cut_short = False
        """The latest cut ended something that was being heard."""
        self.dropped = 0
        """Samples that found the queue full."""

    # ---- the session's side (playback.Playback)

    def add(self, item_id: str, samples: int, rate: int) -> None:
        """Counted when the sound itself comes, in `play`."""

    def done(self, item_id: str) -> None:
        """No more sound of this item."""
        item = self._items.get(item_id)
        if item is not None and not item.done:
            item.done = True
            self._put(item.segment, None)

    def cut(self) -> OutputCut:
        """Silence now, of all that was handed out."""
        cut = self._line.cut()
        over = {step.segment for step in self._line.progress() if step.event == "ended"}
        self.cut_short = self.audible
        items, self._items = self._items, {}
        self._queue.clear()
        self._queued = 0
        now = self._told(items, cut.heard, over)
        settled: asyncio.Future[Mapping[str, Played]] = asyncio.get_running_loop().create_future()

        def settle(truth: asyncio.Future[tuple[Heard, ...]]) -> None:
            if not settled.done():
                final = () if truth.cancelled() else truth.result()
                settled.set_result(self._told(items, final, over) if final else now)

        if cut.settled.done():
            settle(cut.settled)
        else:
            cut.settled.add_done_callback(settle)
        return OutputCut(now, settled)

    # ---- the brain's side

    @property
    def sounding(self) -> bool:
        """Something was handed out that nobody heard to its end yet."""
        return bool(self._items)

    def sounds_but(self, items: Container[str]) -> bool:
        """`sounding`, of other items than these."""
        return any(item_id not in items for item_id in self._items)

    @property
    def audible(self) -> bool:
        """The first sample of something that is not over was heard."""
        return any(item.sounds for item in self._items.values())

    def play(self, item_id: str, pcm: bytes) -> None:
        """More sound of an item."""
        item = self._items.get(item_id)
        if item is None:
            self._count += 1
            item = self._items[item_id] = _Item(self._count)
        samples = len(pcm) // 2
        if self._queued + samples > MAX_QUEUED_S * self._format.rate:
            self.dropped += samples
            return
        item.given += samples
        self._queued += samples
        self._put(item.segment, pcm)

    def tick(self) -> None:
        """Tell what began and ended to sound since the last time; every 20 ms."""
        for step in self._line.progress():
            item_id = next((k for k, v in self._items.items() if v.segment == step.segment), None)
            if item_id is None:
                continue
            if step.event == "started":
                self._items[item_id].sounds = True
                self._started(item_id, step.out)
                continue
            del self._items[item_id]
            self._ended(item_id, step.out)
            if not self._items:
                self._idle()

    async def run(self) -> None:
        """Task of the brain's group: give the line what is queued, until the line closes."""
        with suppress(LineClosed):
            await self._give()

    async def _give(self) -> None:
        at = 0
        while True:
            if not self._queue:
                self._more.clear()
                await self._more.wait()
                continue
            segment, pcm = self._queue.popleft()
            if pcm is None:
                await self._line.finish(segment)
                continue
            samples = len(pcm) // 2
            self._queued = max(0, self._queued - samples)
            await self._line.play(segment, AudioFrame(pcm, self._format, at))
            at += samples

    def _put(self, segment: int, pcm: bytes | None) -> None:
        self._queue.append((segment, pcm))
        self._more.set()

    def _told(
        self, items: Mapping[str, _Item], heard: Sequence[Heard], over: Set[int]
    ) -> dict[str, Played]:
        """What was heard of each item: all of those in `over`, which had ended and were not told
        yet; nothing of one that the line never got."""
        by_segment = {one.segment: one for one in heard}
        told: dict[str, Played] = {}
        for item_id, item in items.items():
            found = by_segment.get(item.segment)
            if found is None:
                whole = item.segment in over
                ms = item.given * 1000 // self._format.rate if whole else 0
                told[item_id] = Played(ms, complete=whole)
                continue
            whole = item.done and found.samples >= item.given
            ms = found.samples * 1000 // self._format.rate
            told[item_id] = Played(ms, whole or found.complete, found.estimated)
        return told
