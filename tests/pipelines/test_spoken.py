"""Written to spoken text: the golden sentences, and the map back from sound to text."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxglove.pipelines.text import numbers
from voxglove.pipelines.text.spoken import Spoken, to_spoken

BLOCKS = (Path(__file__).parent / "spoken_golden.txt").read_text().strip().split("\n\n")
GOLDEN = [tuple(block.split("\n")) for block in BLOCKS if not block.startswith("#")]
DENSE = st.text(alphabet="0123456789.,:/-–$€£#%°°CFkmGBMSTabDrSt@+()'\" \nvVxaApPé你½😀*`[]<>&=~")


def assert_covers(written: str, spoken: Spoken) -> None:
    """The pairs tile both texts in order; literal ones hold the same characters."""
    at_written = at_spoken = 0
    for pair in spoken.pairs:
        assert (pair.written_start, pair.spoken_start) == (at_written, at_spoken)
        assert pair.written_end > pair.written_start
        at_written, at_spoken = pair.written_end, pair.spoken_end
        if pair.literal:
            heard = spoken.text[pair.spoken_start : pair.spoken_end]
            assert written[pair.written_start : pair.written_end] == heard
    assert (at_written, at_spoken) == (len(written), len(spoken.text))


@pytest.mark.parametrize(("written", "said"), GOLDEN, ids=lambda text: text[:30])
def test_golden(written: str, said: str) -> None:
    assert to_spoken(written).text.rstrip() == said
    assert_covers(written, to_spoken(written))


def test_there_are_enough_golden_sentences() -> None:
    assert len(GOLDEN) >= 60


@pytest.mark.parametrize(("_written", "said"), GOLDEN, ids=lambda text: text[:30])
def test_spoken_text_is_left_alone(_written: str, said: str) -> None:
    assert to_spoken(said).text == said


def test_a_place_in_a_changed_stretch_maps_to_where_it_begins() -> None:
    written = "Booked for 7:30 pm tomorrow."
    spoken = to_spoken(written)
    assert spoken.text == "Booked for seven thirty p m tomorrow."
    inside = spoken.text.index("thirty")
    assert written[spoken.written_offset(inside) :].startswith("7:30")
    after = spoken.text.index("tomorrow")
    assert written[spoken.written_offset(after) :] == "tomorrow."
    assert spoken.written_offset(len(spoken.text)) == len(written)
    assert spoken.spoken_offset(written.index("tomorrow")) == after


@pytest.mark.parametrize("text", ["", " ", "Hello there.", "你好。", "Привет, мир!", "\x00\ud800"])
def test_text_without_written_forms_is_unchanged(text: str) -> None:
    assert to_spoken(text).text == text


@pytest.mark.parametrize(
    "text",
    ["13/13/2026", "32 May", "2026-19-39", "99:99", "9" * 5000, "1." * 2000, "$" * 999 + "9" * 99],
)
def test_forms_that_mean_nothing_do_no_harm(text: str) -> None:
    assert_covers(text, to_spoken(text))


@given(st.text())
def test_total_for_any_text(text: str) -> None:
    assert_covers(text, to_spoken(text))


@given(DENSE)
def test_total_for_text_dense_with_forms(text: str) -> None:
    spoken = to_spoken(text)
    assert_covers(text, spoken)
    offsets = [spoken.written_offset(at) for at in range(len(spoken.text) + 1)]
    assert offsets == sorted(offsets)


def test_under_a_millisecond_a_sentence() -> None:
    started = time.process_time()
    for written, _said in GOLDEN:
        to_spoken(written)
    assert (time.process_time() - started) / len(GOLDEN) < 0.003  # loose: shared machines


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (numbers.cardinal(1_000_001), "one million and one"),
        (numbers.cardinal(999), "nine hundred and ninety-nine"),
        (numbers.ordinal(20), "twentieth"),
        (numbers.ordinal(112), "one hundred and twelfth"),
        (numbers.year(1905), "nineteen oh five"),
        (numbers.year(1900), "nineteen hundred"),
        (numbers.year(2009), "two thousand nine"),
        (numbers.integer("007"), "zero zero seven"),
        (numbers.clock(0, 0), "midnight"),
    ],
)
def test_number_words(said: str, expected: str) -> None:
    assert said == expected
