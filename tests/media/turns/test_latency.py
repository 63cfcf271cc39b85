"""Latency parts: they name their owner and sum to the whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxglove.media.errors import MediaValueError
from voxglove.media.turns.latency import PART_NAMES, TurnMarks, turn_latency

MARK = st.none() | st.integers(0, 200_000)


def test_each_stage_gets_its_time_and_its_setting() -> None:
    marks = TurnMarks(
        speech_end=16_000,
        vad_end=16_000 + 192 * 16,
        decided=16_000 + 248 * 16,
        text=16_000 + 385 * 16,
        first_text=16_000 + 386 * 16,
        first_audio=16_000 + 450 * 16,
        output=16_000 + 470 * 16,
    )
    latency = turn_latency(marks)
    assert latency.total_ms == 470
    assert [(part.name, part.ms) for part in latency.parts] == [
        ("vad_wait", 192),
        ("turn", 56),
        ("stt", 137),
        ("agent", 1),
        ("tts", 64),
        ("output", 20),
    ]
    assert all(part.setting for part in latency.parts)


def test_a_stage_that_was_done_before_costs_nothing() -> None:
    marks = TurnMarks(speech_end=0, vad_end=3200, decided=3200, text=1600, output=4800)
    parts = {part.name: part.ms for part in turn_latency(marks).parts}
    assert parts == {"vad_wait": 200, "turn": 0, "stt": 0, "agent": 0, "tts": 0, "output": 100}


def test_the_owner_of_a_part_can_be_named_closer() -> None:
    latency = turn_latency(TurnMarks(speech_end=0, output=1), settings={"turn": "turn.question_ms"})
    assert latency.parts[1].setting == "turn.question_ms"
    assert latency.parts[0].setting == "vad.silence_ms"


@given(
    MARK, MARK, MARK, MARK, MARK, st.integers(0, 200_000), st.sampled_from([8000, 16_000, 22_050])
)
def test_parts_sum_exactly_to_the_total(
    vad: int | None,
    decided: int | None,
    text: int | None,
    agent: int | None,
    audio: int | None,
    output: int,
    rate: int,
) -> None:
    marks = TurnMarks(
        speech_end=0,
        vad_end=vad,
        decided=decided,
        text=text,
        first_text=agent,
        first_audio=audio,
        output=output,
    )
    latency = turn_latency(marks, rate)
    assert tuple(part.name for part in latency.parts) == PART_NAMES
    assert all(part.ms >= 0 for part in latency.parts)
    assert sum(part.ms for part in latency.parts) == latency.total_ms
    assert abs(latency.total_ms - output * 1000 / rate) <= 0.5


def test_bad_marks_name_the_field() -> None:
    with pytest.raises(MediaValueError, match="output"):
        TurnMarks(speech_end=10, output=9)
    with pytest.raises(MediaValueError, match="rate"):
        turn_latency(TurnMarks(speech_end=0, output=9), rate=0)
