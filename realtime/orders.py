"""What a host asks of a session: typed words, injected texts, answers, stops, boundaries.

Each does its synchronous part at once and its rest in the session's worker, so that orders keep
their order among themselves and with what the provider says (spec/voice 18.9, row 88). Owned by one
run of a session.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Literal

from ..core.external import AgentEvent
from .asks import Ask
from .commands import AppendContext, CommitTurn, RequestResponse, SendText, SpeechBoundary
from .dispatch import Dispatch
from .due import Parts

TEXT_WAITS_S = 1.0
"""How long typed words wait for what was said before them, so that history has that first."""


class Orders:
    """See the module. Futures are done when the answer is over (ResponseDone), also when it was
    cut or given up, fail when it could not be asked for, and are cancelled with the session."""

    def __init__(self, parts: Parts, dispatch: Dispatch) -> None:
        self._parts = parts
        self._dispatch = dispatch
        self._waiting: set[asyncio.Future[None]] = set()

    def close(self) -> None:
        """The session is over: who still waits is cancelled."""
        for waiting in list(self._waiting):
            waiting.cancel()

    # ---- words for the agent

    def say(self, text: str) -> asyncio.Future[None]:
        """The user typed `text`: a turn like a spoken one."""
        self.stop_speech()
        ask = self._parts.asks.new(typed=True)
        self._parts.later(partial(self._say, ask, text))
        return ask.done

    async def _say(self, ask: Ask, text: str) -> None:
        if ask.done.done():
            return
        try:
            await self._take(ask, text)
        except Exception as error:
            self._parts.asks.fail(ask, error)
            raise

    async def _take(self, ask: Ask, text: str) -> None:
        parts = self._parts
        await parts.feed.turn("user_speech")
        parts.due.wake = False
        await parts.ledger.written(TEXT_WAITS_S, answers=True)
        added = await parts.made.live.add_user(text, playback=True)
        parts.report.user_message_id = added.user.id
        if added.answers:
            parts.ledger.tell_known(frozenset(one.id for one in added.stored))
            self._speak_hook(ask, added.answers[0].text)
            return
        told = frozenset(one.id for one in added.stored)
        for before in added.stored[:-1]:
            parts.tell(AppendContext(before.text))
        parts.asks.tell(ask)
        if parts.tell(SendText(added.user.text, request_id=ask.id)):
            parts.ledger.tell_known(told)

    def _speak_hook(self, ask: Ask, text: str) -> None:
        """A hook answered in the model's place: its words are read out as they are."""
        ask.again = RequestResponse(text, request_id=ask.id, verbatim=True)
        ask.verbatim = True
        self._parts.tell(self._parts.asks.tell(ask))

    def respond(self, instruction: str, *, verbatim: bool = False) -> asyncio.Future[None]:
        """An answer without the user; the instruction is no history."""
        ask = self._parts.asks.new(instruction, verbatim=verbatim)
        self._parts.later(partial(self._request, ask))
        return ask.done

    async def _request(self, ask: Ask) -> None:
        if not ask.done.done():
            self._parts.tell(self._parts.asks.tell(ask))

    def inject(self, kind: Literal["user", "context"], text: str) -> asyncio.Future[None]:
        """`user`: spoken about; `context`: only known."""
        if kind == "user":
            ask = self._parts.asks.new(typed=True)
            self._parts.later(partial(self._say, ask, text))
            return ask.done
        done = self._future()
        self._parts.later(partial(self._add_context, text, done))
        return done

    async def _add_context(self, text: str, done: asyncio.Future[None]) -> None:
        try:
            event = AgentEvent(source="host", content=text)
            await self._parts.made.agent.emit_event(event, when_idle="defer")
            await self._parts.feed.outside()
        finally:
            if not done.done():
                done.set_result(None)

    # ---- speech

    def stop_speech(self) -> None:
        """The agent falls silent and its generation ends; tools go on (DESIGN 5.6)."""
        parts = self._parts
        if parts.floor.agent_speaks or parts.floor.responding:
            parts.due.answer = False
            parts.output.stop(cancel=True)

    def interrupt(self, reason: str) -> None:
        """Silence, and abortable tools end. A model that cannot be told stays shut out until
        `resume_output`."""
        parts = self._parts
        parts.due.unwanted = parts.due.answer and not parts.floor.responding
        parts.due.answer = parts.due.speech = False
        parts.output.stop(cancel=True)
        if parts.made.can.turn_taking == "full_duplex":
            parts.output.closed = True
        parts.made.agent.abort_tools(reason)

    def boundary(self, speaks: bool) -> asyncio.Future[None]:
        """The host hears the user begin or stop; done when what a turn brings has been told."""
        parts = self._parts
        parts.floor.user_by_host(speaks)
        parts.due.spoken = speaks or bool(parts.due.spoken)
        if speaks:
            parts.due.began = parts.link.heard
            self._dispatch.turn_begins()
        elif parts.made.can.turn_taking == "full_duplex":
            parts.due.begun = False
        parts.link.tell(SpeechBoundary(speaks))
        done = self._future()
        parts.later(partial(_finish, done))
        return done

    def commit(self) -> None:
        """The user's turn is over now."""
        self._parts.floor.user_by_host(False)
        self._parts.link.tell(CommitTurn())

    # ---- by itself

    async def speak_at_pause(self) -> None:
        """It has been quiet: what waits for it is told, and an answer asked for."""
        parts = self._parts
        if not parts.floor.gap:
            return
        due, parts.due.wake, parts.due.speech = parts.due.speech, False, False
        await parts.feed.turn("event")
        joined = parts.feed.take_joined()
        if not (due or joined) or parts.floor.user_speaks:
            parts.due.speech = parts.due.speech or due or joined
            return
        parts.report.user_message_id = None
        parts.tell(parts.asks.tell(parts.asks.new()))

    def _future(self) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(done)
        done.add_done_callback(self._waiting.discard)
        return done


async def _finish(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
