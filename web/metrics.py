"""Counters and gauges of one server, written in the Prometheus text format 0.0.4.

Owned by the server object. Holds a bounded number of series: labels come from closed vocabularies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

PREFIX = "voxglove_"

HELP: Mapping[str, str] = {
    "calls_started_total": "Calls begun.",
    "calls_ended_total": "Calls ended, by reason.",
    "calls_refused_total": "Calls refused before answering, by reason.",
    "calls_active": "Calls alive now, attached or lingering.",
    "sockets_total": "WebSockets accepted.",
    "sockets_active": "WebSockets open now.",
    "rtc_lines_total": "WebRTC lines connected.",
    "rtc_lines_active": "WebRTC lines open now, connecting ones included.",
    "rtc_lines_failed_total": "WebRTC lines that failed, by cause: ice, dtls, offer, other.",
    "rtc_lines_refused_total": "WebRTC lines refused because too many were connecting.",
    "rtc_setup_seconds_total": "Time from offer to connection, of all WebRTC lines together.",
    "chats_total": "Answers of POST /chat begun.",
    "chats_active": "Answers of POST /chat under way.",
    "store_requests_total": "Requests at the store door, by the kind of answer.",
    "tasks": "Tasks of the event loop.",
    "bad_messages_total": "Client messages refused.",
    "input_dropped_samples_total": "Input samples dropped because they came too fast.",
    "loop_lag_seconds": "How late the event loop woke lately (maximum of 5 s).",
    "loop_held_total": "Times something held the event loop for more than 50 ms.",
    "draining": "1 while no new calls are taken.",
}
"""Every series there is; `_total` marks counters."""

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Raises KeyError for a name that is not in HELP: a misspelt series is a defect."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[Labels, float]] = {name: {} for name in HELP}
        self._gauges: dict[str, Callable[[], float]] = {}

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""
        series = self._counts[name]
        key: Labels = tuple(sorted(labels.items()))
        series[key] = series.get(key, 0) + amount

    def gauge(self, name: str, read: Callable[[], float]) -> None:
        """Read the gauge with `read` whenever it is asked for."""
        self._gauges[HELP[name] and name] = read

    def value(self, name: str, **labels: str) -> float:
        """A counter's or gauge's present value."""
        if name in self._gauges:
            return self._gauges[name]()
        return self._counts[name].get(tuple(sorted(labels.items())), 0)

    def text(self) -> str:
        """The exposition."""
        lines: list[str] = []
        for name, help_text in HELP.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [f"# HELP {PREFIX}{name} {help_text}", f"# TYPE {PREFIX}{name} {kind}"]
            if name in self._gauges:
                lines.append(f"{PREFIX}{name} {self._gauges[name]():g}")
                continue
            series = self._counts[name] or {(): 0.0}
            lines += [f"{PREFIX}{name}{_shown(key)} {value:g}" for key, value in series.items()]
        return "\n".join(lines) + "\n"


def _shown(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
