"""What the systems of `make corebench` share: the conversation, the clock, the printed figures.

Runs in each system's own environment, voxglove's too, so it imports the standard library only.
Owned by the one process of a round. What a request gave is checked after its time was taken.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import process_time_ns
from typing import Generic, TypeVar

QUESTION = "What is three, one more, doubled, and squared?"
INSTRUCTIONS = "You answer in one short paragraph."
ANSWER = (
    "One more than three is four, twice three is six, and three squared is nine, as you may check."
)
DELTAS = tuple(word if not at else f" {word}" for at, word in enumerate(ANSWER.split(" ")))
CALLS = (("add_one", 3), ("double", 3), ("square", 3))
RESULTS = (4, 6, 9)
BLOCK = 25
"""Requests of one case in a row: cases take turns, so that all share the machine's moods."""

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one request gave. `results` are those its last model call was shown."""

    text: str
    deltas: int
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Case(Generic[State]):
    """One kind of request: `prepare` and `outcome` are not timed, `run` is.

    `run` begins with nothing of a conversation and ends with its answer and its history.
    """

    prepare: Callable[[], State]
    run: Callable[[State], Awaitable[None]]
    outcome: Callable[[State], Outcome]
    expected: Outcome


def case(
    prepare: Callable[[], State],
    run: Callable[[State], Awaitable[None]],
    outcome: Callable[[State], Outcome],
    *,
    tools: bool,
    streams: bool,
) -> Case[State]:
    """A case with what it must give, the same for every system."""
    return Case(
        prepare,
        run,
        outcome,
        Outcome(ANSWER, len(DELTAS) if streams else 0, RESULTS if tools else ()),
    )


async def add_one(n: int) -> int:
    """One more than n."""
    return n + 1


async def double(n: int) -> int:
    """Twice n."""
    return 2 * n


async def square(n: int) -> int:
    """n times n."""
    return n * n


def measure(cases: Mapping[str, Case[State]]) -> None:
    """Run every case and print {case: [p50, p95]} in microseconds."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--warm", type=int, default=50)
    parser.add_argument("--profile", default="", help="a case to profile instead; prints to stdout")
    given = parser.parse_args()
    if given.profile:
        asyncio.run(_profile(cases[given.profile], given.requests))
        return
    print(json.dumps(asyncio.run(_measure(cases, given.requests, given.warm))), flush=True)


async def _measure(
    cases: Mapping[str, Case[State]], requests: int, warm: int
) -> dict[str, list[float]]:
    for one in cases.values():
        for _ in range(warm):
            await _timed(one)
    gc.collect()
    gc.freeze()  # what the imports left costs every system's collections otherwise
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(0, requests, BLOCK):
        for name, one in cases.items():
            taken[name] += [await _timed(one) for _ in range(BLOCK)]
    return {name: [median(found), _share(found, 0.95)] for name, found in taken.items()}


async def _timed(one: Case[State]) -> float:
    """One request in microseconds of the process. Raises SystemExit when it gave something else.

    Nothing in it waits, so on an idle machine this is its time; on a busy one the clock on the wall
    would charge long requests for their neighbours and short ones not.
    """
    state = one.prepare()
    began = process_time_ns()
    await one.run(state)
    taken = (process_time_ns() - began) / 1000
    found = one.outcome(state)
    if found != one.expected:
        raise SystemExit(f"expected {one.expected}, got {found}")
    return taken


async def _profile(one: Case[State], requests: int) -> None:
    import cProfile
    import pstats

    for _ in range(50):
        await _timed(one)
    profile = cProfile.Profile()
    for _ in range(requests):
        state = one.prepare()
        profile.enable()
        await one.run(state)
        profile.disable()
    pstats.Stats(profile).sort_stats("tottime").print_stats(45)


def _share(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]
