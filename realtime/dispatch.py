"""What a provider says, event by event: at once what must not wait, in order what may.

Sound, stops and the floor change synchronously; the store, a user's preparers and tools come after,
in the session's worker or in tasks of their own. Owned by one run of a session; it never sends
audio and opens nothing.
"""

from __future__ import annotations

from functools import partial

from .due import Parts
from .events import (
    LOST,
    Audio,
    Interrupted,
    ItemDone,
    ProviderProblem,
    RealtimeEvent,
    ResponseDone,
    ResponseStarted,
    Resumable,
    Summary,
    ToolCalls,
    ToolsCancelled,
    Used,
    UserSpeech,
    UserTurn,
    Words,
)
from .session_events import TurnStored


class Dispatch:
    """See the module."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._answering: dict[str, int] = {}
        """How often an answer had been owed when each running response began."""
        self._inferred = False
        """The user speaks, as an interruption says; nothing else told so."""

    def on_event(self, event: RealtimeEvent) -> None:
        """Take one event of the connection that carries the session."""
        parts = self._parts
        match event:
            case Audio():
                self._audio(event)
            case Words(role="assistant"):
                self._answer_words(event)
            case Words():
                self._user_words(event)
            case UserSpeech():
                self._user_speech(event)
            case UserTurn():
                self._user_turn(event)
            case ResponseStarted() | ItemDone() | ResponseDone() | ToolCalls():
                self._response(event)
            case ToolsCancelled(call_ids):
                parts.tools.cancelled(call_ids)
            case Interrupted():
                self._interrupted()
            case _:
                self._bookkeeping(event)

    # ---- the agent's speech

    def _audio(self, event: Audio) -> None:
        parts = self._parts
        if not parts.output.audio(event, parts.report.current):
            return
        ask = parts.asks.of(parts.report.current)
        if ask is not None:
            ask.sounded = True
            if ask.verbatim:
                parts.ledger.unkept(event.item_id)
        if not parts.floor.agent_speaks:
            parts.later(parts.ledger.flush)  # the worker looks anew when sound will have run out
        parts.floor.playing(True)
        parts.made.notify(event)

    def _answer_words(self, event: Words) -> None:
        parts = self._parts
        entry = parts.ledger.words(event)
        parts.output.words(event.item_id, parts.report.current)
        ask = parts.asks.of(parts.report.current)
        if ask is not None and ask.verbatim:
            parts.ledger.unkept(event.item_id)
        elif event.final:
            parts.report.whole(entry.message_id, event.text)
        elif not parts.output.stopped(event.item_id):
            parts.report.words(entry.message_id, event.text)
        parts.made.notify(event)

    async def _answered(self, count: int) -> None:
        """An item was whole: the answer to what was due then, unless the end of the connection
        was its end."""
        parts = self._parts
        if parts.due.count == count and parts.link.state.phase == "open":
            parts.due.answer = False

    def _interrupted(self) -> None:
        parts = self._parts
        if parts.output.answers:
            parts.output.answers -= 1
            return
        parts.due.answer = False
        if not parts.floor.user_speaks:
            # Where the provider tells no onsets, this is one; the end is the next sign of a turn.
            self._inferred = True
            parts.floor.presume_user()
        parts.output.stop(cancel=False)

    # ---- the user's speech

    def _user_speech(self, event: UserSpeech) -> None:
        """The provider's own detector. Where the user may interrupt, its word ends sound that
        still plays, for the model's own work may be over long ago."""
        parts = self._parts
        started = event.event == "started"
        self._inferred = False
        parts.floor.user(started)
        parts.due.spoken = started or bool(parts.due.spoken)
        if started:
            parts.due.began = parts.link.heard
            if event.at_ms is not None:
                parts.due.began = parts.link.position_of(event.at_ms)
            self.turn_begins()
            if parts.floor.agent_speaks and parts.made.config.interruption:
                parts.output.stop(cancel=False)
        parts.made.notify(event)

    def turn_begins(self) -> None:
        """A user turn begins, whoever noticed: its preparations run beside the speech, once."""
        parts = self._parts
        if parts.due.begun:
            return
        parts.due.begun = True
        parts.later(self._prepare_turn)

    async def _prepare_turn(self) -> None:
        parts = self._parts
        await parts.feed.turn("user_speech")
        parts.feed.take_joined()
        parts.due.wake = False  # what came from outside has joined; a user turn wins

    def _user_words(self, event: Words) -> None:
        parts = self._parts
        entry = parts.ledger.words(event)
        if event.final:
            parts.later(parts.ledger.flush)
            if not event.failed and not entry.text.strip() and not parts.floor.responding:
                parts.due.answer = False  # nobody said anything: no answer may ever come
        parts.made.notify(event)

    def _user_turn(self, event: UserTurn) -> None:
        parts = self._parts
        self._inferred = False
        parts.floor.user(False)
        self.turn_begins()
        entry = parts.ledger.taken(event, parts.link.heard)
        parts.due.begun = False
        if parts.due.spoken and (entry.end is None or entry.end >= parts.due.began):
            parts.due.spoken = False  # else he has spoken again since
        parts.due.owe_answer()
        parts.due.unwanted = False
        parts.report.user_message_id = entry.message_id
        parts.made.notify(TurnStored(entry.item_id, entry.message_id, entry.start, entry.end))
        parts.later(parts.ledger.flush)

    # ---- responses

    def _response(self, event: ResponseStarted | ItemDone | ResponseDone | ToolCalls) -> None:
        parts = self._parts
        match event:
            case ResponseStarted(response_id):
                if self._inferred:
                    self._inferred = False
                    parts.floor.user(False)
                self._answering[response_id] = parts.due.count
                parts.floor.response(response_id, runs=True)
                parts.due.speech = False  # whatever waited to be spoken about is known to it
                parts.asks.started(event)
                parts.report.started(event)
                parts.made.notify(event)
                self._refuse_unwanted(event)
            case ItemDone(item_id):
                parts.output.item_done(item_id)
                parts.ledger.item_done(item_id)
                parts.made.notify(event)
                parts.later(parts.ledger.flush)
                count = self._answering.get(parts.report.current, parts.due.count)
                parts.later(partial(self._answered, count))
            case ToolCalls():
                parts.due.owe_answer()
                parts.ledger.acted(parts.link.heard)
                parts.report.calls(event)
                parts.tools.called(event)
            case _:
                self._response_done(event)

    def _refuse_unwanted(self, event: ResponseStarted) -> None:
        """An answer that was interrupted before it began ends here."""
        parts = self._parts
        unwanted, parts.due.unwanted = parts.due.unwanted, False
        if unwanted and not event.request_id and parts.made.can.turn_taking != "full_duplex":
            parts.output.stop(cancel=True)

    def _response_done(self, event: ResponseDone) -> None:
        parts = self._parts
        lost = event.status == "cancelled" and event.reason == LOST
        count = self._answering.pop(event.response_id, parts.due.count)
        if not lost:
            parts.asks.ended(event)
            if count == parts.due.count:  # neither called tools nor was overtaken by a turn
                parts.due.answer = False
        if event.status == "failed":
            parts.problem("ERR_REALTIME_RESPONSE", "agent", event.reason or "the response failed")
        parts.report.ended(event)
        parts.floor.response(event.response_id, runs=False)
        parts.made.notify(event)
        parts.later(parts.ledger.flush)

    # ---- the rest

    def _bookkeeping(self, event: RealtimeEvent) -> None:
        parts = self._parts
        match event:
            case Used():
                parts.summaries.measured(event)
                if parts.summaries.due:
                    parts.floor.wait_again()  # it may be quiet already
                parts.report.used(event.usage)
                parts.made.notify(event)
                if event.usage.total:
                    parts.later(partial(self._count, event))
            case Summary():
                parts.summaries.came(event)
            case Resumable():
                parts.made.notify(event)
            case ProviderProblem(code, message):
                parts.problem(code, "provider", message)
            case _:
                return

    async def _count(self, used: Used) -> None:
        await self._parts.made.live.used(used.usage, context_tokens=used.context_tokens)
