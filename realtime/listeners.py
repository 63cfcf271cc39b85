"""Who hears a session: typed listeners, and the seeds' `on(name, callback)` over them.

A listener that raises is logged and left in place: it never touches the call. Owned by a session.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from ..core.cancel import Unsubscribe
from ..core.errors import UsageError
from ..media.format import AudioFormat
from .events import Audio, Resumable, Role, Used, Words
from .link import Reconnected
from .session_events import OutputStopped, SessionEvent, SessionProblem, StateChanged

log = logging.getLogger(__name__)

EventName = Literal[
    "audio", "interrupted", "transcript", "state", "resumable", "reconnected", "usage", "problem"
]
EVENT_NAMES: tuple[EventName, ...] = get_args(EventName)
Listener = Callable[[SessionEvent], None]


@dataclass(frozen=True, slots=True)
class Transcript:
    """Words of one side, as `on("transcript")` tells them. Not final: they go behind what came
    before of this item; final: all of it. Times in ms of the caller's sound, where the provider
    tells them; those of both sides may overlap."""

    role: Role
    text: str
    final: bool
    item_id: str
    start_ms: int | None = None
    end_ms: int | None = None


class Listeners:
    """All listeners of one session. `audio` is told with the format of the sound."""

    def __init__(self, audio: AudioFormat) -> None:
        self._audio = audio
        self._all: list[Listener] = []

    def add(self, listener: Listener) -> Unsubscribe:
        """Hear every event from now on; returns the way out."""
        self._all.append(listener)
        return lambda: self._all.remove(listener) if listener in self._all else None

    def on(self, name: EventName, callback: Callable[..., None]) -> Unsubscribe:
        """Hear one kind of event by the seeds' name. Raises UsageError for an unknown name."""
        if name not in EVENT_NAMES:
            raise UsageError(f"on: {name!r} is none of {', '.join(EVENT_NAMES)}")

        def listener(event: SessionEvent) -> None:
            arguments = self._arguments(name, event)
            if arguments is not None:
                callback(*arguments)

        return self.add(listener)

    def notify(self, event: SessionEvent) -> None:
        """Tell everybody, in order of their coming."""
        for listener in list(self._all):
            try:
                listener(event)
            except Exception:
                log.exception("a listener of the session failed")

    def _arguments(self, name: EventName, event: SessionEvent) -> tuple[object, ...] | None:
        match name, event:
            case "audio", Audio(pcm=pcm):
                return pcm, self._audio
            case "interrupted", OutputStopped():
                return ()
            case "transcript", Words(role, item_id, text, final, start_ms, end_ms):
                return (Transcript(role, text, final, item_id, start_ms, end_ms),)
            case "state", StateChanged(state):
                return (state,)
            case "resumable", Resumable(handle):
                return (handle,)
            case ("reconnected", Reconnected()) | ("usage", Used()) | ("problem", SessionProblem()):
                return (event,)
            case _:
                return None
