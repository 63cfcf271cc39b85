"""The front desk as an agent: prompt, tools and model joined by core's builder.

Used by the composition root for the default agent, and by anyone's `module:factory`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from ...core.agent import Agent
from ...core.builder import Glove
from ...core.config import AgentConfig
from ...core.factory import AgentFactory, CallInfo
from ...core.model import Model
from ...core.store import Store
from ...core.stores.memory import MemoryStore
from .bookings import Bookings
from .desk import FrontDesk, LineTools, SpeakingRate

SYSTEM_PROMPT = """\
You answer the phone of a small restaurant. Everything you write is spoken aloud.
- Answer in one or two short sentences. No lists, no markdown, no emoji, no symbols. Write times,
  days and numbers the way people say them: half past seven, tomorrow, for two.
- Ask for one thing at a time: people, day, time, name. Take several at once if they are given.
- Words may be misheard: "to" can be two, "for" four, "ate" eight. If something is odd, ask again
  in another way; after two tries offer choices.
- Call current_time before you work out a day. Call free_tables before you promise a table.
- Before you book, change or cancel, read everything back and ask whether it is right. Act only on
  a clear yes to a read-back that was heard to its end; "[interrupted]" marks one that was not.
- A tool result is a fact even if you were interrupted before you said it. Never book twice.
- Say only what tools told you. When the caller says goodbye, say goodbye and call end_call.
"""


def frontdesk_agent(
    info: CallInfo,
    desk: FrontDesk,
    model: Model,
    *,
    store: Store | None = None,
    config: AgentConfig | None = None,
) -> Agent:
    """The agent of one call; its store is a MemoryStore named after the call unless given."""
    settings = replace(config or AgentConfig(), name=info.agent or "frontdesk")
    builder = Glove(
        model=model,
        system_prompt=SYSTEM_PROMPT,
        store=store or MemoryStore(info.call_id),
        config=settings,
    )
    for tool in desk.tools():
        builder.fold(tool)
    return builder.build()


def frontdesk_factory(
    bookings: Bookings,
    model: Callable[[CallInfo], Model],
    *,
    clock: Callable[[], datetime],
    line_tools: Callable[[CallInfo], LineTools | None] = lambda info: None,
    speaking_rate: Callable[[CallInfo], SpeakingRate | None] = lambda info: None,
    transfer_target: str | None = None,
    config: AgentConfig | None = None,
) -> AgentFactory:
    """An AgentFactory whose calls share one book; what belongs to a line is made per call."""

    def make(info: CallInfo) -> Agent:
        desk = FrontDesk(
            bookings,
            line_tools(info),
            clock=clock,
            speaking_rate=speaking_rate(info),
            transfer_target=transfer_target,
        )
        return frontdesk_agent(info, desk, model(info), store=info.store, config=config)

    return make
