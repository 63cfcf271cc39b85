"""The user's half of an OpenAI Realtime connection: sound out, turns and their words in.

Owned by the codec. Places in time are milliseconds of the sound that was sent, which is how the
provider counts too. Where our side ends turns it knows what was not committed yet; where the
provider does, a commit of ours may find that the turn is already taken.
Source: protocols/openai-realtime 4, 6.2, 9.5.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..events import RealtimeEvent, UserSpeech, UserTurn, Words
from .openai_frames import BYTES_PER_MS, Outbox, ms
from .reading import Json, text, whole

SHORTEST_MS = 100
"""The provider refuses to commit less."""
LEAD_MS = 500
"""Sound before our onset that belongs to the turn."""
QUIET_MS = 1_000
"""More than this before our onset is not worth sending again to the model."""


class Hearing:
    """What was sent and taken. `written`: the provider writes down what the user says."""

    def __init__(self, outbox: Outbox, written: bool) -> None:
        self._outbox = outbox
        self._written = written
        self._sent = 0
        self._open = 0
        self._recent = b""
        self._starts: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._silent: set[str] = set()
        self._commits: dict[str, int] = {}
        self._final: set[str] = set()

    def hear(self, pcm: bytes) -> None:
        """Send sound on."""
        self._sent += len(pcm)
        self._open += len(pcm)
        self._recent = (self._recent + pcm)[-LEAD_MS * BYTES_PER_MS :]
        self._outbox.put_audio(pcm)

    def onset(self) -> None:
        """Our side hears the user begin: what was sent before the lead is not part of the turn."""
        if ms(self._open) > QUIET_MS:
            self._outbox.put("input_audio_buffer.clear")
            self._outbox.put_audio(self._recent)
            self._open = len(self._recent)

    def commit(self, *, manual: bool) -> bool:
        """End the user's turn. False: there is nothing in it, as far as this side can know."""
        if manual and ms(self._open) < SHORTEST_MS:
            return False
        self._open = 0
        event_id = self._outbox.new_id()
        self._commits[event_id] = ms(self._sent)
        self._outbox.put("input_audio_buffer.commit", event_id)
        return True

    def nothing_to_commit(self, event_id: str) -> None:
        """The provider has already taken what we wanted to commit."""
        self._commits.pop(event_id, None)

    def speech(self, frame: Json, *, started: bool) -> list[RealtimeEvent]:
        """`speech_started`, `speech_stopped`."""
        item_id = text(frame, "item_id")
        at_ms = whole(frame, "audio_start_ms" if started else "audio_end_ms")
        if at_ms is not None:
            (self._starts if started else self._ends)[item_id] = at_ms
        return [UserSpeech("started" if started else "stopped", item_id, at_ms)]

    def timeout(self, frame: Json) -> None:
        """`timeout_triggered`: a turn of silence will be committed."""
        item_id = text(frame, "item_id")
        self._starts[item_id] = whole(frame, "audio_start_ms") or 0
        self._ends[item_id] = whole(frame, "audio_end_ms") or 0
        self._silent.add(item_id)

    def committed(self, frame: Json) -> tuple[bool, list[RealtimeEvent]]:
        """`committed`: whether our side asked for it, and the turn."""
        item_id = text(frame, "item_id")
        ours = item_id not in self._ends and bool(self._commits)
        if ours:
            first = next(iter(self._commits))
            self._ends[item_id] = self._commits.pop(first)
        start, end = self._starts.get(item_id), self._ends.get(item_id)
        events: list[RealtimeEvent] = [UserTurn(item_id, start, end)]
        if item_id in self._silent:
            events.extend(self._last_words(item_id, ""))
        elif not self._written:
            events.extend(self._last_words(item_id, "", failed=True))
        return ours, events

    def words(self, kind: str, frame: Json) -> list[RealtimeEvent]:
        """`conversation.item.input_audio_transcription.*`, `kind` being its last part."""
        item_id = text(frame, "item_id")
        if kind == "delta":
            delta = text(frame, "delta")
            late = item_id in self._final or not delta
            return [] if late else [Words("user", item_id, delta)]
        if kind == "completed":
            return list(self._last_words(item_id, text(frame, "transcript").strip()))
        return list(self._last_words(item_id, "", failed=True))

    def _last_words(self, item_id: str, said: str, *, failed: bool = False) -> Iterator[Words]:
        start, end = self._starts.get(item_id), self._ends.get(item_id)
        if item_id not in self._final:
            self._final.add(item_id)
            yield Words(
                "user", item_id, said, final=True, start_ms=start, end_ms=end, failed=failed
            )
