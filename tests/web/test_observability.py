"""Logs without secrets, metrics in Prometheus text, and a watchdog that names who held the loop."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import time

import pytest

from voxglove.web.config import LogConfig
from voxglove.web.logs import Redactor, handler
from voxglove.web.metrics import HELP, Metrics
from voxglove.web.watchdog import WINDOW, Held, Watchdog

SECRET = "hunter2-hunter2-hunter2"


def logged(config: LogConfig, **extra: object) -> str:
    stream = io.StringIO()
    logger = logging.Logger("test")
    logger.addHandler(handler(config, [SECRET], stream))
    try:
        raise ValueError(f"refused {SECRET}")
    except ValueError:
        logger.error("key %s was refused", SECRET, extra=extra, exc_info=True)
    return stream.getvalue()


def test_a_line_is_json_with_message_and_fields() -> None:
    line = json.loads(logged(LogConfig(), call_id="call_1", samples=5))
    assert (line["level"], line["call_id"], line["samples"]) == ("error", "call_1", 5)
    assert "Traceback" in line["error"]


@pytest.mark.parametrize("config", [LogConfig(), LogConfig(json=False)])
def test_no_secret_is_written_whatever_carries_it(config: LogConfig) -> None:
    text = logged(
        config,
        url=f"wss://user:{SECRET}@host/x",
        nested={"deep": [SECRET, {"token": "abc"}]},
        authorization="x",
        api_key="y-y-y",
    )
    assert SECRET not in text
    assert "abc" not in text and "y-y-y" not in text


@pytest.mark.parametrize(
    "text",
    [
        "sk-abcdefghijklmnop",
        "Authorization: Bearer abcdefghijkl",
        "GET /ws?token=eyJhbGciOiJI.abcdefghij",
        "client_secret=abcdefgh",
        "https://user:passw0rd@host/",
    ],
)
def test_what_looks_like_a_credential_is_masked(text: str) -> None:
    assert "****" in Redactor().text(text)


def test_spoken_words_stay_out_unless_allowed() -> None:
    assert Redactor().field("text_pii", "my words") == "(pii)"
    assert Redactor().field("pii.text", "my words") == "(pii)"
    assert Redactor(pii=True).field("text_pii", "my words") == "my words"
    assert Redactor().field("happiity", "fine") == "fine"


def test_metrics_are_prometheus_text() -> None:
    metrics = Metrics()
    metrics.count("calls_ended_total", reason="hangup")
    metrics.count("calls_ended_total", 2, reason='odd"\n')
    metrics.gauge("calls_active", lambda: 4)
    text = metrics.text()
    assert 'voxglove_calls_ended_total{reason="hangup"} 1' in text
    assert 'voxglove_calls_ended_total{reason="odd\\"\\n"} 2' in text
    assert "# TYPE voxglove_calls_active gauge\nvoxglove_calls_active 4" in text
    assert text.count("# HELP") == len(HELP)
    with pytest.raises(KeyError):
        metrics.count("calls_endet_total")
    with pytest.raises(KeyError):
        metrics.gauge("nothing", lambda: 0)


def test_the_loop_counts_as_lagging_when_a_share_of_the_window_was_late() -> None:
    watchdog = Watchdog()
    for _ in range(WINDOW):
        watchdog.note(0.001, 0.0)
    for late in range(1, 11):
        assert not watchdog.lagging
        watchdog.note(0.08, late)
    assert watchdog.lagging
    assert watchdog.lag_s == 0.08
    for _ in range(WINDOW):
        watchdog.note(0.0, 0.0)
    assert not watchdog.lagging


def hold_the_loop() -> None:
    end = time.monotonic() + 1.2  # long enough for a watcher that gets its turn late
    while time.monotonic() < end:
        sum(range(1_000))


@pytest.mark.real_loop
async def test_the_watchdog_names_what_held_the_loop() -> None:
    held: list[Held] = []
    watchdog = Watchdog(held.append)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(watchdog.run())
        await asyncio.sleep(0.25)
        hold_the_loop()
        await asyncio.sleep(0.25)
        running.cancel()
    worst = max(held, key=lambda one: one.seconds)
    assert 0.2 < worst.seconds < 10
    assert "hold_the_loop" in worst.where
