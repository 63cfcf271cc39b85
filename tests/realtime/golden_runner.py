"""Reads golden transcripts of a provider's wire and holds a codec to them, line by line.

A transcript is a text file (`golden/<provider>/*.jsonl`) in which each line begins with a mark:

    # …                  a remark; empty lines count as one
    % {"key": …}         options of the codec, given to the test's own factory; first line, optional
    ! begin {…}          codec.begin(Setup(…)), fields as JSON
    ! SendText {…}       codec.tell(SendText(…)); any command by its class name, fields as JSON
    ! finish             codec.finish(); `! finish wait` says that it returns True
    ! closed 1001 text   codec.closed(1001, "text")
    < {…}                a frame of the provider, fed as it stands
    > {…}                a frame that the codec sends
    = Opened {…}         an event that it gives; only fields that are not at their default

After each line that is fed (`!`, `<`) stand all frames and all events that it causes, frames in
their order and events in theirs; how the two are mixed says nothing. Bytes are base64 in JSON;
`{zeros:960}` anywhere stands for the base64 of 960 zero bytes. The string "…" in an expected line
agrees with any value. A failing assertion shows the whole step as a transcript would say it.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import get_args

from pydantic import TypeAdapter

from voxglove.realtime.commands import ProviderCommand
from voxglove.realtime.events import RealtimeEvent
from voxglove.realtime.port import Setup
from voxglove.realtime.providers.codec import Codec

ANY = "…"
GOLDEN = Path(__file__).parent / "golden"
BYTES = frozenset({"pcm", "data", "jpeg"})
"""Fields of commands that hold bytes."""
_COMMANDS = {kind.__name__: kind for kind in get_args(ProviderCommand)}
Options = Mapping[str, object]


@dataclass(slots=True)
class Step:
    """One line that is fed, and what must come of it. `line` counts from 1."""

    line: int
    fed: str
    sent: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Transcript:
    """A golden file, read."""

    name: str
    options: dict[str, object] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def client_frames(self) -> Iterator[str]:
        """The JSON of every frame that the codec sends here (for the vendor's own types)."""
        return (frame for step in self.steps for frame in step.sent)

    def server_frames(self) -> Iterator[str]:
        """The JSON of every frame of the provider here."""
        return (step.fed[2:] for step in self.steps if step.fed.startswith("< "))


def transcripts(provider: str) -> list[Path]:
    """The golden files of one provider, for pytest.mark.parametrize (ids=lambda p: p.stem)."""
    return sorted((GOLDEN / provider).glob("*.jsonl"))


def read(path: Path) -> Transcript:
    """Parse one file. Raises ValueError for a line without a mark and for an output before any
    input."""
    transcript = Transcript(path.stem)
    for number, raw in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line = re.sub(r"\{zeros:(\d+)\}", lambda found: _zeros(int(found[1])), raw.strip())
        mark, _, body = line.partition(" ")
        if not line or mark.startswith("#"):
            continue
        if mark == "%":
            transcript.options = json.loads(body)
        elif mark in ("!", "<"):
            transcript.steps.append(Step(number, line))
        elif mark in (">", "=") and transcript.steps:
            last = transcript.steps[-1]
            (last.sent if mark == ">" else last.events).append(body)
        else:
            raise ValueError(f"{path.name}:{number}: {line[:40]!r} is no line of a transcript")
    return transcript


def run(path: Path, make: Callable[[Options], Codec], *, binary: bool = False) -> Codec:
    """Hold a codec that `make(options)` gives to a transcript; returns it for further asserts.

    `binary`: frames of the provider are fed as bytes.
    """
    transcript = read(path)
    codec = make(transcript.options)
    for step in transcript.steps:
        events = feed(codec, step.fed, binary=binary)
        sent = [frame if isinstance(frame, str) else frame.decode() for frame in codec.take()]
        got = [show(event) for event in events]
        if not (_agree(step.sent, sent, _frame) and _agree(step.events, got, _event)):
            expected = [f"> {one}" for one in step.sent] + [f"= {one}" for one in step.events]
            came = [f"> {one}" for one in sent] + [f"= {one}" for one in got]
            raise AssertionError(
                f"{path.name}:{step.line}\n{step.fed}\n-- expected\n"
                + "\n".join(expected)
                + "\n-- came\n"
                + "\n".join(came)
            )
    return codec


def feed(codec: Codec, line: str, *, binary: bool = False) -> list[RealtimeEvent]:
    """Do what one `!` or `<` line says; the events that it causes."""
    mark, _, body = line.partition(" ")
    if mark == "<":
        return codec.receive(body.encode() if binary else body)
    name, _, rest = body.partition(" ")
    match name:
        case "begin":
            codec.begin(TypeAdapter(Setup).validate_python(json.loads(rest or "{}")))
            return []
        case "finish":
            assert codec.finish() is (rest == "wait"), "finish() answers differently"
            return []
        case "closed":
            code, _, reason = rest.partition(" ")
            return codec.closed(int(code), reason)
        case _:
            return codec.tell(command(name, json.loads(rest or "{}")))


def command(name: str, values: dict[str, object]) -> ProviderCommand:
    """The command of class `name` with fields from JSON. Raises KeyError for an unknown class."""
    decoded = {
        key: base64.b64decode(value) if key in BYTES and isinstance(value, str) else value
        for key, value in values.items()
    }
    made: ProviderCommand = TypeAdapter(_COMMANDS[name]).validate_python(decoded)
    return made


def show(event: RealtimeEvent) -> str:
    """An event as a transcript says it: its class and the fields that are not at their default."""
    shown = _plain(event)
    return f"{type(event).__name__} {json.dumps(shown, ensure_ascii=False)}".removesuffix(" {}")


def _plain(value: object) -> object:
    """A value as JSON has it."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            one.name: _plain(held)
            for one in fields(value)
            if (held := getattr(value, one.name)) != one.default or one.default is MISSING
        }
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return value


def _agree(expected: list[str], came: list[str], parse: Callable[[str], object]) -> bool:
    return len(expected) == len(came) and all(
        _matches(parse(want), parse(have)) for want, have in zip(expected, came, strict=True)
    )


def _frame(text: str) -> object:
    return json.loads(text)


def _event(text: str) -> object:
    name, _, rest = text.partition(" ")
    return [name, json.loads(rest or "{}")]


def _matches(want: object, have: object) -> bool:
    if want == ANY:
        return True
    if isinstance(want, dict) and isinstance(have, dict):
        return want.keys() == have.keys() and all(_matches(want[key], have[key]) for key in want)
    if isinstance(want, list) and isinstance(have, list):
        return len(want) == len(have) and all(map(_matches, want, have))
    return type(want) is type(have) and want == have


def _zeros(count: int) -> str:
    return base64.b64encode(bytes(count)).decode()
