"""Speech tags: only what stands inside is spoken, however the tokens fall."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxglove.pipelines.text.tags import SpeechTagParser, salvage_wrapped_speech

REPLY = "thinking <speech>Hello there.</speech> more <SPEECH >And you?</speech> end"


def spoken(text: str, size: int = 1) -> tuple[str, SpeechTagParser]:
    """What is spoken of `text` in tokens of `size`, tail included."""
    parser = SpeechTagParser()
    said = [parser.push(text[i : i + size]) for i in range(0, len(text), size)]
    return "".join(said) + parser.finish().tail, parser


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 100])
def test_only_the_blocks_are_spoken(size: int) -> None:
    said, parser = spoken(REPLY, size)
    assert said == "Hello there.And you?"
    assert parser.raw == REPLY


def test_finish_gives_all_that_was_spoken_and_the_counts() -> None:
    parser = SpeechTagParser()
    parser.push(REPLY)
    done = parser.finish()
    assert done.text == "Hello there. And you?"
    assert done.stats.blocks == 2
    assert not done.stats.unclosed
    assert done.stats.spoken_chars == len("Hello there. And you?")
    assert done.stats.discarded_chars == len("thinking  more  end")


def test_what_may_become_a_tag_is_held_back() -> None:
    parser = SpeechTagParser()
    assert parser.push("<speech>Hi</spe") == "Hi"
    assert parser.push("ll> you") == "/spell you"
    assert parser.push(" <") == " "
    assert parser.push(" 3") == " 3"


def test_an_open_block_is_spoken_without_its_partial_tag() -> None:
    parser = SpeechTagParser()
    assert parser.push("<speech>Bye  now</spee") == "Bye  now"
    done = parser.finish()
    assert (done.tail, done.text, done.stats.unclosed) == ("", "Bye now", True)


def test_nested_tags_and_stray_brackets_are_stripped() -> None:
    said, parser = spoken("<speech>a <speech>b</speech> c > d")
    assert said == "a b"
    assert parser.inside is False


@given(st.text(alphabet="<>/speh aSPEECH"), st.integers(1, 6))
def test_tokens_make_no_difference_and_no_bracket_is_spoken(text: str, size: int) -> None:
    text = f"<speech>{text}"
    said, _ = spoken(text, size)
    assert said == spoken(text, 10_000)[0]
    assert "<" not in said and ">" not in said


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("<assistant>Sure, one moment.</assistant>", "Sure, one moment."),
        ("<Anna>Hi there", "Hi there"),
        ("<say>ok</say>", "ok"),
        ('<reply>{"tool": 1}</reply>', None),
        ("<reply><tool_call>x</reply>", None),
        ("<other>text</other>", None),
        ("plain", None),
    ],
)
def test_salvage(raw: str, expected: str | None) -> None:
    assert salvage_wrapped_speech(raw, ["Anna"]) == expected
