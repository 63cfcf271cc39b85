"""Where a test run's time went: one line per folder of tests/, printed at the end of each run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(slots=True)
class FolderTime:
    """Sums over one folder; `slowest` is its slowest test."""

    tests: int = 0
    seconds: float = 0.0
    slowest: str = ""
    slowest_s: float = 0.0


def folder_of(nodeid: str) -> str:
    """`tests/core` for `tests/core/test_x.py::test_y`, `tests` for a file right in tests/."""
    parts = PurePosixPath(nodeid.partition("::")[0]).parts
    return "/".join(parts[: 2 if len(parts) > 2 else 1])


def by_folder(durations: Iterable[tuple[str, str, float]]) -> dict[str, FolderTime]:
    """Sum (nodeid, phase, seconds): every phase counts as time, only `call` as a test."""
    table: dict[str, FolderTime] = {}
    for nodeid, phase, seconds in durations:
        row = table.setdefault(folder_of(nodeid), FolderTime())
        row.seconds += seconds
        row.tests += phase == "call"
        if seconds > row.slowest_s:
            row.slowest, row.slowest_s = nodeid.partition("::")[2], seconds
    return table


def lines(table: dict[str, FolderTime]) -> list[str]:
    """The printed table, slowest folder first."""
    rows = sorted(table.items(), key=lambda item: -item[1].seconds)
    out = [f"{'folder':<22} {'tests':>6} {'seconds':>8}  slowest"]
    for folder, row in rows:
        out.append(
            f"{folder:<22} {row.tests:>6} {row.seconds:>8.2f}  {row.slowest_s:.2f} {row.slowest}"
        )
    out.append(
        f"{'all':<22} {sum(r.tests for _, r in rows):>6} {sum(r.seconds for _, r in rows):>8.2f}"
    )
    return out
