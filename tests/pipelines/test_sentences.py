"""SentenceBuffer: lossless, independent of tokens, and cut where a speaker would breathe."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxglove.pipelines.text.sentences import SentenceBuffer, SentenceConfig, split_sentences

PLAIN = SentenceConfig(first_clause_words=99, first_words=99, first_patience=99)
PROSE = st.text(alphabet=" .!?…,;:\n\"'abcDrSt1。，你好")


def pieces(text: str, config: SentenceConfig = PLAIN, size: int | None = None) -> list[str]:
    """All pieces of `text`, pushed whole or in tokens of `size` characters."""
    buffer = SentenceBuffer(config)
    step = size or max(1, len(text))
    found = [p for i in range(0, len(text), step) for p in buffer.push(text[i : i + step])]
    return found + buffer.flush()


def stripped(text: str, config: SentenceConfig = PLAIN) -> list[str]:
    return [piece.strip() for piece in pieces(text, config)]


def test_voice_row_041_amount_and_title_do_not_end_a_sentence() -> None:
    assert pieces("It is $3.14 for Dr. Smith. Ok?") == ["It is $3.14 for Dr. Smith. ", "Ok?"]


def test_voice_row_041_nothing_is_decided_before_the_next_character() -> None:
    buffer = SentenceBuffer(PLAIN)
    assert buffer.push("It is $3.") == []
    assert buffer.push("14 for you.") == []
    assert buffer.push(" ") == []
    assert buffer.push("O") == ["It is $3.14 for you. "]
    assert buffer.flush() == ["O"]


def test_voice_row_042_tokens_split_inside_an_ellipsis() -> None:
    buffer = SentenceBuffer(PLAIN)
    assert [buffer.push(token) for token in ("Well", ".", "..", " let me", " see")] == [[]] * 5
    assert buffer.flush() == ["Well... let me see"]
    assert buffer.flush() == []


def test_voice_row_043_cjk_punctuation_without_spaces_splits() -> None:
    assert pieces("你好。今天天气很好！你呢？") == ["你好。", "今天天气很好！", "你呢？"]
    assert pieces("「行こう。」と言った。はい。") == ["「行こう。」", "と言った。", "はい。"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Use v2.0.1 now. Then go.", ["Use v2.0.1 now.", "Then go."]),
        ("See e.g. Berlin. Good.", ["See e.g. Berlin.", "Good."]),
        ("St. Paul is old. Yes.", ["St. Paul is old.", "Yes."]),
        ("He is on Main St. The shop is open.", ["He is on Main St.", "The shop is open."]),
        ("It is on 5th St. The shop is open.", ["It is on 5th St.", "The shop is open."]),
        ("I flew to St. Louis. It rained.", ["I flew to St. Louis.", "It rained."]),
        ("J. K. Rowling wrote it. Yes.", ["J. K. Rowling wrote it.", "Yes."]),
        ("You and I. Then they.", ["You and I.", "Then they."]),
        ("At 7 p.m. on Friday. Fine.", ["At 7 p.m. on Friday.", "Fine."]),
        ("Room No. 5 is free. Ok.", ["Room No. 5 is free.", "Ok."]),
        ('He said "Stop!" Then he left.', ['He said "Stop!"', "Then he left."]),
        ('"Stop!" he said. Ok.', ['"Stop!" he said.', "Ok."]),
        ("Really?! Yes.", ["Really?!", "Yes."]),
        ("Wait... What?", ["Wait...", "What?"]),
        ("Wait… what?", ["Wait… what?"]),
        ("1. First thing. 2. Second.", ["1. First thing.", "2. Second."]),
        ("First line\n\nSecond line", ["First line", "Second line"]),
        ("Visit example.com today. Ok.", ["Visit example.com today.", "Ok."]),
        ("In 1999. Then 2000.", ["In 1999.", "Then 2000."]),
        ("Это так. Хорошо.", ["Это так.", "Хорошо."]),
        ("ما اسمك؟ أنا هنا.", ["ما اسمك؟", "أنا هنا."]),
        ("यह सच है। हाँ।", ["यह सच है।", "हाँ।"]),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert stripped(text) == expected


def test_first_chunk_ends_at_a_clause_after_three_words() -> None:
    text = "Sure, I can help you, and then we look at it, together."
    assert stripped(text, SentenceConfig()) == [
        "Sure, I can help you,",
        "and then we look at it, together.",
    ]


def test_first_chunk_ends_after_five_words_when_no_mark_comes() -> None:
    buffer = SentenceBuffer()
    assert buffer.push("I will look that up for you ") == []
    assert buffer.push("right now and ") == ["I will look that up "]
    assert buffer.push("then tell you every single thing that I could find on it") == []


def test_a_short_first_sentence_is_not_torn() -> None:
    assert stripped("It is a very nice day. Yes.", SentenceConfig())[0] == "It is a very nice day."


def test_first_chunk_comes_again_after_flush() -> None:
    buffer = SentenceBuffer()
    text = "One two three four, five six."
    assert buffer.push(text) + buffer.flush() == ["One two three four, ", "five six."]
    assert buffer.push(text) + buffer.flush() == ["One two three four, ", "five six."]


def test_numbers_with_marks_are_no_clause() -> None:
    assert stripped("You owe them 1,000 at 7:30 today, ok.", SentenceConfig())[0].endswith("today,")


def test_too_long_is_cut_at_the_clause_then_the_word_then_anywhere() -> None:
    config = SentenceConfig(first_clause_words=99, first_words=99, first_patience=99, max_chars=20)
    assert pieces("one two, three four five six", config)[0] == "one two, "
    assert pieces("one two three four five six", config)[0] == "one two three four "
    assert pieces("x" * 50, config) == ["x" * 20, "x" * 20, "x" * 10]


@given(PROSE, st.integers(1, 7))
def test_lossless_and_independent_of_tokens(text: str, size: int) -> None:
    for config in (SentenceConfig(), PLAIN, SentenceConfig(max_chars=12)):
        whole = pieces(text, config)
        assert "".join(whole) == text
        assert pieces(text, config, size) == whole
        assert all(len(piece) <= config.max_chars for piece in whole if piece.strip())


@given(st.text())
def test_lossless_for_any_text(text: str) -> None:
    assert "".join(pieces(text, SentenceConfig())) == text
    assert "".join(split_sentences(text)) == text


def test_a_long_text_in_one_token_is_cut_all_the_way() -> None:
    assert len(pieces("word, " * 20_000)) == 500


def test_bad_config_names_the_field() -> None:
    with pytest.raises(ValueError, match="first_words"):
        SentenceConfig(first_words=9, first_patience=3)
    with pytest.raises(ValueError, match="max_chars"):
        SentenceConfig(max_chars=1)
