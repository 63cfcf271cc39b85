"""What has happened in the dialogue so far: the state and the facts tools returned.

Owned by `dialogue`, which rebuilds it from history at every request; nothing is kept between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, time
from enum import StrEnum
from typing import Literal

from .intents import Intent
from .understand import Ask, Slots

Outcome = Literal["ok", "error", "running", "lost"]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call the dialogue wants made."""

    name: str
    args: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UserSaid:
    """One or more joined user turns."""

    text: str


@dataclass(frozen=True, slots=True)
class AgentSaid:
    """What was heard of an answer; `interrupted` when the rest was not."""

    text: str
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class ToolRan:
    """A call with its result; `lost` means that no result is known."""

    name: str
    args: Mapping[str, object]
    outcome: Outcome
    data: Mapping[str, object] = field(default_factory=dict)
    message: str = ""


Happened = UserSaid | AgentSaid | ToolRan


class Goal(StrEnum):
    """What the caller is being helped with."""

    BOOK = "book"
    CHANGE = "change"
    CANCEL = "cancel"
    FIND = "find"


class Note(StrEnum):
    """What the next answer has to mention once."""

    RESTARTED = "restarted"
    DROPPED = "dropped"
    KEPT = "kept"
    WHAT_CHANGE = "what_change"
    FAILED = "failed"
    HOW = "how"


@dataclass(frozen=True, slots=True)
class Side:
    """A question answered beside the goal, with its tool call and what that returned."""

    kind: Intent
    call: Call | None = None
    ran: ToolRan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """A booking as a tool returned it."""

    id: int
    party: int
    date: date
    time: time
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What `free_tables` said about one wish."""

    wish: Slots
    verdict: str
    alternatives: tuple[time, ...] = ()
    opens: time | None = None
    last_table: time | None = None
    max_party: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The dialogue between two events.

    `asked` is the open question, `settled` whether its facts were heard in full, `confirmed` that
    the caller said yes to them; `wanted` is a slot the caller wants to give anew; `news` is a
    side effect that was not announced yet; `misses` counts turns in a row not understood.
    """

    today: date
    tools: frozenset[str] = frozenset()
    goal: Goal | None = None
    slots: Slots = Slots()
    fresh: bool = False
    asked: Ask | None = None
    settled: bool = True
    confirmed: bool = False
    wanted: Ask | None = None
    misses: int = 0
    sides: tuple[Side, ...] = ()
    note: Note | None = None
    news: ToolRan | None = None
    looked: ToolRan | None = None
    chosen: Booking | None = None
    check: Check | None = None
    running: bool = False
    number: int | None = None
    last: Booking | None = None
    said: str = ""

    @property
    def found(self) -> tuple[Booking, ...]:
        """The bookings the last look-up returned."""
        return bookings_of(self.looked.data) if self.looked else ()

    @property
    def subject(self) -> Booking | None:
        """The booking to change or cancel: the chosen one, or the only one found."""
        if self.chosen is not None:
            return self.chosen
        return self.found[0] if len(self.found) == 1 else None

    @property
    def wish(self) -> Slots:
        """Party, day and time wanted; for a change those given over those booked."""
        asked_for = Slots(party=self.slots.party, date=self.slots.date, time=self.slots.time)
        booked = self.subject if self.goal is Goal.CHANGE else None
        if booked is None:
            return asked_for
        return asked_for.over(Slots(party=booked.party, date=booked.date, time=booked.time))


def booking_of(data: Mapping[str, object]) -> Booking | None:
    """A booking out of tool data; None if a field is missing or malformed."""
    number, party, name = data.get("booking_id"), data.get("party"), data.get("name")
    day, at = parsed_date(data.get("date")), parsed_time(data.get("time"))
    if not isinstance(number, int) or not isinstance(party, int) or not isinstance(name, str):
        return None
    if day is None or at is None:
        return None
    return Booking(id=number, party=party, date=day, time=at, name=name)


def bookings_of(data: Mapping[str, object]) -> tuple[Booking, ...]:
    """The list `bookings` out of tool data."""
    listed = data.get("bookings")
    if not isinstance(listed, list):
        return ()
    made = (booking_of(item) for item in listed if isinstance(item, Mapping))
    return tuple(booking for booking in made if booking is not None)


def check_of(wish: Slots, data: Mapping[str, object]) -> Check | None:
    """The verdict out of tool data; None if there is none."""
    verdict, listed, most = data.get("verdict"), data.get("alternatives"), data.get("max_party")
    if not isinstance(verdict, str):
        return None
    times = (parsed_time(item) for item in (listed if isinstance(listed, list) else ()))
    return Check(
        wish=wish,
        verdict=verdict,
        alternatives=tuple(at for at in times if at is not None),
        opens=parsed_time(data.get("opens")),
        last_table=parsed_time(data.get("last_table")),
        max_party=most if isinstance(most, int) else 8,
    )


def wish_of(args: Mapping[str, object]) -> Slots:
    """Party, day and time out of a call's arguments."""
    party = args.get("party")
    return Slots(
        party=party if isinstance(party, int) else None,
        date=parsed_date(args.get("date")),
        time=parsed_time(args.get("time")),
    )


def parsed_date(value: object) -> date | None:
    """An ISO date, or None."""
    try:
        return date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


def parsed_time(value: object) -> time | None:
    """HH:MM, or None."""
    try:
        return time.fromisoformat(value).replace(tzinfo=None) if isinstance(value, str) else None
    except ValueError:
        return None
