"""What a simulated provider received, read alike for all three: frames, results, seeds, tools."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.simulators.gemini_live import GeminiLive
from tests.simulators.gpt_live import GptLive
from tests.simulators.openai_realtime import OpenAIRealtimeServer
from tests.simulators.realtime_server import Json, Wire

Provider = Literal["openai", "gemini", "gpt-live"]
PROVIDERS: tuple[Provider, ...] = ("openai", "gemini", "gpt-live")
Simulator = OpenAIRealtimeServer | GeminiLive | GptLive


@dataclass
class Received:
    """The server's side of one or more connections; it reads, and changes nothing."""

    provider: Provider
    server: Simulator

    @property
    def wires(self) -> Sequence[Wire]:
        """Every connection, oldest first."""
        net = self.server.running if isinstance(self.server, OpenAIRealtimeServer) else None
        return net.wires if net is not None else self.server.wires  # type: ignore[union-attr]

    def frames(self, connection: int | None = None) -> list[Json]:
        """Everything that came in, without sound; of one connection (from 1), or of all."""
        wires = self.wires if connection is None else [self.wires[connection - 1]]
        return [frame for wire in wires for frame in wire.received if not _is_sound(frame)]

    def sent_text(self) -> str:
        """All of that as one text, to look for what must not be in it."""
        return "\n".join(_plain(frame) for frame in self.frames())

    def place(self, *words: str, connection: int | None = None) -> int:
        """Where the first frame is that has all these words in it; fails without one."""
        for at, frame in enumerate(self.frames(connection)):
            if all(word in _plain(frame) for word in words):
                return at
        raise AssertionError(f"no frame with {words} among {self.frames(connection)}")

    def count(self, words: str) -> int:
        """How many frames have these words in them."""
        return sum(words in _plain(frame) for frame in self.frames())

    @property
    def results(self) -> list[tuple[str, str]]:
        """(call id, text) of every tool result that was sent for a call, in order."""
        found: list[tuple[str, str]] = []
        for wire in self.wires:
            seeded = {_at(frame, "item", "call_id") for frame in wire.received if _is_call(frame)}
            sent = (one for frame in wire.received for one in _results(frame))
            found += [one for one in sent if one[0] not in seeded]
        return found

    def seed(self, connection: int) -> list[tuple[str, str]]:
        """(role, text) of the conversation that a connection was begun with; a call and its result
        are ("call", name) and ("result", text) where the provider takes them as such."""
        return list(_seed(self.provider, self.frames(connection)))

    @property
    def tools(self) -> list[str]:
        """The names of tools in the newest setup or update."""
        for frame in reversed(self.frames()):
            if found := _tool_names(frame):
                return found
        return []

    def assert_clean(self) -> None:
        """The simulator had nothing to complain about, and nothing broke in it."""
        running = self.server.running if isinstance(self.server, OpenAIRealtimeServer) else None
        faults = running.faults if running is not None else self.server.faults
        assert list(self.server.violations) == []
        assert faults == []


# ---- frames without the provider's words


def _plain(frame: Json) -> str:
    return json.dumps(frame, default=repr)


def _is_sound(frame: Json) -> bool:
    if str(frame.get("type", "")).startswith("input_audio_buffer.append"):
        return True
    if frame.get("type") == "session.input_audio.append":
        return True
    given = frame.get("realtimeInput")
    return isinstance(given, dict) and "audio" in given


def _is_call(frame: Json) -> bool:
    return _at(frame, "item", "type") == "function_call"


def _results(frame: Json) -> Iterator[tuple[str, str]]:
    item = frame.get("item")
    if isinstance(item, dict) and item.get("type") == "function_call_output":
        yield item["call_id"], item["output"]
    answer = frame.get("toolResponse")
    if isinstance(answer, dict):
        for one in answer["functionResponses"]:
            yield one["id"], _plain(one["response"])


def _seed(provider: Provider, frames: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    if provider == "gpt-live":
        yield from _contents(_at(frames[0], "session", "input"))
    elif provider == "gemini":
        for frame in frames[1:2]:
            for turn in _list(_at(frame, "clientContent", "turns")):
                yield from _gemini_turn(turn)
    else:
        for frame in frames[1:]:
            if frame["type"] != "conversation.item.create":
                return
            yield from _contents([frame["item"]])


def _contents(items: object) -> Iterator[tuple[str, str]]:
    for item in _list(items):
        if item.get("type") == "function_call":
            yield "call", item["name"]
        elif item.get("type") == "function_call_output":
            yield "result", item["output"]
        elif item.get("role") != "system":
            yield item["role"], "".join(part.get("text", "") for part in _list(item["content"]))


def _gemini_turn(turn: dict[str, Any]) -> Iterator[tuple[str, str]]:
    role = "user" if turn["role"] == "user" else "assistant"
    for part in _list(turn["parts"]):
        if "functionCall" in part:
            yield "call", part["functionCall"]["name"]
        elif "functionResponse" in part:
            yield "result", _plain(part["functionResponse"]["response"])
        else:
            yield role, part["text"]


def _tool_names(frame: Json) -> list[str]:
    tools = (
        _at(frame, "session", "tools")
        or _at(frame, "session", "delegation", "responses", "tools")
        or _at(frame, "setup", "tools")
        or _at(frame, "contextUpdate", "tools", "tools")
    )
    names = [one["name"] for one in _list(tools) if "name" in one]
    declared = (one.get("functionDeclarations", ()) for one in _list(tools))
    return names + [one["name"] for some in declared for one in some]


def _at(frame: object, *path: str) -> object:
    for name in path:
        frame = frame.get(name) if isinstance(frame, dict) else None
    return frame


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
