"""Texts that the model is told on a Gemini Live connection, and when each of them may go.

Every clientContent cuts what the model is saying, and text of any kind counts as the user's. So a
note waits for a moment at which nothing can be cut, or rides with what is sent anyway: a result, a
text, a request. Requests wait behind the answer that runs. Pure; owned by one codec.
Source: protocols/gemini-live 4, 9.6; spec/voice 18.7, 18.9.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from ...core.encoding import whole_text
from .gemini_config import Generation
from .gemini_frames import Outbox
from .gemini_setup import content
from .gemini_talk import ModelTurns

MOST = 256
"""Texts that may wait; of more the oldest is lost."""


@dataclass(frozen=True, slots=True)
class _Text:
    text: str
    answered: bool = False
    request_id: str = ""


class Told:
    """The queue of texts. The codec says when they may go."""

    def __init__(self, facts: Generation, outbox: Outbox, model: ModelTurns) -> None:
        self._facts = facts
        self._outbox = outbox
        self._model = model
        self._waiting: deque[_Text] = deque(maxlen=MOST)

    def note(self, text: str) -> None:
        """Something to know; it is not answered."""
        if text.strip():
            self._waiting.append(_Text(text))

    def request(self, text: str, request_id: str) -> None:
        """Something to answer, in its turn."""
        self._waiting.append(_Text(text, True, request_id))

    def say(self, text: str, request_id: str) -> None:
        """Something to answer now, before requests that wait; notes go along."""
        notes = self.take_notes()
        self._send(notes, _Text(text, True, request_id))

    def take_notes(self) -> list[str]:
        """The notes that wait, for who sends something anyway."""
        notes = [one.text for one in self._waiting if not one.answered]
        requests = [one for one in self._waiting if one.answered]
        self._waiting.clear()
        self._waiting.extend(requests)
        return notes

    def flush(self, *, requests: bool, notes: bool) -> None:
        """Send what may go. `requests`: one may, with the notes before it; the answer to it is owed
        then. `notes`: those may."""
        request = next((one for one in self._waiting if one.answered), None) if requests else None
        if request is not None:
            before: list[str] = []
            while (first := self._waiting.popleft()) is not request:
                before.append(first.text)
            self._send(before, request)
        elif notes and self._facts.content_any_time:
            self._send_notes(self.take_notes())

    def _send(self, notes: list[str], text: _Text) -> None:
        """A text that is answered, behind its notes."""
        said = text.text
        if self._facts.content_any_time:
            self._send_notes(notes)
        else:
            said = "\n\n".join([*notes, said])
        if self._facts.text_turns:
            turn = {"turns": [content("user", said)], "turnComplete": True}
            self._outbox.put("clientContent", turn)
        else:
            self._outbox.put_realtime("text", whole_text(said))
        self._model.ask(text.request_id)

    def _send_notes(self, notes: list[str]) -> None:
        if notes:
            turn = {"turns": [content("user", *notes)], "turnComplete": False}
            self._outbox.put("clientContent", turn)
