"""What is read out of a call's log, against logs made by hand."""

from __future__ import annotations

from array import array

import numpy as np
import pytest

from bench import measures
from bench.caller import Log, Mark

RATE = 16_000
LOUD = np.full(320, 5_000, "<i2").tobytes()
QUIET = bytes(640)


def question(at: float, speech_s: float = 1.0) -> Mark:
    """A question whose first frame was sent at `at`."""
    return Mark("question", "q", at, 0, round(speech_s * RATE))


def tone(begin: float, frames: int, step: float = 0.02) -> list[tuple[float, bytes, bool]]:
    return [(begin + index * step, LOUD, True) for index in range(frames)]


def test_a_response_counts_from_the_last_sample_spoken() -> None:
    log = Log(marks=[question(10.0)], arrivals=tone(11.68, 5))
    assert measures.responses(log) == pytest.approx([700.0])  # spoken until 10.98
    assert measures.overheads(log, 650.0) == pytest.approx([50.0])


def test_a_question_without_answer_is_counted_unless_it_was_the_last() -> None:
    log = Log(marks=[question(10.0), question(20.0)], arrivals=[])
    assert measures.responses(log) == []
    assert measures.unanswered(log) == 1


def test_an_earlier_answer_that_still_sounds_is_no_answer() -> None:
    log = Log(marks=[question(10.0), question(20.0)], arrivals=tone(10.5, 60))
    assert measures.responses(log) == []
    assert measures.unanswered(log) == 1


def test_an_interruption_is_measured_to_the_last_sound_on_the_wire_and_as_heard() -> None:
    barge_in = Mark("interruption", "stop", 12.02, 0, 8_000)
    sent_ahead = [(11.5, LOUD * 10, True)]  # 200 ms at once, then in real time
    log = Log(
        marks=[question(10.0), barge_in],
        arrivals=[*sent_ahead, *tone(11.52, 30), *tone(13.5, 10)],
        clears=[12.13],
    )
    (stop,) = measures.stops(log)
    assert stop.wire_ms == pytest.approx(100.0)
    assert stop.heard_ms == pytest.approx(130.0)


def test_without_a_clear_the_caller_hears_what_was_sent_ahead() -> None:
    barge_in = Mark("interruption", "stop", 12.02, 0, 8_000)
    log = Log(
        marks=[question(10.0), barge_in],
        arrivals=[(11.5, LOUD * 10, True), *tone(11.52, 30)],
    )
    (stop,) = measures.stops(log)
    assert stop.heard_ms == pytest.approx(300.0)


def test_an_interruption_of_silence_is_no_interruption() -> None:
    barge_in = Mark("interruption", "stop", 15.0, 0, 8_000)
    log = Log(marks=[question(10.0), barge_in], arrivals=tone(11.5, 10))
    assert measures.stops(log) == []


def noise_log(answer: list[tuple[float, bytes, bool]]) -> Log:
    return Log(
        marks=[question(10.0), Mark("noise", "cough-000", 12.02, 0, 3_200), question(20.0)],
        arrivals=answer,
    )


def test_a_noise_that_cuts_an_answer_is_a_false_interruption() -> None:
    (cut,) = measures.disturbances(noise_log(tone(11.5, 30)), answer_ms=4_000)
    assert not cut.resumed and cut.stopped and not cut.recovered


def test_an_answer_that_pauses_and_goes_on_has_recovered() -> None:
    paused = [*tone(11.5, 30), *tone(12.5, 170)]
    (pause,) = measures.disturbances(noise_log(paused), answer_ms=4_000)
    assert pause.resumed and pause.stopped and pause.recovered
    assert pause.silent_ms == pytest.approx(400.0)


def test_an_answer_that_goes_on_was_not_disturbed() -> None:
    (kept,) = measures.disturbances(noise_log(tone(11.5, 200)), answer_ms=4_000)
    assert kept.resumed and not kept.stopped


def test_pacing_counts_long_gaps_and_late_frames_but_not_early_ones() -> None:
    arrivals = tone(11.5, 3) + tone(11.59, 3)  # the fourth is 30 ms late
    found = measures.pacing(Log(marks=[question(10.0)], arrivals=arrivals))
    assert max(found.excess_ms) == pytest.approx(30.0)
    assert max(found.late_ms) == pytest.approx(30.0)
    assert found.underruns == 0
    early = measures.pacing(Log(marks=[question(10.0)], arrivals=tone(11.5, 50, 0.001)))
    assert max(early.late_ms) == 0 and max(early.excess_ms) == 0


def test_a_client_with_two_frames_of_buffer_runs_dry_once() -> None:
    arrivals = tone(11.5, 3) + tone(11.7, 3)
    found = measures.pacing(Log(marks=[question(10.0)], arrivals=arrivals))
    assert found.underruns == 1


def test_a_hole_inside_an_answer_is_measured_to_the_sample() -> None:
    holed = tone(11.5, 10) + [(11.7, QUIET, False)] + tone(11.72, 10)
    log = Log(marks=[question(10.0), question(20.0)], arrivals=holed)
    (whole,) = measures.wholeness(log, 400)
    assert whole.silent_ms == pytest.approx(20.0)
    assert whole.length_ms == pytest.approx(400.0)
    assert whole.stalled_ms == pytest.approx(0.0, abs=1e-6)


def test_echoes_are_matched_by_level_and_losses_counted() -> None:
    level = [np.full(320, 2_000 + 400 * index, "<i2").tobytes() for index in range(4)]
    log = Log(sent=array("d", (index * 0.02 for index in range(20))))
    log.arrivals = [
        (0.003, level[0], True),
        (0.02, QUIET, False),
        (0.104, level[1], True),
        (0.12, QUIET, False),
        (0.305, level[3], True),  # the third never came
    ]
    added, lost = measures.echoes(log)
    assert added == pytest.approx([3.0, 4.0, 5.0])
    assert lost == 1


def test_the_generators_own_lag_is_over_all_calls() -> None:
    logs = [Log(lags=array("d", [0.001] * 98)), Log(lags=array("d", [0.02] * 2))]
    assert measures.lag_p99(logs) == pytest.approx(20.0, abs=0.5)
