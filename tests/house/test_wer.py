"""Word error rate: spelling is forgiven, words are not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.wer import normalise, wer, wer_of_set

SAME = [
    ("go forward ten meters", "Go forward 10 metres."),
    ("two nine three four zero", "29340"),
    ("two nine three four oh", "2 9 3 4 0"),
    ("at seven thirty", "at 7:30"),
    ("at seven", "At 7:00."),
    ("seven p.m.", "7pm"),
    ("twenty five percent", "25%"),
    ("one hundred and five", "105"),
    ("one thousand two hundred", "1,200"),
    ("two thousand twenty six", "2026"),
    ("five dollars", "$5"),
    ("ten point five", "10.5"),
    ("thirty-three four six nine two", "33-4-692"),
    ("I'd like a table", "i would like a table"),
    ("that's right", "That is right!"),
    ("I can\u2019t", "i cannot"),
    ("mister john", "Mr. John"),
    ("ill disposed", "ill-disposed"),
    ("uh-huh", "uh huh."),
    ("okay", "OK"),
    ("eight o'clock", "8 o'clock"),
    ("the second one", "the 2nd 1"),
]


@pytest.mark.parametrize(("spoken", "written"), SAME)
def test_spellings_of_the_same_words_are_equal(spoken: str, written: str) -> None:
    assert normalise(spoken) == normalise(written)
    assert wer(spoken, written).errors == 0


DIFFERENT = [
    ("ten of clubs", "ten of clothes", 1, "clubs>clothes"),
    ("go forward ten meters", "go forward meters", 2, "-1 -0"),
    ("seven thirty", "seven thirteen", 1, "3>1 0>3"),
    ("stop", "please stop now", 2, "+please +now"),
    ("two", "to", 1, "2>to"),
    ("anna smith", "", 2, "-anna -smith"),
]


@pytest.mark.parametrize(("reference", "heard", "errors", "shown"), DIFFERENT)
def test_wrong_words_are_counted_and_shown(
    reference: str, heard: str, errors: int, shown: str
) -> None:
    found = wer(reference, heard)
    assert found.differences() == shown
    assert found.errors >= errors


def test_numbers_weigh_a_word_a_digit() -> None:
    assert normalise("nineteen eighty four") == ["1", "9", "8", "4"]
    assert wer("29340", "29341").rate == pytest.approx(0.2)


def test_an_empty_reference() -> None:
    assert wer("", "").rate == 0
    assert wer("", "thank you").rate == float("inf")


def test_a_set_pools_its_words_and_prints_its_errors() -> None:
    found = wer_of_set([("a", "ten of clubs", "ten of clothes"), ("b", "go", "go")])
    assert found.rate == pytest.approx(1 / 5)
    assert "clubs>clothes" in found.report()
    assert found.report().splitlines()[-1].endswith("= 0.200")


SOME = ["stop", "wait", "no", "table", "two", "seven", "anna", "the"]
WORDS = st.lists(st.sampled_from(SOME), max_size=8)


@given(WORDS, WORDS)
def test_errors_are_a_distance(left: list[str], right: list[str]) -> None:
    a, b = " ".join(left), " ".join(right)
    assert wer(a, b).errors == wer(b, a).errors
    assert (wer(a, b).errors == 0) == (normalise(a) == normalise(b))
    assert wer(a, b).errors <= max(len(normalise(a)), len(normalise(b)))
    kinds = [kind for kind, _, _ in wer(a, b).alignment]
    assert kinds.count("=") + kinds.count("S") + kinds.count("D") == len(normalise(a))
