"""What was heard: to the word with alignments, an honest estimate without."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxglove.media.errors import MediaValueError
from voxglove.media.turns.heard import Heard, SegmentText, SpanPair, join_heard

RATE = 16_000


@dataclass(frozen=True)
class Span:
    text_start: int
    text_end: int
    sample_start: int
    sample_end: int


def aligned(text: str, word_samples: int = 1000, gap: int = 0) -> SegmentText:
    """A closed segment in which every word sounds for `word_samples`, `gap` apart."""
    segment = SegmentText()
    segment.add(text)
    start = at = 0
    for word in text.split(" "):
        segment.align(Span(start, start + len(word), at, at + word_samples))
        start, at = start + len(word) + 1, at + word_samples + gap
    segment.sound(at)
    segment.close()
    return segment


def unaligned(text: str, samples: int, *, closed: bool = True) -> SegmentText:
    segment = SegmentText()
    segment.add(text)
    segment.sound(samples)
    if closed:
        segment.close()
    return segment


def test_voice_row_032_a_cut_at_40_percent_keeps_the_words_that_were_played() -> None:
    segment = aligned("one two three four five six seven eight nine ten")
    assert segment.heard(4000) == Heard("one two three four ", "five six seven eight nine ten")


def test_voice_row_032_nothing_played_is_nothing_heard() -> None:
    assert aligned("one two").heard(0) == Heard("", "one two")


@pytest.mark.parametrize(
    ("played", "text"), [(1499, "one "), (1500, "one two "), (3000, "one two three")]
)
def test_a_word_counts_from_half_of_its_sound(played: int, text: str) -> None:
    assert aligned("one two three").heard(played).text == text


def test_a_pause_between_words_belongs_to_neither() -> None:
    segment = aligned("one two", gap=5000)
    assert segment.heard(5900).text == "one "
    assert segment.heard(6400).text == "one "
    assert segment.heard(6500).text == "one two"


def test_without_alignments_the_border_is_estimated() -> None:
    heard = unaligned("one two three four five six", 27_000).heard(13_500)
    assert heard.text == "one two three "
    assert heard.estimated


def test_an_estimate_never_claims_the_last_word_before_all_was_played() -> None:
    segment = unaligned("one two three", 10_000)
    assert segment.heard(9_999) == Heard("one two ", "three", estimated=True)
    assert segment.heard(10_000) == Heard("one two three", "")


def test_sound_that_is_still_coming_is_measured_by_the_rate_of_speech() -> None:
    segment = unaligned("word " * 30, RATE, closed=False)
    heard = segment.heard(RATE)
    assert 10 <= len(heard.text) <= 20
    assert heard.estimated


def test_beyond_the_last_alignment_the_rest_is_estimated() -> None:
    segment = SegmentText()
    segment.add("one two three four")
    segment.align(Span(0, 3, 0, 1000))
    segment.align(Span(4, 7, 1000, 2000))
    segment.sound(4000)
    segment.close()
    assert segment.heard(1000) == Heard("one ", "two three four")
    assert segment.heard(3000) == Heard("one two three ", "four", estimated=True)


def test_the_written_text_is_kept_and_a_pair_is_never_split() -> None:
    segment = SegmentText()
    segment.add(
        "at 7:30 pm today",
        (SpanPair(0, 3, 0, 3, True), SpanPair(3, 10, 3, 19), SpanPair(10, 16, 19, 25, True)),
    )
    segment.sound(2500)  # spoken: "at seven thirty p m today", 100 samples a character
    segment.close()
    assert segment.heard(1000) == Heard("at ", "7:30 pm today", estimated=True)
    assert segment.heard(1200) == Heard("at 7:30 pm ", "today", estimated=True)


def test_pieces_follow_each_other() -> None:
    segment = SegmentText()
    segment.add(
        "It costs $5. ",
        (SpanPair(0, 9, 0, 9, True), SpanPair(9, 11, 9, 21), SpanPair(11, 13, 21, 23, True)),
    )
    segment.add("Ok?")
    segment.align(Span(0, 23, 0, 23_000))
    segment.align(Span(23, 26, 23_000, 26_000))
    segment.sound(26_000)
    segment.close()
    assert segment.heard(24_000).text == "It costs $5. "
    assert segment.heard(24_500).text == "It costs $5. Ok?"


def test_unspaced_scripts_are_heard_by_the_character() -> None:
    assert unaligned("今天天气很好。", 7000).heard(3400).text == "今天天"


def test_pairs_that_do_not_cover_are_refused() -> None:
    with pytest.raises(MediaValueError, match="pairs"):
        SegmentText().add("four", (SpanPair(0, 2, 0, 2, True),))


def test_the_parts_of_an_answer_join_in_order() -> None:
    parts = [Heard("One. ", ""), Heard("Two ", "more. ", True), Heard("", "Three.")]
    assert join_heard(parts) == Heard("One. Two ", "more. Three.", True)
    assert join_heard([]) == Heard("", "")
    assert join_heard([Heard("One. ", "")]).complete


PROSE = st.text(alphabet="ab \n.你好$", max_size=60)


@given(PROSE, st.booleans(), st.booleans(), st.lists(st.integers(0, 9000), max_size=6))
def test_monotone_and_lossless(text: str, with_spans: bool, closed: bool, cuts: list[int]) -> None:
    segment = SegmentText()
    segment.add(text)
    if with_spans:
        for index in range(0, len(text) // 2, 3):
            segment.align(Span(index, index + 2, index * 90, index * 90 + 250))
    segment.sound(8000)
    if closed:
        segment.close()
    before = 0
    for played in sorted(cuts):
        heard = segment.heard(played)
        assert heard.text + heard.unheard == text
        assert len(heard.text) >= before
        before = len(heard.text)
    if closed:
        assert segment.heard(8000).text == text
