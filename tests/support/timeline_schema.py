"""Is this a timeline? Every line of one against CONTRACTS A, in words a person can act on.

Used by whoever makes or reads timelines. Pure: takes lines, returns what is wrong with them. It
knows the written contract only and imports nothing of the package, so that both can disagree.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

Line = Mapping[str, object]
Check = Callable[[object], bool]

RATE = 16_000
CODE_PREFIX = "ERR_"
PARTS = ("vad_wait", "turn", "stt", "agent", "tts", "output")


def text(value: object) -> bool:
    return isinstance(value, str)


def whole(value: object) -> bool:
    """A position or a count."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def flag(value: object) -> bool:
    return isinstance(value, bool)


def anything(value: object) -> bool:
    return True


def one_of(*words: str) -> Check:
    return lambda value: value in words


def code(value: object) -> bool:
    return isinstance(value, str) and value.startswith(CODE_PREFIX)


def costs(value: object) -> bool:
    return isinstance(value, dict) and all(number(seconds) for seconds in value.values())


def latency_parts(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(part, dict)
        and part.get("name") in PARTS
        and number(part.get("ms"))
        and bool(part.get("setting"))
        for part in value
    )


@dataclass(frozen=True, slots=True)
class Shape:
    """Fields a type must have, and those it may have."""

    must: Mapping[str, Check]
    may: Mapping[str, Check]


def listed(*wanted: str) -> Check:
    """A list of objects that have these keys."""
    return lambda value: (
        isinstance(value, list)
        and all(isinstance(one, dict) and set(wanted) <= one.keys() for one in value)
    )


_SLOT: dict[str, Check] = {"id": text, "renderer": text, "input": anything, "strategy": text}

SHAPES: Mapping[str, Shape] = {
    "call_started": Shape(
        {
            "v": lambda value: value == 1,
            **dict.fromkeys(("call_id", "line", "brain", "agent", "stt", "tts", "model"), text),
            "clock": one_of("fast", "real"),
            "costs": costs,
        },
        {},
    ),
    "line": Shape({"state": one_of("attached", "held", "detached", "closed")}, {}),
    "mode": Shape({"mode": one_of("idle", "listening", "thinking", "speaking")}, {}),
    "gap": Shape({"samples": whole}, {}),
    "vad": Shape({"event": one_of("start", "confirmed", "misfire", "end"), "position": whole}, {}),
    "transcript": Shape(
        {
            "role": one_of("user", "assistant"),
            "text": text,
            "partial": flag,
            "source": one_of("speech", "typed", "narration"),
        },
        {
            "start": whole,
            "end": whole,
            "heard": text,
            "unheard": text,
            "interrupted": flag,
            "estimated": flag,
        },
    ),
    "turn": Shape(
        {
            "event": one_of("committed", "dropped", "corrected", "resumed"),
            "reason": text,
            "text": text,
        },
        {"hold_ms": whole, "p": number},
    ),
    "response": Shape(
        {"event": one_of("started", "audio", "ended", "cut")},
        {"out": whole, "text": text, "heard": text},
    ),
    "interruption": Shape(
        {"event": one_of("paused", "resumed", "cut"), "reason": text, "out": whole}, {}
    ),
    "tool": Shape(
        {"event": one_of("started", "result"), "id": text, "name": text},
        {
            "input": anything,
            "status": one_of("success", "error", "aborted"),
            "duration_ms": number,
        },
    ),
    "tasks": Shape({"tasks": listed("id", "content", "activeForm", "status")}, {}),
    "inbox": Shape({"items": listed("id", "tag", "request", "blocking", "status")}, {}),
    "compaction": Shape(
        {"event": one_of("start", "end")}, {"status": one_of("ok", "aborted", "failed")}
    ),
    "slot": Shape(_SLOT, {"tool_call_id": text}),
    "slot_removed": Shape({"id": text}, {}),
    "metric": Shape({"name": text}, {"value": number, "total_ms": number, "parts": latency_parts}),
    "reconnected": Shape(
        {
            "restored": flag,
            "planned": flag,
            "attempt": whole,
            **dict.fromkeys(("lost_ms", "replayed_ms", "outage_ms"), whole),
        },
        {},
    ),
    "problem": Shape({"code": code, "stage": text, "message": text, "fatal": flag}, {}),
    "call_ended": Shape(
        {
            "reason": one_of("hangup", "remote_hangup", "limit", "linger", "error", "drain"),
            "late": whole,
            "turns": whole,
        },
        {},
    ),
}

_EVERY: Mapping[str, Check] = {"t": number, "at": whole, "type": text}
_SOME: Mapping[str, Check] = {"turn": whole, "gen": whole}


def read_timeline(path: Path) -> list[Line]:
    """The lines of a timeline file. Raises ValueError for one that is no JSON object."""
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    wrong = [line for line in lines if not isinstance(line, dict)]
    if wrong:
        raise ValueError(f"{path}: not an object: {wrong[0]!r}")
    return lines


def faults(lines: Iterable[Line]) -> list[str]:
    """What is wrong with a whole timeline; empty when it is right."""
    lines = list(lines)
    found = [
        f"line {number + 1}: {fault}"
        for number, line in enumerate(lines)
        for fault in line_faults(line)
    ]
    return [*found, *_order_faults(lines)]


def line_faults(line: Line) -> list[str]:
    """What is wrong with one line."""
    kind = str(line.get("type"))
    shape = SHAPES.get(kind)
    if shape is None:
        return [f"type {kind!r} stands nowhere in the contract"]
    must = {**_EVERY, **shape.must}
    known = {**must, **shape.may, **_SOME}
    found = [f"{kind} has no {name}" for name in must if name not in line]
    found += [f"{kind}.{name} is not in the contract" for name in line if name not in known]
    found += [
        f"{kind}.{name} is {line[name]!r}"
        for name, check in known.items()
        if name in line and not check(line[name])
    ]
    return found or [*_place_faults(line), *_MORE.get(kind, _nothing)(line)]


def _nothing(line: Line) -> list[str]:
    return []


def _place_faults(line: Line) -> list[str]:
    at, t = line["at"], line["t"]
    if isinstance(at, int) and isinstance(t, int | float) and abs(t - at / RATE) > 1e-4:
        return [f"t {t} is not at {at} / {RATE}"]
    return []


def _transcript(line: Line) -> list[str]:
    if line["role"] == "user":
        spoken = line["source"] == "speech" and not line["partial"]
        return [
            f"a spoken user text has no {n}" for n in ("start", "end") if spoken and n not in line
        ]
    if line["partial"] or line["source"] == "narration":
        return []
    wanted = ("heard", "unheard", "interrupted", "estimated")
    return [f"a final assistant text has no {name}" for name in wanted if name not in line]


def _response(line: Line) -> list[str]:
    wanted = {"audio": ("out",), "ended": ("text",), "cut": ("text", "heard")}
    names = wanted.get(str(line["event"]), ())
    return [f"response {line['event']} has no {name}" for name in names if name not in line]


def _tool(line: Line) -> list[str]:
    name = "status" if line["event"] == "result" else "input"
    return [] if name in line else [f"tool {line['event']} has no {name}"]


def _compaction(line: Line) -> list[str]:
    ended = line["event"] == "end"
    return [] if ended == ("status" in line) else ["a compaction has a status at its end, only"]


def _metric(line: Line) -> list[str]:
    parts, total = line.get("parts"), line.get("total_ms")
    if line["name"] != "turn_latency":
        return []
    if not isinstance(parts, list) or not isinstance(total, int | float):
        return ["turn_latency has no total_ms or no parts"]
    summed = sum(part["ms"] for part in parts)
    return [f"parts sum to {summed}, total_ms is {total}"] if abs(summed - total) > 1 else []


_MORE: Mapping[str, Callable[[Line], list[str]]] = {
    "transcript": _transcript,
    "response": _response,
    "tool": _tool,
    "compaction": _compaction,
    "metric": _metric,
}


def _order_faults(lines: list[Line]) -> list[str]:
    """First, last, time, and one end for each answer and each tool call."""
    kinds = [line.get("type") for line in lines]
    found = []
    if kinds[:1] != ["call_started"] or kinds.count("call_started") != 1:
        found.append("call_started is not the first line, once")
    if kinds[-1:] != ["call_ended"] or kinds.count("call_ended") != 1:
        found.append("call_ended is not the last line, once")
    places = [line["at"] for line in lines if whole(line.get("at"))]
    if places != sorted(places):  # type: ignore[type-var]  # ints, checked above
        found.append("at goes backwards")
    for kind, key, ends in (("response", "gen", ("ended", "cut")), ("tool", "id", ("result",))):
        own = [line for line in lines if line.get("type") == kind]
        for name in dict.fromkeys(line.get(key) for line in own):
            events = [line.get("event") for line in own if line.get(key) == name]
            if sum(event in ends for event in events) > 1:
                found.append(f"{kind} {name} ends more than once: {events}")
    return found
