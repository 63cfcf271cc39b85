"""FrontDesk: the tools of a small restaurant, for any model.

Made by the composition root, one per call, over a Bookings it owns. Tools that touch the line are
closures over LineTools; what they promise is what LineTools did, and without one they say so.
Results are plain facts in JSON, written to history whether or not they were ever spoken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import date, datetime, time
from typing import Annotated, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ...core.messages import ToolResultData
from ...core.tool import Tool, ToolContext
from .bookings import Availability, Booking, Bookings

T = TypeVar("T")


class LineTools(Protocol):
    """What the front desk may do to the line it is on; made per call by the composition root."""

    async def hang_up_after_playout(self, reason: str) -> None:
        """Arm the hang-up and return at once. The line goes when the running answer has been
        played to its end and nobody speaks; a caller who speaks before then disarms it."""

    async def transfer(self, target: str) -> None:
        """Arm the hand-over in the same way. Raises media.errors.Unsupported at once where the
        carrier cannot transfer."""


class SpeakingRate(Protocol):
    """Offered by a call whose voice can be slowed down."""

    def slower(self) -> bool:
        """One step slower from the next sentence on; False at the slowest step."""


Day = Annotated[date, Field(description="ISO date, for example 2025-12-24")]
At = Annotated[time, Field(description="24-hour local time, HH:MM")]
Party = Annotated[int, Field(ge=1, le=60, description="number of people")]
Name = Annotated[str, Field(min_length=1, max_length=80, description="the guest's name")]


class _Input(BaseModel):
    model_config = ConfigDict(extra="forbid")

    @field_validator("time", check_fields=False)
    @classmethod
    def _local(cls, value: time | None) -> time | None:
        return value.replace(second=0, microsecond=0, tzinfo=None) if value is not None else None


class OpeningHours(_Input):
    date: Day | None = Field(None, description="one day; leave out for the usual hours")


class FreeTables(_Input):
    date: Day
    party: Party
    time: At | None = Field(None, description="leave out to list the free times of the day")


class BookTable(_Input):
    name: Name
    date: Day
    time: At
    party: Party


class ChangeBooking(_Input):
    booking_id: int = Field(description="from find_booking")
    date: Day | None = Field(None, description="only if it changes")
    time: At | None = Field(None, description="only if it changes")
    party: Party | None = Field(None, description="only if it changes")


class CancelBooking(_Input):
    booking_id: int = Field(description="from find_booking")


class FindBooking(_Input):
    name: Name


class Nothing(_Input):
    pass


class EndCall(_Input):
    reason: str = Field("done", max_length=200, description="why the call ends")


class FrontDesk:
    """The tools of one call. `clock` gives local time; `transfer_target` is a number or URI."""

    def __init__(
        self,
        bookings: Bookings,
        line_tools: LineTools | None = None,
        *,
        clock: Callable[[], datetime],
        speaking_rate: SpeakingRate | None = None,
        transfer_target: str | None = None,
    ) -> None:
        self._bookings = bookings
        self._line = line_tools
        self._clock = clock
        self._rate = speaking_rate
        self._transfer_target = transfer_target

    def tools(self) -> list[Tool]:
        """All tools, in a fixed order."""
        return [*self._reading_tools(), *self._writing_tools(), *self._line_tools()]

    def _reading_tools(self) -> list[Tool]:
        return [
            Tool(
                name="opening_hours",
                description="When the restaurant is open, in general or on one day.",
                do=self._opening_hours, input_model=OpeningHours, read_only=True,
            ),
            Tool(
                name="free_tables",
                description="Whether a table is free for a party on a day at a time, and nearby"
                " times if not. Always check before offering or reading back a table.",
                do=self._free_tables, input_model=FreeTables, read_only=True,
            ),
            Tool(
                name="find_booking",
                description="A guest's bookings from today on, by name. Names are matched"
                " loosely: confirm the name before you change or cancel anything.",
                do=self._find_booking, input_model=FindBooking, read_only=True,
            ),
            Tool(
                name="current_time",
                description="The local date, weekday and time. Call it before you work out what"
                " 'tomorrow' or 'next Friday' is.",
                do=self._current_time, input_model=Nothing, read_only=True,
            ),
            Tool(
                name="repeat",
                description="The whole text of your last answer, also the part the caller did not"
                " hear. Use it when the caller asks what you said, and say that text again.",
                do=self._repeat, input_model=Nothing, read_only=True,
            ),
        ]  # fmt: skip

    def _writing_tools(self) -> list[Tool]:
        return [
            Tool(
                name="book_table",
                description="Book a table. Only after you read back party, day, time and name and"
                " the caller said yes. Calling it again with the same values books nothing new.",
                do=self._book_table, input_model=BookTable, un_abortable=True, timeout_s=10.0,
            ),
            Tool(
                name="change_booking",
                description="Move a booking to another day, time or party size, after the caller"
                " confirmed the new values.",
                do=self._change_booking, input_model=ChangeBooking, un_abortable=True,
                timeout_s=10.0,
            ),
            Tool(
                name="cancel_booking",
                description="Cancel a booking, after the caller confirmed which one.",
                do=self._cancel_booking, input_model=CancelBooking, un_abortable=True,
                timeout_s=10.0,
            ),
        ]  # fmt: skip

    def _line_tools(self) -> list[Tool]:
        return [
            Tool(
                name="slower",
                description="Make your voice speak more slowly, when the caller asks for it.",
                do=self._slower, input_model=Nothing,
            ),
            Tool(
                name="transfer",
                description="Hand the caller over to a colleague, when they ask for a person.",
                do=self._transfer, input_model=Nothing,
            ),
            Tool(
                name="end_call",
                description="Hang up once your answer has been played, when the caller said"
                " goodbye or wants nothing more. Say goodbye in the same turn.",
                do=self._end_call, input_model=EndCall,
            ),
        ]  # fmt: skip

    # -- reading

    def _opening_hours(self, wish: OpeningHours) -> dict[str, object]:
        house = self._bookings.house
        facts: dict[str, object] = {
            "opens": _hm(house.opens), "closes": _hm(house.closes),
            "last_table": _hm(house.last_table),
        }  # fmt: skip
        if wish.date is not None:
            closed = house.closed_on(wish.date)
            return {**facts, "date": wish.date.isoformat(), "closed": closed}
        weekdays = [f"{date(2024, 1, 1 + day):%A}s" for day in sorted(house.closed_weekdays)]
        days = [f"{date(2024, *day):%B} {day[1]}" for day in sorted(house.closed_days)]
        return {**facts, "closed_days": [*weekdays, *days]}

    def _free_tables(self, wish: FreeTables) -> dict[str, object]:
        found = self._bookings.availability(wish.date, wish.time, wish.party, now=self._clock())
        return {**self._facts(found), "date": wish.date.isoformat()}

    def _find_booking(self, wish: FindBooking) -> dict[str, object]:
        found = self._bookings.find(wish.name, now=self._clock())
        return {"bookings": [_booking_facts(booking) for booking in found]}

    def _current_time(self, _: Nothing) -> dict[str, object]:
        now = self._clock()
        return {"date": now.date().isoformat(), "weekday": f"{now:%A}", "time": f"{now:%H:%M}"}

    async def _repeat(self, _: Nothing, ctx: ToolContext) -> dict[str, object]:
        for message in reversed(await ctx.agent.store.get_messages()):
            if message.sender == "agent" and message.text.strip():
                return {"text": message.text.strip()}
        return {"text": ""}

    # -- writing

    async def _book_table(self, wish: BookTable, ctx: ToolContext) -> ToolResultData:
        booking, found, already = await _in_thread(
            lambda: self._bookings.book(
                wish.name, wish.date, wish.time, wish.party, now=self._clock()
            )
        )
        if booking is None:
            return self._refusal("not booked", found)
        facts = _booking_facts(booking)
        _show(ctx, "booked", facts)
        return ToolResultData("success", {**facts, "already": already})

    async def _change_booking(self, wish: ChangeBooking, ctx: ToolContext) -> ToolResultData:
        try:
            booking, found = await _in_thread(
                lambda: self._bookings.change(
                    wish.booking_id, wish.date, wish.time, wish.party, now=self._clock()
                )
            )
        except LookupError as error:
            return ToolResultData("error", None, str(error))
        if booking is None:
            return self._refusal("not changed", found)
        facts = _booking_facts(booking)
        _show(ctx, "changed", facts)
        return ToolResultData("success", facts)

    async def _cancel_booking(self, wish: CancelBooking, ctx: ToolContext) -> ToolResultData:
        try:
            booking = await _in_thread(lambda: self._bookings.cancel(wish.booking_id))
        except LookupError as error:
            return ToolResultData("error", None, str(error))
        facts = _booking_facts(booking)
        _show(ctx, "cancelled", facts)
        return ToolResultData("success", facts)

    # -- the line

    async def _slower(self, _: Nothing) -> dict[str, object]:
        if self._rate is None:
            return {"slower": False, "note": "this line's voice has one speed only"}
        return {"slower": self._rate.slower()}

    async def _transfer(self, _: Nothing) -> ToolResultData:
        if self._line is None or self._transfer_target is None:
            return ToolResultData("error", None, "this line cannot be transferred")
        await self._line.transfer(self._transfer_target)
        return ToolResultData("success", {"transferring": True})

    async def _end_call(self, wish: EndCall) -> dict[str, object]:
        if self._line is None:
            return {"ending": False, "note": "this line ends when the caller hangs up"}
        await self._line.hang_up_after_playout(wish.reason)
        return {"ending": True}

    def _facts(self, found: Availability) -> dict[str, object]:
        house = self._bookings.house
        return {
            "verdict": found.verdict,
            "alternatives": [_hm(at) for at in found.alternatives],
            "opens": _hm(house.opens), "last_table": _hm(house.last_table),
            "max_party": max(house.seats),
        }  # fmt: skip

    def _refusal(self, what: str, found: Availability) -> ToolResultData:
        reason = found.verdict.replace("_", " ")
        return ToolResultData("error", self._facts(found), f"{what}: {reason}")


async def _in_thread(work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(None, work)


def _show(ctx: ToolContext, title: str, facts: dict[str, object]) -> None:
    """Put the booking on the page; the voice never waits for it."""
    ctx.display.push_and_forget("show_info_card", {"title": title, **facts}, strategy="hide-on-new")


def _booking_facts(booking: Booking) -> dict[str, object]:
    return {
        "booking_id": booking.id, "name": booking.name, "party": booking.party,
        "date": booking.date.isoformat(), "time": _hm(booking.time),
    }  # fmt: skip


def _hm(at: time) -> str:
    return at.strftime("%H:%M")
