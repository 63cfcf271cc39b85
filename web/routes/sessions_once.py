"""A write that is asked for twice is done once: answers by the key that came with the request.

Owned by the store door. A client repeats a write whose answer was lost, with the same
`Idempotency-Key`; it gets the first one's answer, waiting for it if need be. A key whose caller
gave up is closed: a write that comes after that is not done. Memory is bounded, and goes with the
process; what must hold beyond is compared with the store by the actions themselves.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice

REMEMBERED = 4_096
"""Keys kept, oldest first to go."""
MAX_KEPT_BYTES = 65_536
"""A larger answer is not kept; the write is done again, which a key of its own makes harmless."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and JSON body of a response."""

    status: int
    body: bytes = b""


class KeyReused(ValueError):
    """The key came before with another request."""


@dataclass(slots=True)
class _Entry:
    digest: bytes
    done: asyncio.Event = field(default_factory=asyncio.Event)
    answer: Answer | None = None


class Once:
    """Answers of one server's writes, by session and key."""

    def __init__(self, gone: Answer, remember: int = REMEMBERED) -> None:
        self._gone = gone
        self._remember = remember
        self._entries: OrderedDict[tuple[str, str], _Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    async def run(
        self, session: str, key: str, digest: bytes, act: Callable[[], Awaitable[Answer]]
    ) -> Answer:
        """Do `act`, or give the answer that it gave under this key.

        An answer of 500 and above is not kept: the next one tries again. So is none, when `act`
        raises or is cancelled. Raises KeyReused.
        """
        name = (session, key)
        while (known := self._entries.get(name)) is not None:
            if known.digest and known.digest != digest:
                raise KeyReused(key)
            await known.done.wait()
            if known.answer is not None:
                return known.answer
        entry = self._entries[name] = _Entry(digest)
        try:
            answer = await act()
            if answer.status < 500 and len(answer.body) <= MAX_KEPT_BYTES:
                entry.answer = answer
            return answer
        finally:
            if entry.answer is None:
                self._entries.pop(name, None)
            entry.done.set()
            self._forget()

    async def abandon(self, session: str, keys: Iterable[str]) -> None:
        """See to it that no write under these keys is done from now on: one that runs is awaited,
        one that has not come yet will be refused."""
        for key in keys:
            known = self._entries.get((session, key))
            if known is not None:
                await known.done.wait()
            else:
                entry = self._entries[session, key] = _Entry(b"", answer=self._gone)
                entry.done.set()
        self._forget()

    def _forget(self) -> None:
        """The oldest go; one that still runs stays until it is done."""
        surplus = len(self._entries) - self._remember
        if surplus > 0:
            done = (name for name, entry in self._entries.items() if entry.done.is_set())
            for name in list(islice(done, surplus)):
                del self._entries[name]
