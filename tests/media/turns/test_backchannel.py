"""Backchannel, stop or words: both directions, in the spellings small recognisers use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxglove.media.turns.backchannel import classify

BACKCHANNELS = [
    phrase
    for line in (
        "mm-hm|Mm-hmm.|mhm|hmm.|Hm|uh-huh|uh huh|Uhuh|mmhmm|um|oh|ah|Uh-h...|uh hu|Yeah.",
        "yeah yeah|ok|Okay.",
        "OK, right|right|I see|I see.|got it|Sure, sure|yes|yep|oh really?|of course|all right",
        "no problem|Oh, okay, I see.|that's right|makes sense|thanks",
    )
    for phrase in line.split("|")
]

STOPS = [
    phrase
    for line in (
        "stop|Stop!|wait|Wait, wait.|no|No.|no, stop|no stop|hold on|Hold on, please|listen",
        "hang on|ok stop|please stop|stop it now|I said stop|excuse me|never mind|be quiet",
        "shut up|one moment|um, wait|stop stop stop|no thank you|Hey, stop talking",
        "can you stop|just a second",
    )
    for phrase in line.split("|")
]

WORDS = [
    phrase
    for line in (
        "I want tea|right now|I see a problem|wait for the bus with me",
        "stop at the next light please|what about Tuesday|no I said Tuesday",
        "yes I would like that|not|okay but why|next stop|hello|seven|da",
        "yeah yeah yeah yeah yeah yeah yeah|don't stop|non-stop flight|你好",
    )
    for phrase in line.split("|")
]


@pytest.mark.parametrize("text", BACKCHANNELS)
def test_backchannels_let_the_agent_go_on(text: str) -> None:
    assert classify(text) == "backchannel"


@pytest.mark.parametrize("text", STOPS)
def test_stop_words_stop(text: str) -> None:
    assert classify(text) == "stop"


@pytest.mark.parametrize("text", WORDS)
def test_everything_else_is_words(text: str) -> None:
    assert classify(text) == "words"


@pytest.mark.parametrize("text", ["", "  ", "...", "[BLANK_AUDIO]", "(coughs)", "*sighs*", "♪ ♪"])
def test_noise_is_empty(text: str) -> None:
    assert classify(text) == "empty"


@given(st.text())
def test_total(text: str) -> None:
    assert classify(text) in ("empty", "backchannel", "stop", "words")
