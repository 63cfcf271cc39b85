"""The book and the tools by themselves, as a language model would use them."""

from __future__ import annotations

from datetime import datetime, time
from pathlib import Path

import pytest

from tests.web.frontdesk.caller import NOW, TOMORROW, FakeLine, calling
from voxglove.web.frontdesk import Bookings, FrontDesk, House

READ_ONLY = {"opening_hours", "free_tables", "find_booking", "current_time", "repeat"}
WRITES = {"book_table", "change_booking", "cancel_booking"}


def test_flags_say_which_tools_may_run_before_the_turn_is_committed() -> None:
    with calling() as caller:
        tools = caller.agent.tools
    assert {tool.name for tool in tools if tool.read_only} == READ_ONLY
    assert {tool.name for tool in tools if tool.un_abortable} == WRITES
    assert all(len(tool.description) > 30 for tool in tools)
    assert all(tool.retries == 0 for tool in tools)


def test_the_same_booking_twice_is_one_booking() -> None:
    book = Bookings(":memory:")
    first = book.book("Anna Smith", TOMORROW, time(19, 30), 2, now=NOW)
    again = book.book("anna  smith", TOMORROW, time(19, 30), 2, now=NOW)
    assert (first[0], first[2]) == (again[0], False)
    assert again[2] is True
    assert len(book.all_active()) == 1
    book.close()


def test_a_sitting_holds_its_table_for_ninety_minutes() -> None:
    book = Bookings(":memory:", House(seats=(2,)))
    book.book("A", TOMORROW, time(19, 0), 2, now=NOW)
    verdicts = [
        book.availability(TOMORROW, at, 2, now=NOW).verdict
        for at in (time(17, 30), time(17, 45), time(20, 15), time(20, 30))
    ]
    assert verdicts == ["free", "full", "full", "free"]
    book.close()


def test_a_booking_may_move_within_its_own_sitting() -> None:
    book = Bookings(":memory:", House(seats=(2,)))
    made, _, _ = book.book("A", TOMORROW, time(19, 0), 2, now=NOW)
    assert made is not None
    moved, found = book.change(made.id, None, time(19, 30), None, now=NOW)
    assert moved is not None and moved.time == time(19, 30)
    assert found.verdict == "free"
    book.close()


def test_the_book_is_kept_in_its_file(tmp_path: Path) -> None:
    path = str(tmp_path / "book.db")
    first = Bookings(path)
    first.book("Anna Smith", TOMORROW, time(19, 30), 2, now=NOW)
    first.close()
    second = Bookings(path)
    assert [one.name for one in second.find("Anna Smith", now=NOW)] == ["Anna Smith"]
    second.close()


@pytest.mark.parametrize("heard", ["Ana Smith", "anna smyth", "Smith", "ANNA SMITH"])
def test_a_name_is_found_as_it_was_heard(heard: str) -> None:
    book = Bookings(":memory:")
    book.book("Anna Smith", TOMORROW, time(19, 30), 2, now=NOW)
    book.book("Bob Brown", TOMORROW, time(19, 30), 2, now=NOW)
    assert [one.name for one in book.find(heard, now=NOW)] == ["Anna Smith"]
    book.close()


def test_cancelling_what_is_not_there_is_an_error() -> None:
    book = Bookings(":memory:")
    with pytest.raises(LookupError, match="no active booking 9"):
        book.cancel(9)
    book.close()


@pytest.mark.parametrize(
    ("at", "day", "party", "verdict"),
    [
        (time(9), TOMORROW, 2, "outside_hours"),
        (time(21, 30), TOMORROW, 2, "outside_hours"),
        (time(12), NOW.date(), 2, "past"),
        (time(19), NOW.date().replace(day=1), 2, "past"),
        (time(19), datetime(2025, 12, 25).date(), 2, "closed"),
        (time(19), TOMORROW, 9, "too_large"),
    ],
)
def test_the_rules_of_the_house(at: time, day: datetime, party: int, verdict: str) -> None:
    book = Bookings(":memory:")
    assert book.availability(day, at, party, now=NOW).verdict == verdict
    book.close()


def test_a_house_that_closes_before_it_opens_is_refused() -> None:
    with pytest.raises(ValueError, match="must follow each other"):
        House(opens=time(22), closes=time(12))


async def test_without_line_tools_the_end_of_the_call_is_left_to_the_caller() -> None:
    book = Bookings(":memory:")
    desk = FrontDesk(book, None, clock=lambda: NOW)
    assert {tool.name for tool in desk.tools()} >= {"end_call", "transfer", "slower"}
    with calling(bookings=book, line=FakeLine()) as caller:
        caller.agent.replace_tools([tool.name for tool in caller.agent.tools], desk.tools())
        answer = await caller.say("Goodbye")
        assert answer.tools == ["end_call"]
        assert "Goodbye" in answer.text
        assert "can't speak any slower" in (await caller.say("slower please")).text
    book.close()
