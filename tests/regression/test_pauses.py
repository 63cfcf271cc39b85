"""Where a turn ends: pauses inside a sentence, spelling, quiet voices and neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from tests.audio_fixtures import sounds
from tests.audio_fixtures.dsp import join
from tests.audio_fixtures.load import fixture
from tests.regression import drive
from tests.regression.drive import RATE, Held, Order, Tell
from tests.regression.rates import row
from tests.support.wer import wer
from voxglove.media.pcm import Samples
from voxglove.web.build import Shared

pytestmark = [pytest.mark.local_speech, pytest.mark.slow]

INSIDE_CLAUSES = (
    ("librivox_0880", 1.69),
    ("librivox_0890", 2.61),
    ("librivox_0920", 3.85),
    ("librivox_0930", 1.65),
    ("something", 1.37),
)
"""Human voices, cut at a quiet place inside a clause (seconds), where the melody is not at its end.
Where it sounds finished, the turn model commits, and no rule could know better."""


def held(shared: Shared, audio: Samples, name: str) -> Held:
    """The call of a recording, to its quiet end."""
    over = drive.quiet_for(2.0, len(audio))
    return drive.hold(shared, Order(audio=audio, over=over, agent="demo", name=name))


def texts(result: Held) -> list[str]:
    return [turn.text for _, turn in result.turns()]


def with_pause(name: str, at_s: float, pause_ms: int) -> Samples:
    """The recording with a pause of `pause_ms` of room at `at_s`, its edges faded over 5 ms."""
    pcm, at, fade = fixture(name).pcm, round(at_s * RATE), RATE // 200
    before, after = pcm[:at].astype(np.float64), pcm[at:].astype(np.float64)
    ramp = np.arange(fade) / fade
    before[-fade:] *= ramp[::-1]
    after[:fade] *= ramp
    room = sounds.room_tone(pause_ms * RATE // 1000, 71, -66)
    return join([before.astype(np.int16), room, after.astype(np.int16)])


@pytest.mark.parametrize("pause_ms", [600, 1000])
def test_a_pause_inside_a_clause_gives_one_turn(shared: Shared, tell: Tell, pause_ms: int) -> None:
    split, lines = 0, []
    for name, at_s in INSIDE_CLAUSES:
        said = texts(held(shared, with_pause(name, at_s, pause_ms), f"{name}-{pause_ms}"))
        split += len(said) != 1
        lines.append(f"    {name} at {at_s} s: {said}")
    tell("\n".join([row(f"turns split by {pause_ms} ms", split, len(INSIDE_CLAUSES)), *lines]))
    assert split == 0, "\n".join(lines)


def test_a_human_pause_of_a_second_gives_one_turn(shared: Shared) -> None:
    """ "… ask not (1.06 s) what your country can do for you": both sides of it in one turn."""
    said = texts(held(shared, fixture("jfk").pcm, "jfk"))
    assert any("ask not what your country" in text.lower() for text in said), said


@pytest.mark.parametrize("name", ["pause_600", "pause_1000"])
def test_no_word_is_lost_where_the_first_half_sounds_finished(
    shared: Shared, tell: Tell, name: str
) -> None:
    """The synthetic halves are two sentences to the turn model (p = .96): two turns, every word."""
    said = texts(held(shared, fixture(name).pcm, name))
    tell(f"{name}: {said}")
    assert len(said) <= 2
    assert wer(fixture(name).transcript, " ".join(said)).rate <= 0.1, said


def test_a_spelled_id_is_one_turn(shared: Shared, tell: Tell) -> None:
    said = texts(held(shared, fixture("spelled_id").pcm, "spelled_id"))
    tell(f"spelled_id: {said}")
    assert len(said) == 1, said
    assert wer(fixture("spelled_id").transcript, said[0]).errors <= 1, said


def test_a_quiet_talker_is_kept(shared: Shared) -> None:
    said = texts(held(shared, fixture("quiet_talker").pcm, "quiet_talker"))
    assert len(said) == 1
    assert wer(fixture("quiet_talker").transcript, said[0]).rate <= 0.2


def test_a_neighbour_is_dropped(shared: Shared) -> None:
    near, far = fixture("half_2").pcm, fixture("neighbour").pcm
    result = held(shared, join([RATE // 2, near, 5 * RATE, far]), "neighbour")
    assert len(texts(result)) == 1, texts(result)
    assert [turn.reason for _, turn in result.turns("dropped")] == ["far_field"]
