"""Whole dialogues as data: (said, tools that run, phrases of the answer)."""

from __future__ import annotations

from datetime import date, time

Turn = tuple[str, list[str], list[str]]
Bookings = list[tuple[str, date, time, int]]

SUN, FRI = date(2025, 11, 30), date(2025, 12, 5)
ANNA: Bookings = [("Anna Smith", SUN, time(19, 30), 2)]
ASK = ["free_tables"]
BOOK = ["book_table"]
READ_BACK = "A table for two tomorrow at half past seven for Anna Smith. Is that right?"
FIRST: Turn = ("Hi, I'd like to book a table for two tomorrow at seven thirty.", ASK, ["name"])
NAME: Turn = ("My name is Anna Smith.", [], [READ_BACK])
YES: Turn = ("Yes, that's right.", BOOK, ["Done", "booking number is 1"])

DIALOGUES: dict[str, tuple[list[Turn], Bookings]] = {
    "three turns": ([FIRST, NAME, YES], ANNA),
    "three turns without punctuation": (
        [
            ("hi i'd like to book a table for two tomorrow at seven thirty", ASK, ["name"]),
            ("my name is anna smith", [], [READ_BACK]),
            ("yes that's right", BOOK, ["Done"]),
        ],
        ANNA,
    ),
    "numerals and 7.30": (
        [("Book a table for 2 tomorrow at 7.30 p.m.", ASK, []), ("Anna Smith.", [], [READ_BACK]),
         ("Yep.", BOOK, [])],
        ANNA,
    ),
    "730 and a homophone": (
        [("I'd like a table for to tomorrow at 730.", ASK, []), NAME, ("correct", BOOK, [])],
        ANNA,
    ),
    "all in one sentence": (
        [("A table for two tomorrow at half past seven under Anna Smith, please", ASK,
          [READ_BACK]), ("sure", BOOK, [])],
        ANNA,
    ),
    "slot by slot, misheard": (
        [("I want to make a reservation", [], ["how many people"]),
         ("To.", [], ["table for two", "Which day"]),
         ("to morrow", [], ["two tomorrow", "what time"]),
         ("Seven thirty p m", ASK, ["name"]), ("anna smith", [], [READ_BACK]),
         ("that is correct", BOOK, ["Done"])],
        ANNA,
    ),
    "for people at ate": (
        [("book a table tomorrow at ate", [], ["how many"]), ("for people", ASK, ["four", "eight"]),
         ("Bob Brown", [], ["four tomorrow at eight o'clock for Bob Brown"]), ("right", BOOK, [])],
        [("Bob Brown", SUN, time(20), 4)],
    ),
    "correct the party": (
        [FIRST, NAME, ("No, three people.", ASK, ["table for three"]), ("yes", BOOK, [])],
        [("Anna Smith", SUN, time(19, 30), 3)],
    ),
    "correct the time": (
        [FIRST, NAME, ("Actually at eight.", ASK, ["two tomorrow at eight"]), ("yes", BOOK, [])],
        [("Anna Smith", SUN, time(20), 2)],
    ),
    "yes, but": (
        [FIRST, NAME, ("Yes, but at eight o'clock.", ASK, ["at eight o'clock", "right?"]),
         ("yes", BOOK, [])],
        [("Anna Smith", SUN, time(20), 2)],
    ),
    "correct the name": (
        [FIRST, NAME, ("No, it's Hannah Smith.", [], ["for Hannah Smith. Is"]), ("yes", BOOK, [])],
        [("Hannah Smith", SUN, time(19, 30), 2)],
    ),
    "no, then what": (
        [FIRST, NAME, ("No.", [], ["What would you like to change"]), ("the time", [], ["time?"]),
         ("nine", ASK, ["at nine o'clock"]), ("yes please", BOOK, [])],
        [("Anna Smith", SUN, time(21), 2)],
    ),
    "correct within one sentence": (
        [("A table for two, no, three people, tomorrow at seven, no at eight.", ASK,
          ["three tomorrow at eight"])],
        [],
    ),
    "people or o'clock": (
        [FIRST, NAME, ("Make it eight.", [], ["Do you mean eight people, or eight o'clock?"]),
         ("eight o'clock", ASK, ["two tomorrow at eight"]), ("yes", BOOK, [])],
        [("Anna Smith", SUN, time(20), 2)],
    ),
    "spelled name": (
        [FIRST, ("It's Smyth, S-M-Y-T-H.", [], ["for Smyth. Is"]), ("yes", BOOK, [])],
        [("Smyth", SUN, time(19, 30), 2)],
    ),
    "asked again in other words, then choices": (
        [("book a table", [], ["For how many people?"]), ("banana", [], ["Just the number"]),
         ("purple", [], ["for two, for four, or for six"]), ("four", [], ["Which day"])],
        [],
    ),
    "yes or no": (
        [FIRST, NAME, ("The weather.", [], ["a yes or a no", READ_BACK]),
         ("Elephants.", [], ["start over"]), ("yes", BOOK, [])],
        ANNA,
    ),
    "start over": (
        [FIRST, NAME, ("Start over.", [], ["start over", "book a table"]),
         ("yes", [], []), ("table for six on Friday at eight", ASK, ["six on Friday"])],
        [],
    ),
    "dropped": ([FIRST, ("Never mind.", [], ["dropped"]), ("No thanks.", ["end_call"], [])], []),
    "what did you say": (
        [FIRST, NAME, ("What did you say?", ["repeat"], [READ_BACK]), ("yes", BOOK, [])], ANNA,
    ),
    "slower": (
        [FIRST, NAME, ("Slower, please.", ["slower"], ["slowly", READ_BACK]), ("yes", BOOK, [])],
        ANNA,
    ),
    "hours in the middle": (
        [("a table for two tomorrow", [], ["what time"]),
         ("What time do you close?", ["opening_hours"], ["from noon to ten", "what time?"]),
         ("half past seven", ASK, ["name"])],
        [],
    ),
    "weekdays and dates": (
        [("table for two on Friday at eight", ASK, ["on Friday at eight"]),
         ("the twelfth", ASK, ["Friday, December the twelfth"]),
         ("no, December 3rd", ASK, ["Wednesday"]),
         ("next Tuesday", ASK, ["Tuesday"])],
        [],
    ),
    "closed day": (
        [("Table for two on December 25th at seven.", ASK, ["we're closed", "Which other day"]),
         ("the 26th", ASK, ["December the twenty-sixth", "free"])],
        [],
    ),
    "out of hours": (
        [("Table for two tomorrow at 11 p.m.", ASK, ["from noon to nine", "What time"]),
         ("nine", ASK, ["nine o'clock", "free"])],
        [],
    ),
    "already past": (
        [("Table for two today at ten a.m.", ASK, ["already passed"]), ("at one", ASK, ["free"])],
        [],
    ),
    "too many": (
        [("Table for twelve tomorrow at seven", ASK, ["up to eight people", "put you through"]),
         ("Yes please", ["transfer"], ["putting you through"])],
        [],
    ),
    "cancel by name": (
        [FIRST, NAME, YES, ("Cancel my booking.", [], ["Shall I cancel it?"]),
         ("Yes, cancel it.", ["cancel_booking"], ["I've cancelled"])],
        [],
    ),
    "cancel, then not": (
        [FIRST, NAME, YES, ("Please cancel my booking.", [], ["Shall I cancel it?"]),
         ("No.", [], ["left it as it is"])],
        ANNA,
    ),
    "change by name": (
        [FIRST, NAME, YES, ("Can I move my booking to eight?", [], ["tomorrow at eight o'clock"]),
         ("That's fine", ["change_booking"], ["it is now", "at eight o'clock"])],
        [("Anna Smith", SUN, time(20), 2)],
    ),
    "change, asked what": (
        [FIRST, NAME, YES, ("I need to change my reservation", [], ["What would you like to"]),
         ("five people", [], ["table for five"]), ("ok", ["change_booking"], ["for five"])],
        [("Anna Smith", SUN, time(19, 30), 5)],
    ),
    "find": (
        [FIRST, NAME, YES, ("When is my booking?", ["find_booking"], ["half past seven"])], ANNA,
    ),
    "unknown name": (
        [("Cancel my reservation", [], ["name"]), ("Peter Jones", ["find_booking"],
         ["can't find a booking under Peter Jones"])],
        [],
    ),
    "honest": (
        [("Are you a real person?", [], ["scripted demo, not a language model"]),
         ("Tell me a joke about tax.", [], ["not a language model"]),
         ("Sing.", [], ["You can say: book a table"])],
        [],
    ),
    "time of day": ([("What time is it?", ["current_time"], ["noon", "Saturday"])], []),
    "free times": (
        [("What's free tomorrow?", ASK, ["from noon to nine"]),
         ("Then at half past seven for two.", ASK, ["free", "name"])],
        [],
    ),
    "human": ([("Can I speak to a human?", ["transfer"], ["putting you through"])], []),
    "goodbye": ([FIRST, NAME, YES, ("Thanks, goodbye!", ["end_call"], ["Goodbye"])], ANNA),
    "nothing else": ([FIRST, NAME, YES, ("No, thank you.", ["end_call"], ["Goodbye"])], ANNA),
    "one moment": (
        [FIRST, ("Hold on a second.", [], ["take your time"]), NAME, YES], ANNA,
    ),
    "book twice in a row": (
        [FIRST, NAME, YES, ("A table for two tomorrow at seven thirty.", ASK, [READ_BACK]),
         ("yes", BOOK, ["You already have"])],
        ANNA,
    ),
}  # fmt: skip
