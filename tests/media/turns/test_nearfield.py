"""Near or far: the caller is kept, the neighbour dropped, and a wrong reference corrects itself."""

import pytest

from voxglove.media.errors import MediaValueError
from voxglove.media.turns.nearfield import NearField, NearFieldConfig, judge, reference_at

SECOND = 16_000
CALLER = NearField(reference=0.2, at=0)


def test_voice_row_068_a_neighbour_at_minus_16_db_is_dropped() -> None:
    state, near = judge(CALLER, 0.2 * 10 ** (-16 / 20), SECOND)
    assert not near
    assert state.rejected == 1


def test_voice_row_068_the_caller_at_half_level_is_kept() -> None:
    state, near = judge(CALLER, 0.1, SECOND)
    assert near
    assert state.rejected == 0


def test_voice_row_068_the_third_rejection_reanchors() -> None:
    state, verdicts = CALLER, []
    for turn in range(1, 5):
        state, near = judge(state, 0.02, turn * SECOND)
        verdicts.append(near)
    assert verdicts == [False, False, True, True]
    assert state.reference == pytest.approx(0.02)


def test_voice_row_068_the_reference_halves_in_20_s_of_audio() -> None:
    assert reference_at(CALLER, 20 * SECOND) == pytest.approx(0.1)
    assert reference_at(CALLER, 40 * SECOND) == pytest.approx(0.05)


def test_an_accepted_utterance_raises_or_keeps_the_reference() -> None:
    assert judge(CALLER, 0.4, SECOND)[0].reference == 0.4
    assert judge(CALLER, 0.1, 20 * SECOND)[0].reference == pytest.approx(0.1)


def test_a_reference_under_the_floor_says_nothing() -> None:
    assert judge(NearField(reference=0.009, at=0), 0.0001, 0)[1]


def test_bad_config_names_the_field() -> None:
    with pytest.raises(MediaValueError, match="half_life_s"):
        NearFieldConfig(half_life_s=0)
