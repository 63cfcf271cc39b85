"""`make corebench`: what one request costs beside openai-agents and pydantic-ai, without a model.

`python -m bench.core --help`. Owns the plan and the table. Each round starts each system anew on
one core, ours first and last; the scripts in bench/peers and core_voxglove.py do the requests.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import intervals
from bench.processes import ROOT, Place, places
from bench.run import machine

OURS = "voxglove"
PEERS = ("openai-agents", "pydantic-ai")
SHARE = 0.5
"""The most that ours may be of the better peer."""
ROUND_S = 120.0

Figures = Mapping[str, Sequence[float]]
"""case -> (p50, p95) in microseconds, of one round."""
Found = dict[str, list[Figures]]


@dataclass(frozen=True, slots=True)
class Program:
    """How a system's requests are started."""

    name: str
    python: Path
    target: tuple[str, ...]

    def round(self, place: Place, requests: int) -> Figures:
        """A fresh process. Raises CalledProcessError when a request gave something else than all
        systems must give, TimeoutExpired after ROUND_S."""
        ended = subprocess.run(
            [str(self.python), *self.target, f"--requests={requests}"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            preexec_fn=place.settle,
            timeout=ROUND_S,
            check=True,
        )
        figures: Figures = json.loads(ended.stdout)
        return figures


def programs() -> list[Program]:
    """Ours first."""
    ours = Program(OURS, Path(sys.executable), ("-m", "bench.core_voxglove"))
    return [ours, *map(_peer, PEERS)]


def _peer(name: str) -> Program:
    script = ROOT / "bench" / "peers" / f"core_{name.replace('-', '_')}.py"
    return Program(name, ROOT / "build" / f"bench-{name}" / "bin" / "python", (str(script),))


def measured(
    systems: Sequence[Program], place: Place, rounds: int, requests: int, say: Callable[[str], None]
) -> Found:
    """Rounds of all systems, interleaved; ours at both ends, so that a drift shows."""
    found: Found = {system.name: [] for system in systems}
    for number in range(rounds):
        for system in (*systems, systems[0]) if len(systems) > 1 else systems:
            figures = system.round(place, requests)
            found[system.name].append(figures)
            parts = (f"{name} {values[0]:.0f}" for name, values in figures.items())
            say(f"round {number + 1}, {system.name}: {', '.join(parts)}")
    return found


def table(found: Found) -> str:
    """One line a case: each system's p50 with its interval, and ours over the better peer."""
    names = list(found)
    lines = [
        f"| request | {' | '.join(f'{name}, p50 us' for name in names)} | of the better | |",
        "|---" * (len(names) + 3) + "|",
    ]
    for case in _cases(found):
        cells = [_cell(_values(found, name, case)) for name in names]
        lines.append(f"| {case} | {' | '.join(cells)} | {_share(found, case)} |")
    return "\n".join(lines)


def _cases(found: Found) -> Iterator[str]:
    seen: dict[str, None] = {}
    for rounds in found.values():
        for figures in rounds:
            seen.update(dict.fromkeys(figures))
    yield from seen


def _values(found: Found, name: str, case: str) -> list[float]:
    return [figures[case][0] for figures in found[name] if case in figures]


def _cell(values: Sequence[float]) -> str:
    one = intervals.median(values)
    return "" if one is None else f"{one.value:,.0f} ({one.low:,.0f} to {one.high:,.0f})"


def _share(found: Found, case: str) -> str:
    """Ours beside the peer whose median is lower; a variant of ours beside what it varies."""
    ours, plain = _values(found, OURS, case), case.partition(",")[0]
    peers = [values for name in found if name != OURS and (values := _values(found, name, plain))]
    if not ours or not peers:
        return " | "
    better = min(peers, key=lambda values: sorted(values)[len(values) // 2])
    one = intervals.ratio(ours, better)
    if one is None:
        return " | "
    verdict = "met" if one.value <= SHARE else "missed"
    return f"{one.value:.2f} ({one.low:.2f} to {one.high:.2f}) | {verdict}"


def options() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description="Measure the agent core beside its peers.")
    parser.add_argument("--peers", default=",".join(PEERS), help="none, or names with commas")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=300, help="of each case in a round")
    parser.add_argument(
        "--realtime", action="store_true", help="before all other processes (needs the right to)"
    )
    parser.add_argument("--json", type=Path, default=Path("out/corebench.json"))
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the record."""
    given = options().parse_args(arguments)
    wanted = [] if given.peers == "none" else given.peers.split(",")
    ours, *peers = programs()
    systems = [ours, *(peer for peer in peers if peer.name in wanted)]
    missing = [one.name for one in systems if not one.python.exists()]
    if missing or len(systems) != 1 + len(wanted):
        sys.exit(f"not installed or unknown: {', '.join(missing or wanted)}; see make corebench")
    _, place = places(realtime=given.realtime)
    say = partial(print, file=sys.stderr, flush=True)
    found = measured(systems, place, given.rounds, given.requests, say)
    print(table(found))
    print(machine())
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps({"machine": machine(), "rounds": found}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
