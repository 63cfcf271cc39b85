"""`voxglove serve` and `make serve`: ready, reachable, and gone by a signal."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from tests.web.cli.program import PROGRAM, ROOT, Inside, started, wait_for_line

SCRIPTED = ("--stt", "scripted:spoken.json", "--tts", "scripted", "--model", "demo")


def ask(url: str, body: object = None) -> tuple[int, dict[str, object]]:
    """GET `url`, or POST `body` to it; status and the JSON answer."""
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data=data), timeout=10) as answer:
        return answer.status, json.loads(answer.read())


def address(line: str) -> str:
    found = re.search(r"ready: open (http://\S+?)/ ", line)
    assert found is not None, line
    return found[1]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_gets_ready_takes_sessions_and_stops_by_a_signal(
    tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "spoken.json").write_text("[]")
    with started([str(PROGRAM), "serve", "--port", "0", *SCRIPTED], cwd=tmp_path) as process:
        url = address(wait_for_line(process, "ready: open"))
        assert ask(f"{url}/livez")[0] == 200
        assert ask(f"{url}/readyz") == (200, {"status": "ok", "calls": 0})
        with urlopen(f"{url}/", timeout=10) as page:
            assert b"<html" in page.read()
        status, offer = ask(f"{url}/session", {})
        assert status == 201
        assert set(offer) == {"token", "call_id", "ws_url", "expires_at", "rtc"}
        assert str(offer["ws_url"]).startswith(url.replace("http", "ws") + "/ws?token=")
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    assert str(offer["token"]) not in out + err


@pytest.mark.slow
def test_an_own_agent_is_the_default_of_its_server(tmp_path: Path) -> None:
    (tmp_path / "spoken.json").write_text("[]")
    speech = ("--stt", f"scripted:{tmp_path / 'spoken.json'}", "--tts", "scripted")
    command = [str(PROGRAM), "serve", "keyless_agent:factory", "--port", "0", *speech]
    with started(command, cwd=ROOT / "examples") as process:
        assert "agent keyless_agent:factory" in wait_for_line(process, "agent ")
        url = address(wait_for_line(process, "ready: open"))
        assert ask(f"{url}/session", {})[0] == 201
        assert ask(f"{url}/session", {"agent": "demo"})[0] == 201
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.local_speech
def test_make_serve_prints_the_address_of_a_server_that_is_ready() -> None:
    # The tests' own environment has everything that the target would install.
    installed = ("--old-file", ".venv/.installed")
    with started(["make", *installed, "serve", "ARGS=--port 0"], cwd=ROOT) as process:
        url = address(wait_for_line(process, "ready: open"))
        assert ask(f"{url}/readyz")[0] == 200
        os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does
        process.communicate(timeout=30)
    with pytest.raises(URLError):
        ask(f"{url}/livez")


# ---- inside this process: what never gets as far as listening


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--port", "70000"), "port"),
        (("--model", "gpt"), "model: 'gpt'"),
        (("reception",), "module:factory"),
        (("no_such_module:factory",), "importing no_such_module failed"),
        (("--port", "many"), "--port"),
    ],
)
def test_what_cannot_be_used_is_2_and_named(
    inside: Inside, arguments: tuple[str, ...], says: str
) -> None:
    Path("spoken.json").write_text("[]")
    ran = inside("serve", *SCRIPTED, *arguments)
    assert ran.code == 2 and says in ran.err, ran


def test_a_port_that_is_taken_is_said_plainly(inside: Inside) -> None:
    Path("spoken.json").write_text("[]")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ran = inside("serve", *SCRIPTED, "--port", str(taken.getsockname()[1]))
    assert ran.code == 2
    assert "server.port" in ran.err and "already in use" in ran.err and "--port 0" in ran.err
