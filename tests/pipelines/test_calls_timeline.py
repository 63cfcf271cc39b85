"""The timeline of a call tells its whole story in order, and the checks on it can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support import invariants
from tests.support.calls import CallScript, Held, Says, at, hold_call
from voxglove.media import events
from voxglove.pipelines import vocabulary as voc

STAGES = ["vad_wait", "turn", "stt", "agent", "tts", "output"]


async def interrupted() -> Held:
    """One turn, cut by a second one that is answered whole."""
    return await hold_call(
        CallScript(
            caller=[Says(0.3, 0.9, "Hello?"), Says(2.0, 2.8, "can you change that?")],
            model=["alpha bravo charlie delta echo foxtrot.", "kilo lima."],
            seconds=5,
        )
    )


def story(held: Held) -> list[str]:
    """One word or two for each event but metrics."""
    told: list[str] = []
    for _, event in held.timeline:
        match event:
            case events.Transcript():
                told.append(f"{event.role} {'partial' if event.partial else 'final'}")
            case events.Mode():
                told.append(event.mode)
            case events.LineEvent():
                told.append(event.state)
            case events.Vad() | events.Turn() | events.Response() | events.Interruption():
                told.append(f"{event.type} {event.event}")
            case events.CallEnded():
                told.append("call_ended")
    return told


async def test_a_barge_in_tells_every_event_in_order() -> None:
    held = await interrupted()
    assert story(held) == [
        *("attached", "listening", "vad start", "vad confirmed", "vad end", "user partial"),
        *("turn committed", "user final", "response started", "thinking", "response audio"),
        *("speaking", "vad start", "interruption paused", "vad confirmed", "interruption cut"),
        *("assistant final", "response cut", "user partial", "listening", "vad end"),
        *("user partial", "turn committed", "user final", "response started", "thinking"),
        *("response audio", "speaking", "assistant final", "response ended", "listening"),
        *("idle", "closed", "call_ended"),
    ], held.told()
    last = held.timeline[-1][1]
    assert isinstance(last, events.CallEnded) and last.turns == 2


async def test_the_latency_of_each_turn_is_split_into_named_stages() -> None:
    held = await interrupted()
    metrics = [event for event in held.of(events.Metric) if event.name == "turn_latency"]
    assert [metric.turn for metric in metrics] == [1, 2]
    for metric in metrics:
        assert [part.name for part in metric.parts or ()] == STAGES
        audio = held.when(events.Response, event="audio", turn=metric.turn)
        ended = [one.position for one in held.of(events.Vad) if one.event == "end"]
        end = max(position for position in ended if position < audio)
        assert abs((metric.total_ms or 0) - (audio - end) / 16) <= 1


async def test_the_recorded_turn_events_replay_the_call() -> None:
    held = await interrupted()
    invariants.check_replay(held)
    cuts = [effect for _, effect in held.effects() if isinstance(effect, voc.Cut)]
    assert len(cuts) == 1 and cuts[0].gen == 1


async def test_the_checks_find_a_history_that_says_too_much() -> None:
    held = await interrupted()
    invariants.check_all(held)
    told = held.history[1]
    held.history[1] = replace(told, heard=told.text, unheard="")
    with pytest.raises(AssertionError, match="stored"):
        invariants.check_history_is_what_was_heard(held, tolerance=0, exact=True)


async def test_the_checks_find_sound_after_a_cut_and_a_repeated_sample() -> None:
    held = await interrupted()
    first = held.pieces()[0]
    held.decoded[0].insert(1, replace(first, at=at(2.5), start=100, end=3_300))
    with pytest.raises(AssertionError, match="after the cut"):
        invariants.check_silence_after_cuts(held)
    with pytest.raises(AssertionError, match="expected sample"):
        invariants.check_sound_unbroken(held)


async def test_the_checks_find_a_log_that_is_not_the_call() -> None:
    held = await interrupted()
    held.log[:] = [event for event in held.log if not isinstance(event, voc.Sounded)]
    with pytest.raises(AssertionError):
        invariants.check_replay(held)
