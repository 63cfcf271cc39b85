"""One round: a fresh system, N callers, and everything it takes to judge it afterwards.

A round whose generator lagged is marked invalid by its lag alone; who asked for it repeats it.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from random import Random

import numpy as np

from bench import measures
from bench.caller import Caller, Log, Script
from bench.clips import noises
from bench.processes import Place, Running, Stats, System
from bench.scripts import conversation, listening, marks, noise, once
from tests.audio_fixtures.load import VariantClass

LAG_LIMIT_MS = 5.0
"""A round whose generator was later than this at p99 says nothing (findings of every shared
machine: late callers look like late systems)."""
PHASES_S = 3.0
SETTLE_S = 1.0

Values = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What every system of a run is configured to, and how long a round lasts."""

    seconds: float = 20.0
    min_silence_ms: int = 400
    stt_ms: int = 100
    model_ms: int = 100
    tts_ms: int = 100
    sentences: int = 2
    tone_ms: int = 2_000
    turn: str = "vad"

    @property
    def configured_ms(self) -> float:
        """What a perfect system would need after the end of speech."""
        waits = self.min_silence_ms if self.turn == "vad" else 0
        return waits + self.stt_ms + self.model_ms + self.tts_ms

    @property
    def answer_ms(self) -> float:
        return self.sentences * self.tone_ms

    @property
    def arguments(self) -> dict[str, object]:
        """The options of bench/README.md."""
        names = ("turn", "min_silence_ms", "stt_ms", "model_ms", "tts_ms", "sentences", "tone_ms")
        return {name.replace("_", "-"): getattr(self, name) for name in names}


@dataclass(slots=True)
class Round:
    """What one round gave. `values` depends on the kind of the round."""

    kind: str
    system: str
    calls: int
    turn: str = "vad"
    lag_ms: float = 0.0
    limit_ms: float = LAG_LIMIT_MS
    failures: list[str] = field(default_factory=list)
    load: float = 0.0
    values: dict[str, object] = field(default_factory=dict)

    @property
    def valid(self) -> bool:
        return self.lag_ms <= self.limit_ms

    def as_json(self) -> dict[str, object]:
        return asdict(self) | {"valid": self.valid}


During = Callable[[Running, Sequence[Caller]], Coroutine[None, None, None]]
"""Runs beside the callers; gets the system and them."""


async def call_all(
    running: Running, scripts: Sequence[Script], random: Random, during: During | None = None
) -> list[Log]:
    """Run a caller for each script, starting at random in PHASES_S; their logs."""
    callers = [Caller(running.system.kind, running.port, script) for script in scripts]
    spread = phases_s(len(callers))

    async def one(caller: Caller) -> None:
        await asyncio.sleep(random.uniform(0, spread))
        await caller.connect()
        await caller.done

    with _undisturbed():
        async with asyncio.TaskGroup() as group:
            for caller in callers:
                group.create_task(one(caller))
            if during is not None:
                group.create_task(during(running, callers))
        await asyncio.gather(*(caller.hang_up() for caller in callers))
    return [caller.log for caller in callers]


def phases_s(callers: int) -> float:
    """Over how long the callers' starts are spread."""
    return PHASES_S if callers > 1 else 0.2


class Window:
    """Statistics at the beginning and the end of the time in which all calls are up."""

    def __init__(self, seconds: float) -> None:
        self.first: Stats | None = None
        self.last: Stats | None = None
        self._seconds = seconds

    async def watch(self, running: Running, callers: Sequence[Caller]) -> None:
        await asyncio.sleep(phases_s(len(callers)) + SETTLE_S)
        self.first = await running.stats()
        await asyncio.sleep(self._seconds)
        self.last = await running.stats()

    @property
    def cpu_per_call_pct(self) -> float:
        """P3: of one core, for each call."""
        if self.first is None or self.last is None or not self.last.calls:
            return float("nan")
        wall = self.last.wall - self.first.wall
        return 100 * (self.last.cpu_s - self.first.cpu_s) / wall / self.last.calls


async def talk(system: System, place: Place, n: int, setting: Setting, seed: int) -> Round:
    """P2, P3, P4, P5, P9 (RSS a call), P13: N callers in conversation."""
    random = Random(seed)
    found = Round("talk", system.name, n, setting.turn, load=os.getloadavg()[0])
    window = Window(setting.seconds)
    total = setting.seconds + phases_s(n) + SETTLE_S + 0.5
    with Running(system, setting.arguments, place) as running:
        await call_all(running, [once(Random(seed))], random)  # the first call warms
        idle = await running.stats(trim=True)
        idle_pct = await _idle(running, min(2.0, setting.seconds / 2))
        rss: list[Stats] = []

        async def during(running: Running, callers: Sequence[Caller]) -> None:
            await window.watch(running, callers)
            rss.append(await running.stats(trim=True))

        scripts = [conversation(total, Random(seed * 1_000 + index)) for index in range(n)]
        logs = await call_all(running, scripts, random, during)
    found.lag_ms = measures.lag_p99(logs)
    found.failures = [log.failed for log in logs if log.failed]
    found.values = _talked(logs, setting) | {
        "cpu_per_call_pct": window.cpu_per_call_pct,
        "idle_pct": idle_pct,
        "calls": window.last.calls if window.last else 0,
        "rss_idle": idle.rss_bytes,
        "rss_per_call": (rss[0].rss_bytes - idle.rss_bytes) / n if rss else None,
        "start_ms": running.start_ms,
    }
    return found


def _talked(logs: Sequence[Log], setting: Setting) -> dict[str, object]:
    paced = [measures.pacing(log) for log in logs]
    excess = [value for one in paced for value in one.excess_ms]
    late = [value for one in paced for value in one.late_ms]
    stops = [stop for log in logs for stop in measures.stops(log)]
    whole = [one for log in logs for one in measures.wholeness(log, setting.answer_ms)]
    return {
        "response_ms": [value for log in logs for value in measures.responses(log)],
        "configured_ms": setting.configured_ms,
        "unanswered": sum(measures.unanswered(log) for log in logs),
        "stop_wire_ms": [stop.wire_ms for stop in stops],
        "stop_heard_ms": [stop.heard_ms for stop in stops],
        "excess_ms": quantiles(excess),
        "late_ms": quantiles(late),
        "frames": len(excess),
        "underruns": sum(one.underruns for one in paced),
        "gap_ms": [one.gap_ms for one in whole],
        "missing_ms": [setting.answer_ms - one.length_ms for one in whole],
    }


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """p50, p90, p99, max; empty when there is nothing."""
    if not values:
        return {}
    p50, p90, p99 = np.quantile(np.array(values), (0.5, 0.9, 0.99))
    return {"p50": float(p50), "p90": float(p90), "p99": float(p99), "max": float(max(values))}


async def _idle(running: Running, seconds: float) -> float:
    """CPU of a process without calls, in % of a core."""
    before = await running.stats()
    await asyncio.sleep(seconds)
    after = await running.stats()
    return 100 * (after.cpu_s - before.cpu_s) / (after.wall - before.wall)


async def echo(system: System, place: Place, n: int, setting: Setting, seed: int) -> Round:
    """P1: frames through transport and pipeline and back."""
    found = Round("echo", system.name, n, load=os.getloadavg()[0])
    with Running(system, {"mode": "echo"}, place) as running:
        scripts = [marks(min(5.0, setting.seconds)) for _ in range(n)]
        logs = await call_all(running, scripts, Random(seed))
    found.lag_ms = measures.lag_p99(logs)
    found.failures = [log.failed for log in logs if log.failed]
    both = [measures.echoes(log) for log in logs]
    found.values = {
        "added_ms": quantiles([value for values, _ in both for value in values]),
        "lost": sum(lost for _, lost in both),
        "marks": sum(len(values) for values, _ in both),
    }
    return found


NOISES: Mapping[VariantClass, str] = {"cough": "", "keyboard": "", "mm_hm": "mm-hm"}
"""What must not interrupt, and what the recogniser makes of it."""


async def false_alarms(
    system: System,
    place: Place,
    n: int,
    setting: Setting,
    seed: int,
    kind: VariantClass,
    each: int,
) -> Round:
    """P6: `each` noises for each of N callers, one in each answer."""
    found = Round(f"noise:{kind}", system.name, n, setting.turn, load=os.getloadavg()[0])
    random = Random(seed)
    clips = random.sample(noises(kind), k=min(len(noises(kind)), n * each))
    arguments = setting.arguments | {"later-text": NOISES[kind]}
    with Running(system, arguments, place) as running:
        logs: list[Log] = []
        for at in range(0, len(clips), n):  # a call's second segment is the noise
            scripts = [noise([clip], Random(seed + at)) for clip in clips[at : at + n]]
            logs += await call_all(running, scripts, random)
    found.lag_ms = measures.lag_p99(logs)
    found.failures = [log.failed for log in logs if log.failed]
    seen = [one for log in logs for one in measures.disturbances(log, setting.answer_ms)]
    found.values = {
        "clips": len(seen),
        "cut": sum(not one.resumed for one in seen),
        "stopped": sum(one.stopped for one in seen),
        "recovered": sum(one.recovered for one in seen),
        "each": [[one.clip, round(one.silent_ms), one.resumed] for one in seen],
    }
    return found


async def startup(system: System, place: Place, setting: Setting, seed: int) -> Round:
    """P10: exec to ready, first and second call to the first sample of a greeting."""
    found = Round("startup", system.name, 1, load=os.getloadavg()[0])
    times: list[float | None] = []
    with Running(system, setting.arguments | {"greet-ms": 500, "tts-ms": 0}, place) as running:
        for _ in range(2):
            logs = await call_all(running, [listening(1.5)], Random(seed))
            times.append(measures.first_loud(logs[0]))
            found.lag_ms = max(found.lag_ms, measures.lag_p99(logs))
    found.values = {"start_ms": running.start_ms, "first_ms": times[0], "second_ms": times[1]}
    return found


async def growth(system: System, place: Place, setting: Setting, calls: int) -> Round:
    """P9: memory after one call after another, `calls` of them after as many to warm up."""
    found = Round("growth", system.name, 1, load=os.getloadavg()[0])
    arguments = setting.arguments | {"tone-ms": 200, "sentences": 1}
    with Running(system, arguments, place) as running:
        rss = []
        for _ in range(2):
            for _ in range(0, calls, 8):
                scripts = [listening(0.6)] * 8
                logs = await call_all(running, scripts, _AtOnce())
                found.failures += [log.failed for log in logs if log.failed]
            await asyncio.sleep(1)
            rss.append((await running.stats(trim=True)).rss_bytes)
    found.values = {"rss": rss, "calls": calls, "per_1000": (rss[1] - rss[0]) * 1000 / calls}
    return found


class _AtOnce(Random):
    """No phases."""

    def uniform(self, a: float, b: float) -> float:
        return a


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No garbage collection of ours meanwhile."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
