"""Whatever a client and a model do, the simulated OpenAI realtime wire keeps its order."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as some

from tests.simulators import tone_words
from tests.simulators.openai_realtime_answer import Answer, AnswerWanted
from tests.simulators.openai_realtime_examples import MODEL, response
from tests.simulators.openai_realtime_types import unknown_fields
from tests.simulators.openai_realtime_wire import RealtimeWire

Json = dict[str, Any]
RATE = 24_000
SPEECH = base64.b64encode(tone_words.speak("one", RATE).tobytes()).decode()
SILENCE = base64.b64encode(bytes(RATE)).decode()
ANSWERING = ("begin", "message", "say", "sound", "end", "call", "arguments", "finish")
ACTS = some.sampled_from(
    [
        *("speak", "quiet", "create", "aside", "cancel", "truncate", "delete", "commit", "clear"),
        *ANSWERING,
    ]
)


@settings(max_examples=40)
@given(acts=some.lists(ACTS, max_size=60))
def test_whatever_happens_events_keep_their_order(acts: list[str]) -> None:
    play = Play()
    for act in acts:
        play.act(act)
    for answer in play.answers:
        answer.finish()
    play.read()
    assert play.open == {}
    assert play.wire.active is None


class Play:
    """A client and a model that do anything at any time, and a judge of rules 2 and 4."""

    def __init__(self) -> None:
        self.wire = RealtimeWire(MODEL)
        self.answers: list[Answer] = []
        self.open: dict[str, list[str]] = {}
        """Items that are open in each running response."""
        self.items: set[str] = set()
        self.ended: set[str] = set()

    def act(self, act: str) -> None:
        if act not in ANSWERING:
            self.wire.receive(json.dumps(self.event(act)))
        elif self.answers:
            self.answer(self.answers[-1], act)
        self.read()

    def answer(self, answer: Answer, act: str) -> None:
        """Do what a model may: one item at a time, after the beginning."""
        answer.begin()
        self.read()
        busy = bool(self.open.get(answer.id))
        match act:
            case "message" if not busy:
                answer.message()
            case "say" if self.kind(answer) == "message":
                answer.say(" one")
            case "sound" if self.kind(answer) == "message":
                answer.sound(np.zeros(RATE // 10, np.int16))
            case "end" if self.kind(answer) == "message":
                answer.end_message()
            case "end" if busy:
                answer.end_call()
            case "call" if not busy:
                answer.call("f")
            case "arguments" if self.kind(answer) == "function_call":
                answer.arguments("{")
            case "finish":
                answer.finish()

    def kind(self, answer: Answer) -> str:
        """Of the item that is being made."""
        return answer.output[-1].type if self.open.get(answer.id) else ""

    def event(self, act: str) -> Json:
        item_id = max(self.items, default="none")
        return {
            "speak": {"type": "input_audio_buffer.append", "audio": SPEECH},
            "quiet": {"type": "input_audio_buffer.append", "audio": SILENCE},
            "create": {"type": "response.create"},
            "aside": response(conversation="none", metadata={"a": "b"}),
            "cancel": {"type": "response.cancel"},
            "truncate": {
                "type": "conversation.item.truncate",
                "item_id": item_id,
                "content_index": 0,
                "audio_end_ms": 50,
            },
            "delete": {"type": "conversation.item.delete", "item_id": item_id},
            "commit": {"type": "input_audio_buffer.commit"},
            "clear": {"type": "input_audio_buffer.clear"},
        }[act]

    def read(self) -> None:
        """Judge what came."""
        for entry in self.wire.take():
            if isinstance(entry, AnswerWanted):
                self.answers.append(entry.answer)
            elif isinstance(entry, dict):
                assert unknown_fields(entry) == []
                self.judge(entry)

    def judge(self, event: Any) -> None:
        kind = event["type"]
        response_id = event.get("response_id") or event.get("response", {}).get("id")
        if kind == "response.created":
            assert response_id not in self.open and response_id not in self.ended
            self.open[response_id] = []
        elif kind == "response.done":
            assert self.open.pop(response_id) == [], "all items are closed first"
            self.ended.add(response_id)
        elif response_id:
            assert response_id in self.open, f"{kind} outside of its response"
            if kind == "response.output_item.added":
                self.open[response_id].append(event["item"]["id"])
            elif kind == "response.output_item.done":
                self.open[response_id].remove(event["item"]["id"])
        elif kind == "conversation.item.added":
            self.items.add(event["item"]["id"])
