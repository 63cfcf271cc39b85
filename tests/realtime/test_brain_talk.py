"""The talk button on a realtime call: rows 56 to 58, counted in input samples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

from tests.realtime.brain_calls import ABLE_16, DEAF_16, RATE, REPLY, WORD, Does, Rung, Says, hold
from voxglove.media import brain as port
from voxglove.media import events as call
from voxglove.realtime.commands import CommitTurn, SpeechBoundary
from voxglove.realtime.config import SessionConfig
from voxglove.realtime.port import Capabilities
from voxglove.realtime.scripted import ScriptedAdapter

MANUAL = SessionConfig(manual_turns=True)


def button(*moves: tuple[float, bool]) -> list[Does]:
    """The button goes down (True) or up at these seconds."""
    return [Does(at, partial(_move, down)) for at, down in moves]


def _move(down: bool, rung: Rung) -> None:
    rung.command(port.PushToTalk(down))


def boundaries(rung: Rung) -> list[object]:
    told = rung.adapter.current.commands
    return [one for one in told if isinstance(one, SpeechBoundary | CommitTurn)]


async def held(moves: Sequence[tuple[float, bool]], able: Capabilities = ABLE_16) -> Rung:
    """A call in manual mode; a voice in it would end a turn if a detector listened."""
    return await hold(
        [Says(0.5, 0.8, "hello there"), Says(3.0, 3.3, "and this")],
        adapter=ScriptedAdapter(capabilities=able),
        does=button(*moves),
        config=MANUAL,
        seconds=7.5,
    )


@pytest.mark.parametrize("able", [ABLE_16, DEAF_16], ids=["may cancel", "may not"])
async def test_a_held_button_is_one_turn_however_long_the_pauses(able: Capabilities) -> None:
    rung = await held([(0.4, True), (2.0, False)], able)
    committed = [at for at, one in rung.events if isinstance(one, call.Turn)]
    assert committed == [round(2.02 * RATE)], rung.told()
    assert rung.heard(REPLY) == 8 * WORD
    assert not rung.of(call.Vad), "a detector ends no turn in manual mode"


async def test_a_press_takes_the_floor_from_the_agent() -> None:
    rung = await held([(0.4, True), (1.2, False), (2.8, True), (3.6, False)])
    assert [(one.event, one.reason) for one in rung.of(call.Interruption)] == [("cut", "command")]
    last = max(piece.stop for piece in rung.pieces() if piece.text == REPLY)
    assert last <= 2.86 * RATE, rung.told()
    assert rung.heard("ok kilo") == 2 * WORD


async def test_an_early_release_ends_the_turn_after_the_shortest_recording() -> None:
    """Held for 400 ms: a click is below 300 ms, and 350 ms more are recorded."""
    rung = await held([(0.4, True), (0.8, False)])
    committed = [at for at, one in rung.events if isinstance(one, call.Turn)]
    assert abs(committed[0] - 1.05 * RATE) <= 2 * RATE // 50, rung.told()


async def test_a_press_while_an_early_release_waits_goes_on_with_the_same_turn() -> None:
    rung = await held([(0.4, True), (0.8, False), (0.9, True), (2.0, False)])
    assert len([one for one in rung.of(call.Turn) if one.event == "committed"]) == 1, rung.told()
    assert boundaries(rung)[0] == SpeechBoundary(speaking=True)
    assert boundaries(rung).count(SpeechBoundary(speaking=True)) == 1


async def test_a_click_opens_the_microphone_and_another_ends_the_turn() -> None:
    rung = await held([(0.4, True), (0.5, False), (2.0, True), (2.1, False)])
    committed = [at for at, one in rung.events if isinstance(one, call.Turn)]
    assert len(committed) == 1 and committed[0] >= 2.1 * RATE, rung.told()


async def test_without_manual_turns_the_microphone_is_as_it_was_after_a_held_button() -> None:
    rung = await hold(
        [Says(0.5, 0.9, "hello there"), Says(4.5, 5.0, "and this")],
        does=button((0.4, True), (1.2, False)),
        seconds=8.0,
    )
    assert len(rung.of(call.Turn)) == 2, rung.told()


async def test_nobody_is_left_to_let_go_of_the_button() -> None:
    rung = await hold(
        [Says(0.5, 0.8, "hello there")],
        does=[
            *button((0.4, True)),
            Does(0, lambda rung: rung.lines[0].fail_at(round(1.5 * RATE))),
            Does(2.0, lambda rung: rung.reattach(4.0)),
        ],
        config=MANUAL,
        seconds=9.0,
    )
    assert len(rung.of(call.Turn)) == 1 and rung.heard(REPLY) == 8 * WORD, rung.told()
