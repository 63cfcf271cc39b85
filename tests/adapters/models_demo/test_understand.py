"""What one turn means, as a small recogniser writes it."""

from __future__ import annotations

from datetime import date, time

import pytest

from voxglove.adapters.models.demo.intents import Intent
from voxglove.adapters.models.demo.understand import Ask, understand

TODAY = date(2025, 11, 29)  # a Saturday


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("7.30", time(19, 30)),
        ("at 730", time(19, 30)),
        ("seven thirty p m", time(19, 30)),
        ("seven-thirty", time(19, 30)),
        ("half past seven", time(19, 30)),
        ("at ate", time(20)),
        ("at for thirty", time(16, 30)),
        ("quarter two eight", time(19, 45)),
        ("ten to eight", time(19, 50)),
        ("19:30", time(19, 30)),
        ("nineteen thirty", time(19, 30)),
        ("noon", time(12)),
        ("tomorrow morning at nine", time(9)),
        ("Good morning, at nine", time(21)),
        ("9 a.m.", time(9)),
        ("at seven, no, at eight", time(20)),
        ("at eight, not at seven", time(20)),
        ("99:99", None),
    ],
)
def test_time(said: str, meant: time | None) -> None:
    assert understand(said, today=TODAY).slots.time == meant


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("tomorrow", date(2025, 11, 30)),
        ("to morrow", date(2025, 11, 30)),
        ("on Friday", date(2025, 12, 5)),
        ("on Saturday", date(2025, 12, 6)),
        ("this Saturday", date(2025, 11, 29)),
        ("next Tuesday", date(2025, 12, 2)),
        ("the twelfth", date(2025, 12, 12)),
        ("Friday the 12th", date(2025, 12, 12)),
        ("December 3rd", date(2025, 12, 3)),
        ("the third of December", date(2025, 12, 3)),
        ("January 5th", date(2026, 1, 5)),
        ("in two weeks", date(2025, 12, 13)),
        ("Christmas Day", date(2025, 12, 25)),
        ("February thirtieth", None),
        ("May I have", None),
    ],
)
def test_date(said: str, meant: date | None) -> None:
    assert understand(said, today=TODAY).slots.date == meant


@pytest.mark.parametrize(
    ("said", "asked", "meant"),
    [
        ("table for 2", None, 2),
        ("a table for to tomorrow", None, 2),
        ("table for too", None, 2),
        ("table for ate", None, 8),
        ("for people", None, 4),
        ("two adults and two kids", None, 4),
        ("just me", None, 1),
        ("me and my wife", None, 2),
        ("there will be five of us", None, 5),
        ("To.", Ask.PARTY, 2),
        ("Uh, four please.", Ask.PARTY, 4),
        ("for eight", Ask.TIME, None),
        ("for two hours", None, None),
    ],
)
def test_party(said: str, asked: Ask | None, meant: int | None) -> None:
    assert understand(said, today=TODAY, asked=asked).slots.party == meant


@pytest.mark.parametrize(
    ("said", "asked", "meant"),
    [
        ("my name is anna smith", None, "Anna Smith"),
        ("Anna Smith.", Ask.NAME, "Anna Smith"),
        ("anna smith", Ask.NAME, "Anna Smith"),
        ("It's Anna Smith, thanks.", Ask.NAME, "Anna Smith"),
        ("A table for Anna Smith tomorrow", None, "Anna Smith"),
        ("S M I T H", Ask.NAME, "Smith"),
        ("Smith, S-M-Y-T-H", Ask.NAME, "Smyth"),
        ("José García", Ask.NAME, "José García"),
        ("No, Hannah Smith.", Ask.CONFIRM, "Hannah Smith"),
        ("My name is Anna and I'd like a table", None, "Anna"),
        ("I'm looking for a table", None, None),
        ("what?", Ask.NAME, None),
    ],
)
def test_name(said: str, asked: Ask | None, meant: str | None) -> None:
    assert understand(said, today=TODAY, asked=asked).slots.name == meant


@pytest.mark.parametrize(
    ("said", "yes"),
    [
        ("Yes, that's right.", True),
        ("No, that's right.", True),
        ("that's not right", False),
        ("no problem", None),
        ("I don't know", None),
        ("Know.", False),
        ("yes, no, wait", False),
        ("please do", True),
        ("Good evening", None),
    ],
)
def test_yes_or_no(said: str, yes: bool | None) -> None:
    assert understand(said, today=TODAY, asked=Ask.CONFIRM).yes is yes


@pytest.mark.parametrize(
    ("said", "intent"),
    [
        ("I'd like to cancel my reservation", Intent.CANCEL),
        ("Can I move my booking", Intent.CHANGE),
        ("Do I have a booking", Intent.FIND),
        ("Are you open on Monday?", Intent.HOURS),
        ("Pardon?", Intent.REPEAT),
        ("you talk too fast", Intent.SLOWER),
        ("Put me through to someone", Intent.TRANSFER),
        ("good buy", Intent.GOODBYE),
        ("from the beginning please", Intent.RESTART),
    ],
)
def test_intent(said: str, intent: Intent) -> None:
    assert intent in understand(said, today=TODAY).intents
