"""voxglove's side of `make corebench`: an agent, the scripted model that ships, three tools.

Run as `python -m bench.core_voxglove`; prints one line of JSON (peers/core_common.py). An agent of
ours is one conversation, so building it is part of the time; a peer's agent serves many.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.peers import core_common
from bench.peers.core_common import ANSWER, CALLS, INSTRUCTIONS, QUESTION, Case, Outcome, case
from voxglove.adapters.models.scripted import Call, ScriptedModel, Step, say
from voxglove.core.agent import Agent
from voxglove.core.builder import Glove
from voxglove.core.config import AgentConfig
from voxglove.core.events import SubscriberEvent, TextDelta
from voxglove.core.tool import tool

TOOLS = tuple(tool(do) for do in (core_common.add_one, core_common.double, core_common.square))


@dataclass(slots=True)
class Conversation:
    """One request to come. It is the subscriber that counts deltas."""

    model: ScriptedModel
    text: str = ""
    deltas: int = 0
    built: Agent | None = None

    def record(self, event: SubscriberEvent) -> None:
        if isinstance(event, TextDelta):
            self.deltas += 1

    def outcome(self) -> Outcome:
        self.model.verify()
        shown = self.model.requests[-1].messages[-1].tool_results
        return Outcome(self.text, self.deltas, tuple(_number(one.result.data) for one in shown))


def _number(data: object) -> int:
    if not isinstance(data, int):
        raise TypeError(f"a tool's result is {data!r}")
    return data


def script(*, tools: bool, streams: bool) -> list[Step]:
    """Three calls in one reply if `tools`, then the answer."""
    calls = say(*(Call(name, {"n": n}) for name, n in CALLS), streams=streams)
    return [*([calls] if tools else []), say(ANSWER, streams=streams)]


def built(model: ScriptedModel, *, tools: bool, own: bool = False) -> Agent:
    """An agent of these tools alone, as a peer's; with `own`, its task and inbox tools too."""
    config = AgentConfig() if own else AgentConfig(builtin_tools=())
    glove = Glove(model=model, system_prompt=INSTRUCTIONS, config=config)
    for one in TOOLS if tools else ():
        glove.fold(one)
    return glove.build()


def cases() -> dict[str, Case[Conversation]]:
    """What every system does, and what of ours is the building, the queue of a permanent
    subscriber, the tools that an agent has of its own."""
    found = {
        f"{'tools' if tools else 'plain'} {'streamed' if streams else 'whole'}": _request(
            tools=tools, streams=streams
        )
        for tools in (False, True)
        for streams in (True, False)
    }
    for tools in (False, True):
        name = "tools" if tools else "plain"
        found[f"{name} streamed, built before"] = _request(tools=tools, streams=True, before=True)
        found[f"{name} streamed, queued"] = _request(tools=tools, streams=True, queued=True)
        found[f"{name} streamed, own tools"] = _request(tools=tools, streams=True, own=True)
    return found


def _request(
    *,
    tools: bool,
    streams: bool,
    before: bool = False,
    queued: bool = False,
    own: bool = False,
) -> Case[Conversation]:
    steps = script(tools=tools, streams=streams)

    def prepare() -> Conversation:
        one = Conversation(ScriptedModel(steps))
        if before:
            one.built = built(one.model, tools=tools, own=own)
        return one

    async def run(one: Conversation) -> None:
        agent = one.built or built(one.model, tools=tools, own=own)
        if queued:
            agent.add_subscriber(one)
        listener = None if queued else one.record
        one.text = (await agent.process_request(QUESTION, subscriber=listener)).text

    return case(prepare, run, Conversation.outcome, tools=tools, streams=streams)


if __name__ == "__main__":
    core_common.measure(cases())
