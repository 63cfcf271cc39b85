"""The one table: what was measured, beside the peers and the target.

Pure, from the rounds of a run to lines of text. Discarded rounds are counted and not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench import intervals
from bench.rounds import Round

PEERS = ("pipecat", "livekit")
Pick = Callable[[Round], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One metric. `pick` gives a round's value; `most` is the target for ours; `shares` the most
    that ours may be of a peer's."""

    id: str
    name: str
    kind: str
    pick: Pick
    turn: str | None = None
    calls: int | None = None
    most: float | None = None
    shares: Mapping[str, float] | None = None
    digits: int = 1


def _quantile(key: str, share: float, less: str = "") -> Pick:
    """A quantile of a list of a round."""

    def pick(one: Round) -> float | None:
        values = [value for value in _list(one, key) if value is not None]
        if not values:
            return None
        found = float(np.quantile(np.array(values), share))
        return found - _number(one, less) if less else found

    return pick


def _of(key: str, inner: str = "", scale: float = 1.0) -> Pick:
    """A number of a round, or one inside one of its tables."""

    def pick(one: Round) -> float | None:
        found = one.values.get(key)
        if inner:
            found = found.get(inner) if isinstance(found, dict) else None
        return float(found) * scale if isinstance(found, int | float) else None

    return pick


def _share(key: str, whole: str) -> Pick:
    def pick(one: Round) -> float | None:
        total = _number(one, whole)
        return 100 * _number(one, key) / total if total else None

    return pick


def _worst(key: str) -> Pick:
    """The largest distance from 0 in a list."""

    def pick(one: Round) -> float | None:
        values = _list(one, key)
        return max((abs(value) for value in values if value is not None), default=None)

    return pick


def _list(one: Round, key: str) -> Sequence[float | None]:
    found = one.values.get(key)
    return found if isinstance(found, list) else []


def _number(one: Round, key: str) -> float:
    found = one.values.get(key)
    return float(found) if isinstance(found, int | float) else 0.0


def _underruns(one: Round) -> float | None:
    frames = _number(one, "frames")
    return _number(one, "underruns") / (frames * 0.02 / 60) if frames else None


def _in_use(one: Round) -> float | None:
    """Near 100 the system is saturated: what a call costs is then cut off, not measured."""
    found = _of("cpu_per_call_pct")(one)
    return None if found is None else found * one.calls


MIB = 1 / 2**20
CPU_SHARES = {"pipecat": 1 / 5, "livekit": 1 / 2.3}

ROWS: Sequence[Row] = (
    Row(id="P1", name="echo: added latency, p50 ms", kind="echo", pick=_of("added_ms", "p50")),
    Row(id="P1", name="echo: added latency, p99 ms", kind="echo", pick=_of("added_ms", "p99")),
    Row(
        id="P2",
        name="pacing: gap over 20 ms, p99 ms",
        kind="talk",
        pick=_of("excess_ms", "p99"),
        turn="vad",
        most=5.0,
    ),
    Row(id="P2", name="pacing: late, p99 ms", kind="talk", pick=_of("late_ms", "p99"), turn="vad"),
    Row(id="P2", name="underruns a minute of answer", kind="talk", pick=_underruns, turn="vad"),
    Row(
        id="P3",
        name="CPU per call, % of a core",
        kind="talk",
        pick=_of("cpu_per_call_pct"),
        turn="vad",
        most=1.0,
        shares=CPU_SHARES,
        digits=2,
    ),
    Row(id="P3", name="core in use, %", kind="talk", pick=_in_use, turn="vad"),
    Row(id="P3", name="CPU without calls, %", kind="talk", pick=_of("idle_pct"), digits=2),
    Row(
        id="P4",
        name="turn overhead, p50 ms",
        kind="talk",
        pick=_quantile("response_ms", 0.5, "configured_ms"),
        turn="vad",
        most=60.0,
    ),
    Row(
        id="P4",
        name="turn overhead, p90 ms",
        kind="talk",
        pick=_quantile("response_ms", 0.9, "configured_ms"),
        turn="vad",
    ),
    Row(
        id="P4",
        name="response, own turn rule, p50 ms",
        kind="talk",
        pick=_quantile("response_ms", 0.5),
        turn="default",
    ),
    Row(id="P4", name="questions without a clean answer", kind="talk", pick=_of("unanswered")),
    Row(
        id="P5",
        name="barge-in to silence heard, p50 ms",
        kind="talk",
        pick=_quantile("stop_heard_ms", 0.5),
        turn="vad",
        most=150.0,
    ),
    Row(
        id="P5",
        name="barge-in to silence heard, p99 ms",
        kind="talk",
        pick=_quantile("stop_heard_ms", 0.99),
        turn="vad",
    ),
    Row(
        id="P5",
        name="barge-in to silence on the wire, p50 ms",
        kind="talk",
        pick=_quantile("stop_wire_ms", 0.5),
        turn="vad",
    ),
    *(
        Row(id="P6", name=f"{noise}: {what}, %", kind=f"noise:{noise}", pick=_share(key, "clips"))
        for noise in ("cough", "keyboard", "mm_hm")
        for what, key in (
            ("answers lost", "cut"),
            ("silent over 200 ms", "stopped"),
            ("back within 500 ms", "recovered"),
        )
    ),
    Row(
        id="P9",
        name="memory per call, MiB",
        kind="talk",
        pick=_of("rss_per_call", scale=MIB),
        turn="vad",
        most=1.0,
        digits=2,
    ),
    Row(
        id="P9",
        name="growth per 1,000 calls, MiB",
        kind="growth",
        pick=_of("per_1000", scale=MIB),
        digits=2,
    ),
    Row(id="P10", name="exec to ready, ms", kind="startup", pick=_of("start_ms"), most=350.0),
    Row(id="P10", name="first call to greeting, ms", kind="startup", pick=_of("first_ms")),
    Row(id="P10", name="second call to greeting, ms", kind="startup", pick=_of("second_ms")),
    Row(
        id="P13",
        name="hole in an answer of two sentences, p50 ms",
        kind="talk",
        pick=_quantile("gap_ms", 0.5),
        turn="vad",
        most=0.0,
    ),
    Row(
        id="P13",
        name="hole in an answer of two sentences, p99 ms",
        kind="talk",
        pick=_quantile("gap_ms", 0.99),
        turn="vad",
    ),
    Row(
        id="P14",
        name="recording: agent against caller, ms",
        kind="recording",
        pick=_worst("channels_ms"),
        most=5.0,
    ),
    Row(
        id="P14",
        name="recording: clock after stalls, ms",
        kind="recording",
        pick=_worst("clock_ms"),
    ),
)


HEADS = ("", "metric", "N", "voxglove", *PEERS, *(f"ours/{name}" for name in PEERS), "target", "")


def table(rounds: Sequence[Round]) -> str:
    """Aligned columns, one line for each metric and N."""
    lines = [HEADS, *(line for row in ROWS for line in _lines(row, rounds))]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADS))]
    text = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return "\n".join(text)


def discarded(rounds: Sequence[Round]) -> str:
    """What was thrown away, and what went wrong."""
    late = [one for one in rounds if not one.valid]
    lines = [f"{len(rounds)} rounds, {len(late)} discarded (generator lag p99 over 5 ms)"]
    for system in sorted({one.system for one in rounds if one.failures}):
        failures = [why for one in rounds if one.system == system for why in one.failures]
        lines.append(f"{system}: {len(failures)} calls failed, such as: {failures[0]}")
    return "\n".join(lines)


def _lines(row: Row, rounds: Sequence[Round]) -> Iterator[tuple[str, ...]]:
    of_row = [
        one for one in rounds if one.valid and one.kind == row.kind and row.turn in (None, one.turn)
    ]
    for calls in sorted({one.calls for one in of_row}):
        by_system = {name: _values(row, of_row, calls, name) for name in ("voxglove", *PEERS)}
        if any(by_system.values()):
            yield _line(row, calls, by_system)


def _values(row: Row, rounds: Sequence[Round], calls: int, system: str) -> list[float]:
    found = (row.pick(one) for one in rounds if one.calls == calls and one.system == system)
    return [value for value in found if value is not None]


def _line(row: Row, calls: int, by_system: Mapping[str, Sequence[float]]) -> tuple[str, ...]:
    ours = by_system["voxglove"]
    medians = [_shown(intervals.median(by_system[name]), row.digits) for name in by_system]
    ratios = {name: intervals.ratio(ours, by_system[name]) for name in PEERS}
    shown = [_shown(found, 2, interval=True) for found in ratios.values()]
    target, met = _target(row, ours, ratios)
    return (row.id, row.name, str(calls), *medians, *shown, target, met)


def _target(
    row: Row, ours: Sequence[float], ratios: Mapping[str, intervals.Estimate | None]
) -> tuple[str, str]:
    """The target in words and whether it is met; nothing where there is none or no value."""
    said: list[str] = []
    met: list[bool] = []
    middle = intervals.median(ours)
    if row.most is not None:
        said.append(f"<= {row.most:g}")
        met += [] if middle is None else [middle.value <= row.most + 1e-9]
    for name, share in (row.shares or {}).items():
        found = ratios[name]
        if found is not None:
            said.append(f"<= {share:.2f} {name}")
            met.append(found.value <= share)
    return ", ".join(said), "" if not met else "met" if all(met) else "MISSED"


def _shown(found: intervals.Estimate | None, digits: int, *, interval: bool = False) -> str:
    if found is None:
        return "-"
    if not interval:
        return f"{found.value:.{digits}f}"
    return f"{found.value:.{digits}f} [{found.low:.{digits}f}, {found.high:.{digits}f}]"
