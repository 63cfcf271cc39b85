"""Who said what on a Gemini Live connection: the user's items and the model's responses.

The wire has neither ids nor ends of the user's turns; they are made here of fragments, of the
model's first word and of the ends it tells. Pure: no JSON, no frames; owned by one codec.

A provider's turn may hold several responses: each tool call ends one, what the model says with the
result is the next. Source: protocols/gemini-live 5 (Ordering); spec/voice 18.10, W-37.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from ...core.messages import ToolCall
from ..events import (
    LOST,
    Audio,
    Interrupted,
    ItemDone,
    RealtimeEvent,
    ResponseDone,
    ResponseStarted,
    ResponseStatus,
    ToolCalls,
    UserTurn,
    Words,
)


@dataclass(slots=True)
class _Said:
    """One item of the user in the making."""

    item_id: str
    words: list[str] = field(default_factory=list)
    taken: bool = False
    final: bool = False


class UserItems:
    """What the user says, one item a turn.

    Fragments of a transcript may come after the answer began: until its end they belong to the turn
    that is answered, unless its transcript said that it was whole.
    """

    def __init__(self) -> None:
        self._count = 0
        self._items: list[_Said] = []
        """Those without their final words or their UserTurn, oldest first."""

    @property
    def waiting(self) -> bool:
        """Something was said that no answer has taken yet."""
        return any(not item.taken for item in self._items)

    def hear(self, text: str, finished: bool) -> list[RealtimeEvent]:
        """A fragment of the transcript."""
        open_item = self._items[-1] if self._items and not self._items[-1].final else None
        if not text and not (finished and open_item):
            return []
        item = open_item or self._new()
        item.words.append(text)
        if finished:
            return self._close(item)
        return [Words("user", item.item_id, text)]

    def begin(self) -> list[RealtimeEvent]:
        """The user begins to speak, by evidence: words from here on are of a new item."""
        events = self.settle()
        if not self.waiting or self._items[-1].final:
            self._new()
        return events

    def take(self, *, spoken: bool) -> list[RealtimeEvent]:
        """The model answers: what was said is in the conversation. `spoken`: nothing else asked
        for this answer, so something was said although its words have not come yet."""
        if spoken and not self.waiting:
            self._new()
        untaken = [item for item in self._items if not item.taken]
        for item in untaken:
            item.taken = True
        self._forget()
        return [UserTurn(item.item_id) for item in untaken]

    def settle(self) -> list[RealtimeEvent]:
        """No more words can come for what was taken."""
        late = [item for item in self._items if item.taken and not item.final]
        return [event for item in late for event in self._close(item)]

    def _new(self) -> _Said:
        self._count += 1
        item = _Said(f"user_{self._count}")
        self._items.append(item)
        return item

    def _close(self, item: _Said) -> list[RealtimeEvent]:
        item.final = True
        self._forget()
        return [Words("user", item.item_id, "".join(item.words).strip(), final=True)]

    def _forget(self) -> None:
        self._items = [item for item in self._items if not (item.taken and item.final)]


@dataclass(slots=True)
class _Spoken:
    """The speech of a response. `done`: its ItemDone was told."""

    item_id: str
    words: list[str] = field(default_factory=list)
    done: bool = False


class ModelTurns:
    """What the model says and calls, and what it was asked to say."""

    def __init__(self) -> None:
        self._responses = 0
        self._response = ""
        """The response that runs, "" for none."""
        self._item: _Spoken | None = None
        self.silenced = False
        """The sound of this turn was cut by our side; the provider goes on with it."""
        self.in_turn = False
        """The provider's turn has begun and not ended; a tool may be running in it."""
        self.interrupted = False
        """It was cut by the provider; its end still follows."""
        self._owed: deque[str] = deque(maxlen=256)
        """Answers that were asked for and have not begun: the ids of their requests."""
        self._follows = False
        """Results were given that the model did not wait for."""
        self.generated = False
        """Everything of the response that runs was generated."""

    @property
    def responding(self) -> bool:
        """A response runs."""
        return bool(self._response)

    @property
    def owing(self) -> bool:
        """An answer was asked for and has not begun."""
        return bool(self._owed)

    @property
    def generating(self) -> bool:
        """A response runs and more of it is to come. Then the provider is silent until it believes
        that all of it was played."""
        return self.responding and not self.generated

    def ask(self, request_id: str = "") -> None:
        """An answer was asked for."""
        self._owed.append(request_id)

    def follow(self) -> None:
        """Results were given to a model that did not wait for them: what it says next is of them,
        not of the user's voice."""
        self._follows = True

    def begin(self, users: UserItems) -> list[RealtimeEvent]:
        """The model works; nothing where that is known."""
        if self._response and not self.generated:
            return []
        events = self._end("completed", "") if self._response else []
        asked = bool(self._owed)
        events += users.take(spoken=not (asked or self._follows or self.in_turn))
        self._follows = self._follows and self.in_turn
        self._responses += 1
        self._response = f"response_{self._responses}"
        self.in_turn, self.interrupted, self.generated = True, False, False
        request = self._owed.popleft() if asked else ""
        return [*events, ResponseStarted(self._response, request)]

    def audio(self, pcm: bytes) -> list[RealtimeEvent]:
        """Sound of the response that runs; none after a cut."""
        item = self._speaking()
        return [] if self.silenced or not pcm else [Audio(item.item_id, pcm)]

    def may_word(self, users: UserItems) -> bool:
        """Whether words of the model can be of a turn: else they are stragglers of one that is
        over, and would begin an answer that never ends."""
        if self.interrupted or (self._item is not None and self._item.done):
            return False
        return self.in_turn or self.owing or users.waiting

    def words(self, text: str) -> list[RealtimeEvent]:
        """Words of the response that runs."""
        item = self._speaking()
        item.words.append(text)
        return [Words("assistant", item.item_id, text)] if text else []

    def call(self, calls: tuple[ToolCall, ...]) -> list[RealtimeEvent]:
        """Tool calls; they end the response that runs."""
        events = self._item_done()
        events.append(ToolCalls(self._response, calls))
        return events + self._end("completed", "")

    def rest(self) -> list[RealtimeEvent]:
        """Everything of this turn was generated. Speech without a word waits for them: until the
        turn ends they may still come."""
        self.generated = self.responding
        return self._item_done() if self._item is None or self._item.words else []

    def complete(
        self, users: UserItems, status: ResponseStatus, reason: str, *, listening: bool
    ) -> list[RealtimeEvent]:
        """The provider's turn is over. `listening`: it waits for the user to go on."""
        events: list[RealtimeEvent] = []
        if not self.in_turn and not self.interrupted:
            silent = self.owing or status != "completed" or (users.waiting and not listening)
            events += self.begin(users) if silent else []
        events += users.settle()
        if self._response:
            events += self._end(status, reason)
        self.in_turn = self.silenced = self.interrupted = False
        return events

    def interrupt(self, users: UserItems) -> list[RealtimeEvent]:
        """The provider cut its turn because the user speaks; maybe nothing of it was seen yet."""
        unseen = not self.in_turn and self.owing and not users.waiting
        events = self.begin(users) if unseen else []
        if not self.silenced:
            events.append(Interrupted(self._sounding))
        events += users.settle()
        if self._response:
            events += self._end("cancelled", "interrupted")
        self.in_turn = self.silenced = False
        self.interrupted = True
        return events

    def cut(self, cancel: bool) -> list[RealtimeEvent]:
        """Our side fell silent; the answer to it."""
        self.silenced = self.silenced or (cancel and self.responding)
        return [Interrupted(self._sounding)]

    def close(self, users: UserItems) -> list[RealtimeEvent]:
        """The connection is over."""
        events = users.settle()
        return events + (self._end("cancelled", LOST) if self._response else [])

    @property
    def _sounding(self) -> str:
        return self._item.item_id if self._item is not None else ""

    def _speaking(self) -> _Spoken:
        if self._item is None:
            self._item = _Spoken(self._response.replace("response", "speech"))
        return self._item

    def _item_done(self) -> list[RealtimeEvent]:
        item = self._item
        if item is None or item.done:
            return []
        item.done = True
        text = "".join(item.words).strip()
        return [Words("assistant", item.item_id, text, final=True), ItemDone(item.item_id)]

    def _end(self, status: ResponseStatus, reason: str) -> list[RealtimeEvent]:
        events = [*self._item_done(), ResponseDone(self._response, status, reason)]
        self._response, self._item, self.generated = "", None, False
        return events
