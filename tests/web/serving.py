"""`voxglove serve` as a process of its own, with the keyless local stack."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.web.cli.program import PROGRAM, plain_environment

DESKS = Path(__file__).parent / "desks"
READY_S = 60.0
GONE_S = 40.0


@dataclass(frozen=True, slots=True)
class Served:
    """A running server: the address it printed, and its process."""

    url: str
    pid: int


def booked(folder: Path) -> list[tuple[str, int, str]]:
    """What stands in the book of `folder`: name, people, time."""
    from voxglove.web.frontdesk.bookings import Bookings

    book = Bookings(str(folder / "book.db"))
    try:
        return [(one.name, one.party, f"{one.time:%H:%M}") for one in book.all_active()]
    finally:
        book.close()


@asynccontextmanager
async def served(folder: Path, *target: str, extra: str = "") -> AsyncIterator[Served]:
    """The demo agent on a free port, its book in `folder`; or the agent `target` of a module in
    DESKS. `extra` are more lines of configuration. Ended by SIGTERM."""
    config = folder / "voxglove.yaml"
    config.write_text(
        f"bookings: {folder / 'book.db'}\nmodel: demo\nserver: {{drain_s: 1}}\n{extra}"
    )
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        *("serve", *target, "--port", "0", "--config", str(config)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=plain_environment({"BOOK": str(folder / "book.db")}),
        cwd=DESKS if target else None,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(READY_S):
            while True:
                line = (await process.stdout.readline()).decode()
                assert line, "the server ended before it was ready"
                if found := re.search(r"(http://127\.0\.0\.1:\d+)/", line):
                    break
        yield Served(found[1], process.pid)
    finally:
        process.terminate()
        async with asyncio.timeout(GONE_S):
            await process.wait()
        process._transport.close()  # type: ignore[attr-defined]  # 3.11 leaves its pipes open
