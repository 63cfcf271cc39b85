"""How a connection begins: Opened, instructions, tools, history, handles, refusals."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ...adapters.errors import AdapterError, CredentialsRejected
from ...core.messages import Message
from ...core.model import ToolSpec
from ..events import Audio, Opened, RealtimeEvent, Resumable
from ..lifecycle_vocabulary import HANDLE_REFUSED
from ..port import Capabilities, Connection, RealtimeAdapter, Setup
from .peer import Line, Trial

LOOK = ToolSpec(
    "look_up",
    "Looks up an order.",
    {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
)
PAST = (
    Message(sender="user", id="m1", text="my name is Ada"),
    Message(sender="agent", id="m2", text="good morning Ada"),
    Message(sender="user", id="m3", text="and my dog is Bob"),
)


async def opens_before_anything(trial: Trial) -> None:
    """Opened was emitted when connect returns, with an id, and nothing before it."""
    line = await trial.open()
    opened = line.events[:1]
    trial.need(
        opened and isinstance(opened[0], Opened) and opened[0].session_id,
        "Opened with a session_id when connect returns (port.RealtimeAdapter.connect)",
        opened,
    )
    trial.need(not line.all(Opened)[0].resumed, "resumed only with a handle (events.Opened)")


async def sends_instructions_and_tools(trial: Trial) -> None:
    """The peer gets instructions, and name and description of each tool (port.Setup)."""
    line = await trial.open(Setup(instructions="Speak like a sailor.", tools=(LOOK,)))
    for words in ("Speak like a sailor.", LOOK.name, LOOK.description):
        await trial.until(line, _received(trial, words), f"{words!r} is sent")


async def seeds_history_in_order(trial: Trial) -> None:
    """A fresh connection knows all of Setup.history, each message once and in order."""
    line = await trial.open(Setup(instructions="Be brief.", history=PAST))
    texts = [message.text for message in PAST]
    knows = trial.peer.knows
    await trial.until(line, lambda: texts[-1] in knows(), "the peer knows Setup.history")
    places = [knows().find(text) for text in texts]
    trial.need(
        min(places) >= 0 and places == sorted(places),
        "Setup.history in its order (port.Setup)",
        knows(),
    )
    counts = [knows().count(text) for text in texts]
    trial.need(counts == [1, 1, 1], "each message of Setup.history once", knows())


async def refuses_an_unknown_handle(trial: Trial) -> None:
    """A handle that the provider does not take: ProviderRefused with ERR_REALTIME_HANDLE, or,
    without `resume`, a fresh connection at most."""
    events: list[RealtimeEvent] = []
    setup = Setup(instructions="Be brief.", resume_handle="no-such-handle")
    try:
        connection = await trial.peer.adapter.connect(setup, events.append, trial.group)
    except AdapterError as error:
        demand = f"{HANDLE_REFUSED} for a handle that is not taken (port.RealtimeAdapter.connect)"
        trial.need(error.code == HANDLE_REFUSED, demand, error.code)
        trial.need(not events, "a refused connect emits nothing", events)
        return
    await connection.close()
    taken = [one for one in events if isinstance(one, Opened) and one.resumed]
    trial.need(not trial.can.resume, "an unknown handle is refused", events)
    trial.need(not taken, "without `resume` nothing is restored (events.Opened)", events)


async def resumes_with_its_handle(trial: Trial) -> None:
    """`resume`: the newest handle restores the conversation, without Setup.history."""
    line = await trial.open()
    await trial.peer.user_says(line.connection, "alpha bravo")
    await trial.until(line, lambda: _handles(line), "Resumable once there is what to resume")
    await line.time(1.0)
    newest = _handles(line)[-1]
    await line.connection.close()
    again = await trial.open(Setup(instructions="Be brief.", resume_handle=newest))
    trial.need(again.all(Opened)[0].resumed, "Opened.resumed after a handle was taken")
    trial.need("alpha bravo" in trial.peer.knows(), "the conversation is restored")


async def blames_a_rejected_key(trial: Trial) -> None:
    """A handshake refused with 401 is CredentialsRejected, and nothing is left of it."""
    trial.peer.refuse(401)
    events: list[RealtimeEvent] = []
    setup = Setup(instructions="Be brief.")
    try:
        await trial.peer.adapter.connect(setup, events.append, trial.group)
    except CredentialsRejected:
        trial.need(not events, "a failed connect emits nothing", events)
        return
    except AdapterError as error:
        trial.fail("CredentialsRejected for a 401 (adapters/errors)", repr(error), None)
    trial.fail("connect raises when the peer refuses", "a connection", None)


async def tells_a_busy_peer_from_a_wrong_key(trial: Trial) -> None:
    """A handshake refused with 503 may be tried again: ConnectionFailed, not a rejected key."""
    trial.peer.refuse(503)
    events: list[RealtimeEvent] = []
    setup = Setup(instructions="Be brief.")
    try:
        await trial.peer.adapter.connect(setup, events.append, trial.group)
    except AdapterError as error:
        demand = "an error that may be tried again for a 503 (adapters/errors)"
        trial.need(error.retryable, demand, repr(error))
        trial.need(not events, "a failed connect emits nothing", events)
        return
    trial.fail("connect raises when the peer refuses", "a connection", None)


async def leaves_nothing_of_a_cancelled_connect(trial: Trial) -> None:
    """connect that is cancelled, at any moment, leaves no task, no socket and no event."""
    for moment in (0.0, 0.001, 0.002, 0.005, 0.02):
        events: list[RealtimeEvent] = []
        setup = Setup(instructions="Be brief.")
        work = trial.group.create_task(_connected(trial.peer.adapter, setup, events, trial.group))
        await asyncio.sleep(moment)
        work.cancel()
        await asyncio.wait([work])
        if not work.cancelled():  # it was open already
            await work.result().close()
            continue
        before = len(events)
        await asyncio.sleep(0.3)
        trial.need(len(events) == before, "nothing is emitted after a cancelled connect", events)
    await asyncio.sleep(0.5)
    trial.need(not trial.peer.open_connections(), "a cancelled connect leaves no socket open")


async def serves_several_sessions_at_once(trial: Trial) -> None:
    """An adapter holds no state of a call: two connections do not hear each other."""
    first, second = await trial.open(), await trial.open()
    await trial.peer.speak(second.connection, "alpha bravo")
    await trial.until(second, lambda: second.all(Audio), "the second connection speaks")
    trial.need(not first.all(Audio), "events go to the emit of their own connection", "", first)


def _received(trial: Trial, words: str) -> Callable[[], bool]:
    return lambda: words in trial.peer.received()


def _handles(line: Line) -> list[str]:
    return [one.handle for one in line.all(Resumable) if one.handle]


async def _connected(
    adapter: RealtimeAdapter, setup: Setup, events: list[RealtimeEvent], group: asyncio.TaskGroup
) -> Connection:
    return await adapter.connect(setup, events.append, group)


def _always(can: Capabilities) -> bool:
    return True


CASES: tuple[tuple[Callable[[Trial], Awaitable[None]], Callable[[Capabilities], bool]], ...] = (
    (opens_before_anything, _always),
    (sends_instructions_and_tools, _always),
    (seeds_history_in_order, _always),
    (refuses_an_unknown_handle, _always),
    (resumes_with_its_handle, lambda can: can.resume),
    (blames_a_rejected_key, _always),
    (tells_a_busy_peer_from_a_wrong_key, _always),
    (leaves_nothing_of_a_cancelled_connect, _always),
    (serves_several_sessions_at_once, _always),
)
