"""What the agent has to tell its model, told to a provider: prompt, tools, context, events.

One owner of "what does the provider know now", so that nothing is told twice and a change is told
before what depends on it (spec/voice 18.7, 18.11b). Owned by one run of a session; all of it runs
in the session's one worker or in the task of a tool batch, one at a time.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Literal

from ..core.cancel import contained
from ..core.live import LiveContext, LiveConversation
from ..core.messages import Message
from ..core.model import ToolSpec
from .commands import AppendContext, ProviderCommand, UpdateAgent
from .config import BeforeTurn
from .port import Capabilities

log = logging.getLogger(__name__)

Tell = Callable[[ProviderCommand], bool]
"""Gives the provider a command; False when there is no open connection, and it is lost."""
BEFORE_TURN_S = 5.0
RUNTIME = "runtime:"
"""Begins the key of what a context provider says."""
REMINDER = "inbox:reminder"


class Feed:
    """See the module. `reconnect` asks for a new connection where only that brings a change;
    `report` is told what failed and was left out."""

    def __init__(
        self,
        live: LiveConversation,
        capabilities: Capabilities,
        tell: Tell,
        *,
        reconnect: Callable[[], None],
        told: Callable[[frozenset[str]], None],
        report: Callable[[str, Exception], None],
        before_turn: BeforeTurn | None,
        events: bool,
    ) -> None:
        self._live = live
        self._can = capabilities
        self._tell = tell
        self._reconnect = reconnect
        self._note_told = told
        self._report = report
        self._before_turn = before_turn
        self._events = events
        self._prompt = ""
        self._tools: tuple[ToolSpec, ...] = ()
        self._opening: tuple[str, tuple[ToolSpec, ...]] = ("", ())
        self._said: dict[str, str] = {}
        self._joined = False
        self._turn = asyncio.Lock()

    # ---- a connection begins

    async def opening(self) -> tuple[str, tuple[ToolSpec, ...]]:
        """Prepare, as before a turn; prompt and tools of the setup that is about to be sent."""
        await self._prepare("session_open")
        self._opening = self._live.prompt, self._specs()
        return self._opening

    async def opened(self, *, fresh: bool) -> None:
        """The connection is open: what changed since its setup, and what the agent knows beside
        its history, goes in. A resumed conversation keeps what it was told; a fresh one was seeded
        with what is stored."""
        async with self._turn:
            self._prompt, self._tools = self._opening
            if fresh:
                self._said.clear()
            self.changes()
            await self._context("open")

    async def forgotten(self) -> None:
        """The provider's conversation is a summary now: what it was told besides is told anew."""
        async with self._turn:
            self._said.clear()
            await self._context("open")

    # ---- moments of a call

    async def turn(self, reason: Literal["user_speech", "event"]) -> None:
        """A user turn begins, or an event is to be spoken about: preparers, changes, context, what
        came from outside. The order is that of spec/voice 18.11b."""
        async with self._turn:
            await self._prepare(reason)
            self.changes()
            await self._context("turn")
            await self.outside()

    async def after_tools(self) -> None:
        """Tools have run: what they changed, and iteration context, before their results go."""
        async with self._turn:
            self.changes()
            await self._context("tools")
            await self.outside()

    def changes(self) -> bool:
        """Tell what is new in prompt and tools; True when only a new connection brings it."""
        prompt, tools = self._live.prompt, self._specs()
        new_prompt = prompt if prompt != self._prompt else None
        new_tools = tools if tools != self._tools else None
        if new_prompt is None and new_tools is None:
            return False
        self._prompt, self._tools = prompt, tools
        renew = False
        if new_prompt is not None and self._can.update_instructions == "reconnect":
            new_prompt, renew = None, True
        if new_tools is not None and self._can.update_tools != "live":
            renew = renew or self._can.update_tools == "reconnect"
            new_tools = None
        if new_prompt is not None or new_tools is not None:
            self._tell(UpdateAgent(instructions=new_prompt, tools=new_tools))
        if renew:
            self._reconnect()
        return renew

    async def outside(self) -> bool:
        """Inbox answers and outside events join, silently; whether there were any."""
        if not self._events:
            return False
        joined = await self._live.join_outside()
        self.messages(joined)
        self._joined = self._joined or bool(joined)
        return bool(joined)

    def take_joined(self) -> bool:
        """Whether anything from outside has joined since this was asked last."""
        joined, self._joined = self._joined, False
        return joined

    def messages(self, stored: tuple[Message, ...]) -> None:
        """Messages that are in history now, and that nobody said: the provider has to know them."""
        for message in stored:
            if self._tell(AppendContext(message.text)):
                self._note_told(frozenset((message.id,)))

    # ---- inside

    async def _prepare(self, reason: Literal["session_open", "user_speech", "event"]) -> None:
        await self._live.prepare(reason)
        if self._before_turn is None:
            return
        try:
            async with asyncio.timeout(BEFORE_TURN_S):
                outcome = self._before_turn()
                if inspect.isawaitable(outcome):
                    await contained(outcome)
        except Exception as error:
            log.warning("before_turn failed", exc_info=error)
            self._report("before_turn", error)

    async def _context(self, moment: Literal["open", "turn", "tools"]) -> None:
        context = await self._live.context(moment)
        self.messages(context.told)
        await self._snapshot(context)

    async def _snapshot(self, context: LiveContext) -> None:
        """Values that changed since they were last told; a value that is gone is told as such only
        where the old one can be taken back."""
        now = {RUNTIME + value.id: value.text for value in context.values}
        reminder = await self._live.reminder()
        if reminder is not None:
            now[REMINDER] = reminder.text
        for key, text in now.items():
            if self._said.get(key) != text and self._tell(AppendContext(text, key)):
                self._said[key] = text
        if self._can.item_delete:
            for key in [key for key in self._said if key not in now]:
                self._tell(AppendContext("", key))
                del self._said[key]

    def _specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self._live.tools)
