"""Answers to side questions out of what their tools returned. Owned by `plan`; pure.

The line is told what really happened: a tool that is missing or failed is admitted.
"""

from __future__ import annotations

from datetime import time

from .intents import Intent
from .phrases import one_of, sentence, spoken_date, spoken_time
from .state import Side, State, parsed_date, parsed_time

IDENTITY = (
    "I'm a scripted demo, not a language model. I can book, change or cancel a table, tell you the"
    " opening hours and the time, or put you through."
)


def side_texts(state: State) -> list[str]:
    """One text per side question of the last turn, in order."""
    return [text for side in state.sides if (text := _text(state, side))]


def _text(state: State, side: Side) -> str:
    match side.kind:
        case Intent.IDENTITY:
            return IDENTITY
        case Intent.WAIT:
            return "Of course, take your time."
        case Intent.THANKS:
            return "You're welcome."
        case Intent.HELLO:
            return "Hello!"
        case Intent.REPEAT:
            return _repeated(state, side)
    if side.ran is None or side.ran.outcome != "ok":
        return _cannot(side)
    return _from_tool(state, side)


def _from_tool(state: State, side: Side) -> str:
    data = side.ran.data if side.ran is not None else {}
    match side.kind:
        case Intent.HOURS:
            return _hours(state, data)
        case Intent.CLOCK:
            return _clock(data)
        case Intent.FREE:
            return _free(state, side)
        case Intent.SLOWER:
            return (
                "I'll speak more slowly."
                if data.get("slower") is True
                else "I'm sorry, I can't speak any slower on this line."
            )
        case Intent.TRANSFER:
            return "I'm putting you through. One moment, please."
        case Intent.GOODBYE:
            return _goodbye(state)
    return ""


def _cannot(side: Side) -> str:
    match side.kind:
        case Intent.TRANSFER:
            return "I'm sorry, I can't put you through on this line."
        case Intent.SLOWER:
            return "I'm sorry, I can't speak any slower on this line."
        case Intent.GOODBYE:
            return "Goodbye! You can hang up now."
    return "I'm sorry, I couldn't look that up just now."


def _repeated(state: State, side: Side) -> str:
    told = side.ran.data.get("text") if side.ran is not None else None
    again = told if isinstance(told, str) and told else state.said
    return f"I said: {again}" if again else "I haven't said anything yet."


def _hours(state: State, data: object) -> str:
    if not isinstance(data, dict):
        return ""
    opens, closes = parsed_time(data.get("opens")), parsed_time(data.get("closes"))
    day = parsed_date(data.get("date"))
    when = spoken_date(day, state.today) if day is not None else "every day"
    if data.get("closed") is True or opens is None or closes is None:
        return sentence(f"we're closed {when}")
    hours = f"we're open {when} from {spoken_time(opens)} to {spoken_time(closes)}"
    shut = data.get("closed_days")
    if day is None and isinstance(shut, list) and shut:
        hours += f", except {one_of([str(item) for item in shut], 'and')}"
    return sentence(hours)


def _clock(data: object) -> str:
    if not isinstance(data, dict):
        return ""
    at, day = parsed_time(data.get("time")), parsed_date(data.get("date"))
    if at is None or day is None:
        return ""
    # "on Friday, December the fifth": said as of long ago, so that the whole date is spoken.
    named = spoken_date(
        day, day.replace(year=day.year + 1) if day.month < 3 else day.replace(day=1)
    )
    return f"It's {spoken_time(at)}, {named.removeprefix('on ')}."


def _free(state: State, side: Side) -> str:
    data = side.ran.data if side.ran is not None else {}
    day = parsed_date(data.get("date")) or state.today
    when = spoken_date(day, state.today)
    listed = data.get("alternatives")
    times = [
        at for item in (listed if isinstance(listed, list) else []) if (at := parsed_time(item))
    ]
    if data.get("verdict") == "closed":
        return sentence(f"we're closed {when}")
    if not times:
        return sentence(f"we're full {when}")
    offer = one_of(_ranges(times), "and")
    return f"{sentence(when.removeprefix('on '))[:-1]} I have {offer}."


def _ranges(times: list[time]) -> list[str]:
    """Half-hour slots as ranges: "from noon to nine o'clock"; few enough to be listened to."""
    spans: list[list[time]] = []
    for at in times:
        if spans and _minutes(at) - _minutes(spans[-1][-1]) <= 30:
            spans[-1].append(at)
        else:
            spans.append([at])
    return [
        f"from {spoken_time(span[0])} to {spoken_time(span[-1])}"
        if len(span) > 1
        else spoken_time(span[0])
        for span in spans
    ]


def _minutes(at: time) -> int:
    return at.hour * 60 + at.minute


def _goodbye(state: State) -> str:
    name = f", {state.slots.name.split()[0]}" if state.slots.name else ""
    if state.last is not None:
        return f"Thank you{name}. See you {spoken_date(state.last.date, state.today)}. Goodbye!"
    return f"Thank you for calling{name}. Goodbye!"
