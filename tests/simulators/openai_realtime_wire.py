"""The server half of the OpenAI Realtime API (GA) over a WebSocket: events in, events out, no I/O.

`receive` takes a client's frame, `take` gives what goes out: server events (dicts) to send, and
signals to whoever plays the model, in one order. The host sends and acts in that order:

- TurnTaken: read the sound, and if words are wanted say `transcribe` or `transcription_failed`.
- AnswerWanted: `answer.begin()`, `message`, `say`, `sound`, `end_message`, `call`, `arguments`,
  `end_call`, …, `answer.finish()`, now or over time, then send what `take` gives. AnswerStopped:
  the answer was cancelled.

What a client may send at this moment is judged here and in the files beside this one, as
protocols/openai-realtime sections 3 to 6 tell. No clock: time is the audio that came. Nothing here
knows where answers come from.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

from tests.simulators.openai_realtime_answer import (
    Answer,
    AnswerWanted,
    Cause,
    EventTaken,
    ItemTaken,
    Outbox,
    Refusal,
    Signal,
    SpeechChanged,
    Step,
    TurnTaken,
)
from tests.simulators.openai_realtime_checks import (
    Json,
    Refused,
    part,
    parts,
    whole,
    word,
)
from tests.simulators.openai_realtime_config import Config
from tests.simulators.openai_realtime_events import parse
from tests.simulators.openai_realtime_items import Conversation, Item
from tests.simulators.openai_realtime_vad import (
    LEAST_COMMIT_MS,
    Heard,
    InputBuffer,
    Sound,
    decode,
)

TRANSCRIPTION = "conversation.item.input_audio_transcription"
EXPIRED = "Your session hit the maximum duration of 60 minutes."


class RealtimeWire:
    """One session. `number` tells its ids from those of other sessions; `expires_at` (seconds of
    the epoch) is only told; `total_tokens` counts the context after an answer."""

    def __init__(
        self,
        model: str,
        *,
        number: int = 1,
        silence_ms: int = 500,
        expires_at: int = 0,
        total_tokens: Callable[[Answer], int] = lambda answer: 250,
    ) -> None:
        self.config = Config(model, silence_ms)
        self.buffer = InputBuffer()
        self.outbox = Outbox(number)
        self.conversation = Conversation(self.outbox.new_id)
        self._expires_at = expires_at
        self._total_tokens = total_tokens
        self._answers: dict[str, Answer] = {}
        """Those that are not over; at most one of them is in the conversation."""
        self._speech_item = ""
        """The id that the turn being spoken will have."""
        self._idle_from_ms: float | None = None
        """When the model's last answer was played, on the caller's clock."""

    def begin(self) -> None:
        """The socket is open."""
        self.outbox.event("session.created", session=self._session())
        conversation: Json = {"id": f"conv_s{self.outbox.seed}", "object": "realtime.conversation"}
        self.outbox.event("conversation.created", conversation=conversation)

    def take(self) -> list[Json | Signal]:
        """What goes out now, oldest first; each is given once."""
        return self.outbox.take()

    def receive(self, frame: str | bytes) -> None:
        """A message of the client. Whatever is wrong with it is told to the client, and by a
        Refusal to the host; it then had no effect."""
        event_id: str | None = None
        try:
            event = parse(frame)
            event_id = word(event.get("event_id")) or None
            self.outbox.signal(EventTaken(event))
            self._act(event)
        except Refused as refused:
            refused.event_id = refused.event_id or event_id
            self._refuse(refused)

    @property
    def active(self) -> Answer | None:
        """The answer that runs in the conversation."""
        return next((one for one in self._answers.values() if not one.out_of_band), None)

    def transcribe(self, item: Item, text: str, pieces: list[str] | None = None) -> None:
        """The words of a user's turn, streamed in `pieces`. Any time after TurnTaken."""
        at: Json = {"item_id": item.id, "content_index": 0}
        for piece in pieces if pieces is not None else [text]:
            self.outbox.event(f"{TRANSCRIPTION}.delta", **at, delta=piece)
        item.set_transcript(text)
        audio, words = item.audio_ms // 100, len(text.split())
        usage: Json = {
            "type": "tokens",
            "total_tokens": audio + words,
            "input_tokens": audio,
            "output_tokens": words,
            "input_token_details": {"text_tokens": 0, "audio_tokens": audio},
        }
        self.outbox.event(f"{TRANSCRIPTION}.completed", **at, transcript=text, usage=usage)

    def transcription_failed(self, item: Item, code: str, message: str) -> None:
        """There will be no words of this turn."""
        error: Json = {"type": "transcription_error", "code": code, "message": message}
        at: Json = {"item_id": item.id, "content_index": 0}
        self.outbox.event(f"{TRANSCRIPTION}.failed", **at, error=error | {"param": None})

    def error(self, code: str, message: str, kind: str = "invalid_request_error") -> Json:
        """An error event of the server's own, not queued. The session goes on unless the host
        closes it."""
        error: Json = {"type": kind, "code": code, "message": message}
        return self.outbox.make("error", error=error | {"param": None, "event_id": None})

    def _session(self) -> Json:
        told: Json = {"id": f"sess_s{self.outbox.seed}", "object": "realtime.session"}
        return {**self.config.session, **told, "expires_at": self._expires_at}

    def _refuse(self, refused: Refused) -> None:
        error: Json = {
            "type": "invalid_request_error",
            "code": refused.code,
            "message": refused.message,
            "param": refused.param,
            "event_id": refused.event_id,
        }
        self.outbox.event("error", error=error)
        self.outbox.signal(Refusal(refused.code, refused.message, self._race(refused.code)))

    def _race(self, code: str) -> bool:
        """The server moved on by itself while the event was on its way."""
        match code:
            case "response_cancel_not_active":
                return True
            case "input_audio_buffer_commit_empty":
                return self.config.detection is not None
            case "conversation_already_has_active_response":
                return self.active is not None and self.active.cause != "create"
            case _:
                return False

    def _act(self, event: Json) -> None:
        """Let an event of good form have its effect. Raises Refused."""
        match event["type"]:
            case "session.update":
                self._update(part(event, "session"))
            case "input_audio_buffer.append":
                self._append(base64.b64decode(word(event.get("audio"))))
            case "input_audio_buffer.commit":
                self._commit_by_hand()
            case "input_audio_buffer.clear":
                self._clear()
            case "response.create":
                self._create(part(event, "response"))
            case "response.cancel":
                self._cancel(word(event.get("response_id")))
            case "output_audio_buffer.clear":
                text = "'output_audio_buffer.clear' is only supported for WebRTC and SIP."
                raise Refused("invalid_event", text, "type")
            case _:
                self._act_on_items(event)

    def _act_on_items(self, event: Json) -> None:
        item_id = word(event.get("item_id"))
        match event["type"]:
            case "conversation.item.create":
                self._create_item(event)
            case "conversation.item.retrieve":
                item = self.conversation.retrieve(item_id)
                self.outbox.event("conversation.item.retrieved", item=item)
            case "conversation.item.truncate":
                index, end_ms = whole(event.get("content_index")), whole(event.get("audio_end_ms"))
                self.conversation.truncate(item_id, index, end_ms)
                at: Json = {"item_id": item_id, "content_index": index}
                self.outbox.event("conversation.item.truncated", **at, audio_end_ms=end_ms)
            case _:
                self.conversation.delete(item_id)
                self.outbox.event("conversation.item.deleted", item_id=item_id)

    def _update(self, change: Json) -> None:
        self.config.update(change, busy=self.active is not None)
        self.buffer.set_format(self.config.input_type)
        self.outbox.event("session.updated", session=self._session())

    def _append(self, data: bytes) -> None:
        detection = self.config.detection
        if detection is not None and detection["type"] == "semantic_vad":
            detection = {**detection, "silence_duration_ms": self.config.silence_ms}
        samples = decode(data, self.config.input_type)
        for heard in self.buffer.append(samples, detection):
            self._hear(heard, detection or {})

    def _hear(self, heard: Heard, detection: Json) -> None:
        match heard.kind:
            case "started":
                self._idle_from_ms = None
                self._speech_item = self.outbox.new_id("item")
                at: Json = {"audio_start_ms": heard.at_ms, "item_id": self._speech_item}
                self.outbox.event("input_audio_buffer.speech_started", **at)
                self.outbox.signal(SpeechChanged(True))
                if detection.get("interrupt_response") and self.active is not None:
                    self.active.cancel("turn_detected")
            case "stopped":
                at = {"audio_end_ms": heard.at_ms, "item_id": self._speech_item}
                self.outbox.event("input_audio_buffer.speech_stopped", **at)
                self.outbox.signal(SpeechChanged(False))
                self._commit(self.buffer.take(all=False))
                if detection.get("create_response"):
                    self._answer_turn("turn")
            case "step":
                self.outbox.signal(Step(heard.loud))
                self._idle(heard.at_ms, whole(detection.get("idle_timeout_ms")))

    def _idle(self, now_ms: int, timeout_ms: int) -> None:
        """Nobody has said anything since the last answer: rule 8 of section 6."""
        start = self._idle_from_ms
        if not timeout_ms or start is None or self.active is not None or self.buffer.speaking:
            return
        if now_ms - start < timeout_ms:
            return
        self._idle_from_ms = None
        self._speech_item = self.outbox.new_id("item")
        at: Json = {"audio_start_ms": round(start), "audio_end_ms": now_ms}
        item_id = self._speech_item
        self.outbox.event("input_audio_buffer.timeout_triggered", **at, item_id=item_id)
        self._commit(self.buffer.take(all=False))
        self._answer_turn("idle")

    def _answer_turn(self, cause: Cause) -> None:
        """Answer a turn without being asked; this may fail where speech does not interrupt."""
        if self.active is None:
            self._want(cause, {}, None)
        else:
            code = "conversation_already_has_active_response"
            text = f"Conversation already has an active response: {self.active.id}."
            self.outbox.put(self.error(code, text))

    def _commit_by_hand(self) -> None:
        kept_ms = self.buffer.kept_ms
        if kept_ms < LEAST_COMMIT_MS:
            text = (
                "Error committing input audio buffer: buffer too small. Expected at least "
                f"{LEAST_COMMIT_MS}ms of audio, but buffer only has {kept_ms:.2f}ms of audio."
            )
            raise Refused("input_audio_buffer_commit_empty", text)
        if not self.buffer.speaking or not self._speech_item:
            self._speech_item = self.outbox.new_id("item")
        self._commit(self.buffer.take())

    def _clear(self) -> None:
        self.buffer.clear()
        self._speech_item = ""
        self.outbox.event("input_audio_buffer.cleared")

    def _commit(self, sound: Sound) -> None:
        """Sound becomes the user's item, under the id that was told."""
        wire: Json = {
            "id": self._speech_item,
            "object": "realtime.item",
            "type": "message",
            "status": "completed",
            "role": "user",
            "content": [{"type": "input_audio", "transcript": None}],
        }
        item = Item(wire, [sound.samples], self.config.input_type)
        self._speech_item = ""
        before = self.conversation.last_id
        committed: Json = {"previous_item_id": before, "item_id": item.id}
        self.outbox.event("input_audio_buffer.committed", **committed)
        self.conversation.add(item)
        self._announce(item, before)
        self.outbox.signal(TurnTaken(item, sound, self.config.transcribes))

    def _create_item(self, event: Json) -> None:
        previous = word(event.get("previous_item_id")) or None
        given = part(event, "item")
        item = self.conversation.create(given, previous, self.config.input_type)
        self._announce(item, self.conversation.before(item))
        self.outbox.signal(ItemTaken(item))

    def _announce(self, item: Item, before: str | None) -> None:
        for what in ("added", "done"):
            self.outbox.event(
                f"conversation.item.{what}", previous_item_id=before, item=item.shown()
            )

    def _create(self, params: Json) -> None:
        self.config.check(params, "response")
        active = self.active
        if params.get("conversation") != "none" and active is not None:
            text = (
                f"Conversation already has an active response in progress: {active.id}. "
                "Wait until the response is finished before creating a new one."
            )
            raise Refused("conversation_already_has_active_response", text)
        own = [self._context(one) for one in parts(params["input"])] if "input" in params else None
        self._want("create", params, own)

    def _context(self, given: Json) -> Item:
        """An item of a response's own context."""
        if given["type"] != "item_reference":
            return self.conversation.build(given, self.config.input_type)
        found = self.conversation.find(word(given.get("id")))
        if found is None:
            text = f"Item with id '{given.get('id')}' not found."
            raise Refused("invalid_value", text, "response.input")
        return found

    def _cancel(self, response_id: str) -> None:
        found = self._answers.get(response_id) if response_id else self.active
        if found is None:
            text = "Cancellation failed: no active response found"
            raise Refused("response_cancel_not_active", text)
        found.cancel("client_cancelled")

    def _want(self, cause: Cause, params: Json, own: list[Item] | None) -> None:
        self._idle_from_ms = None
        answer = Answer(
            self.outbox,
            self.config,
            self.conversation,
            cause=cause,
            params=params,
            input=own,
            on_over=self._over,
        )
        self._answers[answer.id] = answer
        self.outbox.signal(AnswerWanted(answer))

    def _over(self, answer: Answer) -> Json:
        """An answer ended; what it used."""
        del self._answers[answer.id]
        if not answer.out_of_band:
            self._idle_from_ms = self.buffer.now_ms + answer.audio_ms
        return answer.usage(self._total_tokens(answer))
