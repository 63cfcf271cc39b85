"""Speculative recognition changes no text: whole calls over the fixtures, with it and without.

Printed with what it saves, in the calls' own time, where a text costs 300 ms.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.audio_fixtures.load import fixture
from tests.regression.drive import RATE, Held, Order, Tell, hold, quiet_for
from voxglove.media import events as call
from voxglove.web.build import Shared

pytestmark = [pytest.mark.local_speech, pytest.mark.slow]

NAMES = (
    *("ask_hours", "booking_2", "booking_cancel", "spelled_id", "pause_600", "pause_1000"),
    *("jfk", "cards_001", "goforward", "something", "librivox_0890", "librivox_0930"),
)


def held(shared: Shared, name: str, *, ahead: bool) -> Held:
    turn = replace(shared.config.turn, speculate=ahead)
    own = replace(shared, config=replace(shared.config, turn=turn))
    sound = fixture(name).pcm
    over = quiet_for(2.0, len(sound))
    return hold(own, Order(audio=sound, over=over, agent="demo", name=name))


def words(result: Held) -> list[tuple[str, str]]:
    """What both sides said, settled."""
    found = [event for _, event in result.events if isinstance(event, call.Transcript)]
    return [(event.role, event.text) for event in found if not event.partial]


@pytest.mark.parametrize("name", NAMES)
def test_every_text_is_the_same(shared: Shared, name: str, tell: Tell) -> None:
    early, late = (held(shared, name, ahead=ahead) for ahead in (True, False))
    assert words(early) == words(late)
    assert [turn.text for _, turn in early.turns()] == [turn.text for _, turn in late.turns()]
    assert early.turns(), "nothing was said"
    pairs = zip(early.turns(), late.turns(), strict=True)
    saved = [(there - here) * 1000 // RATE for (here, _), (there, _) in pairs]
    assert min(saved) >= 0, saved
    tell(f"speculation, {name}: turns committed {int(np.median(saved))} ms sooner")
