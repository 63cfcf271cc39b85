"""What the simulated Gemini keeps: conversations, the handles that restore them, open tool calls.

A handle is a copy of the conversation at the moment it was given: what came later is lost with the
connection, as protocols/gemini-live 7 says. Nothing here sends anything.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tests.simulators.gemini_live_rules import (
    INTERNAL,
    INVALID,
    POLICY,
    Fields,
    Refusal,
    need,
)
from tests.simulators.realtime_server import Wire


@dataclass(slots=True, kw_only=True)
class Talk:
    """One conversation. `history` holds (role, text) of `user`, `assistant` and `tool`, oldest
    first; `images` that came since the last answer; `responses` that are over."""

    id: str
    model: str
    history: list[tuple[str, str]] = field(default_factory=list)
    images: int = 0
    responses: int = 0


@dataclass(slots=True)
class Memory:
    """All conversations of a server. `latest` is the one that the newest connection holds."""

    latest: Talk | None = None
    handles: dict[str, Talk] = field(default_factory=dict)
    """What each handle restores."""
    _open: dict[str, Wire] = field(default_factory=dict)
    _count: int = 0

    def begin(self, model: str, wire: Wire) -> Talk:
        """A new conversation on this connection."""
        self._count += 1
        return self._hold(Talk(id=f"sid-{self._count}", model=model), wire)

    def resume(self, handle: str, model: str, wire: Wire) -> Talk:
        """The conversation of a handle, as it was then. Raises Refusal."""
        kept = self.handles.get(handle)
        if kept is None:
            raise Refusal("Session handle not found or expired.", INVALID, fault_of_client=False)
        need(kept.model == model, "sessionResumption.handle: of another model")
        need(not _lives(self._open.get(kept.id)), "The session is still open elsewhere.", INTERNAL)
        return self._hold(replace(kept, history=list(kept.history)), wire)

    def give(self, talk: Talk) -> str:
        """A new handle for a conversation as it is now."""
        self._count += 1
        handle = f"handle-{self._count}"
        self.handles[handle] = replace(talk, history=list(talk.history))
        return handle

    def call_id(self) -> str:
        """An id that no call of this server had."""
        self._count += 1
        return f"fc-{self._count}"

    def expire(self, session_id: str = "") -> None:
        """Forget every handle, or those of one session."""
        kept = {key: talk for key, talk in self.handles.items() if session_id not in ("", talk.id)}
        self.handles = kept

    def _hold(self, talk: Talk, wire: Wire) -> Talk:
        self._open[talk.id] = wire
        self.latest = talk
        return talk


def _lives(wire: Wire | None) -> bool:
    """Whether the server still believes in a connection. A half-open one it has given up."""
    if wire is None or wire.socket.state.name != "OPEN":
        return False
    return not (wire.silent.is_set() and not wire.socket.transport.is_reading())


def output_of(response: Fields) -> str:
    """What a function's response says, as a script's `results` want it."""
    for key in ("output", "error"):
        if set(response) == {key} and isinstance(response[key], str):
            return str(response[key])
    return json.dumps(response)


@dataclass(slots=True)
class Calls:
    """The tool calls of one connection: `open` maps ids to (function, whether it blocks)."""

    open: dict[str, tuple[str, bool]] = field(default_factory=dict)
    _over: dict[str, str] = field(default_factory=dict)
    _results: dict[str, str] = field(default_factory=dict)
    _free: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def blocked(self) -> bool:
        """Whether the model waits for a result."""
        return any(blocks for _, blocks in self.open.values())

    def add(self, id: str, name: str, blocks: bool) -> None:
        self.open[id] = (name, blocks)
        self._free.clear()

    def answer(self, response: Fields) -> bool:
        """Take a result; whether its function blocks. Raises Refusal."""
        id = response.get("id", "")
        need(id, "functionResponses.id: missing")
        known = self.open.get(id)
        if known is None:
            raise Refusal(f"functionResponses.id: {id} is {self._over.get(id, 'unknown')}", POLICY)
        name, blocks = known
        need(response["name"] == name, f"functionResponses.name: {id} is a call of {name}")
        loose = {"scheduling", "willContinue"} & set(response)
        need(not (blocks and loose), f"{sorted(loose)}: {name} is not NON_BLOCKING")
        if blocks:
            self._results[id] = output_of(response["response"])
        if not response.get("willContinue", False):
            del self.open[id]
            self._over[id] = "answered already"
        if not self.blocked:
            self._free.set()
        return blocks

    def cancel(self) -> list[str]:
        """Give up the calls that block; their ids."""
        ids = [id for id, (_, blocks) in self.open.items() if blocks]
        for id in ids:
            del self.open[id]
            self._over[id] = "cancelled"
        self._results = {}
        return ids

    async def results(self) -> dict[str, str]:
        """Wait until nothing blocks; the results by id."""
        while self.blocked:
            await self._free.wait()
        results, self._results = self._results, {}
        return results

    def still_open(self, ids: Iterable[str]) -> bool:
        return any(id in self.open for id in ids)
