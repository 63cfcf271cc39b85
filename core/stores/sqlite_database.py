"""One SQLite file in this process: its connection, and the only thread that touches it.

All stores of one file share a Database (`acquire`, `Database.release`); the last one to go closes
the connection and joins the thread. Jobs run strictly in the order they were asked for, so a read
sees every write before it, a cancelled one included.

Reads share the thread with writes. A second connection would let a read pass a write, and win
little: most of a read's time is decoding, which holds the interpreter's lock, and a write in WAL
mode waits for no disk.

Durability: WAL with `synchronous` normal. A commit is handed to the operating system before it is
reported, so killing the process at any moment loses nothing that was reported. Only a power failure
or a crash of the machine may lose the last commits, and never damages the file; `full` waits for
the disk at every commit and closes that gap.
"""

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, ParamSpec, TypeVar

from pydantic import ValidationError

from ..errors import StoreError, UsageError
from .sqlite_schema import known_version, migrate

P = ParamSpec("P")
T = TypeVar("T")

Work = Callable[[sqlite3.Connection], T]
"""What runs on the database's thread. It may raise errors of core, or sqlite3.Error."""

WAL_TRIES = 50
WAL_PAUSE_S = 0.02
"""Changing a new file to WAL does not wait for its lock by itself, so it is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteConfig:
    """How a file is used.

    busy_timeout_ms  how long to wait for another process that writes
    synchronous      "normal" survives a killed process, "full" a power failure too
    max_waiting      calls that may wait for the thread; more get StoreError
    """

    busy_timeout_ms: int = 5_000
    synchronous: Literal["normal", "full"] = "normal"
    max_waiting: int = 1_024

    def __post_init__(self) -> None:
        if self.busy_timeout_ms < 0:
            raise UsageError("SqliteConfig.busy_timeout_ms: must be 0 or more")
        if self.synchronous not in ("normal", "full"):
            raise UsageError('SqliteConfig.synchronous: use "normal" or "full"')
        if self.max_waiting < 1:
            raise UsageError("SqliteConfig.max_waiting: must be 1 or more")


def connect(path: str, config: SqliteConfig, *, create: bool = True) -> sqlite3.Connection:
    """A ready connection of the newest schema, without implicit transactions. Raises StoreError."""
    mode = "rwc" if create else "rw"
    with translated(path):
        connection = sqlite3.connect(
            f"{Path(path).absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=config.busy_timeout_ms / 1000,
            isolation_level=None,
        )
        try:
            known_version(connection)  # before anything is changed
            _use_wal(connection)
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA synchronous = {config.synchronous}")
            migrate(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def _use_wal(connection: sqlite3.Connection) -> None:
    for left in reversed(range(WAL_TRIES)):
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if left == 0 or "locked" not in str(error):
                raise
            threading.Event().wait(WAL_PAUSE_S)
        else:
            if mode != "wal":
                raise StoreError("the file system cannot share memory (WAL): use a local disk")
            return


@contextmanager
def translated(path: str) -> Iterator[None]:
    """A block in which what goes wrong with the file becomes StoreError, with its cause.

    The message of the cause may quote what was stored; StoreError's own does not.
    """
    try:
        yield
    except (sqlite3.Error, OverflowError) as error:
        raise StoreError(f"{path}: {error}") from error
    except ValidationError as error:
        raise StoreError(f"{path}: a record of it is not what this voxglove writes") from error


class _OneThread(ThreadPoolExecutor):
    """A thread and at most `max_waiting` jobs for it; `bounded` is unset for the last one."""

    def __init__(self, max_waiting: int) -> None:
        super().__init__(1, thread_name_prefix="sqlite")
        self.bounded = True
        self._room = threading.BoundedSemaphore(max_waiting)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """As the executor's. Raises StoreError when too many jobs wait."""
        if not self.bounded:
            return super().submit(fn, *args, **kwargs)
        if not self._room.acquire(blocking=False):
            raise StoreError("too many calls wait for the database: the disk is too slow for them")
        job = super().submit(fn, *args, **kwargs)
        job.add_done_callback(lambda _: self._room.release())
        return job


class Database:
    """Made by `acquire` alone. `users` counts the stores that hold it."""

    def __init__(self, path: str, config: SqliteConfig) -> None:
        self.path = path
        self.users = 0
        self._config = config
        self._pid = os.getpid()
        self._thread = _OneThread(config.max_waiting)
        self._connection: sqlite3.Connection | None = None  # of the thread alone

    async def run(self, work: Work[T]) -> T:
        """Do `work` on the thread and return what it returns.

        A cancelled call that the thread has begun goes on to its end; one that it has not begun
        is never done. Raises what `work` raises, errors of SQLite as StoreError.
        """
        if self._pid != os.getpid():
            raise StoreError(f"{self.path}: opened before a fork; open the store in each process")
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._do, work)

    async def release(self) -> None:
        """One store is done with it; after the last one the thread is joined.

        Cancelled, the thread still closes the file and ends, after what was asked of it before.
        """
        with _LOCK:
            self.users -= 1
            if self.users:
                return
            if _OPEN.get(self.path) is self:
                del _OPEN[self.path]
        joined = False
        self._thread.bounded = False
        try:
            closed = asyncio.get_running_loop().run_in_executor(self._thread, self._close)
            await asyncio.shield(closed)
            joined = True
        finally:
            self._thread.shutdown(wait=joined)

    def _do(self, work: Work[T]) -> T:
        if self._connection is None:
            self._connection = connect(self.path, self._config)
        with translated(self.path):
            return work(self._connection)

    def _close(self) -> None:
        if self._connection is not None:
            with closing(self._connection):
                self._connection = None


_LOCK = threading.Lock()
_OPEN: dict[str, Database] = {}
"""The open files of this process, by real path. Stores on other loops share them."""


def acquire(path: str, config: SqliteConfig) -> Database:
    """The file's Database, made when nobody holds it. Nothing is read or written yet.

    Raises UsageError when it is held with another config: one file has one.
    """
    real = os.path.realpath(path)
    with _LOCK:
        database = _OPEN.get(real)
        if database is None or database._pid != os.getpid():
            database = _OPEN[real] = Database(real, config)
        if database._config != config:
            raise UsageError(
                f"SqliteStore.config: {real} is open as {database._config}; give all its stores "
                "one SqliteConfig"
            )
        database.users += 1
        return database
