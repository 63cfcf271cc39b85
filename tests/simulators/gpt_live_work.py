"""Delegated work of the simulated Live model: responses of its backend, and their open calls.

Pure; makes the frames. A batch of calls is answered whole or not at all (protocols/openai-live 6).
Owned by `gpt_live_session`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.simulators.gpt_live_rules import Json, Refused, part, parts, word
from tests.simulators.realtime_script import Call, Reply


@dataclass(slots=True)
class Work:
    """The backend's conversation.

    open      call id -> delegation, of calls that wait for their output
    results   outputs since the backend last went on
    typed     what the user typed and the voice was not asked about yet
    """

    open: dict[str, str] = field(default_factory=dict)
    void: set[str] = field(default_factory=set)
    results: dict[str, str] = field(default_factory=dict)
    typed: str = ""
    delegation: str = ""
    responses: int = 0
    delegations: int = 0
    calls: int = 0

    def delegate(self, target: str, offset_ms: int) -> Json:
        """A new delegation begins."""
        self.delegations += 1
        self.delegation = f"dlg_{self.delegations}"
        delegation: Json = {"id": self.delegation, "type": "delegation", "target": target}
        if target == "responses":
            delegation["response_id"] = f"resp_{self.responses + 1}"
        return {
            "type": "session.delegation.created",
            "offset_ms": offset_ms,
            "delegation": delegation,
        }

    def respond(self, reply: Reply, tokens: int) -> Iterator[Json]:
        """One whole response of the backend, with its calls; what it says is the voice's."""
        self.responses += 1
        yield self._event("response.created", response=self._response("in_progress"))
        items: list[Json] = [{"id": f"rs_{self.responses}", "type": "reasoning", "summary": []}]
        items += [self._call(call, reply.status == "completed") for call in reply.calls]
        for index, item in enumerate(items):
            yield self._event("response.output_item.done", output_index=index, item=item)
        usage = {"input_tokens": tokens, "output_tokens": 20, "total_tokens": tokens + 20}
        response = self._response(reply.status)
        if reply.status == "failed":
            response["error"] = {"code": "server_error", "message": "The server had an error."}
        elif reply.status == "incomplete":
            response["incomplete_details"] = {"reason": "max_output_tokens"}
        else:
            response["usage"] = usage
        yield self._event(f"response.{reply.status}", response=response)

    def take(self, item: Json) -> str:
        """An item of the client. Gives its call id, "" for a message. Raises Refused."""
        if item["type"] == "message":
            content = item["content"]
            texts = [word(one.get("text")) for one in parts(content)]
            self.typed = content if isinstance(content, str) else "".join(texts)
            return ""
        call_id = word(item["call_id"])
        if call_id not in self.open:
            text = f"No tool call waits for an output with the call id '{call_id}'."
            raise Refused("invalid_call_id", text, "item.call_id")
        self.delegation = self.open.pop(call_id)
        self.results[call_id] = word(item["output"])
        return call_id

    def go_on(self) -> dict[str, str]:
        """The client lets the backend go on: the outputs it has got. Raises Refused."""
        if self.open:
            waiting = ", ".join(self.open)
            raise Refused("pending_tool_calls", f"Tool calls wait for their output: {waiting}.")
        results, self.results = self.results, {}
        return results

    def _call(self, call: Call, completed: bool) -> Json:
        self.calls += 1
        call_id = call.id or f"call_{self.calls}"
        if completed:
            self.open[call_id] = self.delegation
        arguments = call.arguments
        return {
            "id": f"fc_{self.calls}",
            "type": "function_call",
            "status": "completed",
            "call_id": call_id,
            "name": call.name,
            "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
        }

    def _response(self, status: str) -> Json:
        empty: Sequence[object] = []
        return {
            "id": f"resp_{self.responses}",
            "object": "response",
            "status": status,
            "output": empty,
            "tools": empty,
            "instructions": None,
        }

    def _event(self, kind: str, **fields: object) -> Json:
        return {
            "type": "response.event",
            "delegation_id": self.delegation,
            "event": {"type": kind, **fields},
        }


def merged(session: Json, update: Json) -> None:
    """Take a sparse update of the delegation into a session. Raises Refused for another type."""
    new = part(update, "delegation")
    old = part(session, "delegation")
    if not new:
        return
    if new["type"] != old["type"]:
        text = "The delegation type can not change."
        raise Refused("invalid_value", text, "session.delegation.type")
    if "acknowledgement_delay_ms" in new:
        old["acknowledgement_delay_ms"] = new["acknowledgement_delay_ms"]
    part(old, "responses").update(part(new, "responses"))
