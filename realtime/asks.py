"""Answers that were asked of the model, from the asking to the end of the response.

Each has an id that comes back with the response it gets, so that the one who asked learns when it
is over, and so that what a broken connection swallowed is asked again, once. Owned by one run of a
session; it sends nothing by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from ..adapters.errors import ProviderStalled
from .commands import RequestResponse
from .events import ResponseDone, ResponseStarted

BEGIN_S = 10.0
"""A response that was asked for begins within this time, or it is given up; what waits behind
another response has this time after its end."""
GO_ON = (
    "The connection broke while you were speaking. The conversation so far shows what was heard of"
    " it. Go on from there; do not greet again and do not repeat yourself."
)


@dataclass(slots=True)
class Ask:
    """`instruction` is what the response was asked with. `sounded`: some of it was spoken.

    `again`: how it is asked on a new connection; a typed turn is in its history already. `told`:
    its turn to be asked has come, whether or not a connection was open; `expected`: it is counted.
    """

    id: str
    instruction: str
    verbatim: bool
    done: asyncio.Future[None]
    again: RequestResponse
    response_id: str = ""
    sounded: bool = False
    told: bool = False
    expected: bool = False
    timer: asyncio.TimerHandle | None = field(default=None, repr=False)


class Asks:
    """Everything that was asked and is not over. `expect` is told +1 and -1 as answers become due
    and begin; `held_up` says whether another response runs, behind which they wait, or nothing
    is connected; `given_up` is told of one that never began."""

    def __init__(
        self,
        expect: Callable[[int], None],
        given_up: Callable[[ProviderStalled], None],
        *,
        held_up: Callable[[], bool] = lambda: False,
    ) -> None:
        self._expect = expect
        self._given_up = given_up
        self._held_up = held_up
        self._asks: dict[str, Ask] = {}
        self._count = 0

    @property
    def open(self) -> tuple[Ask, ...]:
        """Oldest first."""
        return tuple(self._asks.values())

    def new(self, instruction: str = "", *, verbatim: bool = False, typed: bool = False) -> Ask:
        """A new one; whoever gets it calls `tell` and sends it with its id, now or later."""
        self._count += 1
        identity = f"ask_{self._count}"
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        again = RequestResponse(
            "" if typed else instruction, request_id=identity, verbatim=verbatim
        )
        ask = self._asks[identity] = Ask(identity, instruction, verbatim, future, again)
        self._count_in(ask)
        return ask

    def tell(self, ask: Ask) -> RequestResponse:
        """It is being sent: from now on it has BEGIN_S, and a new connection is asked it again."""
        ask.told = True
        self._await(ask)
        return ask.again

    def started(self, event: ResponseStarted) -> Ask | None:
        """A response began: the ask it answers, if it was asked for."""
        ask = self._asks.get(event.request_id)
        if ask is not None and not ask.response_id:
            ask.response_id = event.response_id
            self._stop(ask)
        return ask

    def get(self, request_id: str) -> Ask | None:
        """The one of this id, if it is not over."""
        return self._asks.get(request_id)

    def of(self, response_id: str) -> Ask | None:
        """The ask that this response answers."""
        if not response_id:
            return None
        return next((ask for ask in self._asks.values() if ask.response_id == response_id), None)

    def ended(self, event: ResponseDone) -> None:
        """A response is over; its ask is done, unless the connection took it away (`lost`)."""
        ask = self.of(event.response_id)
        if ask is not None:
            self._close(ask)

    def lost(self) -> None:
        """The connection is gone: what was not answered waits for the next one."""
        for ask in self._asks.values():
            self._stop(ask)
            ask.response_id = ""

    def repeat(self) -> list[RequestResponse]:
        """For a new connection: what was asked and is still to be answered, to be sent in this
        order. Of what was heard in part the rest is asked."""
        commands = []
        for ask in [ask for ask in self.open if ask.told]:
            self._await(ask)
            go_on = RequestResponse(GO_ON, request_id=ask.id)
            commands.append(go_on if ask.sounded and not ask.verbatim else ask.again)
        return commands

    def drop(self, ask: Ask) -> None:
        """Nobody waits for it any more."""
        self._close(ask)

    def fail(self, ask: Ask, error: Exception) -> None:
        """It could not even be asked; who waits for it is told why."""
        if not ask.done.done():
            ask.done.set_exception(error)
            ask.done.exception()  # that nobody waits is no fault
        self._close(ask)

    def close(self) -> None:
        """The session is over: who still waits is cancelled."""
        for ask in self.open:
            ask.done.cancel()
            self._close(ask)

    def _count_in(self, ask: Ask) -> None:
        if not ask.expected:
            ask.expected = True
            self._expect(1)

    def _await(self, ask: Ask) -> None:
        self._stop(ask)
        self._count_in(ask)
        loop = asyncio.get_running_loop()
        ask.timer = loop.call_later(BEGIN_S, self._give_up, ask)

    def _stop(self, ask: Ask) -> None:
        if ask.timer is not None:
            ask.timer.cancel()
            ask.timer = None
        if ask.expected:
            ask.expected = False
            self._expect(-1)

    def _close(self, ask: Ask) -> None:
        self._stop(ask)
        self._asks.pop(ask.id, None)
        if not ask.done.done():
            ask.done.set_result(None)

    def _give_up(self, ask: Ask) -> None:
        if self._held_up():
            self._await(ask)
            return
        error = ProviderStalled(
            "ERR_REALTIME_NO_RESPONSE", f"no response began within {BEGIN_S:g} s of the request"
        )
        self._stop(ask)
        self._asks.pop(ask.id, None)
        if not ask.done.done():
            ask.done.set_result(None)
        self._given_up(error)
