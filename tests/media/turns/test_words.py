"""Words: what two texts have in common, in any script."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxglove.media.turns.words import (
    after_prefix,
    compare_final,
    same_words,
    spans,
    split_words,
    words,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, World!", ("hello", "world")),
        ("don\u2019t  stop", ("don't", "stop")),
        ("'quoted' rock 'n' roll", ("quoted", "rock", "n", "roll")),
        ("snake_case", ("snake", "case")),
        ("Größe STRASSE", ("grösse", "strasse")),
        ("Привет, мир.", ("привет", "мир")),
        ("नमस्ते दुनिया", ("नमस्ते", "दुनिया")),
        ("你好，world 2", ("你", "好", "world", "2")),
        ("ありがとう", ("あ", "り", "が", "と", "う")),
        ("...!?", ()),
    ],
)
def test_words(text: str, expected: tuple[str, ...]) -> None:
    assert words(text) == expected


def test_repunctuated_words_are_the_same_and_leave_only_what_follows() -> None:
    sent = "Book a table for two"
    assert same_words(sent, "book a table, for two.")
    assert after_prefix("Book a table, for two.", sent) == ""
    assert after_prefix("Book a table for two. And hurry", sent) == "And hurry"


def test_a_prefix_ends_at_a_word() -> None:
    assert after_prefix("tables are nice", "table") == "tables are nice"
    assert after_prefix("你好吗", "你好") == "吗"
    assert after_prefix('Yes. "No" he said', "yes") == '"No" he said'
    assert after_prefix("anything", "") == "anything"


@pytest.mark.parametrize(
    ("sent", "final", "kind"),
    [
        ("I want tea", "I want tea.", "same"),
        ("I want tea", "I want tea, please.", "tail"),
        ("I want tea", "I want tea and a very large piece of cake", "correction"),
        ("I want tea", "I want coffee", "correction"),
        ("I want tea", "I want", "correction"),
        ("I want tea", "", "correction"),
        ("", "hello", "correction"),
    ],
)
def test_voice_row_066_tail_extension_or_correction(sent: str, final: str, kind: str) -> None:
    assert compare_final(sent, final) == kind


@given(st.text())
def test_total_and_spans_lie_in_the_text(text: str) -> None:
    found = spans(text)
    assert same_words(text, text)
    assert all(0 <= word.start < word.end <= len(text) for word in found)
    assert all(a.end <= b.start for a, b in zip(found, found[1:], strict=False))
    assert after_prefix(text, text) in ("", text)


@pytest.mark.parametrize(
    ("text", "count", "parts"),
    [
        ("My name is John, Doe.", 4, ("My name is John,", "Doe.")),
        ("one two", 2, ("one two", "")),
        ("one two", 5, ("one two", "")),
        ("one two", 0, ("", "one two")),
        ("", 3, ("", "")),
    ],
)
def test_a_text_is_split_after_so_many_words(text: str, count: int, parts: tuple[str, str]) -> None:
    assert split_words(text, count) == parts
