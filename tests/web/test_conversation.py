"""The conversation that a client is told when it comes: whole, bounded, and with nothing in it that
a caller never heard. Calls run on the virtual clock with the real pipeline and a real agent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings

from tests.pipelines.test_calls_random import scripts
from tests.support.calls import CallScript, Does, Live, Says, hold_call
from tests.web.echo import EchoBrain
from voxglove.adapters.models.scripted import Call as ToolUse
from voxglove.adapters.models.scripted import Text, say
from voxglove.adapters.transports.fixture import FixtureTransport
from voxglove.adapters.tts.scripted import Timing
from voxglove.core import (
    CompactionConfig,
    CompactionEnd,
    CompactionStart,
    ContentPart,
    ContentSource,
    InboxChanged,
    InboxItem,
    MemoryStore,
    Message,
    ModelResponseComplete,
    RequestEnded,
    StoreError,
    SubAgentEvent,
    SubscriberEvent,
    Task,
    TasksChanged,
    TextDelta,
    ToolCall,
    ToolResultData,
    ToolStarted,
    ToolUseResult,
)
from voxglove.core.config import AgentConfig
from voxglove.core.messages import ToolResult
from voxglove.core.tool import Tool, ToolContext
from voxglove.media import brain, events
from voxglove.media.call import Call, CallPolicy
from voxglove.media.transport import CallInfo
from voxglove.pipelines.commit import TurnConfig
from voxglove.web.bounds import MAX_CHARS, MAX_ENTRIES, MAX_TEXT, first
from voxglove.web.call_agent import CallReporter, LiveText, _before, inbox_event
from voxglove.web.conversation import Conversation
from voxglove.web.session import CallSession
from voxglove.web.wire import Reject, Resolve, ServerMessage

ITEM = InboxItem(id="i1", tag="manager", request="May a dog come?", created_at="2026-01-01")
SCHEMA = {"type": "object", "properties": {}}


@dataclass
class Watched:
    """A conversation on a call, and what a client would have been told at any moment."""

    past: Conversation = field(default_factory=Conversation)
    told: list[ServerMessage] = field(default_factory=list)

    def on(self, live: Live) -> None:
        live.agent.add_subscriber(CallReporter(live.call.emit, self.past))
        live.call.subscribe(self.past.on_event)

    def look(self, live: Live) -> None:
        self.told = self.past.messages()

    @property
    def entries(self) -> list[dict[str, object]]:
        return entries_of(self.told[0]) if self.told else []

    def texts(self, kind: str = "agent_text") -> list[object]:
        return [one["text"] for one in self.entries if one["kind"] == kind]


def watched(*does: Does) -> tuple[Watched, list[Does]]:
    seen = Watched()
    return seen, [Does(0.0, seen.on), *does]


def tool(do: Callable[[object, ToolContext], object]) -> Tool:
    return Tool(name="look", description="Look.", do=do, json_schema=SCHEMA)


def entries_of(message: ServerMessage) -> list[dict[str, Any]]:
    """What a `timeline` tells."""
    assert message["t"] == "timeline"
    found = message["entries"]
    assert isinstance(found, list)
    return found


# ---- events of the agent


def told_by(*given: SubscriberEvent) -> list[events.CallEvent]:
    told: list[events.CallEvent] = []
    reporter = CallReporter(told.append)
    for event in given:
        reporter.record(event)
    return told


def test_the_plan_the_inbox_and_a_compaction_are_told() -> None:
    task = Task(id="t1", content="Look", active_form="Looking", status="in_progress")
    done = InboxItem(
        id="i2", tag="b", request="c", created_at="x", response="Yes", status="resolved"
    )
    assert told_by(
        TasksChanged(tasks=(task,)),
        InboxChanged(items=(ITEM, done)),
        CompactionStart(current_token_consumption=9),
        CompactionEnd(status="aborted", current_token_consumption=9),
    ) == [
        events.Tasks(
            tasks=(
                {"id": "t1", "content": "Look", "activeForm": "Looking", "status": "in_progress"},
            )
        ),
        events.Inbox(
            items=(
                {
                    "id": "i1",
                    "tag": "manager",
                    "request": "May a dog come?",
                    "status": "pending",
                    "blocking": False,
                },
                {
                    "id": "i2",
                    "tag": "b",
                    "request": "c",
                    "response": "Yes",
                    "status": "resolved",
                    "blocking": False,
                },
            )
        ),
        events.Compaction(event="start"),
        events.Compaction(event="end", status="aborted"),
    ]


def test_fault_15_a_sub_agents_words_tools_and_plans_are_not_the_agents_own() -> None:
    inner: list[SubscriberEvent] = [
        TextDelta(text="secret", run_id="r", message_id="m"),
        ModelResponseComplete(text="secret", run_id="r", message_id="m"),
        ToolStarted(call_id="1", tool_name="look", input={}),
        ToolUseResult(
            call_id="1", tool_name="look", result=ToolResultData("success", 1), duration_ms=1
        ),
        TasksChanged(tasks=()),
        InboxChanged(items=(ITEM,)),
        CompactionStart(current_token_consumption=1),
        RequestEnded(status="ok", run_id="r"),
    ]
    wrapped = [SubAgentEvent(name="child", call_id="c", event=one) for one in inner]
    nested = [SubAgentEvent(name="parent", call_id="c", event=one) for one in wrapped]
    shown: list[str] = []
    live = LiveText()
    live.show = shown.append
    past = Conversation()
    for event in [*wrapped, *nested]:
        live.record(event)
        past.record(event)
    assert not told_by(*wrapped, *nested) and not shown and not past.entries()


def test_what_is_long_in_the_plan_and_the_inbox_is_cut_so_that_it_can_be_sent() -> None:
    items = [
        InboxItem(id=f"i{n}", tag="t", request="ö" * 5_000, created_at="x") for n in range(200)
    ]
    event = inbox_event(items)
    assert len(json.dumps(events.to_line(0, event))) < 48_000
    assert str(event.items[0]["request"]).endswith("ö…")
    assert [item["id"] for item in event.items[:2]] == ["i0", "i1"], "the first ones"
    assert first([{"id": "1", "odd": {1, 2}}], 10) == ({"id": "1"},), "no JSON: left out"


# ---- a conversation that goes on


def stored_call() -> list[Message]:
    card = {"renderer": "show_info_card", "input": {"title": "Menu"}, "value": True}
    result = ToolResultData("success", "shown", render_data=card)
    return [
        Message(sender="user", id="u1", text="The menu?"),
        Message(sender="agent", id="a1", tool_calls=(ToolCall("show", {"x": 1}, "c1"),)),
        Message(
            sender="user",
            id="a1_results",
            text="results",
            is_tool_results=True,
            tool_results=(ToolResult("show", "c1", result),),
        ),
        Message(
            sender="agent",
            id="a2",
            text="Here it is, with wine.",
            heard="Here it is,",
            unheard=" with wine.",
            interrupted=True,
            playback="settled",
        ),
    ]


def test_a_client_of_a_stored_conversation_is_told_all_of_it() -> None:
    (told,) = Conversation(stored_call()).messages()
    user, call, text = entries_of(told)
    assert told["earlier"] == 0
    assert user == {"kind": "user", "id": "u1", "text": "The menu?"}
    assert (call["status"], call["output"]) == ("success", "shown")
    assert call["renderData"]["renderer"] == "show_info_card"
    assert (text["heard"], text["unheard"], text["interrupted"]) == (
        "Here it is,",
        " with wine.",
        True,
    )
    assert Conversation().messages() == [], "nothing was said: nothing is told"


async def test_a_call_begins_with_the_plan_and_the_inbox_of_its_store() -> None:
    store = MemoryStore("c")
    await store.append_messages(stored_call())
    await store.add_tasks([Task(id="t", content="Look", active_form="Looking")])
    await store.add_inbox_item(ITEM)
    agent = (await hold_call(CallScript(seconds=0.2, store=store))).agent
    stored, present = await _before(agent, "c")
    assert [one.id for one in stored] == ["u1", "a1", "a1_results", "a2"]
    assert [one.type for one in present] == ["tasks", "inbox"]
    await store.add_tasks([])
    await store.consume_inbox_items(["i1"], Message(sender="user", id="n", text="x"))
    assert (await _before(agent, "c"))[1] == [], "nothing is there: nothing is told"


class Broken(MemoryStore):
    """A store that fails, or hangs, when it is asked for its messages."""

    hangs = False

    async def get_messages(self) -> list[Message]:
        if self.hangs:
            await asyncio.sleep(3_600)
        raise StoreError("gone: May a dog come?")


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_store_that_cannot_tell_keeps_no_call_from_beginning(
    *, hangs: bool, caplog: pytest.LogCaptureFixture
) -> None:
    store = Broken("c")
    agent = (await hold_call(CallScript(seconds=0.2))).agent
    store.hangs = hangs
    agent._parts.history.store = store
    before = asyncio.get_running_loop().time()
    assert await _before(agent, "c") == ([], [])
    assert asyncio.get_running_loop().time() - before < 3
    assert "dog" not in "".join(str(vars(record)) for record in caplog.records)


def test_what_is_told_is_bounded_and_says_how_much_is_missing() -> None:
    picture = ContentPart(
        "image",
        source=ContentSource("url", "image/png", url="data:image/png;base64," + "A" * 9_000),
    )
    long = [Message(sender="user", id=f"u{n}", text=f"{n} " + "ü" * 500) for n in range(300)]
    odd = [
        Message(sender="user", id="p", text="look", content=(picture,)),
        Message(sender="agent", id="t", tool_calls=(ToolCall("x", {"a": "b" * 9_000}, "c"),)),
        Message(sender="agent", id="n", tool_calls=(ToolCall("x", {"a": float("nan")}, "d"),)),
        Message(sender="agent", id="l", text="w" * 9_000),
    ]
    (told,) = Conversation([*long, *odd]).messages()
    entries = entries_of(told)
    assert len(json.dumps(told, allow_nan=False)) < MAX_CHARS + 1_000
    assert told["earlier"] == len(long) + len(odd) - len(entries)
    user, call, nan, text = entries[-4:]
    assert "images" not in user and "input" not in call and "input" not in nan
    assert len(text["text"]) == MAX_TEXT and text["text"].endswith("…")
    short = [Message(sender="user", id=f"u{n}", text="a") for n in range(300)]
    (few,) = Conversation(short).messages()
    assert len(entries_of(few)) == MAX_ENTRIES and few["earlier"] == 100


# ---- while the call goes on


async def test_words_that_nobody_hears_yet_are_withheld_and_told_once_they_sound() -> None:
    """Looked at every 20 ms: the words are there in history before they sound."""
    seen, does = watched()
    shown: list[tuple[bool, bool]] = []

    def look(live: Live) -> None:
        written = any(entry.kind == "agent_text" for entry in seen.past._builder.entries)
        seen.look(live)
        shown.append((written, seen.texts() != []))

    late = Watched(seen.past)
    does += [Does(at / 50, look) for at in range(50, 100)]
    does.append(Does(2.5, late.look))
    await hold_call(
        CallScript(
            caller=[Says(0.3, 0.9, "Hello there?")],
            model=[say("One two three four five six seven.")],
            tts_timing=Timing(word_ms=300, first_ms=400),
            does=sorted(does, key=lambda one: one.when),
            seconds=4,
        )
    )
    assert list(dict.fromkeys(shown)) == [(False, False), (True, False), (True, True)]
    assert late.texts() == ["One two three four five six seven."]
    user, entry = late.entries
    assert entry["live"] is True and entry["turn"] == user["turn"]


async def test_a_cut_answer_is_told_as_it_was_heard_however_early_one_asks() -> None:
    """History follows the cut a moment later; in between the call's own word is told."""
    found: list[list[ServerMessage]] = []
    seen, does = watched()

    def at_once(at: int, event: events.CallEvent) -> None:
        if isinstance(event, events.Response) and event.event == "cut":
            found.append(seen.past.messages())

    does += [
        Does(0.01, lambda live: live.call.subscribe(at_once)),
        Does(3.0, lambda live: live.command(brain.Interrupt())),
        Does(3.5, lambda live: found.append(seen.past.messages())),
    ]
    await hold_call(
        CallScript(
            caller=[Says(0.3, 0.9, "Hello there?")],
            model=[say("One two three four five six seven eight nine ten.")],
            does=does,
            seconds=5,
        )
    )
    (early, heard), (later,) = found
    assert heard["t"] == "heard" and heard["interrupted"] and heard["unheard"]
    (text,) = [one for one in entries_of(later) if one["kind"] == "agent_text"]
    assert (text["heard"], text["unheard"]) == (heard["heard"], heard["unheard"])
    assert "live" not in text
    (before,) = [one for one in entries_of(early) if one["kind"] == "agent_text"]
    assert before["turn"] == heard["turnId"] and before["live"]


async def test_core_row_092_what_is_told_live_equals_what_history_tells_later() -> None:
    """Typed and spoken turns, a tool, a cut, a correction: but for what only the call knows."""
    seen, does = watched()

    async def look(value: object, ctx: ToolContext) -> str:
        await asyncio.sleep(0.2)
        return "free"

    does += [
        Does(4.0, lambda live: live.command(brain.Say("And tomorrow?"))),
        Does(7.0, lambda live: live.command(brain.Interrupt())),
    ]
    held = await hold_call(
        CallScript(
            caller=[Says(0.3, 0.9, "Is a table free?")],
            model=[
                say(Text("Let me look."), ToolUse("look", {"day": 1})),
                say("It is free."),
                say("One two three four five six seven eight nine ten eleven."),
            ],
            tools=[tool(look)],
            does=does,
            seconds=9,
        )
    )
    live = seen.past.entries()
    later = Conversation(held.history).entries()
    beside = ("turn", "source", "duration_ms")
    assert [{k: v for k, v in one.items() if k not in beside} for one in live] == later
    assert [one["kind"] for one in live] == [
        *("user", "agent_text", "tool", "agent_text"),
        *("user", "agent_text"),
    ]
    assert live[-1]["interrupted"] and live[4]["source"] == "typed"
    turns = [one["turn"] for one in live if "turn" in one]
    assert turns == [turns[0]] * 3 + [turns[-1]] * 2 and turns[0] != turns[-1]
    assert float(str(live[2]["duration_ms"])) > 0


@given(script=scripts())
@settings(max_examples=20, phases=(Phase.explicit, Phase.generate))
async def test_core_row_092_whatever_happens_on_a_call_each_thing_is_told_once(
    script: CallScript,
) -> None:
    """Looked at with every event of the call: no entry twice, no word of a user twice; at rest
    what was heard live is what history says."""
    seen = Watched()
    twice: list[object] = []

    def look(at: int, event: events.CallEvent) -> None:
        told = seen.past.entries()
        ids = [one["id"] for one in told]
        said = " ".join(str(one["text"]) for one in told if one["kind"] == "user").split()
        words = [word for word in said if word not in ("mm-hm", "?", ".")]
        if len(ids) != len(set(ids)) or len(words) != len(set(words)):
            twice.append(told)

    def begin(live: Live) -> None:
        seen.on(live)
        live.call.subscribe(look)

    held = await hold_call(replace(script, does=[Does(0.0, begin), *script.does]))
    assert not twice, (twice[0], held.told())
    beside = ("turn", "source", "duration_ms", "sounded")
    live = [one for one in seen.past.entries() if one["kind"] != "aside"]
    told = [{key: value for key, value in one.items() if key not in beside} for one in live]
    assert told == Conversation(held.history).entries(), held.told()


async def test_words_the_agent_has_not_taken_up_are_told_and_never_twice() -> None:
    """Between the commit of a turn and its message in history, and when a turn is cut there."""
    seen, does = watched()
    counts: list[tuple[int, int]] = []

    def count(at: int, event: events.CallEvent) -> None:
        told = [one for one in seen.past.entries() if one["kind"] == "user"]
        words = [one["text"] for one in told if "two" in str(one["text"])]
        counts.append((at, len(words)))

    does += [
        Does(0.01, lambda live: live.call.subscribe(count)),
        Does(1.0, lambda live: live.command(brain.Say("one"))),
        Does(1.0, lambda live: live.command(brain.Say("two"))),
    ]
    held = await hold_call(CallScript(model=[say("First."), say("Second.")], does=does, seconds=4))
    told = [at for at, event in held.timeline if "two" in str(getattr(event, "text", ""))]
    assert {n for at, n in counts if at > min(told)} == {1}


async def test_cards_stand_where_they_were_shown_with_what_was_answered() -> None:
    seen, does = watched()

    async def ask(value: object, ctx: ToolContext) -> str:
        return str(await ctx.display.push_and_wait("generic", {"title": "Which?"}))

    def answer(live: Live) -> None:
        live.agent.display.push_and_forget("show_info_card", {"title": "Later"})
        (asked, later) = live.agent.display.stack
        note = seen.past.noting(
            lambda request: (
                live.agent.display.resolve(request.id, request.value)
                if isinstance(request, Resolve)
                else live.agent.display.reject(request.id, request.reason)
            )
        )
        assert note(Resolve(asked.id, "window"))
        assert note(Reject(later.id, "dismissed"))
        assert not note(Resolve("slot_99", 1))

    def show(live: Live) -> None:
        reporter = CallReporter(live.call.emit, seen.past)
        live.agent.display.subscribe(reporter.on_display)

    open_ = Watched(seen.past)
    does += [Does(0.0, show), Does(2.0, open_.look), Does(2.2, answer)]
    await hold_call(
        CallScript(
            caller=[Says(0.3, 0.9, "Which table?")],
            model=[say(ToolUse("look", {})), say("By the window then.")],
            tools=[tool(ask)],
            does=does,
            seconds=5,
        )
    )
    assert [one["kind"] for one in open_.entries] == ["user", "tool", "slot"]
    assert open_.entries[-1]["state"] == "open"
    found = seen.past.entries()
    assert [one["kind"] for one in found] == ["user", "tool", "slot", "slot", "agent_text"]
    assert (found[2]["state"], found[2]["value"]) == ("answered", "window")
    assert (found[3]["state"], found[3]["reason"]) == ("refused", "dismissed")


async def test_what_is_said_outside_every_turn_is_told_where_it_was_said() -> None:
    seen, does = watched()

    async def slow(value: object, ctx: ToolContext) -> str:
        await asyncio.sleep(3)
        return "free"

    turn = TurnConfig(acknowledge_after_ms=600, acknowledgements=("One moment.", "Just a second."))
    await hold_call(
        CallScript(
            caller=[Says(0.3, 0.9, "Is a table free?")],
            model=[say(ToolUse("look", {})), say("It is free.")],
            tools=[tool(slow)],
            does=does,
            turn=turn,
            seconds=8,
        )
    )
    assert [one["kind"] for one in seen.past.entries()] == ["user", "aside", "tool", "agent_text"]


async def test_core_row_053_a_compaction_on_a_call_is_told_and_its_summary_is_nowhere() -> None:
    seen, does = watched()
    words: list[str] = []

    def listen(live: Live) -> None:
        text = LiveText()
        text.show = words.append
        live.agent.add_subscriber(text)

    does.append(Does(0.0, listen))
    held = await hold_call(
        CallScript(
            caller=[Says(0.3, 0.9, "Hello there?")],
            model=[say("One two."), say("SUMMARY of it all.")],
            agent=AgentConfig(compaction=CompactionConfig(context_limit=1)),
            does=does,
            seconds=6,
        )
    )
    told = [(one.event, one.status) for one in held.of(events.Compaction)]
    assert told == [("start", None), ("end", "ok")]
    assert any(message.is_compaction for message in held.history), "it was made and stored"
    assert "SUMMARY" not in f"{held.told()}{words}{seen.past.messages()}"


# ---- a client that attaches


class Screen(FixtureTransport):
    """A line that also takes messages."""

    epoch, sent = 0, 0

    def __init__(self) -> None:
        super().__init__(np.zeros(3_200, np.int16))
        self.posted: list[dict[str, object]] = []

    def post(self, message: Mapping[str, object]) -> None:
        self.posted.append(dict(message))


async def test_a_client_is_told_ready_then_what_was_said_then_how_it_stands() -> None:
    present = [events.Tasks(tasks=({"id": "t"},))]
    past = Conversation(stored_call(), (), present)
    info = CallInfo(call_id="c", line="websocket", peer="p", agent="demo")
    call = Call(EchoBrain(), info, CallPolicy())
    session = CallSession(call, lambda request: False, "A", past=past, inbox=True)
    screen = Screen()
    await session.attach(screen, "token")
    assert [one["t"] for one in screen.posted] == ["ready", "timeline", "state", "event"]
    assert screen.posted[0]["inbox"] == "/sessions/c/inbox"
    assert screen.posted[-1]["again"] is True, "the plan that the call began with"
    silent = CallSession(call, lambda request: False, "A", past=Conversation())
    empty = Screen()
    await silent.attach(empty, "token")
    assert [one["t"] for one in empty.posted] == ["ready", "state"]
