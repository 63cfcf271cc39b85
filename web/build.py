"""The composition root: from a Config, what all calls share once, and each call from it.

Owns the shared parts for the life of the server. `build_brain` is the one place that knows which
kind of brain stands on a line.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ..core.agent import Agent
from ..core.factory import AgentFactory
from ..media.brain import Brain
from ..media.call import Call
from ..media.inference import InferencePool
from ..media.recorder import Recorder
from ..media.transport import CallInfo
from .agents import own_factories
from .call_agent import LineTools, agent_info, answer_to, bound, line_tools
from .calls import BuiltCall, CallFactory
from .config import Config
from .config_reader import ConfigError


@dataclass(slots=True)
class Shared:
    """What every call of the process uses: the configuration, the agents, one inference pool.

    Models are opened once, here (add a field), and warmed before the server listens.
    """

    config: Config
    factories: Mapping[str, AgentFactory]
    pool: InferencePool = field(default_factory=InferencePool)

    def close(self) -> None:
        """The pool's threads end. No call may live any more."""
        self.pool.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallParts:
    """What `build_brain` gets. `late` is where the brain says how to count late results."""

    shared: Shared
    info: CallInfo
    agent: Agent
    line_tools: LineTools


@dataclass(frozen=True, slots=True)
class BuiltBrain:
    """A brain and how many of its inference results missed their frame (`call_ended.late`)."""

    brain: Brain
    late: Callable[[], int] = lambda: 0


def build_shared(config: Config) -> Shared:
    """Import agents, open models, start the pool. Raises ConfigError or ModelMissing, at start
    and not on the first call."""
    return Shared(config, own_factories(config))


def build_agent(shared: Shared, info: CallInfo, tools: LineTools) -> Agent:
    """The agent that the call asked for, fresh."""
    factory = shared.factories.get(info.agent)
    if factory is None:
        raise ConfigError("agent", info.agent, "there is no such agent; add it to agents")
    return factory(agent_info(info, has_display=True))


def build_brain(parts: CallParts) -> BuiltBrain:
    """The brain of one call: the voice pipeline over the configured STT, TTS and detectors."""
    raise NotImplementedError("build_brain: the voice pipeline is not built here yet")


def build_call(shared: Shared, info: CallInfo) -> tuple[Call, Agent]:
    """One call with its agent; nothing runs yet."""
    calls: list[Call] = []
    tools = line_tools(lambda: calls[0])
    agent = build_agent(shared, info, tools)
    built = build_brain(CallParts(shared=shared, info=info, agent=agent, line_tools=tools))
    call = Call(
        built.brain,
        info,
        shared.config.call.policy,
        recorder=_recorder(shared.config, info, built.brain.input_format.rate),
        late=built.late,
    )
    calls.append(call)
    return call, agent


def call_factory(shared: Shared) -> CallFactory:
    """How the registry gets its calls."""

    @asynccontextmanager
    async def build(info: CallInfo, survivors: asyncio.TaskGroup) -> AsyncIterator[BuiltCall]:
        call, agent = build_call(shared, info)
        async with bound(agent, call, has_display=True, survivors=survivors):
            yield BuiltCall(call=call, answer=answer_to(agent), assistant=agent.name)

    def factory(
        info: CallInfo, survivors: asyncio.TaskGroup
    ) -> AbstractAsyncContextManager[BuiltCall]:
        return build(info, survivors)

    return factory


def _recorder(config: Config, info: CallInfo, rate: int) -> Recorder | None:
    if not config.call.record_dir:
        return None
    folder = Path(config.call.record_dir)
    folder.mkdir(parents=True, exist_ok=True)
    return Recorder(folder / f"{info.call_id}.wav", rate=rate)
