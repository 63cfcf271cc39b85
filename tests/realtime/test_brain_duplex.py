"""A model that listens while it speaks: overlap is legal, a stop word ends, boundaries are ours."""

from __future__ import annotations

from functools import partial

from tests.realtime.brain_calls import DUPLEX_16, RATE, REPLY, WORD, Does, Rung, Says, hold
from voxglove.media import events as call
from voxglove.realtime.commands import RequestResponse, SpeechBoundary
from voxglove.realtime.events import Words
from voxglove.realtime.scripted import ScriptedAdapter


def speaks(when: float) -> Does:
    """The model begins to speak by itself."""
    return Does(when, lambda rung: rung.adapter.current.tell(RequestResponse()))


def words(when: float, item: str, text: str) -> Does:
    return Does(when, partial(_words, item, text))


def _words(item: str, text: str, rung: Rung) -> None:
    rung.adapter.current.emit(Words("user", item, text))


async def duplex(says: list[Says], does: list[Does]) -> Rung:
    adapter = ScriptedAdapter(capabilities=DUPLEX_16, speed=1.0)
    return await hold(says, does=does, adapter=adapter, seconds=7.0)


async def test_overlap_is_legal_and_nothing_is_paused() -> None:
    rung = await duplex(
        [Says(1.0, 1.8, noticed=False)],
        [speaks(0.4), words(1.4, "u1", "yes"), words(1.6, "u1", " of course")],
    )
    assert rung.heard(REPLY) == 8 * WORD
    (piece,) = rung.pieces()
    assert piece.end - piece.start == 8 * WORD, "it was heard in one piece"
    assert not rung.of(call.Interruption), rung.told()


async def test_the_local_detector_tells_the_session_when_the_user_speaks() -> None:
    rung = await duplex([Says(1.0, 1.8, noticed=False)], [speaks(0.4)])
    told = [
        one.speaking for one in rung.adapter.current.commands if isinstance(one, SpeechBoundary)
    ]
    assert told == [True, False]


async def test_a_stop_word_ends_the_speech_and_the_next_is_heard() -> None:
    rung = await duplex(
        [Says(1.0, 1.4, noticed=False)], [speaks(0.4), words(1.3, "u1", "stop"), speaks(4.0)]
    )
    last = max(piece.stop for piece in rung.pieces() if piece.text == REPLY)
    assert last <= 1.36 * RATE, rung.told()
    assert [(one.event, one.reason) for one in rung.of(call.Interruption)] == [("cut", "stop_word")]
    assert rung.heard("ok kilo") == 2 * WORD, "the gate is open again"
    assert rung.modes[-2:] == ["listening", "idle"]
    assert [one.heard.strip() for one in rung.answers if one.heard][0].startswith("alpha bravo")
