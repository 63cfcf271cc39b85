"""The restaurant's book: tables, sittings and bookings in SQLite, and the rules of the house.

Owned by FrontDesk; every method is synchronous, may run in any thread and is one transaction. The
local time is passed in, never read here. A booking is unique per name, day and time while active,
so the same confirmation can never book twice (findings/field-faults 38).
"""

from __future__ import annotations

import difflib
import sqlite3
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Literal

Verdict = Literal["free", "full", "closed", "outside_hours", "past", "too_large"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS tables (id INTEGER PRIMARY KEY, seats INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS bookings (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL, name_key TEXT NOT NULL,
    date TEXT NOT NULL, time TEXT NOT NULL, party INTEGER NOT NULL,
    table_id INTEGER NOT NULL REFERENCES tables (id),
    status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'cancelled')));
CREATE UNIQUE INDEX IF NOT EXISTS one_booking
    ON bookings (name_key, date, time) WHERE status = 'active';
CREATE INDEX IF NOT EXISTS by_day ON bookings (date, status);
"""
_FIELDS = "id, name, date, time, party"


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """Opening hours and rooms. `closed_weekdays` counts Monday as 0; `closed_days` are
    (month, day); a sitting holds its table for `sitting_minutes`; `seats` lists the tables."""

    opens: time = time(12, 0)
    closes: time = time(22, 0)
    last_table: time = time(21, 0)
    closed_weekdays: frozenset[int] = frozenset()
    closed_days: frozenset[tuple[int, int]] = frozenset({(12, 25), (1, 1)})
    sitting_minutes: int = 90
    seats: tuple[int, ...] = (2, 2, 2, 2, 4, 4, 4, 4, 6, 8)

    def __post_init__(self) -> None:
        if not self.opens < self.last_table < self.closes:
            raise ValueError("House: opens, last_table and closes must follow each other")
        if not self.seats or min(self.seats) < 1:
            raise ValueError("House.seats: give at least one table with at least one seat")
        if self.sitting_minutes < 1:
            raise ValueError("House.sitting_minutes: must be positive")

    def closed_on(self, day: date) -> bool:
        return day.weekday() in self.closed_weekdays or (day.month, day.day) in self.closed_days


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """One active booking."""

    id: int
    name: str
    date: date
    time: time
    party: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """Whether a wish can be had, and up to three nearby times that can."""

    verdict: Verdict
    alternatives: tuple[time, ...] = ()


class Bookings:
    """See the module. `path` may be ":memory:"; close() ends it."""

    def __init__(self, path: str, house: House | None = None) -> None:
        self.house = house or House()
        self._lock = threading.Lock()
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        with self._transaction() as database:
            for statement in filter(str.strip, _SCHEMA.split(";")):
                database.execute(statement)
            if database.execute("SELECT count(*) FROM tables").fetchone()[0] == 0:
                rows = [(seats,) for seats in sorted(self.house.seats)]
                database.executemany("INSERT INTO tables (seats) VALUES (?)", rows)

    def close(self) -> None:
        """Close the database; any later call raises sqlite3.ProgrammingError."""
        self._database.close()

    def availability(
        self, day: date, at: time | None, party: int, *, now: datetime
    ) -> Availability:
        """The verdict on a wish; without `at` the alternatives list the whole day's free times."""
        with self._transaction() as database:
            return self._availability(database, day, at, party, now, moving=0)

    def book(
        self, name: str, day: date, at: time, party: int, *, now: datetime
    ) -> tuple[Booking | None, Availability, bool]:
        """(booking, availability, already). An equal active booking is returned, not repeated."""
        with self._transaction() as database:
            same = self._one(
                database, "name_key = ? AND date = ? AND time = ?", (_key(name), day, at)
            )
            if same is not None and same.party == party:
                return same, Availability(verdict="free"), True
            moving = same.id if same is not None else 0
            found = self._availability(database, day, at, party, now, moving=moving)
            if found.verdict != "free":
                return None, found, False
            if same is not None:  # the same guest, day and time with another party size
                return self._move(database, same, day, at, party), found, False
            table = self._table(database, day, at, party, moving=0)
            row = database.execute(
                "INSERT INTO bookings (name, name_key, date, time, party, table_id)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (name, _key(name), day.isoformat(), _hm(at), party, table),
            )
            return self._one(database, "id = ?", (row.lastrowid,)), found, False

    def change(
        self, booking_id: int, day: date | None, at: time | None, party: int | None,
        *, now: datetime,
    ) -> tuple[Booking | None, Availability]:  # fmt: skip
        """Move a booking; absent values stay. Raises LookupError if it does not exist."""
        with self._transaction() as database:
            old = self._existing(database, booking_id)
            day, at, party = day or old.date, at or old.time, party or old.party
            found = self._availability(database, day, at, party, now, moving=old.id)
            if found.verdict != "free":
                return None, found
            return self._move(database, old, day, at, party), found

    def cancel(self, booking_id: int) -> Booking:
        """Cancel a booking and return what it was. Raises LookupError if it does not exist."""
        with self._transaction() as database:
            old = self._existing(database, booking_id)
            database.execute("UPDATE bookings SET status = 'cancelled' WHERE id = ?", (old.id,))
            return old

    def find(self, name: str, *, now: datetime) -> list[Booking]:
        """Bookings from today on under this name, else under one that sounds much like it."""
        with self._transaction() as database:
            rows = database.execute(
                f"SELECT name_key, {_FIELDS} FROM bookings"
                " WHERE status = 'active' AND date >= ? ORDER BY date, time",
                (now.date().isoformat(),),
            ).fetchall()
        wanted = _key(name)
        exact = [_booking(row[1:]) for row in rows if row[0] == wanted]
        near = [_booking(row[1:]) for row in rows if _sounds_like(wanted, row[0])]
        return exact or near

    def all_active(self) -> list[Booking]:
        """Every active booking, by day and time."""
        with self._transaction() as database:
            rows = database.execute(
                f"SELECT {_FIELDS} FROM bookings WHERE status = 'active' ORDER BY date, time, id"
            ).fetchall()
        return [_booking(row) for row in rows]

    # -- inside a transaction

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")

    def _availability(
        self, database: sqlite3.Connection, day: date, at: time | None, party: int,
        now: datetime, *, moving: int,
    ) -> Availability:  # fmt: skip
        refused = self._refused(day, at, party, now)
        if refused is not None:
            return Availability(verdict=refused)
        if at is not None and self._table(database, day, at, party, moving=moving) is not None:
            return Availability(verdict="free")
        free = [
            slot
            for slot in self._slots(day, now)
            if self._table(database, day, slot, party, moving=moving) is not None
        ]
        if at is None:
            return Availability(verdict="free" if free else "full", alternatives=tuple(free))
        near = sorted(free, key=lambda slot: (abs(_minutes(slot) - _minutes(at)), slot))[:2]
        return Availability(verdict="full", alternatives=tuple(sorted(near)))

    def _refused(self, day: date, at: time | None, party: int, now: datetime) -> Verdict | None:
        if party > max(self.house.seats):
            return "too_large"
        if day < now.date() or (day == now.date() and at is not None and at <= now.time()):
            return "past"
        if self.house.closed_on(day):
            return "closed"
        if at is not None and not self.house.opens <= at <= self.house.last_table:
            return "outside_hours"
        return None

    def _slots(self, day: date, now: datetime) -> list[time]:
        slot = datetime.combine(day, self.house.opens)
        slots: list[time] = []
        while slot.date() == day and slot.time() <= self.house.last_table:
            if day > now.date() or slot.time() > now.time():
                slots.append(slot.time())
            slot += timedelta(minutes=30)
        return slots

    def _table(
        self, database: sqlite3.Connection, day: date, at: time, party: int, *, moving: int
    ) -> int | None:
        """The smallest table that fits and is free for a whole sitting."""
        taken = {
            row[0]
            for row in database.execute(
                "SELECT table_id, time FROM bookings"
                " WHERE status = 'active' AND date = ? AND id <> ?",
                (day.isoformat(), moving),
            )
            if abs(_minutes(time.fromisoformat(row[1])) - _minutes(at)) < self.house.sitting_minutes
        }
        fitting = database.execute(
            "SELECT id FROM tables WHERE seats >= ? ORDER BY seats, id", (party,)
        )
        return next((int(row[0]) for row in fitting if row[0] not in taken), None)

    def _move(
        self, database: sqlite3.Connection, old: Booking, day: date, at: time, party: int
    ) -> Booking:
        table = self._table(database, day, at, party, moving=old.id)
        database.execute(
            "UPDATE bookings SET date = ?, time = ?, party = ?, table_id = ? WHERE id = ?",
            (day.isoformat(), _hm(at), party, table, old.id),
        )
        return self._existing(database, old.id)

    def _existing(self, database: sqlite3.Connection, booking_id: int) -> Booking:
        found = self._one(database, "id = ?", (booking_id,))
        if found is None:
            raise LookupError(f"there is no active booking {booking_id}")
        return found

    @staticmethod
    def _one(
        database: sqlite3.Connection, where: str, values: tuple[object, ...]
    ) -> Booking | None:
        plain = tuple(
            _hm(value) if isinstance(value, time)
            else value.isoformat() if isinstance(value, date)
            else value
            for value in values
        )  # fmt: skip
        row = database.execute(
            f"SELECT {_FIELDS} FROM bookings WHERE status = 'active' AND {where}", plain
        ).fetchone()
        return _booking(row) if row is not None else None


def _booking(row: tuple[int, str, str, str, int]) -> Booking:
    number, name, day, at, party = row
    return Booking(
        id=number,
        name=name,
        date=date.fromisoformat(day),
        time=time.fromisoformat(at),
        party=party,
    )


def _hm(at: time) -> str:
    return at.strftime("%H:%M")


def _minutes(at: time) -> int:
    return at.hour * 60 + at.minute


def _key(name: str) -> str:
    """A name without accents, case and punctuation: "Jos\u00e9 O'Neil" is "jose oneil"."""
    plain = unicodedata.normalize("NFKD", name).casefold()
    kept = "".join(char for char in plain if char.isalnum() or char.isspace())
    return " ".join(kept.split())


def _sounds_like(wanted: str, known: str) -> bool:
    if not wanted:
        return False
    if known.split()[-1:] == [wanted] or wanted.split()[-1:] == [known]:
        return True
    return difflib.SequenceMatcher(None, wanted, known).ratio() >= 0.8
