"""The command line: `voxglove serve | call | doctor | models | config` (CONTRACTS C).

Exit codes: 0 completed, 1 a call failed or did not complete, 2 usage or configuration, 3 a model
file is missing or has a bad hash, 130 interrupted. Each command is a module of this package; all
of them print here and nowhere else. This module imports nothing heavy, so that an interrupt is an
interrupt from the first moment on.
"""

from __future__ import annotations

import sys

INTERRUPTED = 130


def main() -> None:
    """Entry point of the `voxglove` program."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command; returns its exit code."""
    try:
        from .program import run_command

        return run_command(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
