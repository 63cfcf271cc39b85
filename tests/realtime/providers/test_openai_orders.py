"""OpenAI Realtime's codec in random orders of commands and frames, against a provider that refuses
what the real one would."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.realtime.providers.openai_make import SECOND, Wire, assert_sdk_takes
from voxglove.realtime.commands import (
    AppendContext,
    CommitTurn,
    CutOutput,
    ForgetBefore,
    ProviderCommand,
    RequestResponse,
    SendAudio,
    SendText,
    SendToolResults,
    SendVideoFrame,
    SpeechBoundary,
    Summarise,
    ToolOutput,
    UpdateAgent,
)
from voxglove.realtime.events import (
    Closed,
    Interrupted,
    ItemDone,
    ResponseDone,
    ResponseStarted,
    ToolCalls,
)
from voxglove.realtime.port import Setup

COMMANDS: tuple[ProviderCommand, ...] = (
    SendText("t"),
    SendText("t", respond=False),
    SendText("t", request_id="a"),
    RequestResponse("i", "b"),
    RequestResponse("v", verbatim=True),
    RequestResponse(),
    SendToolResults((ToolOutput("call_1", "a", "x"), ToolOutput("call_9", "a", "x"))),
    SendToolResults((ToolOutput("call_2", "a", "x"),), respond=False),
    CutOutput({"item_1": 500, "item_2": 0}),
    CutOutput({"item_1": 10}, cancel=False),
    AppendContext("c", "k"),
    SendAudio(bytes(9_600)),
    CommitTurn(),
    SpeechBoundary(speaking=True),
    Summarise("s", "x"),
    ForgetBefore("sum"),
    SendVideoFrame(b"j"),
    UpdateAgent(instructions="new"),
)
STEPS = st.lists(
    st.one_of(
        st.sampled_from(COMMANDS),
        st.sampled_from(("begin", "speak", "call", "end", "turn", "race", "junk", "voice")),
    ),
    min_size=8,
    max_size=50,
)


class Provider:
    """The provider as strict as it is: it begins what was asked for, and notes what it would
    refuse."""

    def __init__(self, manual: bool) -> None:
        self.wire = Wire(Setup(instructions="", manual_turns=manual))
        self.manual = manual
        self.asked: list[dict[str, object]] = []
        self.active = ""
        self.verbatim: list[str] = []
        self.summaries: list[str] = []
        self.owed = False
        self.calls: set[object] = set()
        self.count = 0

    def read(self) -> None:
        """Take what the client sent, and hold it to the rules."""
        for frame in self.wire.sent:
            assert_sdk_takes(json.dumps(frame))
            item = frame.get("item")
            if isinstance(item, dict) and item["type"] == "function_call_output":
                assert item["call_id"] in self.calls
                self.calls.remove(item["call_id"])
            if frame["type"] == "response.create":
                body = frame["response"]
                assert isinstance(body, dict)
                aside = "purpose" in body["metadata"]
                spoken = [one for one in self.asked if "purpose" not in one]
                assert aside or not (self.active or self.verbatim or spoken or self.owed), frame
                self.asked.append(
                    {**body["metadata"], "none": body.get("conversation"), "tag": frame["event_id"]}
                )
        self.wire.sent.clear()

    def begin(self) -> None:
        """Begin a response: the one a taken turn is owed, else one that was asked for."""
        if self.owed and not self.active:
            self.owed = False
            self._create({}, None)
        elif self.asked:
            one = self.asked.pop(0)
            self._create(one, one["none"])

    def _create(self, asked: dict[str, object], none: object) -> None:
        self.count += 1
        name = f"resp_{self.count}"
        metadata = {key: asked[key] for key in ("request", "purpose") if key in asked}
        self.wire.server("response.created", response={"id": name, "metadata": metadata})
        if none is None:
            self.active = name
        else:
            (self.summaries if "purpose" in metadata else self.verbatim).append(name)

    def step(self, name: str) -> None:
        """One thing that the provider may do now; nothing where it would be wrong."""
        running = self.active or next(iter(self.verbatim + self.summaries), "")
        match name:
            case "begin":
                self.begin()
            case "turn" if not self.manual and not self.active and not self.asked:
                self.turn()
            case "race" if self.asked and not self.active and not self.owed:
                self.race()
            case "voice":
                self.wire.server("input_audio_buffer.speech_started", item_id="u")
            case "junk":
                self.junk()
            case _ if running:
                self.go_on(name, running)

    def go_on(self, name: str, running: str) -> None:
        """With the response that runs."""
        match name:
            case "speak":
                self.wire.speak(running, f"item_{self.count}", SECOND, done=self.count % 2 == 0)
            case "call" if self.active:
                self.count += 1
                call = {"type": "function_call", "id": f"f{self.count}", "name": "a"}
                done = {**call, "call_id": f"call_{self.count}", "status": "completed"}
                self.wire.server("response.output_item.done", response_id=self.active, item=done)
            case "end":
                if self.active:
                    self.active = ""
                else:
                    (self.verbatim or self.summaries).pop(0)
                self.wire.done(running)

    def turn(self) -> None:
        """The user's turn is taken; a response is owed."""
        self.count += 1
        self.owed = True
        ids = {"item_id": f"u{self.count}"}
        self.wire.server("input_audio_buffer.speech_stopped", audio_end_ms=5, **ids)
        self.wire.server("input_audio_buffer.committed", **ids)

    def race(self) -> None:
        """A response of its own begins first: what was asked for is refused."""
        refused = self.asked.pop(0)
        if "purpose" not in refused:
            self._create({"request": "other"}, None)
            error = {"code": "conversation_already_has_active_response"}
            self.wire.server("error", error={**error, "event_id": refused["tag"]})

    def junk(self) -> None:
        """Frames that mean nothing."""
        for kind in ("response.done", "error", "response.output_audio.delta", "", "a.b"):
            self.wire.server(kind, response=7, error=[], delta=None, item={"id": 3})
        self.wire.codec.receive(b"\xff")


@settings(max_examples=100, deadline=None)
@given(steps=STEPS, manual=st.booleans())
def test_in_any_order_one_response_is_active_and_only_calls_are_answered(
    steps: list[ProviderCommand | str], manual: bool
) -> None:
    provider = Provider(manual)
    wire = provider.wire
    for step in steps:
        before = len(wire.events)
        if isinstance(step, str):
            provider.step(step)
        else:
            told = wire.tell(step)
            cuts = [event for event in told if isinstance(event, Interrupted)]
            assert len(cuts) == isinstance(step, CutOutput)
        for event in wire.events[before:]:
            if isinstance(event, ToolCalls):
                provider.calls.update(call.id for call in event.calls)
        provider.read()
        assert wire.codec.due or not (provider.active or provider.owed)
    wire.events += wire.codec.closed(1006, "")
    started = [event.response_id for event in wire.events if isinstance(event, ResponseStarted)]
    done = [event.response_id for event in wire.events if isinstance(event, ResponseDone)]
    assert sorted(started) == sorted(done)
    ended = [event.item_id for event in wire.events if isinstance(event, ItemDone)]
    assert len(ended) == len(set(ended))
    closes = [event for event in wire.events if isinstance(event, Closed)]
    assert len(closes) == 1 and wire.events[-1] is closes[0]
