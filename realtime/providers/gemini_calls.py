"""Tool calls of one Gemini Live connection: each is answered at most once, a cancelled one never.

Pure; owned by one codec. Source: protocols/gemini-live 4 (toolResponse), 5.4; field fault 45.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...core.messages import ToolCall
from ...core.model import ToolSpec
from ..commands import ToolOutput
from .gemini_setup import wire_name
from .reading import Json, inner, text

UNNAMED = "unnamed_"
"""Begins the ids that we make: only one API of this wire names its calls for sure."""


class Calls:
    """Those that wait for results, and the names of tools on this wire. True while any waits."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._open: dict[str, str] = {}
        self._seen: set[str] = set()
        """Ids of all calls so far."""
        self._over: set[str] = set()
        """Ids of all results so far."""
        self._unnamed = 0

    def __bool__(self) -> bool:
        return bool(self._open)

    def name(self, tools: Iterable[ToolSpec]) -> None:
        """The model is shown these tools; it may still call those of before."""
        self._names |= {wire_name(tool.name): tool.name for tool in tools}

    def opened(self, call: Json) -> ToolCall | None:
        """A call by our names; None for one that was made before. An id is made where none came."""
        name, call_id = text(call, "name"), text(call, "id")
        if not call_id:
            self._unnamed += 1
            call_id = f"{UNNAMED}{self._unnamed}"
        if call_id in self._seen or call_id in self._over:
            return None
        self._seen.add(call_id)
        self._open[call_id] = name
        return ToolCall(self._names.get(name, name), dict(inner(call, "args")), call_id)

    def cancelled(self, ids: Iterable[object]) -> tuple[str, ...]:
        """Those of `ids` that waited; they wait no more."""
        found = [
            one for one in ids if isinstance(one, str) and self._open.pop(one, None) is not None
        ]
        return tuple(found)

    def answered(self, call_id: str) -> str | None:
        """The wire's name of a call that waits, "" for one that cannot be answered on this
        connection any more, None for one that was."""
        if call_id in self._over:
            return None
        self._over.add(call_id)
        return self._open.pop(call_id, "")


def response(output: ToolOutput, name: str, scheduling: str) -> Json:
    """The result of a call. `scheduling` "" says none: only functions that do not block have it."""
    key = "output" if output.status == "success" else "error"
    named = {} if output.call_id.startswith(UNNAMED) else {"id": output.call_id}
    made = {**named, "name": name, "response": {key: output.text}}
    return {**made, "scheduling": scheduling} if scheduling else made


def with_notes(made: Json, notes: Sequence[str]) -> Json:
    """A result that says more than its call asked for."""
    said = inner(made, "response")
    more = {key: "\n\n".join([str(value), *notes]) for key, value in said.items()}
    return {**made, "response": more}
