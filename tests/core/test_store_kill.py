"""A process killed in the middle of its writes loses nothing that it was told is stored."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.core.store_writer import BATCHES, TALKS
from voxglove.core import Message
from voxglove.core.stores import SqliteStore, list_sessions

ROUNDS = 25
MOST_LINES = 30
"""Calls of a writer before it is killed: 0 kills it while it makes or opens the file."""

LONGEST_DELAY_S = 0.01
"""From the last call it reported to its end, so that it dies anywhere inside the next ones."""


class Writers:
    """The writing process: starts a writer, kills it, and returns what it said before."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def killed_after(self, lines: int, delay_s: float, seed: int) -> list[list[str]]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seed}\n")
        self._process.stdin.flush()
        pid = 0
        said: list[list[str]] = []
        while not pid or len(said) < lines:
            words = self._line()
            assert words != ["dead"], "the writer ended by itself"
            if words[0] == "pid":
                pid = int(words[1])
            else:
                said.append(words)
        time.sleep(delay_s)  # real: the writer is another process
        os.kill(pid, signal.SIGKILL)
        while (words := self._line())[0] != "dead":
            said.append(words)
        return said

    def _line(self) -> list[str]:
        assert self._process.stdout is not None
        words = self._process.stdout.readline().split()
        assert words, "the writing process ended"
        return words


@contextmanager
def writers(path: Path) -> Iterator[Writers]:
    script = Path(__file__).with_name("store_writer.py")
    with subprocess.Popen(
        [sys.executable, str(script), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Writers(process)


def assert_in_order(ids: list[str], found: list[Message]) -> None:
    """All `ids` are there, once, in this order."""
    places = {message.id: at for at, message in enumerate(found)}
    assert len(places) == len(found), "an id is stored twice"
    wanted = [places[one] for one in ids]
    assert wanted == sorted(wanted)


def assert_whole(found: list[Message], batches: set[tuple[str, ...]]) -> None:
    """No message is cut, and of no batch is a part missing."""
    for message in found:
        assert set(message.text.split()) == {message.id}
    stored = {message.id for message in found}
    for batch in batches:
        assert stored.issuperset(batch)
    # Of the calls that nobody reported, one for each conversation and writer at most.
    unreported = stored - {one for batch in batches for one in batch}
    calls = {one.rpartition("-")[0] for one in unreported}
    writers_ = {call.partition("-")[0] for call in calls}
    assert len(calls) == len(writers_)
    for call in calls:
        size = sum(one.rpartition("-")[0] == call for one in unreported)
        assert size in BATCHES, "half a batch is stored"


class Reported:
    """What the writers of one conversation said they had done, and how it is compared."""

    def __init__(self, talk: str) -> None:
        self.talk = talk
        self.batches: list[tuple[str, ...]] = []
        self.heard: dict[str, int] = {}
        self.events: dict[str, bool] = {}
        self.turns = 0

    def add(self, words: list[str]) -> None:
        match words:
            case ["append", self.talk, ids]:
                self.batches.append(tuple(ids.split(",")))
            case ["amend", self.talk, message_id, count]:
                self.heard[message_id] = int(count)
            case ["consume", self.talk, _, message_id]:
                self.batches.append((message_id,))
            case ["put" | "ack" as kind, self.talk, event_id]:
                self.events[event_id] = kind == "put"
            case ["turn", self.talk]:
                self.turns += 1

    async def compare(self, path: Path, rounds: int) -> None:
        async with SqliteStore(path, self.talk) as store:
            found = await store.get_messages()
            assert_in_order([one for batch in self.batches for one in batch], found)
            assert_whole(found, set(self.batches))
            heard = {message.id: int(message.heard or 0) for message in found}
            assert all(heard[one] >= count for one, count in self.heard.items())
            shown = {message.id.rpartition("-")[0] for message in found}
            for item in await store.get_inbox_items():
                assert (item.status == "consumed") == (item.id in shown)
            waiting = {event.id for event in await store.event_queue().peek()}
            assert not waiting & {one for one, kept in self.events.items() if not kept}
            # An ack that was done and not reported, one for each writer at most.
            gone = [one for one, kept in self.events.items() if kept and one not in waiting]
            assert len({one.partition("-")[0] for one in gone}) == len(gone)
            assert self.turns <= await store.get_turn_count() <= self.turns + rounds


async def kill_and_compare(path: Path, rounds: int, seed: int) -> int:
    """Returns how many calls were reported."""
    dice = random.Random(seed)
    reported = {talk: Reported(talk) for talk in TALKS}
    total = 0
    with writers(path) as running:
        for number in range(rounds):
            lines = dice.choice((0, dice.randint(1, MOST_LINES)))
            said = running.killed_after(lines, dice.uniform(0, LONGEST_DELAY_S), number)
            total += len(said)
            for words in said:
                reported[words[1]].add(words)
            for one in reported.values():
                await one.compare(path, number + 1)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert [one.session_id for one in list_sessions(path)] == sorted(TALKS)
    return total


@pytest.mark.real_loop
async def test_a_killed_process_loses_nothing_it_reported(tmp_path: Path) -> None:
    assert await kill_and_compare(tmp_path / "agent.db", ROUNDS, seed=1) > ROUNDS


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.timeout(900)
async def test_many_killed_processes_lose_nothing(
    tmp_path: Path, seed: int, tell: Callable[[str], None]
) -> None:
    total = await kill_and_compare(tmp_path / "agent.db", 100, seed)
    tell(f"100 kills, {total} reported calls, none lost (seed {seed})")
