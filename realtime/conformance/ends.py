"""How a connection ends: asked for, broken, closed by the peer, cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ...core.messages import ToolCall
from ..commands import AppendContext, CutOutput, RequestResponse, SendAudio, SendText
from ..events import (
    LOST,
    Audio,
    Closed,
    ItemDone,
    ResponseDone,
    ResponseStarted,
    ToolCalls,
    Used,
)
from ..port import Capabilities
from .commanding import ASKED
from .opening import LOOK
from .peer import Line, Trial

LONG = "alpha bravo charlie delta echo foxtrot golf hotel india juliet"


async def closes_in_order(trial: Trial) -> None:
    """close ends with one clean Closed, behind the provider's last word; twice is once."""
    line = await trial.open()
    await trial.peer.speak(line.connection, "alpha")
    await trial.until(line, lambda: line.all(ResponseDone), "ResponseDone of the speech")
    await line.connection.close()
    ends = line.all(Closed)
    trial.need(len(ends) == 1, "close emits Closed, if that was not emitted yet", ends, line)
    trial.need(ends[0].clean and not ends[0].fatal, "a close we asked for is clean", ends[0])
    if trial.can.usage == "duration":
        finals = [one for one in line.all(Used) if one.final]
        trial.need(len(finals) == 1, "the final usage, once, before Closed", finals, line)
    told = len(line.events)
    await line.connection.close()
    trial.need(len(line.events) == told, "close is idempotent (port.Connection)", "", line)


async def says_nothing_after_closed(trial: Trial) -> None:
    """After Closed commands are dropped silently, and no event comes any more."""
    line = await trial.open()
    await trial.peer.speak(line.connection, LONG)
    await trial.until(line, lambda: line.all(Audio), "Audio of what the model speaks")
    await line.connection.close()
    told = len(line.events)
    line.connection.tell(SendAudio(bytes(640)))
    line.connection.tell(SendText("is anybody there"))
    line.connection.tell(RequestResponse("speak"))
    line.connection.tell(AppendContext("nobody is"))
    line.connection.tell(CutOutput())
    await asyncio.sleep(0.5)
    trial.need(len(line.events) == told, "Closed is the last event", "", line)
    trial.need("is anybody there" not in trial.peer.received(), "nothing is sent after close")


async def closes_while_speaking_and_calling(trial: Trial) -> None:
    """Whatever is open at the end is closed before Closed: items, responses."""
    line = await trial.open(ASKED)
    await trial.peer.call_tools(line.connection, (ToolCall(LOOK.name, {"order": "one"}, "c"),))
    await trial.until(line, lambda: line.all(ToolCalls), "ToolCalls (events.ToolCalls)")
    await line.connection.close()
    _assert_open_ends_closed(trial, line)


async def tells_a_broken_connection(trial: Trial) -> None:
    """The connection breaks while the model speaks: what is open is closed, then Closed, which is
    neither clean nor fatal."""
    line = await trial.open()
    await trial.peer.speak(line.connection, LONG)
    await trial.until(line, lambda: len(line.all(Audio)) >= 2, "Audio of what the model speaks")
    await trial.peer.drop()
    await _until_closed(trial, line)
    closed = trial.only(line, Closed, "Closed exactly once (events.Closed)")
    trial.need(not closed.clean, "a break is not clean (events.Closed)", closed)
    trial.need(not closed.fatal, "opening again may help after a break", closed)
    _assert_open_ends_closed(trial, line)
    for done in line.all(ResponseDone):
        if done.status == "cancelled":
            trial.need(done.reason == LOST, f"the reason {LOST!r} (events.LOST)", done)


async def tells_a_broken_silence(trial: Trial) -> None:
    """The connection breaks while nobody speaks: Closed, by itself and soon."""
    line = await trial.open()
    await line.time(0.3)
    await trial.peer.drop()
    await _until_closed(trial, line)
    closed = trial.only(line, Closed, "Closed exactly once (events.Closed)")
    trial.need(closed.code and not closed.clean, "Closed with a code, not clean", closed)


async def tells_code_and_reason_of_a_close(trial: Trial) -> None:
    """An abnormal close of the peer surfaces with its code and its reason."""
    line = await trial.open()
    await line.time(0.2)
    await trial.peer.close(1011, "the house burns")
    await _until_closed(trial, line)
    closed = trial.only(line, Closed, "Closed exactly once (events.Closed)")
    trial.need("1011" in closed.code, "the code of the socket (events.Closed)", closed)
    trial.need("the house burns" in closed.reason, "its reason", closed)
    trial.need(not closed.clean, "a close that we did not ask for is not clean", closed)


async def takes_a_normal_close_calmly(trial: Trial) -> None:
    """A close with 1000 that nobody asked for is an end like others: not fatal."""
    line = await trial.open()
    await line.time(0.2)
    await trial.peer.close(1000, "")
    await _until_closed(trial, line)
    closed = trial.only(line, Closed, "Closed exactly once (events.Closed)")
    trial.need(not closed.fatal, "opening again may help", closed)


async def leaves_nothing_of_a_cancelled_close(trial: Trial) -> None:
    """close that is cancelled has closed the socket; nothing comes after Closed."""
    for moment in (0.0, 0.001, 0.01):
        line = await trial.open()
        await line.time(0.1)
        work = trial.group.create_task(line.connection.close())
        await asyncio.sleep(moment)
        work.cancel()
        await asyncio.wait([work])
        told = len(line.events)
        await asyncio.sleep(0.5)
        late = line.events[told:]
        kinds = [one for one in late if not isinstance(one, Closed)]
        trial.need(not kinds or line.all(Closed), "the end is Closed, whenever it comes", late)
        await line.connection.close()
    await asyncio.sleep(0.2)
    trial.need(not trial.peer.open_connections(), "a cancelled close has closed the socket")


def _assert_open_ends_closed(trial: Trial, line: Line) -> None:
    started = [one.response_id for one in line.all(ResponseStarted)]
    done = [one.response_id for one in line.all(ResponseDone)]
    demand = "a ResponseDone for each ResponseStarted, before Closed"
    trial.need(sorted(started) == sorted(done), demand, "", line)
    sounded = {one.item_id for one in line.all(Audio)}
    over = {one.item_id for one in line.all(ItemDone)}
    trial.need(sounded <= over, "an ItemDone for each item, before Closed", "", line)


async def _until_closed(trial: Trial, line: Line) -> None:
    await trial.until(line, lambda: line.all(Closed), "Closed when the connection is over")


def _always(can: Capabilities) -> bool:
    return True


CASES: tuple[tuple[Callable[[Trial], Awaitable[None]], Callable[[Capabilities], bool]], ...] = (
    (closes_in_order, _always),
    (says_nothing_after_closed, _always),
    (closes_while_speaking_and_calling, _always),
    (tells_a_broken_connection, _always),
    (tells_a_broken_silence, _always),
    (tells_code_and_reason_of_a_close, _always),
    (takes_a_normal_close_calmly, _always),
    (leaves_nothing_of_a_cancelled_close, _always),
)
