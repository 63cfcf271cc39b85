"""`make bench`: voxglove beside its peers. `python -m bench.run --help`.

Owns the plan: which rounds, in which order, and how often one that was disturbed is repeated. Each
round starts the system anew on one core and calls it from another.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from zlib import crc32

from bench import rounds
from bench.processes import NotReady, Place, System, places, systems
from bench.recording import alignment
from bench.rounds import Round, Setting
from bench.table import discarded, table
from tests.audio_fixtures.load import VariantClass

REPEATS = 3
"""How often a disturbed round is tried at most."""
ALL = ("P1", "P2", "P3", "P4", "P5", "P6", "P9", "P10", "P13", "P14")
STALLS_MS = (300, 1_000, 1_500)
IN_TALK = frozenset(("P2", "P3", "P4", "P5", "P9", "P13"))

Run = Callable[[int], Awaitable[Round]]
Named = Iterator[tuple[str, Run]]
"""What a round is called, and the round."""


@dataclass(frozen=True, slots=True)
class Task:
    """One round to come. `run` takes a seed, the same for every system in the same place."""

    system: str
    what: str
    repeat: int
    run: Run

    def seed(self, attempt: int) -> int:
        """Phases, clips and pauses of this round."""
        return crc32(f"{self.what} {self.repeat} {attempt}".encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is asked for."""

    only: frozenset[str]
    peers: Sequence[System]
    calls: Sequence[int]
    repeats: int
    setting: Setting
    growth_calls: int
    noises_each: int
    noise_calls: int
    limit_ms: float
    realtime: bool


def order(ours: System, peers: Sequence[System]) -> list[System]:
    """ABCA: ours first and last, so that a drift of the machine shows."""
    return [ours, *peers, ours] if peers else [ours]


def tasks(plan: Plan, ours: System, place: Place) -> Iterator[Task]:
    """Every round of the plan, interleaved."""
    talks = [partial(_talks, n=n) for n in plan.calls]
    parts: list[Callable[[Plan, System, Place], Named]] = [_startup, *talks, _noises]
    for repeat in range(plan.repeats):
        for part in parts:
            for system in order(ours, plan.peers):
                for what, run in part(plan, system, place):
                    yield Task(system.name, what, repeat, run)
    for system in [ours, *plan.peers]:
        if "P9" in plan.only:
            yield Task(system.name, "growth", 0, _growth(plan, system, place))
    if "P14" in plan.only:
        yield Task(ours.name, "recording", 0, _recording(plan, ours, place))


def _startup(plan: Plan, system: System, place: Place) -> Named:
    if "P10" in plan.only:
        yield "startup", lambda seed: rounds.startup(system, place, plan.setting, seed)


def _talks(plan: Plan, system: System, place: Place, *, n: int) -> Named:
    setting = plan.setting
    if plan.only & IN_TALK:
        yield f"talk N={n}", lambda seed: rounds.talk(system, place, n, setting, seed)
    if "P4" in plan.only and n == plan.calls[0]:
        own = replace(setting, turn="default")
        yield "talk, own turns", lambda seed: rounds.talk(system, place, n, own, seed)
    if "P1" in plan.only:
        yield f"echo N={n}", lambda seed: rounds.echo(system, place, n, setting, seed)


def _noises(plan: Plan, system: System, place: Place) -> Named:
    if "P6" in plan.only:
        for kind in rounds.NOISES:
            yield f"noise: {kind}", _noise(plan, system, place, kind)


def _noise(plan: Plan, system: System, place: Place, kind: VariantClass) -> Run:
    each, n = plan.noises_each, plan.noise_calls
    return lambda seed: rounds.false_alarms(system, place, n, plan.setting, seed, kind, each)


def _growth(plan: Plan, system: System, place: Place) -> Run:
    return lambda seed: rounds.growth(system, place, plan.setting, plan.growth_calls)


def _recording(plan: Plan, system: System, place: Place) -> Run:
    return lambda seed: alignment(system, place, plan.setting, seed, STALLS_MS)


async def run(plan: Plan, found: list[Round], say: Callable[[str], None]) -> None:
    """All rounds into `found`, disturbed ones repeated up to REPEATS times and kept as well."""
    generator, place = places(realtime=plan.realtime)
    generator.settle()
    for task in tasks(plan, systems()["voxglove"], place):
        name = f"{task.system}, {task.what}"
        for attempt in range(REPEATS):
            try:
                one = await task.run(task.seed(attempt))
            except (NotReady, OSError, TimeoutError, ExceptionGroup) as error:
                say(f"{name}: {error}")
                break
            one.limit_ms = plan.limit_ms
            found.append(one)
            say(f"{name}: lag {one.lag_ms:.1f} ms" + ("" if one.valid else ", DISCARDED"))
            if one.valid:
                break


def plan_of(given: argparse.Namespace) -> Plan:
    """From the command line. Raises SystemExit for a peer that is not installed."""
    known = systems()
    wanted = [] if given.peers == "none" else given.peers.split(",")
    missing = [name for name in wanted if name not in known or not known[name].installed]
    if missing:
        sys.exit(f"not installed: {', '.join(missing)}; `make bench` installs them")
    quick = given.quick
    return Plan(
        only=frozenset(given.only.split(",")) if given.only else frozenset(ALL),
        peers=[known[name] for name in wanted],
        calls=[int(n) for n in given.calls.split(",")]
        if given.calls
        else ([1, 8] if quick else [1, 8, 16, 32]),
        repeats=given.rounds or (1 if quick else 5),
        setting=Setting(seconds=given.seconds or (10.0 if quick else 20.0)),
        growth_calls=24 if quick else 200,
        noises_each=1 if quick else 2,
        noise_calls=4 if quick else 6,
        limit_ms=given.lag_limit,
        realtime=given.realtime,
    )


def options() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description="Measure voxglove beside its peers.")
    parser.add_argument("--quick", action="store_true", help="one short round of each")
    parser.add_argument("--peers", default="pipecat,livekit", help="none, or names with commas")
    parser.add_argument("--only", default="", help="metrics, such as P3,P5")
    parser.add_argument("--calls", default="", help="numbers of calls, such as 1,16")
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0.0, help="length of a round's window")
    parser.add_argument(
        "--realtime",
        action="store_true",
        help="generator and systems before all other processes (on a machine with neighbours)",
    )
    parser.add_argument(
        "--lag-limit",
        type=float,
        default=rounds.LAG_LIMIT_MS,
        help="ms; more than 5 makes latencies worthless (p99 of the generator's own lag)",
    )
    parser.add_argument("--json", type=Path, default=Path("out/bench.json"))
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the record."""
    given = options().parse_args(arguments)
    plan = plan_of(given)
    found: list[Round] = []
    try:
        asyncio.run(run(plan, found, lambda line: print(line, file=sys.stderr, flush=True)))
    except KeyboardInterrupt:
        print("stopped; this is what there is", file=sys.stderr)
    print(table(found))
    print(discarded(found))
    print(machine())
    given.json.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "machine": machine(),
        "setting": asdict(plan.setting) | {"realtime": plan.realtime, "lag_limit": plan.limit_ms},
        "rounds": [one.as_json() for one in found],
    }
    given.json.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    return 0


def machine() -> str:
    """What it ran on."""
    load = os.getloadavg()[0]
    return f"Python {platform.python_version()}, {os.cpu_count()} cores, load {load:.1f}"


if __name__ == "__main__":
    sys.exit(main())
