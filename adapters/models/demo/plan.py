"""What to do next in a state: ask, read back, call a tool, or tell. Pure.

Owned by `dialogue`, which also uses it to work out which question an earlier answer asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import time

from .intents import Intent
from .phrases import one_of, sentence, spoken_date, spoken_number, spoken_table, spoken_time
from .sides import side_texts
from .state import Booking, Call, Check, Goal, Note, Side, State, booking_of
from .understand import Ask, Slots

WAITING = "One moment, I'm still working on that."
HONEST = "I'm a scripted demo, not a language model, so I only understand a few things."
_CHOICES = (
    "You can say: book a table, change a booking, cancel a booking, or opening hours."
    " What would you like?"
)
_ASKS = {
    Ask.PARTY: (
        "For how many people?",
        "Sorry, how many of you will there be? Just the number is enough, like two or four.",
        "I'm having trouble understanding. Is the table for two, for four, or for six people?",
    ),
    Ask.DATE: (
        "Which day would you like?",
        "Sorry, which day is it for? You can say tomorrow, or a day like Friday, or a date.",
        "I'm having trouble understanding. Shall it be today, tomorrow, or Saturday?",
    ),
    Ask.TIME: (
        "At what time?",
        "Sorry, what time was that? For example, half past seven.",
        "I'm having trouble understanding. Would seven, half past seven, or eight o'clock suit?",
    ),
    Ask.NAME: (
        "What name is it under?",
        "Sorry, I didn't get the name. Could you say your first and last name?",
        "I'm having trouble understanding. Please spell the name letter by letter, or say:"
        " put me through.",
    ),
    Ask.WHAT_CHANGE: (
        "What would you like to change: the day, the time, or the number of people?",
        "Sorry, what should I change? Say the new day, the new time, or how many people.",
        "I'm having trouble understanding. Say, for instance: at eight, or three people, or"
        " start over.",
    ),
}
_RETRY = (
    "",
    "Sorry, I need a yes or a no. ",
    "I'm having trouble understanding. You can say yes, or no, or start over. ",
)
_NOTES = {
    Note.RESTARTED: "All right, let's start over.",
    Note.DROPPED: "All right, I've dropped that.",
    Note.KEPT: "All right, I've left it as it is.",
    Note.FAILED: "Sorry, that did not go through.",
    Note.HOW: "How can I help?",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One step: text, or calls and no text. `facts` must have been heard for a yes to count."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    asked: Ask | None = None
    facts: str = ""
    ends_goal: bool = False


def plan(state: State) -> Plan:
    """The next step; its text is never empty unless it has calls."""
    if state.running:
        return Plan(text=WAITING, asked=state.asked)
    for side in state.sides:
        if side.call is not None and side.ran is None and side.call.name in state.tools:
            return Plan(calls=(side.call,))
    told = side_texts(state)
    if _closes(state.sides):
        return Plan(text=" ".join(told), ends_goal=True)
    step = _news(state) or _step(state)
    if step.calls:
        return step
    if any(side.kind in (Intent.REPEAT, Intent.WAIT) for side in state.sides):
        return replace(step, text=" ".join(told) or step.text)
    note = _NOTES.get(state.note) if state.note is not None else None
    return replace(step, text=" ".join(part for part in (note, *told, step.text) if part))


def _closes(sides: tuple[Side, ...]) -> bool:
    """Whether a goodbye or a hand-over was carried out: nothing is asked behind it."""
    return any(
        side.kind is Intent.GOODBYE
        or (side.kind is Intent.TRANSFER and side.ran is not None and side.ran.outcome == "ok")
        for side in sides
    )


def _step(state: State) -> Plan:
    steps: dict[Goal, Callable[[State], Plan]] = {
        Goal.BOOK: _book,
        Goal.CHANGE: _change,
        Goal.CANCEL: _cancel,
        Goal.FIND: _find,
    }
    return steps[state.goal](state) if state.goal is not None else _nothing(state)


def _nothing(state: State) -> Plan:
    """No goal: greet, offer, or own up to not understanding."""
    if state.misses >= 2:
        return Plan(text=f"{HONEST} {_CHOICES}")
    if state.misses == 1:
        return Plan(
            text=f"Sorry, I didn't understand. {HONEST} Would you like to book a table, or change"
            " or cancel a booking?"
        )
    if any(side.kind is not Intent.HELLO for side in state.sides) or state.note in (
        Note.DROPPED,
        Note.KEPT,
    ):
        return Plan(text="Is there anything else?", asked=Ask.ANYTHING)
    if state.note is Note.HOW:
        return Plan(text="You can book, change or cancel a table.")
    who = f", {state.slots.name}" if state.fresh and state.slots.name else ""
    return Plan(text=f"Would you like to book a table{who}, or change or cancel a booking?")


def _news(state: State) -> Plan | None:
    """Tell the outcome of a booking, change or cancellation, once."""
    if state.news is None:
        return None
    booking = booking_of(state.news.data)
    told = _table(state, booking) if booking is not None else "that"
    again = state.news.data.get("already") is True
    match state.news.name:
        case "book_table" if again:
            done = f"You already have {told}."
        case "book_table":
            done = f"Done, I've booked {told}."
        case "change_booking":
            done = f"Done, it is now {told}."
        case _:
            done = f"I've cancelled {_table(state, booking, 'the')}." if booking else "Cancelled."
    if booking is not None and state.news.name == "book_table":
        done += f" Your booking number is {booking.id}."
    return Plan(text=f"{done} Is there anything else?", asked=Ask.ANYTHING, ends_goal=True)


def _book(state: State) -> Plan:
    wish = state.wish
    if state.confirmed and state.slots.name and None not in (wish.party, wish.date, wish.time):
        return Plan(calls=(Call("book_table", {"name": state.slots.name, **wish_args(wish)}),))
    asked = _open_question(state)
    if asked is not None:
        return asked
    for missing in (Ask.PARTY, Ask.DATE, Ask.TIME):
        if getattr(wish, missing.value) is None:
            known = Slots(party=wish.party, date=wish.date, time=wish.time)
            return _ask(state, missing, before=_echo(state, known))
    if (state.check is None or state.check.wish != wish) and "free_tables" in state.tools:
        return Plan(calls=(Call("free_tables", wish_args(wish)),))
    refused = _refused(state)
    if refused is not None:
        return refused
    if state.slots.name is None:
        return _ask(state, Ask.NAME, before=f"{_echo(state, wish)} That's free." if state.fresh
                    else "")  # fmt: skip
    return _read_back(state, sentence(_wish(state, wish, state.slots.name)), "Is that right?")


def _change(state: State) -> Plan:
    booking = state.subject
    if booking is None:
        return _look_up(state)
    wish = state.wish
    new = {
        key: value
        for key, value in wish_args(wish).items()
        if value != wish_args(_wish_of(booking))[key]
    }
    if state.confirmed and new:
        return Plan(calls=(Call("change_booking", {"booking_id": booking.id, **new}),))
    asked = _open_question(state)
    if asked is not None:
        return asked
    if not new:
        return _ask(state, Ask.WHAT_CHANGE, before=f"You have {_table(state, booking)}.")
    refused = _refused(state)
    if refused is not None:
        return refused
    facts = f"I'll change it to {_wish(state, wish, None)}."
    return _read_back(state, facts, "Is that right?")


def _cancel(state: State) -> Plan:
    booking = state.subject
    if booking is None:
        return _look_up(state)
    if state.confirmed:
        return Plan(calls=(Call("cancel_booking", {"booking_id": booking.id}),))
    return _read_back(state, f"You have {_table(state, booking)}.", "Shall I cancel it?")


def _find(state: State) -> Plan:
    if state.looked is None or not state.found:
        return _look_up(state)
    listed = one_of([_table(state, booking) for booking in state.found], "and")
    text = f"You have {listed}. Is there anything else?"
    return Plan(text=text, asked=Ask.ANYTHING, ends_goal=True)


def _look_up(state: State) -> Plan:
    """Find the booking by name; ask which, or for the name, when that does not settle it."""
    if state.slots.name is None:
        return _ask(state, Ask.NAME)
    if state.looked is None and "find_booking" in state.tools:
        return Plan(calls=(Call("find_booking", {"name": state.slots.name}),))
    if not state.found:
        text = f"I can't find a booking under {state.slots.name}. What name could it be under?"
        if state.misses:
            text += " You can spell it letter by letter."
        return Plan(text=text, asked=Ask.NAME)
    ordered = sorted(state.found, key=lambda booking: (booking.date, booking.time))
    listed = [
        f"{spoken_date(booking.date, state.today)} at {spoken_time(booking.time)}"
        for booking in ordered
    ]
    count = "Sorry, which one? There is" if state.misses else "I found more than one:"
    return Plan(text=f"{count} {one_of(listed)}. Which one do you mean?", asked=Ask.WHICH)


def _open_question(state: State) -> Plan | None:
    """A question the caller's last turn raised: which kind of number, what to change."""
    if state.number is not None:
        heard = spoken_time_of(state.number)
        text = f"Do you mean {spoken_number(state.number)} people, or {heard}?"
        if state.misses:
            text = f"Sorry, is that the number of people or the time? Say people, or say {heard}."
        return Plan(text=text, asked=Ask.NUMBER)
    if state.wanted is not None:
        return _ask(state, state.wanted)
    if state.note is Note.WHAT_CHANGE:
        return _ask(state, Ask.WHAT_CHANGE, before="All right.")
    return None


def spoken_time_of(number: int) -> str:
    """The hour a bare number would be: "eight o'clock"."""
    return spoken_time(time(number + 12 if number <= 11 else number % 24))


def _refused(state: State) -> Plan | None:
    """Why the wish cannot be had, and what can; None when it can or is not checked yet."""
    check = state.check
    if check is None or check.verdict == "free" or check.wish != state.wish:
        return None
    sorry = "Sorry, " if not state.misses else "I still need another choice: "
    match check.verdict:
        case "closed":
            day = spoken_date(check.wish.date or state.today, state.today)
            return Plan(text=f"{sorry}we're closed {day}. Which other day?", asked=Ask.DATE)
        case "outside_hours":
            hours = _hours(check)
            return Plan(text=f"{sorry}{hours} What time would you like?", asked=Ask.TIME)
        case "past":
            return Plan(text=f"{sorry}that time has already passed. What time would you like?",
                        asked=Ask.TIME)  # fmt: skip
        case "too_large":
            most = spoken_number(check.max_party)
            return Plan(
                text=f"{sorry}I can only book up to {most} people at one table. Shall I put you"
                " through to a colleague?",
                asked=Ask.TRANSFER,
            )
        case _:
            return _full(state, check, sorry)


def _full(state: State, check: Check, sorry: str) -> Plan:
    when = f"{spoken_time(check.wish.time)}" if check.wish.time is not None else "that day"
    day = spoken_date(check.wish.date or state.today, state.today)
    if not check.alternatives:
        return Plan(text=f"{sorry}we're full {day}. Which other day?", asked=Ask.DATE)
    offer = one_of([spoken_time(at) for at in check.alternatives])
    ask = "Which would you like?" if len(check.alternatives) > 1 else "Would that suit?"
    text = f"{sorry}{when} is full {day}. I have {offer}. {ask}"
    return Plan(text=text, asked=Ask.TIME)


def _hours(check: Check) -> str:
    if check.opens is None or check.last_table is None:
        return "we're not open then."
    return f"we take tables from {spoken_time(check.opens)} to {spoken_time(check.last_table)}."


def _read_back(state: State, facts: str, question: str) -> Plan:
    retry = _RETRY[min(state.misses, 2)]
    return Plan(text=f"{retry}{facts} {question}", asked=Ask.CONFIRM, facts=facts)


def _ask(state: State, what: Ask, before: str = "") -> Plan:
    return Plan(text=f"{before} {_ASKS[what][min(state.misses, 2)]}".strip(), asked=what, facts="")


def _echo(state: State, known: Slots) -> str:
    """What was just understood, so that a mishearing is noticed at once."""
    if not state.fresh or known.empty:
        return ""
    return sentence(_wish(state, known, None))


def _wish(state: State, wish: Slots, name: str | None) -> str:
    return spoken_table(party=wish.party, day=wish.date, at=wish.time, name=name, today=state.today)


def _table(state: State, booking: Booking, article: str = "a") -> str:
    return spoken_table(
        party=booking.party, day=booking.date, at=booking.time, name=booking.name,
        today=state.today, article=article,
    )  # fmt: skip


def _wish_of(booking: Booking) -> Slots:
    return Slots(party=booking.party, date=booking.date, time=booking.time)


def wish_args(wish: Slots) -> dict[str, object]:
    """A wish as tool arguments, dates and times in ISO form."""
    given = {
        "date": wish.date.isoformat() if wish.date is not None else None,
        "time": wish.time.strftime("%H:%M") if wish.time is not None else None,
        "party": wish.party,
    }
    return {key: value for key, value in given.items() if value is not None}
