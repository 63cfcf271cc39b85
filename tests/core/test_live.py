"""The seam of a realtime session: prompt, context, outside news, turns, corrections (voice 18)."""

from __future__ import annotations

import asyncio

import pytest

from tests.core.live_rig import assert_view_valid, on_line
from tests.core.support import Recorder, ScriptedModel, SlowStore, make_agent, make_tool, stored
from voxglove.core import (
    NO_TRANSCRIPT,
    AbortError,
    AgentEvent,
    CancelToken,
    CompactionConfig,
    ContentPart,
    ContentSource,
    Controls,
    EventConfig,
    HookContext,
    HookOutcome,
    InboxItem,
    MemoryStore,
    Message,
    ModelResponseComplete,
    SkillContext,
    TextDelta,
    ToolCall,
    TurnPreparation,
    UnknownMessageError,
    Usage,
    UsageError,
    Wake,
)


class Summariser:
    """A foreign summariser; it keeps what it was asked."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.view: list[Message] = []
        self.instructions = ""

    async def __call__(
        self, view: list[Message], instructions: str, token: CancelToken
    ) -> tuple[str, Usage]:
        self.view, self.instructions = view, instructions
        return self.text, Usage(7, 3)


class Clock:
    """A context provider that says what it was set to, and counts how often it was asked."""

    def __init__(self, text: str | None) -> None:
        self.text = text
        self.asked = 0

    def __call__(self, token: CancelToken) -> str | None:
        self.asked += 1
        return self.text


# -- the seam itself


async def test_the_seam_needs_a_hold_of_the_turn_queue() -> None:
    agent = make_agent(ScriptedModel())
    async with agent.running():
        with pytest.raises(UsageError, match="hold"):
            agent.live()
        async with agent.turn_queue.hold("a session"):
            with pytest.raises(UsageError, match="tool_retries"):
                agent.live(tool_retries=-1)
            assert agent.live().prompt == "You are a test."


async def test_prompt_and_tools_are_those_of_now() -> None:
    agent = make_agent(ScriptedModel(), make_tool(lambda value: None, "first"))
    async with on_line(agent) as live:
        before = live.tools
        assert live.tools is before
        agent.set_voice_prompt("Speak.")
        agent.fold(make_tool(lambda value: None, "second"))
        assert live.prompt == "Speak."
        assert [tool.name for tool in live.tools] == ["first", "second"]
        assert [tool.name for tool in before] == ["first"]


async def test_events_bear_the_agents_name_and_the_run_they_are_emitted_for() -> None:
    recorder = Recorder()
    agent = make_agent(ScriptedModel(), name="desk").add_subscriber(recorder)
    async with on_line(agent) as live:
        live.emit(TextDelta(text="a", run_id="someone else"), "r1")
        live.emit(TextDelta(text="b"))
        await live.used(Usage(1, 2), run_id="r1")
    told = recorder.of("text_delta") + recorder.of("token_consumption")
    assert [(one.agent, one.run_id) for one in told] == [
        ("desk", "r1"),
        ("desk", ""),
        ("desk", "r1"),
    ]


async def test_ids_are_of_the_agents_own_source() -> None:
    agent = make_agent(ScriptedModel(), new_id=lambda prefix: f"{prefix}!")
    async with on_line(agent) as live:
        assert live.new_id("item") == "item!"


# -- a turn begins


async def test_core_row_071_preparers_run_on_a_line_and_a_failing_one_is_left_out() -> None:
    heard: list[tuple[str, str | None]] = []
    recorder = Recorder()
    agent = make_agent(ScriptedModel()).add_subscriber(recorder)

    def broken(preparation: TurnPreparation) -> None:
        raise OSError("no database")

    def note(preparation: TurnPreparation) -> None:
        user = preparation.user
        heard.append((preparation.reason, None if user is None else user.text))
        preparation.agent.set_system_prompt("prepared")

    agent.add_turn_preparer(broken)
    agent.add_turn_preparer(note)
    async with on_line(agent) as live:
        await live.prepare("session_open")
        await live.prepare("user_speech", Message(sender="user", text="hi"))
        await agent.prepare_turn("event")
        assert live.prompt == "prepared"
        token = CancelToken()
        token.abort("hang-up")
        with pytest.raises(AbortError):
            await live.prepare("event", token=token)
    assert heard == [("session_open", None), ("user_speech", "hi"), ("event", None)]
    assert [one.message for one in recorder.of("error")] == ["no database"] * 3


async def test_context_is_asked_at_the_moments_of_its_delivery() -> None:
    agent = make_agent(ScriptedModel())
    recorder = Recorder()
    agent.add_subscriber(recorder)
    now, user, news = Clock("12:00"), Clock("Ada"), Clock("sale")
    agent.add_context_provider(now, id="now")
    agent.add_context_provider(user, delivery="request", id="user")
    agent.add_context_provider(news, delivery="history", id="news")

    async with on_line(agent) as live:
        opened = await live.context("open")
        assert [(one.id, one.text) for one in opened.values] == [("now", "12:00"), ("user", "Ada")]
        assert [one.text for one in opened.told] == ["sale"]

        now.text, user.text, news.text = "12:01", "Bob", "rain"
        after_tools = await live.context("tools")
        assert [one.text for one in after_tools.values] == ["12:01", "Ada"]  # frozen
        assert after_tools.told == ()

        turn = await live.context("turn")
        assert [one.text for one in turn.values] == ["12:01", "Bob"]
        assert [one.text for one in turn.told] == ["rain"]
        assert (await live.context("turn")).told == ()  # once
    assert (now.asked, user.asked, news.asked) == (4, 3, 3)
    assert [one.text for one in await stored(agent)] == ["sale", "rain"]
    assert opened.told == ((await stored(agent))[0],)
    assert len(recorder.of("runtime_context")) == 4


async def test_without_providers_the_context_is_empty_and_nothing_is_reported() -> None:
    agent = make_agent(ScriptedModel())
    recorder = Recorder()
    agent.add_subscriber(recorder)
    async with on_line(agent) as live:
        assert (await live.context("open")).values == ()
    assert recorder.of("runtime_context") == []


async def test_a_value_is_told_again_after_a_compaction() -> None:
    agent = make_agent(ScriptedModel())
    agent.add_context_provider(Clock("sale"), delivery="history", id="news")
    async with on_line(agent) as live:
        assert len((await live.context("open")).told) == 1
        assert await live.compact(Summariser("so far"))
        assert [one.text for one in (await live.context("turn")).told] == ["sale"]


async def test_what_was_stored_before_an_abort_is_told_by_the_next_call() -> None:
    agent = make_agent(ScriptedModel())
    token = CancelToken()

    def cut(given: CancelToken) -> str:
        token.abort("the user speaks")
        return "never mind"

    agent.add_context_provider(Clock("sale"), delivery="history", id="news")
    remove = agent.add_context_provider(cut)
    async with on_line(agent) as live:
        with pytest.raises(AbortError):
            await live.context("turn", token)
        remove()
        assert [one.text for one in (await live.context("tools")).told] == ["sale"]
        assert (await live.context("tools")).told == ()


async def test_the_runtime_context_of_others_stays_as_it_was() -> None:
    agent = make_agent(ScriptedModel())
    agent.add_context_provider(Clock("rain"), id="weather")
    agent.add_context_provider(Clock("sale"), delivery="history", id="news")
    (message,) = await agent.get_runtime_context()
    assert (message.text, message.framework_context) == ("rain", "runtime")
    assert [one.text for one in await stored(agent)] == ["sale"]


# -- what comes from outside


def wish(name: str, *, blocking: bool = False) -> InboxItem:
    return InboxItem(
        id=name, tag="stock", request="is it there?", created_at="t", blocking=blocking
    )


async def test_outside_news_joins_once_and_is_given_back() -> None:
    recorder = Recorder()
    agent = make_agent(ScriptedModel()).add_subscriber(recorder)
    async with on_line(agent) as live:
        await agent.add_inbox_item(wish("i1"))
        await agent.resolve_inbox_item("i1", "yes", wake=False)
        await agent.emit_event(AgentEvent(source="shop", content="closing", id="e1"))
        await agent.emit_event(AgentEvent(source="shop", content="closing", id="e1"))
        inbox, events = await live.join_outside("r1")
        assert "yes" in inbox.text and "closing" in events.text
        assert [inbox, events] == await stored(agent)
        assert await live.join_outside() == ()
    (injected,) = recorder.of("event_injected")
    assert (injected.id, injected.mode, injected.run_id) == ("e1", "realtime", "r1")
    assert [item.status for item in await agent.get_inbox_items()] == ["consumed"]


async def test_joining_broken_off_while_the_store_writes_tells_nothing_twice() -> None:
    agent = make_agent(ScriptedModel(), store=SlowStore())
    async with on_line(agent) as live:
        await agent.emit_event(AgentEvent(source="shop", content="closing"))
        joining = asyncio.ensure_future(live.join_outside())
        await asyncio.sleep(SlowStore.delay_s * 1.5)
        joining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await joining
        assert await live.join_outside() == ()
    assert len(await stored(agent)) == 1


async def test_a_wake_goes_to_the_session_and_a_user_turn_fills_the_budget_again() -> None:
    agent = make_agent(ScriptedModel(), events=EventConfig(wake_budget=1))
    woken: list[Wake] = []
    async with agent.running(), agent.turn_queue.hold("a session") as hold:
        live = agent.live()
        hold.on_wake(woken.append)
        statuses = []
        for name in "ab":
            receipt = await agent.emit_event(AgentEvent(source="s", content=name))
            statuses.append(receipt.status)
        await live.add_user("hello", directives=False)
        statuses.append((await agent.emit_event(AgentEvent(source="s", content="c"))).status)
    assert statuses == ["woke", "deferred", "woke"]
    assert len(woken) == 2


async def test_blocking_items_are_recalled_and_not_stored() -> None:
    agent = make_agent(ScriptedModel())
    async with on_line(agent) as live:
        assert await live.reminder() is None
        await agent.add_inbox_item(wish("i1", blocking=True))
        reminder = await live.reminder()
        assert reminder is not None and "is it there?" in reminder.text
    assert await stored(agent) == []


# -- turns in history


async def test_a_typed_turn_runs_its_skills_and_hooks_as_a_request_does() -> None:
    recorder = Recorder()
    agent = make_agent(ScriptedModel()).add_subscriber(recorder)

    def polite(context: SkillContext) -> str:
        return "Be polite."

    def shout(context: HookContext) -> HookOutcome:
        return HookOutcome(rewrite_text=context.parsed_text.upper())

    agent.define_skill("polite", polite).define_hook("shout", shout)
    async with on_line(agent) as live:
        added = await live.add_user("/shout /polite good morning", message_id="m1", run_id="r1")
        spoken = await live.add_user("/shout this is said", directives=False)
        assert [one.is_skill_injection for one in added.stored] == [True, False]
        assert "Be polite." in added.stored[0].text
        assert (added.user.id, added.answers) == ("m1", ())
        assert "GOOD MORNING" in added.user.text
        assert added.user.pre_modified_text == "/shout /polite good morning"
        assert spoken.user.text == "/shout this is said"
        assert [*added.stored, *spoken.stored] == await stored(agent)
    invoked = [*recorder.of("hook_invoked"), *recorder.of("skill_invoked")]
    assert [(one.name, one.run_id) for one in invoked] == [("shout", "r1"), ("polite", "r1")]


async def test_a_hook_that_answers_leaves_nothing_to_ask_the_model() -> None:
    recorder = Recorder()
    agent = make_agent(ScriptedModel()).add_subscriber(recorder)
    agent.define_hook("time", lambda context: HookOutcome(short_circuit="It is noon."))
    async with on_line(agent) as live:
        added = await live.add_user("/time please", playback=True)
        (answer,) = added.answers
        assert (answer.text, answer.playback) == ("It is noon.", "pending")
        assert await stored(agent) == [added.user, answer]
        await agent.amend_heard(answer.id, "It is", " noon.", interrupted=True)
    (told,) = recorder.of("model_response")
    assert (told.text, told.message_id) == ("It is noon.", answer.id)


async def test_a_failing_hook_is_reported_and_the_turn_is_kept() -> None:
    recorder = Recorder()
    agent = make_agent(ScriptedModel()).add_subscriber(recorder)

    def broken(context: HookContext) -> None:
        raise OSError("down")

    agent.define_hook("now", broken)
    async with on_line(agent) as live:
        assert (await live.add_user("/now go")).user.text == "/now go"
    (problem,) = recorder.of("error")
    assert (problem.stage, problem.name) == ("directive", "/now")


async def test_a_hook_may_be_aborted_and_then_nothing_is_stored() -> None:
    agent = make_agent(ScriptedModel())
    token = CancelToken()

    async def hangs(context: HookContext) -> None:
        token.abort("hang-up")
        await asyncio.Event().wait()

    agent.define_hook("wait", hangs)
    async with on_line(agent) as live:
        with pytest.raises(AbortError, match="hang-up"):
            await live.add_user("/wait", token=token)
    assert await stored(agent) == []


@pytest.mark.parametrize("own", [True, False])
async def test_a_hooks_compaction_is_the_sessions_or_the_text_models(own: bool) -> None:
    model = ScriptedModel(*([] if own else ["a summary"]))
    agent = make_agent(model)
    asked: list[bool] = []

    async def tidy(context: HookContext) -> None:
        controls: Controls = context.controls
        asked.append(await controls.force_compaction())

    async def by_session() -> bool:
        return False

    agent.define_hook("tidy", tidy)
    async with on_line(agent) as live:
        await live.add_user("before", directives=False)
        added = await live.add_user("/tidy thanks", compact=by_session if own else None)
        assert asked == [not own]
        assert [one.is_compaction for one in await stored(agent)] == (
            [False, False] if own else [False, True, False]
        )
        assert (await stored(agent))[-1] == added.user


async def test_a_picture_is_a_turn_and_nothing_is_not() -> None:
    agent = make_agent(ScriptedModel())
    image = ContentPart("image", source=ContentSource("base64", "image/png", "AA=="))
    async with on_line(agent) as live:
        added = await live.add_user([image])
        assert added.user.content == (image,)
        with pytest.raises(UsageError, match="empty"):
            await live.add_user([])


async def test_words_that_come_late_leave_no_trace_of_the_stand_in() -> None:
    agent = make_agent(ScriptedModel())
    async with on_line(agent) as live:
        added = await live.add_user(" ", message_id="m1", directives=False)
        assert added.user.text == NO_TRANSCRIPT
        await assert_view_valid(live)
        await live.correct_user("m1", "half past")
        (message,) = await stored(agent)
        assert (message.text, message.pre_modified_text) == ("half past", None)
        await live.correct_user("m1", "half past two")
        (message,) = await stored(agent)
        assert (message.text, message.pre_modified_text) == ("half past two", "half past")
        answer = await live.add_answer("Fine.", playback=False)
        with pytest.raises(UsageError, match="not a user turn"):
            await live.correct_user(answer.id, "no")
        with pytest.raises(UnknownMessageError):
            await live.correct_user("m9", "no")


async def test_a_user_turn_may_be_corrected_while_it_is_being_stored() -> None:
    agent = make_agent(ScriptedModel(), store=SlowStore())
    async with on_line(agent) as live:
        adding = asyncio.ensure_future(live.add_user("", message_id="m1", directives=False))
        await asyncio.sleep(SlowStore.delay_s / 2)
        await live.correct_user("m1", "in time")
        assert (await adding).user.text == "in time"
        (message,) = await stored(agent)
        assert (message.text, message.pre_modified_text) == ("in time", None)


# -- answers


async def test_an_answer_may_be_settled_before_it_is_stored() -> None:
    agent = make_agent(ScriptedModel())
    async with on_line(agent) as live:
        name = live.open_answer()
        await agent.report_heard(name, "One")
        await agent.amend_heard(name, "One two", " three", interrupted=True)
        message = await live.add_answer("One two three", message_id=name, playback=True)
        assert (message.playback, message.heard, message.unheard) == (
            "settled",
            "One two",
            " three",
        )
        assert await stored(agent) == [message]
        assert (await live.view())[0].text == "One two [interrupted]"


async def test_a_dropped_answer_is_forgotten() -> None:
    agent = make_agent(ScriptedModel())
    async with on_line(agent) as live:
        name = live.open_answer()
        live.drop_answer(name)
        live.drop_answer("unknown")
        with pytest.raises(UnknownMessageError):
            await agent.amend_heard(name, "a")
    assert await stored(agent) == []


async def test_only_words_that_were_spoken_wait_for_their_playback() -> None:
    agent = make_agent(ScriptedModel())
    async with on_line(agent) as live:
        typed = await live.add_answer("Hello", playback=False)
        blank = await live.add_answer(" ", playback=True)
        cut = await live.add_answer("Hel", playback=False, interrupted=True)
        assert [one.playback for one in (typed, blank, cut)] == [None, None, None]
        assert [one.text for one in await live.view() if one.text.strip()] == [
            "Hello",
            "Hel [interrupted]",
        ]


async def test_a_provider_can_be_given_what_it_does_not_know() -> None:
    agent = make_agent(ScriptedModel(), make_tool(lambda value: "done"))
    async with on_line(agent) as live:
        first = await live.add_user("one", directives=False)
        await live.run_calls([ToolCall("act", {}, "c1")], message_id="asked")
        known = {first.user.id}
        assert [one.id for one in await live.view_since(known)] == ["asked", "asked_results"]
        assert await live.view_since({*known, "asked"}) == []  # results go with their call
        assert await live.view_since(()) == await live.view()


# -- use and compaction


async def test_use_is_counted_told_and_known_to_the_compactor() -> None:
    recorder = Recorder()
    store = MemoryStore()
    agent = make_agent(ScriptedModel(), store=store).add_subscriber(recorder)
    async with on_line(agent) as live:
        await live.used(Usage(10, 5), context_tokens=900)
        assert live.size == 900
        await live.used(Usage())  # a provider that counts seconds
        assert live.size == 900
        await live.used(Usage(20, 2))
        assert live.size == 22
    assert await store.get_token_consumption() == Usage(30, 7)
    assert await store.get_token_count() == 37
    assert await store.get_turn_count() == 3
    assert len(recorder.of("token_consumption")) == 3


async def test_a_foreign_summary_is_stored_like_our_own() -> None:
    recorder = Recorder()
    store = MemoryStore()
    agent = make_agent(ScriptedModel(), store=store).add_subscriber(recorder)
    summarise = Summariser("They said hello.")
    async with on_line(agent) as live:
        await agent.add_inbox_item(wish("i1"))
        user = (await live.add_user("hello", directives=False)).user
        await live.used(Usage(10, 5), context_tokens=500)
        assert await live.compact(summarise, run_id="r1")
        assert summarise.view == [user] and "Summarise" in summarise.instructions
        (summary,) = await live.view()
        assert summary.is_compaction
        assert summary.text.startswith("[Conversation summary from compaction]\nThey said hello.")
        assert "is it there?" in summary.text and summary.text.endswith("continues below.]")
        assert live.size == 3
    assert await store.get_token_consumption() == Usage(17, 8)
    assert (await store.get_token_count(), await store.get_turn_count()) == (10, 0)
    (start,), (end,) = recorder.of("compaction_start"), recorder.of("compaction_end")
    assert (start.current_token_consumption, start.run_id) == (500, "r1")
    assert (end.status, end.summary_message, end.consumption) == ("ok", summary, Usage(7, 3))


@pytest.mark.parametrize("how", ["raises", "blank", "aborted", "late", "cancelled inside"])
async def test_a_summary_that_fails_changes_nothing_and_ends(how: str) -> None:
    recorder = Recorder()
    agent = make_agent(ScriptedModel(), compaction=CompactionConfig(timeout_s=5))
    agent.add_subscriber(recorder)
    token = CancelToken()

    async def summarise(
        view: list[Message], instructions: str, given: CancelToken
    ) -> tuple[str, Usage]:
        if how == "raises":
            raise OSError("gone")
        if how == "aborted":
            token.abort("the user speaks")
        if how == "cancelled inside":
            raise asyncio.CancelledError
        if how != "blank":
            await asyncio.Event().wait()
        return " ", Usage()

    async with on_line(agent) as live:
        before = await stored(agent)
        assert not await live.compact(summarise, token)
        assert await stored(agent) == before
    (end,) = recorder.of("compaction_end")
    assert end.status == ("aborted" if how == "aborted" else "failed")
    assert len(recorder.of("compaction_start")) == 1


async def test_a_summary_hides_nothing_that_came_while_it_was_written() -> None:
    recorder = Recorder()
    agent = make_agent(ScriptedModel()).add_subscriber(recorder)
    async with on_line(agent) as live:

        async def slowly(
            view: list[Message], instructions: str, token: CancelToken
        ) -> tuple[str, Usage]:
            await live.add_user("wait, one more thing", directives=False)
            return "old news", Usage(7, 3)

        await live.add_user("hello", directives=False)
        assert not await live.compact(slowly)
        assert [one.text for one in await live.view()] == ["hello", "wait, one more thing"]
        assert await live.compact(Summariser("all of it"))
    assert [one.status for one in recorder.of("compaction_end")] == ["aborted", "ok"]
    assert len(recorder.of("token_consumption")) == 2  # the one in vain was paid for, too


async def test_a_text_model_can_summarise_and_its_words_are_not_an_answer() -> None:
    recorder = Recorder()
    other = ScriptedModel("in short: hello")
    agent = make_agent(ScriptedModel()).add_subscriber(recorder)
    async with on_line(agent) as live:
        await live.add_user("hello", directives=False)
        assert await live.compact(live.summarise_with(other))
        assert "in short: hello" in (await live.view())[0].text
    (request,) = other.requests
    assert request.messages[-1].is_compaction_request
    assert request.system_prompt == "You are a test."
    assert {one.phase for one in recorder.of("text_delta")} == {"compaction"}


async def test_nobody_compacts_behind_the_sessions_back() -> None:
    model = ScriptedModel("a summary")
    agent = make_agent(model, compaction=CompactionConfig(context_limit=100))
    async with on_line(agent) as live:
        name = (await live.add_answer("Hello", playback=True)).id
        await live.used(Usage(), context_tokens=5_000)
        await agent.amend_heard(name, "Hello")  # this is when a text agent would begin
        await asyncio.sleep(1)
        assert model.requests == []


async def test_text_turns_go_on_from_what_was_said_on_the_line() -> None:
    model = ScriptedModel("You said hello.")
    agent = make_agent(model)
    async with on_line(agent) as live:
        await live.add_user("hello", directives=False)
        name = (await live.add_answer("Good morning.", playback=True)).id
        await agent.amend_heard(name, "Good morning.")
        live.emit(ModelResponseComplete(text="Good morning.", message_id=name))
    await agent.process_request("what did I say?")
    (request,) = model.requests
    assert [one.text for one in request.messages] == ["hello", "Good morning.", "what did I say?"]
