"""The clients' side of one call: events out to whichever client is attached, its requests in.

Owned by the call registry, lives as long as the call. Keeps no history: the agent does, and what
of it a client is told is conversation.py's business. A client that cannot keep up is its
transport's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Protocol

from ..core.renderers import InvalidAnswer
from ..media.brain import ClientBargeIn, Command, Mute
from ..media.call import Call
from ..media.errors import MediaValueError
from ..media.events import CallEvent
from ..media.frame import AudioFrame
from ..media.transport import Data, Signal
from . import wire
from .client import Client, Impairable
from .wrapped import WrappedTransport

log = logging.getLogger(__name__)

MAX_PENDING = 32
"""Commands of one client that may be under way; more are refused with `busy`."""

Answer = Callable[[wire.Resolve | wire.Reject], bool]
"""Gives a person's answer to the display stack. False when the slot is unknown; raises
InvalidAnswer, and the slot stays open, when the answer does not fit."""


class Past(Protocol):
    """What was before a client came. conversation.Conversation is one."""

    present: Sequence[CallEvent]
    """What the call told before anybody could listen."""

    def messages(self) -> list[wire.ServerMessage]:
        """The conversation so far, for a client that was just attached."""
        ...


class CallSession:
    """Binds one Call to the clients that come and go. `developer` lets them impair their line;
    `inbox` says that they may answer the agent's inbox by HTTP."""

    def __init__(
        self,
        call: Call,
        answer: Answer,
        assistant: str,
        *,
        developer: bool = False,
        past: Past | None = None,
        inbox: bool = False,
    ) -> None:
        self.call = call
        self._answer = answer
        self._assistant = assistant
        self._developer = developer
        self._past = past
        self._inbox = inbox
        self._wire = wire.ServerWire()
        for event in () if past is None else past.present:
            self._wire.encode(call.at, event, 0)
        self._client: Client | None = None
        self._pending: set[asyncio.Future[None]] = set()
        self.attached = 0
        """Clients that were attached so far."""
        call.subscribe(self._on_event)

    async def attach(self, client: Client, token: str) -> None:
        """Put the person on `client`: `ready`, what was said so far, the present state, then the
        call goes on there.

        A client that was attached before is closed with 4000 (voice row 70).
        """
        client.post(
            wire.ready(
                call_id=self.call.info.call_id,
                token=token,
                epoch=client.epoch,
                assistant=self._assistant,
                resumed=self.attached > 0,
                inbox=self._inbox,
            )
        )
        self.attached += 1
        if self._past is not None:
            self._post(client, self._past.messages())
        self._post(client, self._wire.snapshot())
        self._client = client
        old = self.call.attach(_Tapped(client, self._on_message))
        if old is not None:
            await old.aclose("replaced")

    def detach(self, client: Client) -> None:
        """`client` is gone; nothing more is sent to it."""
        if self._client is client:
            self._client = None

    def show_words(self, text: str) -> None:
        """The agent's answer so far, for the page; `heard` puts it right at the end."""
        client = self._client
        if client is not None:
            self._post(client, self._wire.words(text, client.sent))

    async def aclose(self, reason: str) -> None:
        """The call ended: whoever is still attached hears so. Harmless when they did already."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose(reason)

    def _on_event(self, at: int, event: CallEvent) -> None:
        client = self._client
        messages = self._wire.encode(at, event, 0 if client is None else client.sent)
        if client is not None:
            self._post(client, messages)

    def _on_message(self, client: Client, message: Mapping[str, object]) -> None:
        request = wire.to_request(message)
        match request:
            case None:
                return
            case wire.Impair():
                self._impair(client, request)
            case wire.Resolve() | wire.Reject():
                self._post(client, self._settle_slot(request))
            case ClientBargeIn():
                self._wire.barge_in()
                self._command(client, request, self._wire.barge_in_settled)
            case Mute(on):
                if self._command(client, request, list):
                    self._post(client, self._wire.muted(on))
            case _:
                self._command(client, request, list)

    def _settle_slot(self, request: wire.Resolve | wire.Reject) -> list[wire.ServerMessage]:
        try:
            known = self._answer(request)
        except InvalidAnswer as refused:
            found = [(problem.field, problem.message) for problem in refused.problems]
            return [wire.bad_answer(request.id, found)]
        return [] if known else [wire.unknown_slot(request.id)]

    def _impair(self, client: Client, asked: wire.Impair) -> None:
        if not self._developer:
            why = "impair is for developers: set server.developer, or bind to loopback"
        elif not isinstance(client, Impairable):
            why = "this line cannot be impaired from here"
        else:
            client.impair(
                loss=asked.loss, burst=asked.burst, jitter_ms=asked.jitter_ms, down=asked.down
            )
            return
        self._post(client, [wire.error("unsupported", why)])

    def _command(
        self,
        client: Client,
        command: Command,
        then: Callable[[], list[wire.ServerMessage]],
    ) -> bool:
        """Hand `command` to the brain; when its effect is over, tell what `then` gives. False
        when it was refused: then nothing happens but an error to the client."""
        if len(self._pending) >= MAX_PENDING:
            busy = wire.error("busy", "too many requests are under way; wait")
            self._post(client, [*then(), busy])
            return False
        try:
            future = self.call.command(command)
        except RuntimeError as error:
            self._post(client, [*then(), wire.error("not_running", str(error))])
            return False
        self._pending.add(future)
        future.add_done_callback(lambda done: self._settled(client, done, then()))
        return True

    def _settled(
        self,
        client: Client,
        done: asyncio.Future[None],
        messages: list[wire.ServerMessage],
    ) -> None:
        self._pending.discard(done)
        if not done.cancelled() and (failure := done.exception()) is not None:
            log.error("command failed", exc_info=failure)
            messages = [*messages, wire.error("command_failed", str(failure))]
        self._post(client, messages)

    def _post(self, client: Client, messages: list[wire.ServerMessage]) -> None:
        for message in messages:
            try:
                client.post(message)
            except MediaValueError as error:  # an agent's slot or tool input, for instance
                log.warning("message not sent", extra={"kind": message["t"], "why": str(error)})
                client.post(wire.error("unsendable", f"{message['t']} was not sent: {error}"))


class _Tapped(WrappedTransport):
    """`client` as the call sees it: its requests are taken out of the stream of signals."""

    def __init__(
        self,
        client: Client,
        on_message: Callable[[Client, Mapping[str, object]], None],
    ) -> None:
        super().__init__(client)
        self._client = client
        self._on_message = on_message

    async def receive(self) -> AsyncIterator[AudioFrame | Signal]:
        async for item in self._client.receive():
            if not isinstance(item, Data):
                yield item
            elif (picture := wire.to_picture(item.message)) is not None:
                yield picture
            else:
                self._on_message(self._client, item.message)
