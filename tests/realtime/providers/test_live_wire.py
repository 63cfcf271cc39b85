"""The codec of GPT-Live: golden transcripts, the vendor's own types, and random orders of all."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.live.client_event import ClientEvent
from openai.types.live.server_event import ServerEvent
from pydantic import TypeAdapter

from tests.realtime import golden_runner
from voxglove.core.messages import Message, ToolCall
from voxglove.core.model import ToolSpec
from voxglove.realtime.commands import (
    AppendContext,
    CommitTurn,
    CutOutput,
    ProviderCommand,
    RequestResponse,
    SendAudio,
    SendText,
    SendToolResults,
    SpeechBoundary,
    Summarise,
    ToolOutput,
    UpdateAgent,
)
from voxglove.realtime.events import (
    LOST,
    Audio,
    Closed,
    Interrupted,
    ItemDone,
    ProviderProblem,
    RealtimeEvent,
    ResponseDone,
    ResponseStarted,
    Summary,
    ToolCalls,
    UserTurn,
    Words,
)
from voxglove.realtime.port import Setup
from voxglove.realtime.providers.codec import Codec
from voxglove.realtime.providers.live_start import LiveOptions
from voxglove.realtime.providers.live_wire import LiveCodec

Json = dict[str, object]

FILES = golden_runner.transcripts("live")
CLIENT, SERVER = TypeAdapter(ClientEvent), TypeAdapter(ServerEvent)


def make(options: golden_runner.Options) -> Codec:
    return LiveCodec(TypeAdapter(LiveOptions).validate_python(dict(options)))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_codec_speaks_as_the_golden_transcript_says(path: Path) -> None:
    golden_runner.run(path, make)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_frames_of_the_golden_transcripts_are_of_the_vendors_types(path: Path) -> None:
    transcript = golden_runner.read(path)
    for frame in transcript.client_frames():
        CLIENT.validate_json(frame, extra="forbid", strict=True)
    for frame in transcript.server_frames():
        if "telepathy" not in frame and frame.startswith("{") and '"session.paused"' not in frame:
            SERVER.validate_json(frame, extra="forbid", strict=True)


def started(**options: object) -> LiveCodec:
    codec = LiveCodec(TypeAdapter(LiveOptions).validate_python(options))
    codec.begin(Setup(instructions="Be kind."))
    give(codec, {"type": "session.started", "session": {"id": "live_1"}})
    codec.take()
    return codec


def give(codec: LiveCodec, event: Mapping[str, object]) -> list[RealtimeEvent]:
    return codec.receive(json.dumps(event))


def sound(ms: int, level: int = 3_000) -> Json:
    pcm = level.to_bytes(2, "little") * (16 * ms)
    return {"type": "session.output_audio.delta", "delta": base64.b64encode(pcm).decode()}


def said(text: str, start_ms: int, end_ms: int, who: str = "output") -> Json:
    times = {"start_ms": start_ms, "end_ms": end_ms}
    return {"type": f"session.{who}_transcript.delta", "delta": text, **times}


def sent(codec: LiveCodec) -> list[Json]:
    return [json.loads(frame) for frame in codec.take()]


def setup_of(setup: Setup) -> Json:
    codec = LiveCodec(LiveOptions())
    codec.begin(setup)
    (start,) = sent(codec)
    session = start["session"]
    assert isinstance(session, dict)
    return session


def test_history_keeps_the_newest_that_fit() -> None:
    history = tuple(Message(sender="user", text=f"message {at}") for at in range(200))
    kept = setup_of(Setup(instructions="", history=history))["input"]
    assert isinstance(kept, list)
    assert len(kept) == 128
    assert kept[-1]["content"][0]["text"] == "message 199"

    long = tuple(Message(sender="user", text=f"{at} " + "word " * 400) for at in range(40))
    kept = setup_of(Setup(instructions="", history=long))["input"]
    assert isinstance(kept, list)
    assert sum(len(item["content"][0]["text"]) for item in kept) < 8_192 * 4
    assert kept[-1]["content"][0]["text"].startswith("39 ")


def test_a_message_that_fits_nowhere_is_cut_and_told() -> None:
    codec = LiveCodec(LiveOptions())
    codec.begin(
        Setup(instructions="x" * 90_000, history=(Message(sender="user", text="é" * 60_000),))
    )
    session = sent(codec)[0]["session"]
    assert isinstance(session, dict)
    assert len(session["instructions"]) == 16_384 * 3
    (item,) = session["input"]
    assert 10_000 < len(item["content"][0]["text"]) < 8_192 * 3 / 2
    _, problem = give(codec, {"type": "session.started", "session": {"id": "l"}})
    assert isinstance(problem, ProviderProblem)
    assert problem.code == "content_cut"


def test_calls_whose_arguments_are_no_json_are_history_too() -> None:
    call = ToolCall("look", "{broken", id="c")
    kept = setup_of(Setup(instructions="", history=(Message(sender="agent", tool_calls=(call,)),)))[
        "input"
    ]
    assert kept == [
        {
            "type": "message",
            "role": "developer",
            "content": [{"type": "input_text", "text": "You called the tool look with {broken."}],
        }
    ]


def test_a_long_text_is_sent_in_pieces_between_words_and_nothing_is_lost() -> None:
    codec = started()
    words = " ".join(f"word{at}" for at in range(1_000))
    assert codec.tell(AppendContext(words)) == []
    contents = [str(frame["content"]) for frame in sent(codec)]
    assert len(contents) > 1
    assert all(len(content) <= 500 * 4 for content in contents)
    assert " ".join(contents) == words


def test_a_text_without_end_is_cut_and_told() -> None:
    codec = started()
    (problem,) = codec.tell(AppendContext("x" * 200_000))
    assert isinstance(problem, ProviderProblem)
    assert problem.code == "content_cut"
    assert len(sent(codec)) == 33


def test_only_the_request_that_was_taken_is_answered() -> None:
    """The answer to a request is the first utterance that begins after it was acknowledged."""
    codec = started()
    codec.tell(RequestResponse("one", request_id="r1"))
    codec.tell(SendText("two", request_id="r2"))
    frames = {frame["content"]: frame["event_id"] for frame in sent(codec) if "content" in frame}
    error = {"code": "x", "message": "no", "client_event_id": frames["one"]}
    give(codec, {"type": "error", "error": error})
    appended = {"type": "session.commentary.appended", "start_ms": 0, "end_ms": 0}
    for event_id in frames.values():
        give(codec, appended | {"client_event_id": event_id})
    first = give(codec, sound(100))[0]
    assert isinstance(first, ResponseStarted)
    assert first.request_id == "r2"


def test_a_request_that_was_never_answered_does_not_name_later_speech() -> None:
    codec = started()
    codec.tell(RequestResponse("one", request_id="r1"))
    (frame,) = sent(codec)
    appended = {"type": "session.commentary.appended", "client_event_id": frame["event_id"]}
    give(codec, appended)
    give(codec, sound(21_000, level=0))
    first = give(codec, sound(100))[0]
    assert isinstance(first, ResponseStarted)
    assert first.request_id == ""


def test_sound_is_due_while_the_output_lags_behind_the_input() -> None:
    codec = started()
    assert not codec.due
    codec.tell(SendAudio(bytes(16_000)))
    assert codec.due
    give(codec, sound(300, level=0))
    assert not codec.due
    unopened = LiveCodec(LiveOptions())
    unopened.begin(Setup(instructions=""))
    assert unopened.due


def test_deltas_of_any_length_give_the_same_sound() -> None:
    whole, pieces = started(), started()
    pcm = base64.b64decode(str(sound(400)["delta"]))
    heard = [event for event in give(whole, sound(400)) if isinstance(event, Audio)]
    cut: list[RealtimeEvent] = []
    for at in range(0, len(pcm), 333):
        delta = base64.b64encode(pcm[at : at + 333]).decode()
        cut += give(pieces, {"type": "session.output_audio.delta", "delta": delta})
    again = [event for event in cut if isinstance(event, Audio)]
    assert b"".join(one.pcm for one in heard) == b"".join(one.pcm for one in again) == pcm


@pytest.mark.parametrize(("level", "opens"), [(18, False), (21, True)])
def test_the_gate_opens_at_six_ten_thousandths_of_full_scale(level: int, opens: bool) -> None:
    assert bool(give(started(), sound(100, level))) is opens


def test_waiting_sound_is_bounded_and_commands_are_kept() -> None:
    codec = LiveCodec(LiveOptions())
    codec.begin(Setup(instructions=""))
    codec.tell(AppendContext("kept"))
    for _ in range(1_500):
        codec.tell(SendAudio(bytes(640)))
    codec.take()
    give(codec, {"type": "session.started", "session": {"id": "l"}})
    frames = sent(codec)
    assert len(frames) == 1_000
    assert frames[0]["content"] == "kept"


def test_an_error_of_the_server_at_the_start_may_be_tried_again() -> None:
    codec = LiveCodec(LiveOptions())
    codec.begin(Setup(instructions=""))
    error = {"type": "server_error", "code": "overloaded"}
    problem, closed = give(codec, {"type": "error", "error": error})
    assert isinstance(problem, ProviderProblem)
    assert closed == Closed("overloaded")
    assert codec.finished
    assert codec.closed(1011, "") == []


def test_a_refused_continuation_is_made_up_for() -> None:
    """The backend's response.create was refused: it is asked again when its next response ends."""
    codec = started()
    run(codec, "dlg_1", "call_1")
    codec.tell(SendToolResults((ToolOutput("call_1", "look", "x"),)))
    create = sent(codec)[-1]
    assert create["type"] == "response.create"
    error = {"code": "busy", "message": "", "client_event_id": create["event_id"]}
    give(codec, {"type": "error", "error": error})
    assert sent(codec) == []
    run(codec, "dlg_2")
    assert [frame["type"] for frame in sent(codec)] == ["response.create"]


def test_results_that_ask_for_no_answer_wait_for_the_backends_next_response() -> None:
    codec = started()
    run(codec, "dlg_1", "call_1", "call_2")
    codec.tell(SendToolResults((ToolOutput("call_1", "look", "x"),), respond=False))
    codec.tell(SendToolResults((ToolOutput("call_2", "look", "y"),), respond=False))
    assert [frame["type"] for frame in sent(codec)] == ["response.item.create"] * 2
    run(codec, "dlg_2", "call_3")
    codec.tell(SendToolResults((ToolOutput("call_3", "look", "z"),)))
    assert [frame["type"] for frame in sent(codec)] == ["response.item.create", "response.create"]


def test_a_response_of_the_backend_that_another_replaces_is_over() -> None:
    codec = started()
    inner = {"type": "response.created", "response": {}}
    outer = {"type": "response.event", "delegation_id": "dlg_1", "event": inner}
    (first,) = give(codec, outer)
    done, second = give(codec, outer)
    assert isinstance(first, ResponseStarted)
    assert isinstance(second, ResponseStarted)
    assert isinstance(done, ResponseDone)
    assert (done.response_id, done.status) == (first.response_id, "failed")
    lost, closed = codec.closed(1006, "")
    assert lost == ResponseDone(second.response_id, "cancelled", LOST)
    assert isinstance(closed, Closed)


def test_a_result_that_is_refused_is_told_as_context() -> None:
    codec = started()
    run(codec, "dlg_1", "call_1")
    codec.tell(SendToolResults((ToolOutput("call_1", "look", "sunny"),)))
    output, _ = sent(codec)
    error = {"code": "gone", "message": "", "client_event_id": output["event_id"]}
    give(codec, {"type": "error", "error": error})
    (told,) = sent(codec)
    assert told["type"] == "session.thinking.append"
    assert told["content"] == "Result of look: sunny"


def test_words_that_lag_by_less_than_the_silence_do_not_keep_an_utterance_open() -> None:
    codec = started()
    give(codec, sound(1_000))
    give(codec, said("One moment", 200, 600))
    events = give(codec, sound(600, level=0))
    assert isinstance(events[-1], ResponseDone)

    codec = started()
    give(codec, sound(1_400))
    give(codec, said("One", 200, 400))
    assert not any(isinstance(event, ResponseDone) for event in give(codec, sound(1_100, level=0)))
    assert isinstance(give(codec, sound(100, level=0))[-1], ResponseDone)


def test_a_transcript_that_lags_does_not_cut_a_turn_in_pieces() -> None:
    codec = started()
    give(codec, sound(2_000, level=0))
    events: list[RealtimeEvent] = []
    for at in range(5):
        events += give(codec, said(f"w{at} ", 800 + 200 * at, 1_000 + 200 * at, "input"))
        events += give(codec, sound(200, level=0))
    assert not any(isinstance(event, UserTurn) for event in events)
    final, turn = give(codec, sound(700, level=0))
    assert isinstance(final, Words)
    assert final.text == "w0 w1 w2 w3 w4"
    assert turn == UserTurn("user_1", 800, 1_800)


def test_sound_behind_a_silence_is_the_next_utterance_although_words_are_awaited() -> None:
    codec = started()
    give(codec, sound(100))
    give(codec, sound(700, level=0))
    done, begun = (type(event) for event in give(codec, sound(20))[1:3])
    assert (done, begun) == (ResponseDone, ResponseStarted)


def test_what_the_model_says_right_after_a_cut_is_heard_once_it_was_silent() -> None:
    codec = started()
    give(codec, sound(500))
    codec.tell(CutOutput({"speech_1": 100}))
    assert not any(isinstance(event, Audio) for event in give(codec, sound(300)))
    give(codec, sound(380, level=0))
    assert not any(isinstance(event, Audio) for event in give(codec, sound(20)))
    give(codec, sound(400, level=0))
    again = give(codec, sound(20))
    assert isinstance(again[0], ResponseStarted)
    assert isinstance(again[1], Audio)


def run(codec: LiveCodec, delegation: str, *calls: str) -> list[RealtimeEvent]:
    """A whole response of the backend."""
    inner: list[Json] = [{"type": "response.created", "response": {}}]
    for call in calls:
        item = {"type": "function_call", "call_id": call, "name": "look", "arguments": "{}"}
        inner.append({"type": "response.output_item.done", "item": item})
    inner.append({"type": "response.completed", "response": {"id": f"of_{delegation}"}})
    events: list[RealtimeEvent] = []
    for event in inner:
        outer = {"type": "response.event", "delegation_id": delegation, "event": event}
        events += give(codec, outer)
    return events


# random orders of everything ---------------------------------------------------------------------

junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
TYPES = (
    *("session.started", "session.output_audio.delta", "session.input_transcript.delta"),
    *("session.output_transcript.delta", "session.delegation.created", "response.event"),
    *("session.usage.updated", "session.closed", "error", "session.commentary.appended", "what"),
)
NAMES = ("delta", "start_ms", "end_ms", "session", "delegation", "event", "error", "usage", "id")
strange = st.builds(
    lambda kind, fields: json.dumps({"type": kind, **fields}),
    st.sampled_from(TYPES),
    st.dictionaries(st.sampled_from(NAMES), junk, max_size=4),
)
frames = st.text(max_size=20) | st.binary(max_size=20) | junk.map(json.dumps) | strange


@given(st.lists(frames, max_size=12))
def test_no_frame_raises(received: list[str | bytes]) -> None:
    codec = started()
    events = [event for frame in received for event in codec.receive(frame)]
    events += codec.closed(1006, "")
    assert [event for event in events if isinstance(event, Closed)] == events[-1:]
    assert codec.closed(1006, "") == []


calls = st.sampled_from(("call_1", "call_2", "call_3", "dlg_1"))
commands: st.SearchStrategy[ProviderCommand] = st.one_of(
    st.builds(SendAudio, st.binary(max_size=64).map(lambda pcm: pcm * 2)),
    st.builds(SendText, st.text(max_size=8), st.booleans(), st.sampled_from(("", "r"))),
    st.builds(AppendContext, st.text(max_size=8)),
    st.builds(RequestResponse, st.text(max_size=8), st.sampled_from(("", "r")), st.booleans()),
    st.builds(
        SendToolResults,
        st.lists(
            st.builds(ToolOutput, calls, st.just("look"), st.text(max_size=8)), max_size=3
        ).map(tuple),
        st.booleans(),
    ),
    st.builds(CutOutput, cancel=st.booleans()),
    st.builds(SpeechBoundary, st.booleans()),
    st.builds(UpdateAgent, st.none() | st.text(max_size=8), st.just((ToolSpec("t", "d", {}),))),
    st.just(CommitTurn()),
    st.builds(Summarise, st.just("s"), st.text(max_size=8)),
)
inner = st.sampled_from(
    (
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.completed", "response": {"id": "r"}},
        {"type": "response.failed", "response": {"id": "r"}},
        *(
            {
                "type": "response.output_item.done",
                "item": {"type": "function_call", "call_id": f"call_{at}", "name": "look"},
            }
            for at in (1, 2, 3)
        ),
    )
)
delegations = st.sampled_from(("dlg_1", "dlg_2"))
proper: st.SearchStrategy[Json] = st.one_of(
    st.builds(sound, st.sampled_from((20, 100, 600, 1_300)), st.sampled_from((0, 3_000))),
    st.builds(
        lambda at, who: said(f"w{at} ", 200 * at, 200 * at + 200, who),
        st.integers(0, 30),
        st.sampled_from(("input", "output")),
    ),
    st.builds(
        lambda dlg, event: {"type": "response.event", "delegation_id": dlg, "event": event},
        delegations,
        inner,
    ),
    st.builds(
        lambda dlg, target: {
            "type": "session.delegation.created",
            "offset_ms": 1,
            "delegation": {"id": dlg, "target": target},
        },
        delegations,
        st.sampled_from(("client", "responses")),
    ),
)
orders = st.lists(st.one_of(commands, proper, proper), max_size=40)


def play(codec: LiveCodec, steps: Sequence[ProviderCommand | Json]) -> list[RealtimeEvent]:
    """Everything in its order, then the end. Frames that are sent are of the vendor's types."""
    events: list[RealtimeEvent] = []
    for step in steps:
        events += give(codec, step) if isinstance(step, dict) else codec.tell(step)
        for frame in codec.take():
            CLIENT.validate_json(frame, extra="forbid")
    return events + codec.closed(1006, "")


@given(orders, st.sampled_from(("responses", "client")))
def test_in_any_order_each_response_ends_once_and_each_cut_is_answered_once(
    steps: list[ProviderCommand | Json], delegation: str
) -> None:
    events = play(started(delegation=delegation), steps)
    begun = [event.response_id for event in events if isinstance(event, ResponseStarted)]
    done = [event.response_id for event in events if isinstance(event, ResponseDone)]
    assert sorted(begun) == sorted(done)
    assert len(set(done)) == len(done)
    open_items: set[str] = set()
    for event in events:
        match event:
            case ResponseStarted(response_id=response_id) if "utterance" in response_id:
                open_items.add(response_id.replace("utterance", "speech"))
            case Audio(item_id=item_id) | Words(role="assistant", item_id=item_id):
                assert item_id in open_items
            case ItemDone(item_id=item_id):
                open_items.remove(item_id)
    assert not open_items
    cuts = sum(isinstance(step, CutOutput) for step in steps)
    assert sum(isinstance(event, Interrupted) for event in events) == cuts
    asked = sum(isinstance(step, Summarise) for step in steps)
    assert sum(isinstance(event, Summary) for event in events) == asked
    assert [isinstance(event, Closed) for event in events].index(True) == len(events) - 1


@given(orders)
def test_words_are_neither_lost_nor_doubled(steps: list[ProviderCommand | Json]) -> None:
    kept = [step for step in steps if not isinstance(step, CutOutput)]
    events = play(started(), kept)
    for role, who in (("user", "input"), ("assistant", "output")):
        given_words = [
            str(step["delta"]).strip()
            for step in kept
            if isinstance(step, dict) and step["type"] == f"session.{who}_transcript.delta"
        ]
        words = [event for event in events if isinstance(event, Words) and event.role == role]
        pieces = [event.text.strip() for event in words if not event.final]
        finals = [word for event in words if event.final for word in event.text.split()]
        if role == "user":  # the turn in which the connection broke will be heard again
            whole = {event.item_id for event in words if event.final}
            finals += [event.text.strip() for event in words if event.item_id not in whole]
        assert sorted(pieces) == sorted(finals) == sorted(given_words)
        items = [event.item_id for event in words if event.final]
        assert len(set(items)) == len(items)
    turns = [event.item_id for event in events if isinstance(event, UserTurn)]
    assert len(set(turns)) == len(turns)


@given(orders)
def test_a_batch_of_tools_is_never_answered_in_part(steps: list[ProviderCommand | Json]) -> None:
    """response.create goes out only while no call of the connection waits and no response runs."""
    codec = started()
    waiting: set[str] = set()
    running: set[str] = set()
    for step in steps:
        events = give(codec, step) if isinstance(step, dict) else codec.tell(step)
        if isinstance(step, dict):
            note(step, running)
        for event in events:
            if isinstance(event, ToolCalls):
                waiting |= {call.id for call in event.calls}
        for frame in sent(codec):
            item = frame.get("item")
            if isinstance(item, dict) and item["type"] == "function_call_output":
                assert item["call_id"] in waiting
                waiting.remove(item["call_id"])
            if frame["type"] == "response.create":
                assert not waiting
                assert not running


def note(step: Json, running: set[str]) -> None:
    """Which responses of the backend run after a frame."""
    if step["type"] != "response.event":
        return
    event = step["event"]
    assert isinstance(event, dict)
    if event["type"] == "response.created":
        running.add(str(step["delegation_id"]))
    elif event["type"] in ("response.completed", "response.failed"):
        running.discard(str(step["delegation_id"]))
