"""The voice line over WebRTC, measured: `python bench/webrtc.py [--json FILE] [--calls 1 4 10]`.

Two tables. Echo round trip: a caller's 100 ms bursts come back through a side that echoes PCM;
ours and stock aiortc at either end. CPU per call: the side that answers N callers, talking and
listening all the time, by getrusage of its process (all threads), ours next to stock. The side
that answers and the callers are separate processes on 127.0.0.1; the callers send packets encoded
before and decode nothing. A round whose callers' loop lagged (p99 over 5 ms) is thrown away and
counted; a row of which no round was valid says so. Numbers of other machines differ: read the
ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.adapters.transports_webrtc.roundtrip import (
    FRAME,
    Bursts,
    Echo,
    Kind,
    OurSide,
    StockSide,
    Talk,
    caller,
    side,
)
from tests.audio_fixtures.load import fixture
from voxglove.adapters.transports import webrtc_seams as seams
from voxglove.media import opus

LAGGED_MS = 5.0
WARM_S = 2.0
TRIES = 3
PAIRS: tuple[tuple[Kind, Kind], ...] = (
    ("ours", "ours"),
    ("ours", "stock"),
    ("stock", "ours"),
    ("stock", "stock"),
)
"""The side that echoes, the caller."""
LINE_LIMIT = 1 << 20


@dataclass(frozen=True, slots=True)
class Trip:
    """Milliseconds from a burst's leaving to its echo."""

    echo: Kind
    caller: Kind
    bursts: int
    p50_ms: float
    p90_ms: float


@dataclass(frozen=True, slots=True)
class Load:
    """One round: the answering process under `calls` calls."""

    side: Kind
    calls: int
    cpu_percent: float
    """Of one core, per call."""
    rss_mib: float
    threads: int
    heard_percent: float
    """Sound that reached the side's reader, of what was said."""
    lag_p99_ms: float
    """Of the callers' loop: a round over LAGGED_MS counts for nothing."""


# The answering process: JSON lines on its standard input and output.


async def serve(kind: Kind, app: str) -> None:
    """Answer offers, say what was used when asked, end with standard input."""
    lines = asyncio.StreamReader(limit=LINE_LIMIT)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), sys.stdin
    )
    speech = np.asarray(fixture("jfk").pcm)
    sides: list[OurSide | StockSide] = []
    talks: list[Talk] = []
    async with asyncio.TaskGroup() as group:
        while line := await lines.readline():
            asked = json.loads(line)
            if "offer" in asked:
                sides.append(side(kind))
                said: dict[str, object] = {"answer": await sides[-1].answer(asked["offer"])}
                talks.append(Talk(speech))
                group.create_task(sides[-1].run(Echo() if app == "echo" else talks[-1]))
            else:
                said = used(sum(talk.heard for talk in talks))
            print(json.dumps(said), flush=True)
        for one in sides:
            await one.aclose()


def used(heard: int) -> dict[str, object]:
    """CPU seconds, memory and threads of this process so far."""
    spent = resource.getrusage(resource.RUSAGE_SELF)
    status = dict(
        line.split(":", 1) for line in Path("/proc/self/status").read_text("ascii").splitlines()
    )
    return {
        "cpu_s": spent.ru_utime + spent.ru_stime,
        "rss_mib": int(status["VmRSS"].split()[0]) / 1024,
        "threads": int(status["Threads"]),
        "heard": heard,
    }


class Server:
    """The other process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def ask(self, what: dict[str, object]) -> dict[str, object]:
        """Its answer to one line."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(what).encode() + b"\n")
        found: dict[str, object] = json.loads(await self._process.stdout.readline())
        return found

    async def number(self) -> dict[str, float]:
        """What it used so far."""
        return {name: float(str(value)) for name, value in (await self.ask({})).items()}


@asynccontextmanager
async def server(kind: Kind, app: str) -> AsyncIterator[Server]:
    """A process that answers; it ends with the block."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, __file__, "--serve", kind, "--app", app),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LINE_LIMIT,
    )
    try:
        yield Server(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


# The callers.


async def trip(echo: Kind, calling: Kind, seconds: float) -> Trip:
    """One call, a burst a second."""
    bursts = Bursts()
    async with server(echo, "echo") as far, caller(calling, bursts.pull, bursts.hear) as near:
        await near.accept(str((await far.ask({"offer": near.offer}))["answer"]))
        await asyncio.sleep(seconds + WARM_S)
    p50, p90 = bursts.quantile(0.5), bursts.quantile(0.9)
    return Trip(echo, calling, len(bursts.trips_ms), p50, p90)


class Encoded:
    """Packets that were encoded before, again and again: a caller that costs next to nothing."""

    def __init__(self, payloads: Sequence[bytes]) -> None:
        self._payloads = cycle(payloads)

    def encode(self, pcm: bytes) -> bytes:
        return next(self._payloads)


@contextmanager
def undecoded() -> Iterator[None]:
    """Callers made within throw away what they hear before it is decoded."""
    real = seams.VoiceStream.add
    seams.VoiceStream.add = lambda self, packet: (False, None)  # type: ignore[method-assign]
    try:
        yield
    finally:
        seams.VoiceStream.add = real  # type: ignore[method-assign]


async def load(kind: Kind, calls: int, seconds: float) -> Load:
    """One round."""
    talk, encoder = Talk(np.asarray(fixture("jfk").pcm)), opus.Encoder()
    payloads = [encoder.encode(talk.pull()) for _ in range(500)]
    silence = bytes(2 * FRAME)
    async with server(kind, "talk") as far, AsyncExitStack() as stack:
        with undecoded():
            for _ in range(calls):
                near = await stack.enter_async_context(
                    caller("ours", lambda: silence, lambda pcm: None, Encoded(payloads))
                )
                await near.accept(str((await far.ask({"offer": near.offer}))["answer"]))
                await asyncio.sleep(0.02 / calls)
            await asyncio.sleep(WARM_S)
            before, (lag, wall) = await far.number(), await _lag(seconds)
            after = await far.number()
    spent = after["cpu_s"] - before["cpu_s"]
    said = 16_000 * calls * wall
    heard = (after["heard"] - before["heard"]) / said
    return Load(
        *(kind, calls, 100 * spent / wall / calls, after["rss_mib"], int(after["threads"])),
        *(100 * heard, lag),
    )


async def _lag(seconds: float) -> tuple[float, float]:
    """p99 of how late this loop wakes, in milliseconds, and how long it was watched."""
    loop, late = asyncio.get_running_loop(), []
    start = due = loop.time()
    while due < start + seconds:
        due += 0.01
        await asyncio.sleep(due - loop.time())
        late.append(1000 * (loop.time() - due))
    return float(np.quantile(late, 0.99)), loop.time() - start


async def rounds(calls: int, seconds: float, count: int) -> tuple[list[Load], int]:
    """`count` valid rounds of each side, interleaved; and how many were thrown away."""
    found, lagged = list[Load](), 0
    for _ in range(count):
        kinds: tuple[Kind, ...] = ("ours", "stock")
        for kind in kinds:
            for attempt in range(TRIES):
                one = await load(kind, calls, seconds)
                if one.lag_p99_ms <= LAGGED_MS or attempt == TRIES - 1:
                    found.append(one)
                    break
                lagged += 1
    return found, lagged


def trip_table(trips: Sequence[Trip]) -> str:
    """Text."""
    lines = [f"{'echo':8}{'caller':8}{'p50 ms':>8}{'p90 ms':>8}{'bursts':>8}"]
    lines += [f"{t.echo:8}{t.caller:8}{t.p50_ms:8.0f}{t.p90_ms:8.0f}{t.bursts:8}" for t in trips]
    return "\n".join(lines)


def load_table(loads: Sequence[Load]) -> str:
    """Medians over the rounds; the ratio is stock to ours."""
    head = ("calls", "ours %", "stock %", "ratio", "ours MiB", "stock MiB", "threads", "heard %")
    lines = ["CPU of one core per call", "".join(f"{name:>11}" for name in head)]
    for calls in sorted({one.calls for one in loads}):
        ours = [one for one in loads if one.calls == calls and one.side == "ours"]
        stock = [one for one in loads if one.calls == calls and one.side == "stock"]
        a, b = (median(one.cpu_percent for one in group) for group in (ours, stock))
        memory = [median(one.rss_mib for one in group) for group in (ours, stock)]
        threads = "/".join(str(group[0].threads) for group in (ours, stock))
        heard = min(one.heard_percent for one in ours + stock)
        lag = max(one.lag_p99_ms for one in ours + stock)
        void = f"  void: the callers lagged by {lag:.0f} ms" if lag > LAGGED_MS else ""
        lines.append(
            f"{calls:11}{a:11.2f}{b:11.2f}{b / a:11.2f}{memory[0]:11.0f}{memory[1]:11.0f}"
            f"{threads:>11}{heard:11.1f}{void}"
        )
    return "\n".join(lines)


async def measure(options: argparse.Namespace) -> None:
    """Both tables, and the file."""
    trips, loads, lagged = list[Trip](), list[Load](), 0
    if options.only != "cpu":
        trips = [await trip(echo, calling, options.seconds) for echo, calling in PAIRS]
        print(trip_table(trips), end="\n\n", flush=True)
    if options.only != "trip":
        for calls in options.calls:
            found, thrown = await rounds(calls, options.seconds, options.rounds)
            loads, lagged = loads + found, lagged + thrown
        print(load_table(loads))
        print(f"{lagged} rounds thrown away")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} over the last minute")
    if options.json is not None:
        rows = {
            "trips": [asdict(one) for one in trips],
            "loads": [asdict(one) for one in loads],
            "thrown_away": lagged,
            "cores": os.cpu_count(),
            "load_1m": os.getloadavg()[0],
        }
        options.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Measure the WebRTC voice line.")
    parser.add_argument("--calls", type=int, nargs="+", default=[1, 4, 10])
    parser.add_argument("--seconds", type=float, default=10.0, help="measured, a round")
    parser.add_argument("--rounds", type=int, default=3, help="of each side and number of calls")
    parser.add_argument("--only", choices=("trip", "cpu"))
    parser.add_argument("--json", type=Path, help="write the numbers there too")
    parser.add_argument("--serve", choices=("ours", "stock"), help=argparse.SUPPRESS)
    parser.add_argument("--app", choices=("echo", "talk"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve is not None:
        asyncio.run(serve(options.serve, options.app))
    else:
        asyncio.run(measure(options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
