"""One response of an OpenAI realtime session, and the box that its events go into.

Pure. Whoever plays the model is given an `Answer` and says in plain words what comes next: a
message, its sound, a call, the end. Every event, and their order (protocols/openai-realtime
section 6, rules 4 to 6), is made here. After the end, also after a cancellation, nothing more is
sent: all methods then do nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tests.simulators.openai_realtime_checks import Json, part, word
from tests.simulators.openai_realtime_config import Config
from tests.simulators.openai_realtime_items import Conversation, Item
from tests.simulators.openai_realtime_vad import Sound, encode
from voxglove.media.pcm import Samples

Cause = Literal["turn", "create", "idle"]
Status = Literal["completed", "cancelled", "incomplete", "failed"]
AUDIO_TOKEN_MS = 50
"""Of the model's speech (protocols/openai-realtime section 7)."""
LIMITS: list[Json] = [
    {"name": "tokens", "limit": 40_000, "remaining": 39_700, "reset_seconds": 0.4}
]


@dataclass(frozen=True, slots=True)
class EventTaken:
    """A client event of good form came; its effects follow."""

    event: Json


@dataclass(frozen=True, slots=True)
class Refusal:
    """A client event was refused. `race`: the client could not know better, for the server had
    moved on while the event was on its way."""

    code: str
    message: str
    race: bool


@dataclass(frozen=True, slots=True)
class Step:
    """Another 100 ms of the caller's sound; `loud` tells of its end."""

    loud: bool


@dataclass(frozen=True, slots=True)
class SpeechChanged:
    """The detector heard the user begin or stop."""

    speaking: bool


@dataclass(frozen=True, slots=True)
class TurnTaken:
    """The user's sound is in the conversation. `transcribe`: its words are wanted."""

    item: Item
    sound: Sound
    transcribe: bool


@dataclass(frozen=True, slots=True)
class ItemTaken:
    """An item of the client is in the conversation."""

    item: Item


@dataclass(frozen=True, slots=True)
class AnswerWanted:
    """The model is to answer: call `answer.begin()`, fill it, `answer.finish()`."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class AnswerStopped:
    """The answer was cancelled; it is over."""

    answer: Answer


Signal = (
    EventTaken
    | Refusal
    | Step
    | SpeechChanged
    | TurnTaken
    | ItemTaken
    | AnswerWanted
    | AnswerStopped
)


class Outbox:
    """Server events and signals to the host, in the one order that holds for both; and ids.

    `seed` keeps the ids of two connections apart.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._entries: list[Json | Signal] = []
        self._counts: dict[str, int] = {}

    def event(self, kind: str, **values: object) -> None:
        """Queue a server event."""
        self.put(self.make(kind, **values))

    def put(self, event: Json) -> None:
        """Queue an event that was made."""
        self._entries.append(event)

    def make(self, kind: str, **values: object) -> Json:
        """A server event, for a host that sends it out of turn."""
        return {"type": kind, "event_id": self.new_id("event"), **values}

    def signal(self, signal: Signal) -> None:
        """Queue what the host must know."""
        self._entries.append(signal)

    def take(self) -> list[Json | Signal]:
        """All that waits; each is given once."""
        entries, self._entries = self._entries, []
        return entries

    def new_id(self, kind: str) -> str:
        """`item_s1n4`: unlike any other of this kind."""
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return f"{kind}_s{self.seed}n{self._counts[kind]}"


class Answer:
    """A response. `input` is its own context, None for the conversation's."""

    def __init__(
        self,
        outbox: Outbox,
        config: Config,
        conversation: Conversation,
        *,
        cause: Cause,
        params: Json,
        input: list[Item] | None,
        on_over: Callable[[Answer], Json],
    ) -> None:
        self.id = outbox.new_id("resp")
        self.cause = cause
        self.params = params
        self.input = input
        self.state: Literal["wanted", "running", "over"] = "wanted"
        self.output: list[Item] = []
        self._open: Item | None = None
        """The item that is being made: the last of the output."""
        self._outbox = outbox
        self._config = config
        self._conversation = conversation
        self._on_over = on_over

    @property
    def over(self) -> bool:
        return self.state == "over"

    @property
    def out_of_band(self) -> bool:
        """Its output is no part of the conversation (protocols/openai-realtime section 4.1)."""
        return self.params.get("conversation") == "none"

    @property
    def text_only(self) -> bool:
        return self._setting("output_modalities") == ["text"]

    @property
    def instructions(self) -> str:
        """Its own, else the session's."""
        return word(self._setting("instructions"))

    @property
    def audio_ms(self) -> int:
        """Speech that went out."""
        return sum(item.audio_ms for item in self.output)

    def begin(self) -> None:
        """The model works: `response.created`."""
        if self.state == "wanted":
            self.state = "running"
            self._outbox.event("response.created", response=self._response("in_progress"))
            self._outbox.event("rate_limits.updated", rate_limits=LIMITS)

    def message(self) -> str:
        """Begin to speak, or to write; the item's id."""
        if self.over:
            return ""
        item = self._add({"type": "message", "role": "assistant", "content": []})
        kind = "text" if self.text_only else "audio"
        words = "text" if self.text_only else "transcript"
        item.wire["content"] = [{"type": f"output_{kind}", words: ""}]
        self._part("response.content_part.added", part={"type": kind, words: ""})
        return item.id

    def say(self, delta: str) -> None:
        """More words of the message: written, or the transcript of its sound."""
        if self._open is None:
            return
        content = self._open.content[0]
        if self.text_only:
            content["text"] = word(content.get("text")) + delta
            self._part("response.output_text.delta", delta=delta)
        else:
            if self._open.cut_ms is None:
                content["transcript"] = word(content.get("transcript")) + delta
            self._part("response.output_audio_transcript.delta", delta=delta)

    def sound(self, samples: Samples) -> None:
        """More of its sound, mono at the output format's rate."""
        if self._open is None:
            return
        self._config.spoke = True
        self._open.add_sound(samples)
        delta = base64.b64encode(encode(samples, self.format)).decode()
        self._part("response.output_audio.delta", delta=delta)

    @property
    def format(self) -> str:
        """Of its sound: a key of SAMPLE_RATES."""
        own = part(self.params, "audio", "output", "format")
        session = part(self._config.session, "audio", "output", "format")
        return word((own or session).get("type"))

    def end_message(self, status: str = "completed") -> None:
        """No more of this message."""
        if self._open is None:
            return
        content = self._open.content[0]
        if self.text_only:
            text = word(content.get("text"))
            self._part("response.output_text.done", text=text)
            done: Json = {"type": "text", "text": text}
        else:
            words = word(content.get("transcript"))
            self._part("response.output_audio.done")
            self._part("response.output_audio_transcript.done", transcript=words)
            done = {"type": "audio", "transcript": words}
        self._part("response.content_part.done", part=done)
        self._end(status)

    def call(self, name: str, call_id: str = "") -> str:
        """Begin a function call; its call id."""
        if self.over:
            return ""
        call_id = call_id or self._outbox.new_id("call")
        self._add({"type": "function_call", "name": name, "call_id": call_id, "arguments": ""})
        return call_id

    def arguments(self, delta: str) -> None:
        """More of the call's arguments: JSON, in pieces."""
        if self._open is not None:
            self._open.wire["arguments"] = word(self._open.wire["arguments"]) + delta
            self._about_call("delta", delta=delta)

    def end_call(self, status: str = "completed") -> None:
        """The call is whole; or it is not, and must not be run."""
        if self._open is not None:
            wire = self._open.wire
            self._about_call("done", name=wire["name"], arguments=wire["arguments"])
            self._end(status)

    def finish(
        self, status: Status = "completed", reason: str = "", error: Json | None = None
    ) -> None:
        """The end, with everything closed that is open: `response.done`, exactly once."""
        if self.over:
            return
        self.begin()
        if self._open is not None:
            end = self.end_call if self._open.type == "function_call" else self.end_message
            end("completed" if status == "completed" else "incomplete")
        self.state = "over"
        details: Json | None = None
        if status != "completed":
            details = {"type": status} | ({"reason": reason} if reason else {})
            details |= {"error": error} if error else {}
        usage = self._on_over(self)
        done = self._response(status, details=details, usage=usage)
        self._outbox.event("response.done", response=done)

    def cancel(self, reason: str) -> None:
        """The user or the client ends it."""
        if not self.over:
            self.finish("cancelled", reason)
            self._outbox.signal(AnswerStopped(self))

    def usage(self, total: int) -> Json:
        """What it cost, for a context of `total` tokens after it."""
        audio = self.audio_ms // AUDIO_TOKEN_MS
        text = sum(len(item.text.split()) for item in self.output)
        taken = max(1, total - audio - text)
        cached: Json = {"text_tokens": 0, "audio_tokens": 0, "image_tokens": 0}
        return {
            "total_tokens": taken + audio + text,
            "input_tokens": taken,
            "output_tokens": audio + text,
            "input_token_details": {
                "text_tokens": taken,
                "audio_tokens": 0,
                "image_tokens": 0,
                "cached_tokens": 0,
                "cached_tokens_details": cached,
            },
            "output_token_details": {"text_tokens": text, "audio_tokens": audio},
        }

    def _setting(self, name: str) -> object:
        return self.params.get(name, self._config.session.get(name))

    def _add(self, wire: Json) -> Item:
        """A new item of the output, announced."""
        item_id = self._outbox.new_id("item")
        head: Json = {"id": item_id, "object": "realtime.item", "status": "in_progress"}
        item = self._open = Item(head | wire, format=self.format)
        self.output.append(item)
        at = {"response_id": self.id, "output_index": len(self.output) - 1}
        self._outbox.event("response.output_item.added", **at, item=item.shown())
        if not self.out_of_band:
            before = self._conversation.add(item)
            self._outbox.event(
                "conversation.item.added", previous_item_id=before, item=item.shown()
            )
        return item

    def _end(self, status: str) -> None:
        """The open item is done."""
        item, self._open = self._open, None
        if item is None:
            return
        item.wire["status"] = status
        at = {"response_id": self.id, "output_index": len(self.output) - 1}
        self._outbox.event("response.output_item.done", **at, item=item.shown())
        if not self.out_of_band:
            before = self._conversation.before(item)
            self._outbox.event("conversation.item.done", previous_item_id=before, item=item.shown())

    def _part(self, kind: str, **values: object) -> None:
        """An event of the open message's only content part."""
        item_id = self._open.id if self._open is not None else ""
        at = {"response_id": self.id, "item_id": item_id, "output_index": len(self.output) - 1}
        self._outbox.event(kind, **at, content_index=0, **values)

    def _about_call(self, what: str, **values: object) -> None:
        """An event of the open call."""
        if self._open is None:
            return
        at: Json = {"item_id": self._open.id, "call_id": self._open.wire["call_id"]}
        at |= {"response_id": self.id, "output_index": len(self.output) - 1}
        self._outbox.event(f"response.function_call_arguments.{what}", **at, **values)

    def _response(
        self, status: str, *, details: Json | None = None, usage: Json | None = None
    ) -> Json:
        said = part(self._config.session, "audio", "output")
        own = part(self.params, "audio", "output")
        voice = own.get("voice", said.get("voice"))
        sound = {
            "format": own.get("format", said.get("format")),
            "voice": part(voice).get("id", voice),
        }
        conversation = None if self.out_of_band else f"conv_s{self._outbox.seed}"
        return {
            "id": self.id,
            "object": "realtime.response",
            "status": status,
            "status_details": details,
            "output": [item.shown() for item in self.output] if usage else [],
            "conversation_id": conversation,
            "output_modalities": self._setting("output_modalities"),
            "max_output_tokens": self._setting("max_output_tokens"),
            "audio": None if self.text_only else {"output": sound},
            "usage": usage,
            "metadata": self.params.get("metadata"),
        }
