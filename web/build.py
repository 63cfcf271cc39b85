"""The composition root: from a Config, what all calls share once, and each call from it.

Owns the shared parts for the life of the process. `_brain` is the one place that knows which kind
of brain stands on a line.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.agent import Agent
from ..core.factory import AgentFactory
from ..core.factory import CallInfo as AgentCallInfo
from ..core.model import Model
from ..core.store import Store
from ..media import events as call
from ..media.brain import Brain
from ..media.call import Call
from ..media.inference import DEFAULT_COSTS, InferencePool, Jobs
from ..media.recorder import Recorder
from ..media.transport import CallInfo
from ..pipelines.machine import MachineConfig
from ..pipelines.pipeline import PipelineParts, VoicePipeline
from ..pipelines.vocabulary import TurnEvent
from .agents import own_factories
from .auth import is_loopback
from .brains import OpenedModel, open_model
from .call_agent import LineTools, LiveText, agent_info, answer_to, bound
from .calls import BuiltCall, CallFactory
from .config import Config
from .config_reader import ConfigError
from .conversation import Conversation
from .frontdesk.bookings import Bookings
from .frontdesk.factory import frontdesk_factory
from .realtime import open_realtime, realtime_brain
from .stack import Speech, open_speech
from .stores import IN_MEMORY, Stores, kept
from .timeline import TimelineFile

if TYPE_CHECKING:
    from ..realtime import RealtimeAdapter

DEMO = "demo"
"""The agent that needs no configuration: a restaurant's front desk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What every call of the process uses. Models are opened once, here, and warmed before the
    first call."""

    config: Config
    factories: Mapping[str, AgentFactory]
    speech: Speech
    model: OpenedModel
    bookings: Bookings
    clock: Callable[[], datetime]
    realtime: RealtimeAdapter | None = None
    """Answers every call in place of the cascade, if there is one."""
    stores: Stores = IN_MEMORY
    """Where calls keep their conversations. Closed by whoever opened it."""
    pool: InferencePool = field(default_factory=InferencePool)

    async def warm(self) -> None:
        """Run every model once, off the loop."""
        await asyncio.get_running_loop().run_in_executor(None, self.speech.warm)

    def close(self) -> None:
        """The pool's threads end, the book is closed. No call may live any more."""
        self.pool.close()
        self.bookings.close()

    async def aclose(self) -> None:
        """The same, and the model's connections go; in the loop that used them."""
        try:
            await self.model.aclose()
        finally:
            self.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """How one call differs from a live one. `recording`: where its two tracks go."""

    frame_clocked: bool = False
    cost_factor: float = 1.0
    fast: bool = False
    recording: Path | None = None
    record: Callable[[TurnEvent], None] | None = None
    has_display: bool = True


@dataclass(frozen=True, slots=True)
class OpenedCall:
    """A call ready to run, its agent, `announce`, which emits its first events, the words of its
    answers while they grow, what its turn machine decides by, and the conversation so far."""

    call: Call
    agent: Agent
    announce: Callable[[], None]
    live_text: LiveText
    machine: MachineConfig
    past: Conversation


async def open_shared(
    config: Config,
    env: Mapping[str, str],
    *,
    clock: Callable[[], datetime] = datetime.now,
    opening: Callable[[Config], Speech] = open_speech,
) -> Shared:
    """Import agents, open models with `opening`, in a thread. Raises ConfigError, ModelMissing or
    ModelCorrupt, at start and not on the first call."""
    factories = own_factories(config)
    realtime = open_realtime(config, env)
    model = await open_model(config.model, env, clock)
    speech = await asyncio.get_running_loop().run_in_executor(None, opening, config)
    return Shared(
        config=config,
        factories=factories,
        speech=speech,
        model=model,
        bookings=Bookings(config.bookings),
        clock=clock,
        realtime=realtime,
    )


@asynccontextmanager
async def open_call(
    shared: Shared,
    info: CallInfo,
    options: CallOptions | None = None,
    survivors: asyncio.TaskGroup | None = None,
) -> AsyncIterator[OpenedCall]:
    """One call with its agent; nothing runs yet. Un-abortable tools end in `survivors`."""
    how = options or CallOptions()
    calls: list[Call] = []
    store = shared.stores.open(info.call_id)
    agent = _agent(shared, info, LineTools(lambda: calls[0]), how, store)
    jobs = _jobs(shared, how)
    brain = _brain(shared, agent, jobs, how, survivors)
    live = Call(
        brain,
        info,
        shared.config.call.policy,
        recorder=_recorder(shared.config, info, how),
        late=lambda: jobs.statistics().late,
    )
    calls.append(live)
    started = _started(shared, info, agent, jobs, how)
    async with (
        kept(store, agent, survivors),
        bound(agent, live, has_display=how.has_display) as told,
    ):

        def announce() -> None:
            for event in (started, *told.past.present):
                live.emit(event)

        yield OpenedCall(live, agent, announce, told.live_text, _machine(shared), told.past)


def call_factory(shared: Shared) -> CallFactory:
    """How the registry gets its calls."""

    @asynccontextmanager
    async def build(info: CallInfo, survivors: asyncio.TaskGroup) -> AsyncIterator[BuiltCall]:
        async with open_call(shared, info, None, survivors) as opened:
            with _timeline(shared.config, opened.call):
                opened.announce()
                yield BuiltCall(
                    call=opened.call,
                    answer=opened.past.noting(answer_to(opened.agent)),
                    assistant=opened.agent.name,
                    live_text=opened.live_text,
                    agent=opened.agent,
                    past=opened.past,
                    inbox=_opens_inbox(shared),
                )

    def factory(
        info: CallInfo, survivors: asyncio.TaskGroup
    ) -> AbstractAsyncContextManager[BuiltCall]:
        return build(info, survivors)

    return factory


def _opens_inbox(shared: Shared) -> bool:
    """Whether the store door lets a page without a key in: on loopback, where it is open at all."""
    return shared.stores.durable and is_loopback(shared.config.server.host)


def _agent(
    shared: Shared, info: CallInfo, tools: LineTools, how: CallOptions, store: Store
) -> Agent:
    """The agent that the call asked for, fresh."""
    told = agent_info(info, has_display=how.has_display, store=store)
    if info.agent == DEMO and DEMO not in shared.factories:
        return _front_desk(shared, tools)(told)
    factory = shared.factories.get(info.agent)
    if factory is None:
        raise ConfigError("agent", info.agent, "there is no such agent; add it to agents")
    return factory(told)


def _front_desk(shared: Shared, tools: LineTools) -> AgentFactory:
    def model(info: AgentCallInfo) -> Model:
        return shared.model.make()

    return frontdesk_factory(
        shared.bookings, model, clock=shared.clock, line_tools=lambda info: tools
    )


def _jobs(shared: Shared, how: CallOptions) -> Jobs:
    costs = {kind: round(cost * how.cost_factor) for kind, cost in DEFAULT_COSTS.items()}
    return Jobs(shared.pool, costs, frame_clocked=how.frame_clocked)


def _brain(
    shared: Shared,
    agent: Agent,
    jobs: Jobs,
    how: CallOptions,
    survivors: asyncio.TaskGroup | None,
) -> Brain:
    speech = shared.speech
    if shared.realtime is not None:
        return realtime_brain(shared.config, shared.realtime, speech, agent, survivors)
    parts = PipelineParts(
        agent=agent,
        stt=lambda: speech.stt(jobs),
        tts=lambda: speech.tts(jobs),
        vad=speech.vad,
        detector=speech.detector(jobs),
        jobs=jobs,
        survivors=survivors,
    )
    return VoicePipeline(parts, _machine(shared), record=how.record)


def _machine(shared: Shared) -> MachineConfig:
    config, continuous = shared.config, shared.speech.continuous
    barge_in = replace(config.barge_in, by_request=not continuous)
    return MachineConfig(turn=config.turn, barge_in=barge_in, continuous=continuous)


def _started(
    shared: Shared, info: CallInfo, agent: Agent, jobs: Jobs, how: CallOptions
) -> call.CallStarted:
    costs = {kind: cost / call.RATE for kind, cost in jobs.costs.items()}
    return call.CallStarted(
        call_id=info.call_id,
        line=info.line,
        brain=shared.realtime.provider if shared.realtime else VoicePipeline.name,
        agent=info.agent,
        stt=shared.speech.name("stt"),
        tts=shared.speech.name("tts"),
        model=shared.realtime.model if shared.realtime else agent.model.name,
        clock="fast" if how.fast else "real",
        costs=costs if how.frame_clocked else {},
    )


@contextmanager
def _timeline(config: Config, live: Call) -> Iterator[None]:
    """The call's timeline beside its recording, where `call.record_dir` asks for both."""
    if not config.call.record_dir:
        yield
        return
    file = TimelineFile(Path(config.call.record_dir) / f"{live.info.call_id}.jsonl")
    live.subscribe(file)
    try:
        yield
    finally:
        file.close()


def _recorder(config: Config, info: CallInfo, how: CallOptions) -> Recorder | None:
    if how.recording is not None:
        how.recording.parent.mkdir(parents=True, exist_ok=True)
        return Recorder(how.recording, rate=call.RATE)
    if not config.call.record_dir:
        return None
    folder = Path(config.call.record_dir)
    folder.mkdir(parents=True, exist_ok=True)
    return Recorder(folder / f"{info.call_id}.wav", rate=call.RATE)
