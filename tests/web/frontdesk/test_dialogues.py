"""Whole conversations with the demo model: tools that run, what is said, what is in the book."""

from __future__ import annotations

import pytest

from tests.web.frontdesk.caller import NOW, TOMORROW, Answer, FakeLine, calling
from tests.web.frontdesk.dialogues import ANNA, DIALOGUES, FIRST, NAME, READ_BACK, Turn
from voxglove.web.frontdesk import Bookings, House


def assert_answered(answer: Answer, turn: Turn) -> None:
    said, tools, phrases = turn
    assert answer.tools == tools, (said, answer.text)
    for phrase in phrases:
        assert phrase in answer.text, (said, answer.text)
    assert answer.text.strip()


@pytest.mark.parametrize("title", DIALOGUES)
async def test_dialogue(title: str) -> None:
    turns, booked = DIALOGUES[title]
    with calling() as caller:
        for turn in turns:
            assert_answered(await caller.say(turn[0]), turn)
        assert caller.booked() == booked


async def test_a_yes_to_a_read_back_cut_in_the_middle_reads_it_again() -> None:
    with calling() as caller:
        await caller.say(FIRST[0])
        await caller.say(NAME[0])
        await caller.heard_only("A table for two tomorrow")
        again = await caller.say("Yes.")
        assert (again.tools, caller.booked()) == ([], [])
        assert READ_BACK in again.text
        assert (await caller.say("Yes.")).tools == ["book_table"]
        assert caller.booked() == ANNA


async def test_a_correction_cuts_the_read_back() -> None:
    with calling() as caller:
        await caller.say(FIRST[0])
        await caller.say(NAME[0])
        await caller.heard_only("A table for two")
        assert "for three tomorrow" in (await caller.say("No, three people.")).text
        assert (await caller.say("yes")).tools == ["book_table"]


async def test_a_yes_after_all_facts_were_heard_counts() -> None:
    with calling() as caller:
        await caller.say(FIRST[0])
        await caller.say(NAME[0])
        await caller.heard_only("A table for two tomorrow at half past seven for Anna Smith.")
        assert (await caller.say("Yes.")).tools == ["book_table"]


async def test_a_read_back_nobody_heard_is_said_again() -> None:
    with calling() as caller:
        await caller.say(FIRST[0])
        await caller.say(NAME[0])
        await caller.heard_only("")
        answer = await caller.say("Yes")
        assert answer.tools == []
        assert READ_BACK in answer.text


async def test_a_booking_whose_confirmation_was_cut_is_told_and_never_repeated() -> None:
    """findings/field-faults 35, 38: the tool's fact is in history, whatever was heard."""
    with calling() as caller:
        for turn in (FIRST[0], NAME[0], "yes"):
            await caller.say(turn)
        await caller.heard_only("")
        answer = await caller.say("Hello?")
        assert answer.tools == []
        assert "Done, I've booked a table for two tomorrow" in answer.text
        assert (await caller.say("yes")).tools == []
        assert caller.booked() == ANNA


async def test_the_dialogue_goes_on_with_a_new_agent_on_the_same_store() -> None:
    book = Bookings(":memory:")
    with calling(bookings=book) as before:
        await before.say(FIRST[0])
        await before.say(NAME[0])
        store = before.agent.store
        with calling(bookings=book, store=store) as after:  # type: ignore[arg-type]
            assert (await after.say("Yes, that's right.")).tools == ["book_table"]
            assert after.booked() == ANNA
    book.close()


async def test_a_full_house_offers_the_times_next_to_it() -> None:
    with calling(house=House(seats=(2,))) as caller:
        now = NOW
        for hour, minute in ((18, 0), (19, 30)):
            at = now.replace(hour=hour, minute=minute).time()
            caller.bookings.book(f"Guest {hour}", TOMORROW, at, 2, now=now)
        answer = await caller.say("A table for two tomorrow at seven thirty")
        assert "half past seven is full tomorrow. I have half past four or nine" in answer.text
        assert "nine o'clock. That's free" in (await caller.say("nine")).text


async def test_a_table_taken_meanwhile_is_admitted_and_another_offered() -> None:
    with calling(house=House(seats=(2,))) as caller:
        await caller.say(FIRST[0])
        await caller.say(NAME[0])
        caller.bookings.book("Quick", TOMORROW, NOW.replace(hour=19, minute=30).time(), 2, now=NOW)
        answer = await caller.say("yes")
        assert answer.tools == ["book_table"]
        assert "is full tomorrow" in answer.text
        assert [name for name, *_ in caller.booked()] == ["Quick"]


async def test_which_of_two_bookings() -> None:
    with calling() as caller:
        for hour in (19, 20):
            caller.bookings.book("Ann Lee", TOMORROW, NOW.replace(hour=hour).time(), 2, now=NOW)
        answer = await caller.say("Cancel my booking, my name is Ann Lee.")
        assert answer.tools == ["find_booking"]
        assert "tomorrow at seven o'clock or tomorrow at eight o'clock" in answer.text
        assert "at eight o'clock" in (await caller.say("The second one.")).text
        assert (await caller.say("yes")).tools == ["cancel_booking"]
        assert [at.hour for _, _, at, _ in caller.booked()] == [19]


async def test_goodbye_arms_the_hang_up_once() -> None:
    with calling() as caller:
        await caller.say("Goodbye.")
        assert len(caller.line.hung_up) == 1


async def test_a_line_that_cannot_transfer_is_owned_up_to() -> None:
    with calling(line=FakeLine(can_transfer=False)) as caller:
        answer = await caller.say("I want to talk to a real person.")
        assert answer.tools == ["transfer"]
        assert "can't put you through" in answer.text


async def test_the_booking_is_shown_as_a_card_that_waits_for_nobody() -> None:
    with calling() as caller:
        for turn in (FIRST[0], NAME[0], "yes"):
            await caller.say(turn)
        (card,) = caller.agent.display.stack
        assert card.renderer == "show_info_card"
        assert caller.agent.display.pending == 0
