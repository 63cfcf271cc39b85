"""One speculation: the answer to a `flush` that may come, made while the caller pauses.

Owned by one recogniser of one call, which asks at a pause and takes the answer at the flush of
exactly the same audio. Nothing is ever reported from here: a speculation that nobody takes, fails
or is superseded leaves no trace but the work it cost (docs/decisions/0009).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ...media.errors import MediaError
from ...media.inference import Jobs
from .utterance import Piece

Read = Callable[[tuple[Piece, ...]], str]


class Ahead:
    """At most one living job. `read` runs on the inference pool."""

    def __init__(self, jobs: Jobs, read: Read) -> None:
        self._jobs = jobs
        self._read = read
        self._key: _Key | None = None
        self._future: asyncio.Future[str] | None = None

    def begin(self, end: int, pieces: tuple[Piece, ...]) -> None:
        """Read `pieces` in case a flush of `end` wants them. Supersedes what was begun before.

        Where no worker idles nothing is begun: what was really asked for goes first.
        """
        self.drop()
        if not pieces or not self._jobs.has_idle_worker:
            return
        try:
            self._future = self._jobs.submit("stt", self._read, pieces)
        except MediaError:
            return  # the real request meets the same trouble, and reports it
        self._key = _key(end, pieces)
        self._future.add_done_callback(_look)

    def take(self, end: int, pieces: tuple[Piece, ...]) -> asyncio.Future[str] | None:
        """The answer for exactly this audio, done or under way, once; None if there is none.

        Anything else that lives here is dropped: it is about audio that nobody asks for.
        """
        future, wanted = self._future, self._key == _key(end, pieces)
        if future is None or not wanted or _failed(future):
            self.drop()
            return None
        self._future = self._key = None
        return future

    def drop(self) -> None:
        """It is not wanted: a job that no worker has begun is skipped."""
        future, self._future, self._key = self._future, None, None
        if future is not None:
            future.cancel()


_Key = tuple[int, tuple[tuple[int, int], ...]]


def _key(end: int, pieces: tuple[Piece, ...]) -> _Key:
    return end, tuple((piece.start, piece.end) for piece in pieces)


def _failed(future: asyncio.Future[str]) -> bool:
    return future.cancelled() or (future.done() and future.exception() is not None)


def _look(future: asyncio.Future[str]) -> None:
    """Its failure is nobody's news: asked for, so that the loop does not report it as lost."""
    if not future.cancelled():
        future.exception()
