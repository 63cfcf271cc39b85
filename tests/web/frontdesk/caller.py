"""A caller at the front desk: the real agent, demo model and SQLite book under a fixed clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, time

from voxglove.adapters.models.demo import DemoModel
from voxglove.core.agent import Agent
from voxglove.core.factory import CallInfo
from voxglove.core.messages import Message, ToolCall
from voxglove.core.stores.memory import MemoryStore
from voxglove.media.errors import Unsupported
from voxglove.web.frontdesk import Bookings, FrontDesk, House, frontdesk_agent

NOW = datetime(2025, 11, 29, 12, 0)  # a Saturday
TOMORROW = date(2025, 11, 30)


@dataclass
class FakeLine:
    """Records what was done to the line."""

    can_transfer: bool = True
    hung_up: list[str] = field(default_factory=list)
    transferred: list[str] = field(default_factory=list)

    async def hang_up_after_playout(self, reason: str) -> None:
        self.hung_up.append(reason)

    async def transfer(self, target: str) -> None:
        if not self.can_transfer:
            raise Unsupported("transfer", "fixture")
        self.transferred.append(target)


class FakeRate:
    def __init__(self) -> None:
        self.steps = 0

    def slower(self) -> bool:
        self.steps += 1
        return True


@dataclass(frozen=True)
class Answer:
    """What came back: the text to speak and the tools that ran for it."""

    text: str
    calls: tuple[ToolCall, ...]

    @property
    def tools(self) -> list[str]:
        return [call.tool_name for call in self.calls]


@dataclass
class Caller:
    """One call; say() is a user turn."""

    agent: Agent
    bookings: Bookings
    line: FakeLine
    rate: FakeRate

    async def say(self, text: str) -> Answer:
        before = len(await self.agent.store.get_messages())
        await self.agent.process_request(text, playback=True)
        news = [m for m in await self.agent.store.get_messages() if m.sender == "agent"]
        fresh = (await self.agent.store.get_messages())[before:]
        calls = tuple(call for message in fresh for call in message.tool_calls)
        await self.agent.amend_heard(news[-1].id, news[-1].text)
        return Answer(news[-1].text, calls)

    async def heard_only(self, heard: str) -> None:
        """The last answer was cut: this much of it was heard."""
        last = await self.last_answer()
        assert last.text.startswith(heard)
        await self.agent.amend_heard(last.id, heard, last.text[len(heard) :], interrupted=True)

    async def last_answer(self) -> Message:
        messages = await self.agent.store.get_messages()
        return next(one for one in reversed(messages) if one.sender == "agent")

    def booked(self) -> list[tuple[str, date, time, int]]:
        """Every active booking in the book."""
        rows = self.bookings.all_active()
        return [(one.name, one.date, one.time, one.party) for one in rows]


@contextmanager
def calling(
    *,
    house: House | None = None,
    bookings: Bookings | None = None,
    store: MemoryStore | None = None,
    line: FakeLine | None = None,
) -> Iterator[Caller]:
    """A caller on a fresh book (or on the one given)."""
    book = bookings or Bookings(":memory:", house)
    line, rate = line or FakeLine(), FakeRate()
    desk = FrontDesk(
        book, line, clock=lambda: NOW, speaking_rate=rate, transfer_target="sip:colleague"
    )
    agent = frontdesk_agent(
        CallInfo(call_id="call_1"), desk, DemoModel(clock=lambda: NOW), store=store
    )
    try:
        yield Caller(agent, book, line, rate)
    finally:
        if bookings is None:
            book.close()
