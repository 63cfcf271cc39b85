"""A real PostgreSQL for tests: started on first use, on a socket of its own, gone at the end.

It listens on no port, so a server of the machine is never in its way. It refuses to run as root:
tests that do run it as another user of the machine. Import the fixtures into a conftest, for each
import is a fixture of its own: `postgres` is one server for the run, `schema` an unused name.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.peers import require_peer

ADMIN = "tester"
"""The superuser of the cluster; logs in without a password."""

LOCKED, PASSWORD = "locked", "s3cret-of-locked"
"""A role that must give its password."""

START_S = 20.0

SETTINGS = {
    "listen_addresses": "",
    "max_connections": "60",
    "shared_buffers": "16MB",
    "fsync": "off",
    "full_page_writes": "off",
    "log_min_messages": "fatal",
}

_numbers = itertools.count(1)


class PostgresServer:
    """One cluster in a folder of its own. `stop` and `start` keep its data."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self._user = _unprivileged()
        # Not TMPDIR: the other user must get there, and a socket's path has 107 bytes at most.
        self.folder = Path(tempfile.mkdtemp(prefix="voxglove-pg-", dir="/tmp"))
        self._data = self.folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        self._run("initdb", "--no-sync", "-A", "trust", "-E", "UTF8", "--locale=C", "-U", ADMIN)
        access = f"local all {LOCKED} scram-sha-256\nlocal all all trust\n"
        (self._data / "pg_hba.conf").write_text(access)

    def dsn(self, user: str = ADMIN, password: str = "", database: str = "postgres") -> str:
        login = f"{user}:{password}" if password else user
        return f"postgresql://{login}@/{database}?host={self.folder}"

    def start(self, **settings: str) -> None:
        """Start and wait until it takes connections. Raises RuntimeError if it does not.

        Call it from the main thread: the server ends with the thread that started it.
        """
        options = {**SETTINGS, "unix_socket_directories": str(self.folder), **settings}
        command = [*_dies_with_us(), str(self._programs / "postgres"), "-D", str(self._data)]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        (self._data / "postmaster.pid").unlink(missing_ok=True)
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self._as_user()
            )
        end = time.monotonic() + START_S
        while not self._ready():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("PostgreSQL: " + (self.folder / "log").read_text()[-2000:])
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End it; by default at once, as after a power cut of the program, not of the disk."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=START_S)
            self._process = None

    def sql(self, text: str) -> str:
        """What psql prints for `text`: bare rows, columns separated by `|`."""
        command = [str(self._programs / "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", text]
        done = subprocess.run([*command, self.dsn()], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def remove(self) -> None:
        """Stop it and delete everything."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _ready(self) -> bool:
        state = self._data / "postmaster.pid"
        return state.exists() and state.read_text().rstrip().endswith("ready")

    def _run(self, program: str, *args: str) -> None:
        command = [str(self._programs / program), *args, "-D", str(self._data)]
        done = subprocess.run(command, capture_output=True, text=True, **self._as_user())
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stdout}{done.stderr}")

    def _as_user(self) -> dict[str, Any]:
        """Arguments of subprocess that give up root, where there is root to give up."""
        common: dict[str, Any] = {"cwd": self.folder, "env": {"PATH": os.defpath, "LC_ALL": "C"}}
        if self._user is None:
            return common
        group = pwd.getpwnam(self._user).pw_gid
        return {**common, "user": self._user, "group": group, "extra_groups": []}


def _dies_with_us() -> list[str]:
    """In front of a command: it gets SIGQUIT when this process is killed. Linux only."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "QUIT"] if setpriv else []


def _unprivileged() -> str | None:
    """None for oneself; a user of the machine when the tests run as root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    for name in ("postgres", "nobody"):
        if name in known:
            return name
    raise RuntimeError("PostgreSQL refuses to run as root and there is no other user")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The server of this run; its data need not survive anything."""
    server = PostgresServer(Path(require_peer("postgresql")).resolve().parent)
    try:
        server.start()
        server.sql(f"CREATE ROLE {LOCKED} LOGIN PASSWORD '{PASSWORD}'")
        yield server
    finally:
        server.remove()


@pytest.fixture
def schema() -> str:
    """The name of a schema that does not exist yet."""
    return f"test_{os.getpid()}_{next(_numbers)}"
