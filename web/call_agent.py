"""One agent on one call: its slots, tools, plan and inbox become call events, people's answers go
back.

Owned by the call's context in build.py. Speaks to the agent through its public seams only
(display stack, subscribers), and to the line through closures.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from ..core.agent import Agent
from ..core.display import DisplayChange
from ..core.errors import StoreError
from ..core.events import (
    CompactionEnd,
    CompactionStart,
    InboxChanged,
    ModelResponseComplete,
    RequestEnded,
    RequestStarted,
    SubscriberEvent,
    TasksChanged,
    TextDelta,
    ToolStarted,
    ToolUseResult,
)
from ..core.factory import CallInfo as AgentCallInfo
from ..core.messages import Message
from ..core.records import InboxItem, Task, item_json, task_json
from ..core.store import InboxStore, Store, TaskStore
from ..media.call import Call
from ..media.controls import CallControls, NoControls
from ..media.events import (
    CallEnded,
    CallEvent,
    Compaction,
    Inbox,
    Interruption,
    Mode,
    Response,
    Slot,
    SlotRemoved,
    Tasks,
    Tool,
    Turn,
    Vad,
)
from ..media.transport import CallInfo
from .bounds import first
from .conversation import Conversation
from .wire import Reject, Resolve

log = logging.getLogger(__name__)

QUIET_S = 0.3
"""Silence after the last word before the line goes."""
SHOW_EVERY_S = 0.15
"""How often a growing answer is shown anew."""
TOLD_CHARS = 1_000
"""Of one text of the plan or the inbox: people read them beside a call, and whoever wants a whole
answer asks the store."""
READ_S = 2.0
"""How long a call waits for its store to say what was before; it begins all the same."""
GOODBYE_S = 30.0
"""A goodbye that never ends to play does not keep the line open longer."""


def agent_info(info: CallInfo, *, has_display: bool, store: Store | None = None) -> AgentCallInfo:
    """What an AgentFactory is told about the call."""
    return AgentCallInfo(
        call_id=info.call_id,
        line=info.line,
        agent=info.agent,
        caller=info.peer or None,
        has_display=has_display,
        store=store,
        metadata=dict(info.params),
    )


class LineTools:
    """What an agent's tools may do with the line of their call (DESIGN 2).

    `call` is asked when a tool runs, for the agent is built before its call.
    """

    def __init__(self, call: Callable[[], Call], controls: CallControls | None = None) -> None:
        self._call = call
        self._controls = controls
        self._goodbye: Goodbye | None = None

    async def hang_up_after_playout(self, reason: str) -> None:
        """Arm the hang-up and return at once: the line goes when the present answer was heard,
        unless the caller speaks again."""
        if self._goodbye is None:
            self._goodbye = Goodbye(self._call())
        self._goodbye.arm()

    async def transfer(self, target: str) -> None:
        """Hand the caller over. Raises Unsupported where the carrier has no such control,
        TransportError when it failed."""
        controls = self._controls or NoControls(self._call().info.line)
        await controls.transfer(target)


class Goodbye:
    """Hangs up once the agent has nothing more to say; a caller who speaks again calls it off."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._armed = False
        self._timer: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None
        call.subscribe(self._on_event)

    @property
    def armed(self) -> bool:
        """Whether the line will go."""
        return self._armed

    def arm(self) -> None:
        """From now on the end of the agent's sound ends the call."""
        if not self._armed:
            self._armed = True
            self._deadline = asyncio.get_running_loop().call_later(GOODBYE_S, self._go)

    def _on_event(self, at: int, event: CallEvent) -> None:
        if not self._armed:
            return
        match event:
            case Mode(mode="listening" | "idle"):
                self._stop_timer()
                self._timer = asyncio.get_running_loop().call_later(QUIET_S, self._go)
            case Mode() | Vad(event="start"):
                self._stop_timer()
            case Vad(event="confirmed") | Turn(event="committed") | Interruption(event="cut"):
                self._disarm()
            case Vad(event="misfire"):
                self._timer = asyncio.get_running_loop().call_later(QUIET_S, self._go)
            case CallEnded():
                self._disarm()

    def _go(self) -> None:
        self._disarm()
        self._call.hang_up("hangup")

    def _disarm(self) -> None:
        self._armed = False
        self._stop_timer()
        if self._deadline is not None:
            self._deadline.cancel()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class CallReporter:
    """Subscriber of the agent and listener of its display: tells the call, and `past` first, so
    that a client that comes between two events misses none.

    A sub-agent's events come wrapped (core.events.SubAgentEvent) and fit nothing here: its run
    shows as the tool call it is.
    """

    def __init__(self, emit: Callable[[CallEvent], None], past: Conversation | None = None) -> None:
        self._emit = emit
        self._past = past or Conversation()

    def record(self, event: SubscriberEvent, /) -> None:
        """What of the agent is not speech; its words reach the call through the brain."""
        self._past.record(event)
        match event:
            case ToolStarted():
                self._emit(
                    Tool(event="started", id=event.call_id, name=event.tool_name, input=event.input)
                )
            case ToolUseResult():
                self._emit(
                    Tool(
                        event="result",
                        id=event.call_id,
                        name=event.tool_name,
                        status=event.result.status,
                        duration_ms=event.duration_ms,
                    )
                )
            case TasksChanged():
                self._emit(tasks_event(event.tasks))
            case InboxChanged():
                self._emit(inbox_event(event.items))
            case CompactionStart():
                self._emit(Compaction(event="start"))
            case CompactionEnd():
                self._emit(Compaction(event="end", status=event.status))
            case _:
                return

    def on_display(self, change: DisplayChange) -> None:
        """A slot came or went."""
        slot = change.slot
        if change.kind == "removed":
            self._emit(SlotRemoved(id=slot.id))
            return
        self._emit(
            Slot(
                id=slot.id,
                renderer=slot.renderer,
                input=slot.input,
                strategy=slot.strategy,
                tool_call_id=slot.tool_call_id,
            )
        )


def tasks_event(tasks: Sequence[Task]) -> Tasks:
    """The agent's plan as the call tells it."""
    return Tasks(tasks=first([task_json(task) for task in tasks], TOLD_CHARS))


def inbox_event(items: Sequence[InboxItem]) -> Inbox:
    """What is not taken up of the inbox, as the call tells it: without wall-clock times, which no
    timeline holds (CONTRACTS A)."""
    told = [item_json(item) for item in items if item.status != "consumed"]
    for item in told:
        for name in ("created_at", "resolved_at"):
            del item[name]
        if item["response"] is None:
            del item["response"]
    return Inbox(items=first(told, TOLD_CHARS))


def answer_to(agent: Agent) -> Callable[[Resolve | Reject], bool]:
    """Gives a person's answer to the agent's display. False when no such slot is open; raises
    InvalidAnswer, and the slot stays open, when the answer does not fit."""

    def answer(request: Resolve | Reject) -> bool:
        if isinstance(request, Resolve):
            return agent.display.resolve(request.id, request.value)
        return agent.display.reject(request.id, request.reason)

    return answer


class LiveText:
    """Subscriber that shows an answer's words while they are written, some times a second.

    For eyes only: the recorded truth is the transcript event at the answer's end. Also a sink of
    the call: events of an agent come a moment late, and what a cut answer still wrote must not
    show as words of the next one.
    """

    def __init__(self) -> None:
        self.show: Callable[[str], None] = _ignore
        """Takes the answer's text so far. Set by whoever has a page to show it on."""
        self._run_id: str | None = None
        """The request that is answered now; None until the new answer's has begun."""
        self._message_id = ""
        self._text = ""
        self._shown_at = float("-inf")

    def on_event(self, at: int, event: CallEvent) -> None:
        """A new answer began: the words of the old one are over."""
        if isinstance(event, Response) and event.event == "started":
            self._run_id = None

    def record(self, event: SubscriberEvent, /) -> None:
        """Only answers count, never a compaction's summary."""
        match event:
            case RequestStarted():
                self._run_id, self._message_id, self._text = event.run_id, "", ""
            case TextDelta(phase="answer") if event.run_id == self._run_id:
                self._add(event)
            case ModelResponseComplete() | RequestEnded() if event.run_id == self._run_id:
                self.show(self._text)
            case _:
                return

    def _add(self, delta: TextDelta) -> None:
        if delta.message_id != self._message_id and self._text:
            self._text = f"{self._text.rstrip()} "
        self._message_id = delta.message_id
        self._text += delta.text
        now = asyncio.get_running_loop().time()
        if now - self._shown_at >= SHOW_EVERY_S:
            self._shown_at = now
            self.show(self._text)


@dataclass(frozen=True, slots=True)
class Bound:
    """An agent that is told to a call: its growing words, and the conversation so far."""

    live_text: LiveText
    past: Conversation


@asynccontextmanager
async def bound(agent: Agent, call: Call, *, has_display: bool) -> AsyncIterator[Bound]:
    """What the agent does is told to the call; its brain gives it life (`running`).

    Without a display nobody listens to the stack, so that permission checks deny (DESIGN 5.6).
    """
    stored, present = await _before(agent, call.info.call_id)
    past = Conversation(stored, agent.outstanding, present)
    reporter, live = CallReporter(call.emit, past), LiveText()
    both = _InOrder(live, reporter)
    agent.add_subscriber(both)
    leaves = [call.subscribe(live.on_event), call.subscribe(past.on_event)]
    unsubscribe = agent.display.subscribe(reporter.on_display) if has_display else _nothing
    try:
        yield Bound(live, past)
    finally:
        unsubscribe()
        for leave in leaves:
            leave()
        agent.remove_subscriber(both)


class _InOrder:
    """One subscriber that is two: a tool is told after the words that were written before it."""

    def __init__(self, *subscribers: LiveText | CallReporter) -> None:
        self._subscribers = subscribers

    def record(self, event: SubscriberEvent, /) -> None:
        for subscriber in self._subscribers:
            subscriber.record(event)


async def _before(agent: Agent, call_id: str) -> tuple[list[Message], list[CallEvent]]:
    """What the agent's store holds of an earlier call: its messages, its plan and its inbox. A
    store that fails or hangs is logged; the agent's first request will say so to the caller."""
    store = agent.store
    present: list[CallEvent] = []
    try:
        async with asyncio.timeout(READ_S):
            messages = await store.get_messages()
            if isinstance(store, TaskStore) and (tasks := await store.get_tasks()):
                present.append(tasks_event(tasks))
            if isinstance(store, InboxStore):
                told = inbox_event(await store.get_inbox_items())
                present += [told] if told.items else []
            return messages, present
    except (StoreError, TimeoutError) as error:
        why = type(error).__name__
        log.warning("the conversation so far was not read", extra={"call_id": call_id, "why": why})
        return [], []


def _nothing() -> None:
    return None


def _ignore(text: str) -> None:
    return None
