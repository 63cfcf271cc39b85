"""What a client may say on `/ws` (CONTRACTS B): one table, one strict reader, rate windows.

Pure: text in, a checked message or `BadMessage` out. Never answers the peer; the transport does.
"""

from __future__ import annotations

import binascii
import json
from base64 import b64decode
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import isfinite

MAX_MESSAGE_BYTES = 65_536
"""Largest text or binary message either way."""
MAX_TEXT_CHARS = 8_000
MAX_ID_CHARS = 200
MAX_POSITION = 2**53 - 1
"""Largest integer that a JSON number of a browser holds exactly."""
MAX_DEPTH = 32
"""Deepest nesting of a message. A slot's answer goes on into history, files and model requests:
what this parser just managed would break a later one that has less stack left."""
MAX_NUMBER = 2**63 - 1
"""Largest whole number in a message: what a database column holds."""
IMAGE_TYPES = ("image/png", "image/jpeg", "image/webp")


class BadMessage(ValueError):
    """The peer sent something that cannot be used. `field` names the culprit."""

    def __init__(self, field: str, why: str, code: str = "bad_message") -> None:
        super().__init__(why)
        self.field = field
        self.code = code

    def as_message(self) -> dict[str, object]:
        """The answer on the wire."""
        return {"t": "error", "code": self.code, "field": self.field, "message": str(self)}


Check = Callable[[object], str | None]
"""Says what is wrong with a value, or None."""


def _text(limit: int, *, blank: bool = True) -> Check:
    def check(value: object) -> str | None:
        if not isinstance(value, str):
            return "must be a string"
        if len(value) > limit:
            return f"has {len(value)} characters; send at most {limit}"
        return None if blank or value.strip() else "is blank; send some text"

    return check


def _flag(value: object) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _count(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return "must be a whole number"
    return None if 0 <= value <= MAX_POSITION else f"must be 0..{MAX_POSITION}"


def _within(low: int, high: int, *, whole: bool = True) -> Check:
    def check(value: object) -> str | None:
        known = int if whole else int | float
        if isinstance(value, bool) or not isinstance(value, known):
            return f"must be a {'whole ' if whole else ''}number"
        return None if low <= value <= high else f"must be {low}..{high}"

    return check


def _turn_id(value: object) -> str | None:
    return _count(value) if not isinstance(value, str) else _text(MAX_ID_CHARS)(value)


def _anything(value: object) -> str | None:
    return None


def _image_type(value: object) -> str | None:
    return None if value in IMAGE_TYPES else f"must be one of {', '.join(IMAGE_TYPES)}"


def _base64(value: object) -> str | None:
    if not isinstance(value, str):
        return "must be a base64 string"
    try:
        b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return "is no valid base64"
    return None


_ID = _text(MAX_ID_CHARS, blank=False)

REQUIRED: Mapping[str, Mapping[str, Check]] = {
    "say": {"text": _text(MAX_TEXT_CHARS, blank=False)},
    "playback": {"epoch": _count, "pos": _count},
    "cleared": {"epoch": _count, "pos": _count},
    "barge_in": {},
    "mute": {"on": _flag},
    "ptt": {"down": _flag},
    "commit": {},
    "interrupt": {},
    "hangup": {},
    "resolve": {"id": _ID, "value": _anything},
    "reject": {"id": _ID},
    "playback_done": {"turnId": _turn_id},
    "speaker": {"speaker": _ID},
    "image": {"mime": _image_type, "data": _base64},
    "impair": {
        "loss": _within(0, 1, whole=False),
        "burst": _within(1, 10),
        "jitter_ms": _within(0, 300, whole=False),
        "down": _flag,
    },
}
"""Message kind -> its required fields. Keys that stand nowhere here are ignored (newer clients)."""

OPTIONAL: Mapping[str, Mapping[str, Check]] = {
    "say": {"speaker": _text(MAX_ID_CHARS)},
    "reject": {"reason": _text(MAX_TEXT_CHARS)},
    "image": {"live": _flag},
}


def read_message(text: str) -> dict[str, object]:
    """The checked message of one text frame. Raises BadMessage naming the first bad field."""
    message = _read_object(text)
    kind = message.get("t")
    if not isinstance(kind, str) or kind not in REQUIRED:
        shown = repr(kind)[:40]
        raise BadMessage("t", f"t is {shown}; send one of {', '.join(REQUIRED)}")
    for name, check in REQUIRED[kind].items():
        if name not in message:
            raise BadMessage(name, f"{kind} needs the field {name}")
        _apply(kind, name, check, message[name])
    for name, check in OPTIONAL.get(kind, {}).items():
        if name in message:
            _apply(kind, name, check, message[name])
    return message


def _apply(kind: str, name: str, check: Check, value: object) -> None:
    wrong = check(value)
    if wrong is not None:
        raise BadMessage(name, f"{kind}.{name} {wrong}")


def _read_object(text: str) -> dict[str, object]:
    try:
        message = _DECODER.decode(text)
        if "\\u" in text:  # an escaped lone surrogate would break every later encoder
            json.dumps(message, ensure_ascii=False).encode()
        # A message with few brackets cannot be deep: most are not walked at all.
        brackets = text.count("{") + text.count("[")
        too_deep = brackets >= MAX_DEPTH and _deeper_than(message, MAX_DEPTH)
    except RecursionError:
        too_deep = True
    except ValueError as error:
        raise BadMessage("json", f"this is no valid JSON: {str(error)[:100]}") from None
    if too_deep:
        raise BadMessage("json", f"the JSON is nested deeper than {MAX_DEPTH}; flatten it")
    if not isinstance(message, dict):
        raise BadMessage("json", "send a JSON object with its kind in `t`")
    return message


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON number")


def _whole(digits: str) -> int:
    if len(digits) > 20 or abs(int(digits)) > MAX_NUMBER:
        raise ValueError(f"a whole number lies beyond {MAX_NUMBER}")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise ValueError("a number is too large")
    return number


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_whole, parse_float=_finite)
"""One for all: `json.loads` with these would build one per message."""


def _deeper_than(value: object, limit: int) -> bool:
    """Level by level, so that no depth costs stack."""
    level = [value]
    for _ in range(limit):
        level = [item for above in level for item in _children(above)]
        if not level:
            return False
    return True


def _children(value: object) -> Collection[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def check_frame(pcm: bytes) -> None:
    """Raises BadMessage(bad_frame) for bytes that are no whole 16-bit samples (voice row 72)."""
    if not pcm:
        raise BadMessage("pcm", "the frame is empty; send at least one sample", "bad_frame")
    if len(pcm) % 2:
        raise BadMessage(
            "pcm", f"{len(pcm)} bytes are no whole 16-bit samples; send an even number", "bad_frame"
        )


@dataclass(slots=True)
class RateWindow:
    """Says when more than `limit` things happened within `span_s` seconds."""

    limit: int
    span_s: float
    times: deque[float]

    @classmethod
    def of(cls, limit: int, span_s: float) -> RateWindow:
        """An empty window; it never holds more than `limit` times."""
        return cls(limit, span_s, deque(maxlen=limit))

    def full(self, now: float) -> bool:
        """Count one thing at `now`: True when it is one too many."""
        times = self.times
        over = len(times) == self.limit and now - times[0] <= self.span_s
        times.append(now)
        return over
