"""Plays the fault matrix and prints it: one line for each provider and kill point. `make faults`.

On a clock that jumps, against the simulators' real sockets. Exits 1 when a call did not survive.
"""

from __future__ import annotations

import argparse
import sys

from tests.realtime.fault_matrix import KILL_POINTS, PROVIDERS, Held, hold
from voxglove.media.virtual_loop import run_virtual


def line(held: Held) -> str:
    """What became of one call."""
    changes = ", ".join(
        f"{'restored' if one.state_restored else 'seeded'} after {one.outage_ms} ms,"
        f" {one.replayed_ms} ms replayed, {one.lost_ms} lost"
        for one in held.reconnected
    )
    verdict = "ok" if not held.wrong else "FAILED: " + "; ".join(held.wrong)
    return f"{held.provider:9} {held.point:46} {verdict:6} {changes or '-'}"


def main() -> int:
    """Play what the arguments name; everything without any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="parts of names of providers or kill points")
    only = parser.parse_args().only
    failed = 0
    for provider in PROVIDERS:
        for point in KILL_POINTS:
            if only and not all(word in f"{provider} {point}" for word in only):
                continue
            held = run_virtual(hold(provider, point))
            failed += bool(held.wrong)
            print(line(held), flush=True)
    print(f"{failed} failed" if failed else "every call survived")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
