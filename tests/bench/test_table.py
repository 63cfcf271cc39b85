"""The table: discarded rounds are not looked at, targets are judged on the right numbers."""

from __future__ import annotations

from bench.processes import systems
from bench.rounds import Round
from bench.run import order
from bench.table import discarded, table


def talk(system: str, cpu: float, lag: float = 1.0) -> Round:
    return Round("talk", system, 8, lag_ms=lag, values={"cpu_per_call_pct": cpu, "calls": 8})


def line(text: str, name: str) -> str:
    return next(one for one in text.splitlines() if name in one)


def test_a_target_is_met_only_against_every_peer() -> None:
    fast = [talk("voxglove", 0.5), talk("pipecat", 5.0), talk("livekit", 2.0)]
    assert line(table(fast), "CPU per call").endswith(" met")
    slow = [talk("voxglove", 0.95), talk("pipecat", 5.0), talk("livekit", 2.0)]
    assert line(table(slow), "CPU per call").endswith("MISSED")


def test_a_discarded_round_is_counted_and_not_looked_at() -> None:
    rounds = [talk("voxglove", 0.5), talk("voxglove", 50.0, lag=5.1)]
    assert " 0.50 " in line(table(rounds), "CPU per call")
    assert "1 discarded" in discarded(rounds)


def test_a_metric_without_values_has_no_line() -> None:
    assert "barge-in" not in table([talk("voxglove", 0.5)])


def test_ours_is_first_and_last_of_every_turn() -> None:
    known = systems()
    names = [one.name for one in order(known["voxglove"], [known["pipecat"], known["livekit"]])]
    assert names == ["voxglove", "pipecat", "livekit", "voxglove"]
