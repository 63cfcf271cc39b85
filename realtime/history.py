"""The ledger of a call: each turn of user and model into the agent's history, once and in order.

The provider tells things when it knows them: the words of a turn may come long after its answer
began. The ledger keeps every turn at its place and writes from the head, so that history reads as
the call was spoken (spec/voice 18.5, row 84; DESIGN 5.4, 5.5, 5.8). It writes through
`core.live.LiveConversation` alone and never reads the provider. Owned by one run of a session.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from ..core.agent import Agent
from ..core.live import LiveConversation
from ..media.turns.heard import Heard
from .entries import AnswerEntry, Entry, UserEntry, spoken, told, untaken
from .events import UserTurn, Words
from .playback import Played
from .session_events import AnswerHeard

RETRY_S = 1.0
"""A store that failed is asked again after this long."""
REMEMBERED = 64
"""Entries that are kept after they were written, for words that come late."""

Position = Callable[[int], int]
"""Milliseconds of the connection to input samples of the session."""


class Ledger:
    """See the module. `flush` and `written` wait for the store; all else is synchronous.

    `rate` is that of the model's sound. `position` tells where in the caller's sound a time of the
    provider lies; `settled` is told up to which input sample the caller's words are in the store,
    `over` of every answer whose end is known.
    """

    def __init__(
        self,
        agent: Agent,
        live: LiveConversation,
        rate: int,
        *,
        position: Position,
        settled: Callable[[int], None],
        over: Callable[[AnswerHeard], None],
        words_wait_s: float,
    ) -> None:
        self._agent = agent
        self._live = live
        self._rate = rate
        self._position = position
        self._settled = settled
        self._over = over
        self._words_wait_s = words_wait_s
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._open: list[Entry] = []
        self._known: set[str] = set()
        self._writing = asyncio.Lock()
        self._retry_at: float | None = None
        self._moved = asyncio.Event()
        """Set when something was told of the user's words."""

    # ---- what the provider told

    def words(self, words: Words) -> Entry:
        """Words of an item; it gets its place now if it has none."""
        if words.role == "assistant":
            answer = self._answer(words.item_id)
            answer.hear(words)
            return answer
        entry = self._user(words)
        entry.hear(words)
        self._moved.set()
        if not entry.taken:
            entry.since = asyncio.get_running_loop().time()
            if words.end_ms is not None:
                entry.end = self._position(words.end_ms)
        return entry

    def taken(self, turn: UserTurn, heard_to: int) -> UserEntry:
        """The provider has the user's turn. `heard_to`: input sample sent last, for a provider that
        tells no time."""
        entry = self._user(turn)
        if not entry.taken:
            entry.taken = True
            entry.since = asyncio.get_running_loop().time()
            entry.end = heard_to if turn.end_ms is None else self._position(turn.end_ms)
            if entry.writing.words is not None:
                self._settled(entry.end)
        return entry

    def sound(self, item_id: str, samples: int) -> AnswerEntry:
        """Sound of an answer came."""
        entry = self._answer(item_id)
        entry.samples += samples
        return entry

    def unkept(self, item_id: str) -> None:
        """This item is no history."""
        self._answer(item_id).kept = False

    def acted(self, heard_to: int) -> None:
        """Tools are called for what the user said last; `heard_to` as in `taken`."""
        entry = next((one for one in reversed(self._open) if isinstance(one, UserEntry)), None)
        if entry is not None:
            entry.acted = True
            entry.end = heard_to if entry.end is None else entry.end

    def item_done(self, item_id: str) -> None:
        """An answer is whole, as far as the provider is concerned."""
        found = self._entries.get(item_id)
        if isinstance(found, AnswerEntry):
            found.done = True
            self._moved.set()

    def unheard(self, item_id: str) -> None:
        """This answer was stopped before it sounded: nobody will hear its words."""
        if not self._answer(item_id).samples:
            self.settle({item_id: Played(0, complete=False)})

    def answer(self, item_id: str) -> AnswerEntry | None:
        """The answer of this id, if there is one."""
        found = self._entries.get(item_id)
        return found if isinstance(found, AnswerEntry) else None

    @property
    def hears(self) -> bool:
        """Words of the user are on their way."""
        return any(isinstance(entry, UserEntry) for entry in self._open)

    # ---- what the provider knows

    @property
    def known(self) -> frozenset[str]:
        """Ids of messages that are part of the provider's conversation, those still to be written
        included."""
        opened = {entry.message_id for entry in self._open if not untaken(entry)}
        return frozenset(self._known | opened)

    def tell_known(self, message_ids: frozenset[str]) -> None:
        """The provider was told these messages."""
        self._known |= message_ids

    def seeded(self, message_ids: frozenset[str]) -> None:
        """A new conversation began that knows exactly these."""
        self._known = set(message_ids)

    # ---- what was heard

    def cut(self, played: Mapping[str, Played]) -> None:
        """The sound was stopped; so much was heard of these items, as far as is known."""
        for item_id, heard in played.items():
            entry = self.answer(item_id)
            if entry is not None and not entry.hearing.settled:
                entry.hearing.played = heard
                entry.hearing.partial = entry.hearing.partial or not entry.done

    def so_far(self, items: Iterable[str]) -> tuple[AnswerHeard, ...]:
        """What is known of these answers now."""
        entries = [entry for item in items if (entry := self.answer(item)) is not None]
        known = [(entry, entry.hearing.played or Played(0, complete=False)) for entry in entries]
        return tuple(
            told(entry, entry.heard(played), interrupted=not played.complete)
            for entry, played in known
        )

    def settle(self, played: Mapping[str, Played]) -> None:
        """The last word on what was heard of these items; the next `flush` brings it into history,
        also of what is not written yet."""
        self.cut(played)
        for item_id in played:
            entry = self.answer(item_id)
            if entry is not None:
                entry.hearing.settled = True

    def heard_whole(self, item_id: str) -> None:
        """An answer was heard to its end."""
        entry = self.answer(item_id)
        if entry is not None:
            length = entry.samples * 1000 // entry.rate
            self.settle({item_id: Played(length, complete=True)})

    # ---- into the store

    async def flush(self, *, last: bool = False) -> None:
        """Write from the head what is ready, and bring what came late into what is written. A turn
        whose words are overdue is written without them; `last`: everything is, for nothing will
        come any more.

        Raises StoreError; what was not written stays at the head, and is `overdue_at` soon.
        """
        try:
            async with self._writing:
                while self._open and (last or self._ready(self._open[0])):
                    entry = self._open[0]
                    await self._write(entry)
                    if self._open and self._open[0] is entry:
                        del self._open[0]
                    self._forget()
            for entry in list(self._entries.values()):
                if isinstance(entry, UserEntry):
                    await self._correct(entry)
                else:
                    await self._amend(entry)
        except Exception:
            self._retry_at = asyncio.get_running_loop().time() + RETRY_S
            raise
        self._retry_at = None

    @property
    def overdue_at(self) -> float | None:
        """Loop time at which to flush although nothing came: the head is written without its
        words then, or the store is tried again. None when nothing waits."""
        head = self._open[0] if self._open else None
        if self._retry_at is not None:
            return self._retry_at
        if not isinstance(head, UserEntry) or head.closed or not self._is_past(head):
            return None
        return head.since + self._words_wait_s

    async def written(self, limit_s: float, *, answers: bool = False) -> None:
        """Everything the user said before now is in the store, if its words come within `limit_s`;
        after that it is written with those there are, unless an answer before it is still being
        spoken. `answers`: the ends of those are awaited as well."""
        until = asyncio.get_running_loop().time() + limit_s
        waits = list(self._open)
        await self.flush()
        while any(entry in self._open and (answers or spoken(entry)) for entry in waits):
            if asyncio.get_running_loop().time() >= until:
                self._close_words(waits)
                return await self.flush()
            self._moved.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    await self._moved.wait()
            await self.flush()

    def lost(self, *, last: bool = False) -> bool:
        """The connection is gone. A turn of the user that has no answer yet and is not known in
        full is dropped: the caller's sound of it will be replayed, unless this was the `last` one.
        All else is as whole as it will be. Returns whether anything was dropped."""
        answered, dropped = last, False
        self._moved.set()
        for entry in reversed(list(self._open)):
            if isinstance(entry, AnswerEntry):
                answered = answered or entry.samples > 0 or bool(entry.text)
                entry.done = True
            elif entry.closed or entry.acted or answered or (entry.taken and entry.text):
                # Taken without words, it is a turn whose words nobody knows, and no cough.
                entry.closed = entry.closed or not (entry.taken or entry.acted or entry.text)
                entry.taken, entry.since = True, float("-inf")
                answered = True  # what came before it is not heard again either
                if entry.end is not None:
                    self._settled(entry.end)  # it will be written, so it is not heard again
            else:
                self._drop(entry)
                dropped = True
        return dropped

    @property
    def answer_begun(self) -> bool:
        """The latest thing that was said is the model's, and some of it was spoken or written."""
        latest = next(reversed(self._entries.values()), None)
        return isinstance(latest, AnswerEntry) and (latest.samples > 0 or bool(latest.text))

    @property
    def pending(self) -> frozenset[str]:
        """Ids of messages that are not written yet."""
        return frozenset(entry.message_id for entry in self._open)

    # ---- inside

    def _user(self, told: Words | UserTurn) -> UserEntry:
        found = self._entries.get(told.item_id)
        if isinstance(found, UserEntry):
            return found
        entry = UserEntry(told.item_id, self._live.new_id("msg"))
        if told.start_ms is not None:
            entry.start = self._position(told.start_ms)
        self._place(entry)
        return entry

    def _answer(self, item_id: str) -> AnswerEntry:
        found = self._entries.get(item_id)
        if isinstance(found, AnswerEntry):
            return found
        entry = AnswerEntry(item_id, self._live.open_answer(), self._rate)
        self._place(entry)
        return entry

    def _place(self, entry: Entry) -> None:
        self._entries[entry.item_id] = entry
        self._open.append(entry)

    def _drop(self, entry: Entry) -> None:
        self._open.remove(entry)
        self._entries.pop(entry.item_id, None)
        if isinstance(entry, AnswerEntry):
            self._live.drop_answer(entry.message_id)

    def _ready(self, entry: Entry) -> bool:
        if entry.ready:
            return True
        if isinstance(entry, UserEntry) and self._is_past(entry):
            # The sum that `overdue_at` tells, to the last bit: else the worker looks for ever.
            return asyncio.get_running_loop().time() >= entry.since + self._words_wait_s
        return False

    def _is_past(self, entry: UserEntry) -> bool:
        """No more of this turn is spoken: it was taken, or somebody else has spoken since."""
        return entry.taken or entry is not self._open[-1]

    async def _write(self, entry: Entry) -> None:
        again, entry.writing.tried = entry.writing.tried, True
        stored = again and await self._holds(entry.message_id)  # by a write that seemed to fail
        if isinstance(entry, UserEntry):
            await self._write_user(entry, stored=stored)
            return
        if not entry.kept or not entry.text.strip():
            self._live.drop_answer(entry.message_id)
            entry.writing.done, entry.kept = True, False
            return
        if again:
            entry.hearing.told = None  # what a broken write was told is forgotten with it
        if not stored:
            await self._live.add_answer(
                entry.text,
                message_id=entry.message_id,
                playback=entry.samples > 0 or entry.cut,
            )
        entry.writing.done = True
        self._known.add(entry.message_id)

    async def _write_user(self, entry: UserEntry, *, stored: bool) -> None:
        text = entry.text.strip()
        if not text and not entry.acted and (entry.closed or not entry.taken):
            entry.writing.done = True  # a cough: nobody said anything
            return
        if not stored:
            entry.writing.words = text
            await self._live.add_user(text, message_id=entry.message_id, directives=False)
        entry.writing.done = True
        self._known.add(entry.message_id)
        if entry.end is not None:
            self._settled(entry.end)

    async def _holds(self, message_id: str) -> bool:
        return any(one.id == message_id for one in await self._agent.store.get_messages())

    async def _correct(self, entry: UserEntry) -> None:
        """Words of a turn that is written already came late."""
        if not entry.stored or entry.writing.words is None:
            return
        text = entry.text.strip()
        if text and text != entry.writing.words:
            await self._live.correct_user(entry.message_id, text)
            entry.writing.words = text

    async def _amend(self, entry: AnswerEntry) -> None:
        """Bring what was heard of an answer into history, and tell the host when that is all."""
        if not entry.samples and not entry.cut:
            if entry.stored and entry.text.strip():
                self._report(entry, Heard(entry.text, ""), interrupted=False)
            return
        played = entry.hearing.played
        if played is None or not entry.hearing.settled:
            return
        heard = entry.heard(played)
        if entry.kept and entry.text.strip() and entry.hearing.told != (entry.text, played):
            entry.hearing.told = (entry.text, played)
            await self._agent.amend_heard(
                entry.message_id,
                heard.text,
                heard.unheard,
                interrupted=not played.complete,
                estimated=heard.estimated,
            )
        if entry.stored and entry.done:
            self._report(entry, heard, interrupted=not played.complete)

    def _report(self, entry: AnswerEntry, heard: Heard, *, interrupted: bool) -> None:
        if not entry.hearing.reported:
            entry.hearing.reported = True
            self._over(told(entry, heard, interrupted=interrupted))

    def _close_words(self, entries: list[Entry]) -> None:
        for entry in entries:
            if spoken(entry):
                entry.taken, entry.since = True, float("-inf")

    def _forget(self) -> None:
        while len(self._entries) > REMEMBERED and next(iter(self._entries.values())).stored:
            self._entries.popitem(last=False)
