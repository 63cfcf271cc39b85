"""Systems under test as processes: started on a core of their own, asked for their numbers, ended.

Owned by the round that starts one. Ends only the process it started.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from bench import ws

ROOT = Path(__file__).resolve().parents[1]
READY_S = 90.0
ENDS_S = 5.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process runs: on one core (None: on any), and before all others if `realtime`, which
    makes a shared machine's neighbours wait (needs the right to)."""

    core: int | None
    realtime: bool = False

    def settle(self) -> None:
        """Put the calling process there."""
        if self.core is not None:
            os.sched_setaffinity(0, {self.core})
        if self.realtime:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


@dataclass(frozen=True, slots=True)
class System:
    """How one system is started. `kind` is the connector (see `caller.Kind`)."""

    name: str
    python: Path
    target: tuple[str, ...]
    kind: str = "plain"

    @property
    def installed(self) -> bool:
        return self.python.exists()


def systems() -> Mapping[str, System]:
    """Every system there is, by name; ours first."""
    peers = ROOT / "bench" / "peers"

    def peer(name: str) -> System:
        python = ROOT / "build" / f"bench-{name}" / "bin" / "python"
        return System(name, python, (str(peers / f"sut_{name}.py"),))

    ours = System("voxglove", Path(sys.executable), ("-m", "bench.sut_voxglove"), "voxglove")
    return {"voxglove": ours, "pipecat": peer("pipecat"), "livekit": peer("livekit")}


class NotReady(Exception):
    """The system did not start; the message holds what it wrote."""


@dataclass(frozen=True, slots=True)
class Stats:
    """What /stats answers (bench/README.md)."""

    cpu_s: float
    rss_bytes: int
    wall: float
    calls: int


class Running:
    """One running system. `start_ms`: from exec to its `ready` line."""

    def __init__(self, system: System, arguments: Mapping[str, object], place: Place) -> None:
        self.system = system
        self.port = free_port()
        flags = [f"--{name}={value}" for name, value in arguments.items()]
        command = [str(system.python), *system.target, f"--port={self.port}", *flags]
        one_thread = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
        began = perf_counter()
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=None if os.environ.get("BENCH_VERBOSE") else subprocess.DEVNULL,
            cwd=ROOT,
            env=os.environ | one_thread | {"TOKENIZERS_PARALLELISM": "false"},
            preexec_fn=place.settle,
        )
        self._wait_ready(f"{system.name}: {' '.join(flags)}")
        self.start_ms = (perf_counter() - began) * 1000

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    async def stats(self, *, trim: bool = False) -> Stats:
        """Ask it."""
        status, body = await ws.http(self.port, "GET", "/stats?trim=1" if trim else "/stats")
        if status != 200:
            raise NotReady(f"{self.system.name}: /stats answers {status}")
        found = json.loads(body)
        return Stats(
            float(found["cpu_s"]),
            int(found["rss_bytes"]),
            float(found["wall"]),
            int(found["calls"]),
        )

    def end(self) -> None:
        """SIGTERM, and SIGKILL if that does not help."""
        self._process.terminate()
        try:
            self._process.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _wait_ready(self, what: str) -> None:
        out = self._process.stdout
        until = perf_counter() + READY_S
        line = b""
        while out is not None and not line.startswith(b"ready"):
            left = until - perf_counter()
            if left <= 0 or not select.select([out], [], [], left)[0]:
                break
            line = out.readline()
            if not line:
                break
        if not line.startswith(b"ready"):
            self.end()
            raise NotReady(f"{what}: not ready; BENCH_VERBOSE=1 shows why")


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def places(*, realtime: bool = False) -> tuple[Place, Place]:
    """(generator, system): two different cores where there are two."""
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) < 2:
        return Place(None, realtime), Place(None, realtime)
    return Place(mine[0], realtime), Place(mine[-1], realtime)
