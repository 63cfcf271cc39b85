"""The conversation of one call as a page shows it: the timeline of its agent, and what only the
call knows beside it.

One `TimelineBuilder`, begun with the agent's stored history and fed with the agent's events, is
the truth; a page that comes anew is told it and keeps none of its own. From the call come the turn
an entry belongs to, whether it was typed, the cards of the display with their answers, words
outside every turn, and what of the running answer may be shown. Owned by the call's context in
call_agent.py; keeps no store and asks none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..core.events import (
    MessageStored,
    ModelResponse,
    ModelResponseComplete,
    RequestStarted,
    SubscriberEvent,
    TextDelta,
    ToolUse,
    ToolUseResult,
)
from ..core.messages import Message
from ..core.timeline import TextEntry, TimelineBuilder, TimelineEntry, UserEntry, entry_json
from ..media.events import CallEvent, Response, Slot, SlotRemoved, Transcript, Turn, to_line
from .bounds import Entry, newest
from .wire import Reject, Resolve, ServerMessage, heard_of

HISTORY = 400
"""Messages of a stored conversation that its timeline begins with."""
Answer = Callable[[Resolve | Reject], bool]
MAX_BESIDE = 100
"""Cards, and words outside every turn, that are remembered."""
MAX_CONCLUDED = 4
"""Answers that are over and may not be settled in history yet."""


@dataclass(slots=True)
class _Beside:
    """Something on the page that is no message: it stands behind entry `after`."""

    entry: Entry
    after: str | None
    tool: str | None = None
    turn: int | None = None

    def place(self, known: Collection[str], turns: Mapping[object, str]) -> str | None:
        """The entry it stands behind: its tool's, that of its turn's words, or the last one at
        the time. None: before all of them."""
        if self.tool in known:
            return self.tool
        if self.turn in turns:
            return turns[self.turn]
        return self.after


@dataclass(slots=True)
class _Running:
    """The answer that was begun last, and the agent's request for it."""

    turn: int | None = None
    gen: int | None = None
    sounds: bool = True
    request: str = ""
    request_turn: int | None = None
    messages: list[str] = field(default_factory=list)
    """Those of the request, in order."""


@dataclass(slots=True)
class _Known:
    """What the call said about messages and tools, by their ids."""

    turns: dict[str, int | None] = field(default_factory=dict)
    """Messages of this call; None: of no turn of the caller."""
    typed: set[str] = field(default_factory=set)
    sounded: set[str] = field(default_factory=set)
    """Messages of answers of which a sound was played, however little."""
    durations: dict[str, float] = field(default_factory=dict)


class Conversation:
    """See the module. Give it to the agent's reporter (`record`) and to the call (`on_event`).

    `stored` is the history the call begins with, `outstanding` are tool calls that still run.
    """

    def __init__(
        self,
        stored: Sequence[Message] = (),
        outstanding: Collection[str] = (),
        present: Sequence[CallEvent] = (),
    ) -> None:
        self.present = present
        """The plan and the inbox that the call begins with, told when it is announced."""
        self._builder = TimelineBuilder.from_history(stored[-HISTORY:], outstanding)
        self._known = _Known()
        self._running = _Running()
        self._unnamed: deque[Transcript] = deque(maxlen=MAX_CONCLUDED)
        """What was typed and gets its id only where it is stored."""
        self._waiting: dict[str, Transcript] = {}
        """What the caller said that is not in history yet, by the id it gets there."""
        self._cards: dict[str, _Beside] = {}
        self._asides: deque[_Beside] = deque(maxlen=MAX_BESIDE)
        self._concluded: deque[Transcript] = deque(maxlen=MAX_CONCLUDED)
        """What the call said was heard of an answer; history follows a moment later."""
        self._numbers = 0

    # ---- what it hears

    def record(self, event: SubscriberEvent, /) -> None:
        """An event of the agent. A sub-agent's come wrapped and change nothing here."""
        self._builder.record(event)
        match event:
            case RequestStarted():
                turn = self._known.turns.get(event.user_message_id or "")
                self._running.request, self._running.request_turn = event.run_id, turn
                self._running.messages = []
            case TextDelta(phase="answer") | ToolUse() | ModelResponse() | ModelResponseComplete():
                if event.run_id == self._running.request:
                    self._place(event.message_id)
            case MessageStored() if event.message.is_user_turn:
                self._name(event.message)
                self._took(event.message.id)
            case ToolUseResult():
                self._known.durations[event.call_id] = event.duration_ms
            case _:
                return

    def on_event(self, at: int, event: CallEvent) -> None:
        """Sink of the call."""
        match event:
            case Transcript(partial=False):
                self._said(event)
            case Response():
                self._answered(event)
            case Turn(event="committed", message=str(message_id)):
                self._known.turns[message_id] = event.turn
            case Turn(event="dropped" | "corrected"):
                self._revise(event)
            case Slot():
                self._show(event)
            case SlotRemoved() if event.id in self._cards:
                self._cards[event.id].entry["state"] = "gone"
            case _:
                return

    def noting(self, answer: Answer) -> Answer:
        """`answer`, and what was answered stays with the card."""

        def noted(request: Resolve | Reject) -> bool:
            taken = answer(request)
            card = self._cards.get(request.id)
            if taken and card is not None:
                if isinstance(request, Resolve):
                    card.entry |= {"state": "answered", "value": request.value}
                else:
                    card.entry |= {"state": "refused", "reason": request.reason}
            return taken

        return noted

    # ---- what it tells

    def messages(self) -> list[ServerMessage]:
        """What a client that was just attached is told of everything said so far."""
        entries = self.entries()
        if not entries:
            return []
        told = newest(entries)
        found: list[ServerMessage] = [
            {"t": "timeline", "entries": told, "earlier": len(entries) - len(told)}
        ]
        unsettled = {one.get("turn") for one in told if one.get("live")}
        found += [heard_of(one) for one in self._concluded if one.turn in unsettled]
        return found

    def entries(self) -> list[Entry]:
        """Everything, in the order of the conversation."""
        shown = [*self._shown(), *self._words()]
        turns: dict[object, str] = {
            one["turn"]: str(one["id"]) for one in shown if one["kind"] == "user" and "turn" in one
        }
        known = {str(one["id"]) for one in shown}
        last = str(shown[-1]["id"]) if shown else None
        behind: dict[str | None, list[Entry]] = {}
        for beside in (*self._asides, *self._cards.values()):
            place = beside.place(known, turns)
            lost = place is not None and place not in known
            behind.setdefault(last if lost else place, []).append(beside.entry)
        found = behind.get(None, [])
        for entry in shown:
            found += [entry, *behind.get(str(entry["id"]), ())]
        return found

    # ---- inside

    def _shown(self) -> Iterator[Entry]:
        """The agent's timeline, with what is known beside it."""
        drawn = {card.tool for card in self._cards.values()}
        for entry in self._builder.entries:
            if not self._withheld(entry):
                yield self._told(entry, drawn)

    def _told(self, entry: TimelineEntry, drawn: Collection[str | None]) -> Entry:
        found = entry_json(entry)
        turn = self._known.turns.get(entry.id)
        if turn is not None:
            found["turn"] = turn
        match entry:
            case UserEntry() if entry.id in self._known.typed:
                found["source"] = "typed"
            case TextEntry() if self._is_live(entry):
                found["live"] = True
            case TextEntry() if entry.heard == "" and entry.id in self._known.sounded:
                found["sounded"] = True
            case _ if entry.id in self._known.durations:
                found["duration_ms"] = self._known.durations[entry.id]
        if entry.id in drawn:
            found.pop("renderData", None)  # the card itself is told
        return found

    def _is_live(self, entry: TextEntry) -> bool:
        """Whether the call will still say what was heard of it."""
        return entry.heard is None and entry.id in self._known.turns

    def _withheld(self, entry: TimelineEntry) -> bool:
        """Words of an answer that does not sound yet: a caller who goes on talking never hears
        them."""
        live = isinstance(entry, TextEntry) and self._is_live(entry)
        return live and entry.id not in self._known.sounded

    def _words(self) -> Iterator[Entry]:
        """What the caller said and the agent has not taken up."""
        for message_id, said in self._waiting.items():
            found: Entry = {"kind": "user", "id": message_id, "text": said.text}
            found |= {} if said.turn is None else {"turn": said.turn}
            yield found | ({"source": "typed"} if said.source == "typed" else {})

    def _said(self, event: Transcript) -> None:
        if event.role == "user" and event.message is not None:
            self._known.turns[event.message] = event.turn
            if all(entry.id != event.message for entry in self._builder.entries):
                self._waiting[event.message] = event
            if event.source == "typed":
                self._known.typed.add(event.message)
        elif event.role == "user" and event.source == "typed":
            self._unnamed.append(event)
        elif event.source == "narration":
            self._numbers += 1
            entry: Entry = {"kind": "aside", "id": f"aside_{self._numbers}", "text": event.text}
            self._asides.append(_Beside(entry, self._last(), turn=event.turn))
        elif event.role == "assistant":
            self._concluded.append(event)

    def _revise(self, event: Turn) -> None:
        """Words the agent has not taken up are others, or none."""
        for message_id, said in list(self._waiting.items()):
            if said.turn == event.turn and event.event == "dropped":
                del self._waiting[message_id]
            elif said.turn == event.turn:
                self._waiting[message_id] = replace(said, text=event.text)

    def _answered(self, event: Response) -> None:
        running = self._running
        if event.event == "started":
            self._running = _Running(
                event.turn,
                event.gen,
                sounds=False,
                request=running.request,
                request_turn=running.request_turn,
                messages=running.messages,
            )
        elif event.event == "audio" and event.gen == running.gen:
            running.sounds = True
            self._known.sounded.update(running.messages)

    def _place(self, message_id: str) -> None:
        """The running request writes this message."""
        if message_id in self._known.turns:
            return
        self._known.turns[message_id] = self._running.request_turn
        self._running.messages.append(message_id)
        if self._running.sounds:
            self._known.sounded.add(message_id)

    def _name(self, message: Message) -> None:
        """Typed words are in history now, under this id."""
        said = next((one for one in self._unnamed if one.text == message.text), None)
        if said is not None:
            self._unnamed.remove(said)
            self._known.turns[message.id] = said.turn
            self._known.typed.add(message.id)

    def _took(self, message_id: str) -> None:
        """A user's message is in history; words of turns that were cut before it are part of it."""
        waiting = list(self._waiting)
        ends = waiting.index(message_id) + 1 if message_id in waiting else len(waiting)
        for one in waiting[:ends]:
            del self._waiting[one]

    def _show(self, event: Slot) -> None:
        entry: Entry = {"kind": "slot", "id": event.id, "state": "open"}
        line = to_line(0, event)
        fields = ("renderer", "input", "strategy", "tool_call_id")
        entry |= {name: line[name] for name in fields if name in line}
        self._cards.pop(event.id, None)
        self._cards[event.id] = _Beside(entry, self._last(), tool=event.tool_call_id)
        while len(self._cards) > MAX_BESIDE:
            del self._cards[next(iter(self._cards))]

    def _last(self) -> str | None:
        entries = self._builder.entries
        return entries[-1].id if entries else None
