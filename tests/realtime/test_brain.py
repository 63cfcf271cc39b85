"""A realtime model on a line: the same call as on the cascade, event by event."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from tests.realtime.sessions import built
from tests.support.calls import SpanVad
from voxglove.adapters.transports.fixture import FixtureTransport
from voxglove.core.agent import Agent
from voxglove.core.tool import Tool
from voxglove.media import events as call
from voxglove.media.brain import Command
from voxglove.media.call import Call
from voxglove.media.pcm import Samples
from voxglove.media.transport import CallInfo
from voxglove.realtime.brain import RealtimeBrain, RealtimeParts
from voxglove.realtime.config import SessionConfig
from voxglove.realtime.scripted import Reply, ScriptedAdapter

RATE = 16_000
E = TypeVar("E", bound=call.CallEvent)


@dataclass
class Rung:
    """A call that was held."""

    agent: Agent
    adapter: ScriptedAdapter
    line: FixtureTransport
    live: Call
    events: list[tuple[int, call.CallEvent]] = field(default_factory=list)

    def of(self, kind: type[E]) -> list[E]:
        return [event for _, event in self.events if isinstance(event, kind)]

    @property
    def kinds(self) -> list[str]:
        return [event.type for _, event in self.events]


async def ring(
    says: Sequence[tuple[float, float, str]],
    *,
    adapter: ScriptedAdapter | None = None,
    tools: Sequence[Tool] = (),
    seconds: float = 12.0,
    commands: Sequence[tuple[float, Command]] = (),
    config: SessionConfig | None = None,
) -> Rung:
    """Hold a call in which the caller says each text from its start to its end (seconds)."""
    adapter = adapter or ScriptedAdapter(lambda asked: Reply(text=f"you said {asked.text}"))
    agent = built(*tools)
    spans = [(round(a * RATE), round(b * RATE), 0.9) for a, b, _ in says]
    parts = RealtimeParts(
        agent=agent, adapter=adapter, vad=lambda: SpanVad(spans), session=config or SessionConfig()
    )
    live = Call(RealtimeBrain(parts), CallInfo(call_id="c1"))
    line = FixtureTransport(_voice(says, seconds), hangup_after_s=0.0)
    rung = Rung(agent, adapter, line, live)
    live.subscribe(lambda at, event: rung.events.append((at, event)))
    live.attach(line)
    async with asyncio.TaskGroup() as group:
        group.create_task(_order(live, commands))
        group.create_task(_script(adapter, says))
        await live.run()
    return rung


async def _order(live: Call, commands: Sequence[tuple[float, Command]]) -> None:
    for when, command in commands:
        await asyncio.sleep(max(0.0, when - live.at / RATE))
        live.command(command)


async def _script(adapter: ScriptedAdapter, says: Sequence[tuple[float, float, str]]) -> None:
    await asyncio.sleep(0.01)
    for start, end, text in says:
        if text:
            adapter.current.user_says(text, round(start * 1000), round(end * 1000))


def _voice(says: Sequence[tuple[float, float, str]], seconds: float) -> Samples:
    samples = np.zeros(round(seconds * RATE), np.int16)
    for start, end, _ in says:
        a, b = round(start * RATE), round(end * RATE)
        time = np.arange(b - a) / RATE
        samples[a:b] = (np.sin(2 * np.pi * 300 * time) * 8_000).astype(np.int16)
    return samples


async def test_a_turn_is_told_as_the_cascade_tells_it() -> None:
    rung = await ring([(0.5, 1.5, "book a table")])
    assert [(one.role, one.text) for one in rung.of(call.Transcript) if not one.partial] == [
        ("user", "book a table"),
        ("assistant", "you said book a table"),
    ]
    assert [one.event for one in rung.of(call.Response)] == ["started", "audio", "ended"]
