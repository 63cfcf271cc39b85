"""The promises of the turn machine under any order of events (DESIGN 5.1, 5.2, 5.5).

One property drives a plausible call with everything late, missing or interleaved; the other feeds
plain nonsense. Both check what is asked for, not how the machine came to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pipelines.machine_world import FRAME, Manners, Monitor, Said, World, ms
from voxglove.media.turns.words import TAIL_EXTENSION_CHARS
from voxglove.pipelines import vocabulary as voc
from voxglove.pipelines.commit import TurnConfig
from voxglove.pipelines.machine import MachineConfig, State, initial, replay, step

END = 12_000
"""The caller is silent from here on, in milliseconds."""
QUIET = 45_000
"""By then everything owed was answered or given up."""

RELEASE = 1000
"""The command that lets go of the talk button."""

HUMS = ("mm-hm", "yeah", "ok")


@st.composite
def callers(draw: st.DrawFn) -> list[Said]:
    """Voices one after the other; each real word is unique, so that it can be found again."""
    said: list[Said] = []
    at, number = 500, 0
    while at < END - 3000 and len(said) < 8:
        length = draw(st.sampled_from((60, 130, 200, 300, 700, 1500, 2800)))
        kind = draw(st.sampled_from(("words", "words", "words", "hum", "none", "stop")))
        count = max(1, length // 300)
        own = [f"word{number + index}" for index in range(count)]
        number += count
        ends = draw(st.sampled_from((".", "?", "", " 4 7")))
        text = {
            "words": " ".join(own) + ends,
            "hum": draw(st.sampled_from(HUMS)),
            "none": "",
            "stop": "stop",
        }[kind]
        said.append(Said(at, at + length, text, draw(st.sampled_from((0.1, 0.1, 0.05)))))
        at += length + draw(st.sampled_from((200, 260, 600, 1000, 2500)))
    return said


manners = st.builds(
    Manners,
    stt=st.lists(st.sampled_from((0, 60, 300, 900, 2500, 4500, 6000, -1)), min_size=1, max_size=6),
    verdict=st.lists(
        st.tuples(st.sampled_from((0, 40, 340, 500, -1)), st.sampled_from((0.1, 0.3, 0.9))),
        min_size=1,
        max_size=4,
    ),
    think=st.sampled_from((0, 100, 400, 1500)),
    speak=st.sampled_from((200, 1000, 4000)),
    parts=st.sampled_from((1, 1, 2)),
)

configs = st.builds(
    MachineConfig,
    continuous=st.booleans(),
    gating=st.booleans(),
    detector=st.booleans(),
    turn=st.builds(TurnConfig, manual=st.sampled_from((False, False, False, True))),
)

Maker = Callable[[int, int], voc.TurnEvent]

ORDERS: tuple[Maker, ...] = (
    lambda at, n: voc.Asked(at, n, "say", f"typed{n}"),
    lambda at, n: voc.Asked(at, n, "respond", "go"),
    lambda at, n: voc.Asked(at, n, "inject", "news"),
    lambda at, n: voc.Asked(at, n, "context", "fact"),
    lambda at, n: voc.Asked(at, n, "narrate", "hear this"),
    lambda at, n: voc.Asked(at, n, "interrupt"),
    lambda at, n: voc.Asked(at, n, "commit"),
    lambda at, n: voc.Asked(at, n, "barge_in"),
    lambda at, n: voc.Muted(at, n, on=True),
    lambda at, n: voc.Muted(at, n, on=False),
    lambda at, n: voc.Talk(at, n, down=True),
    lambda at, n: voc.Talk(at, n, down=False),
    lambda at, n: voc.Woken(at),
    lambda at, n: voc.Slots(at, n % 2),
    lambda at, n: voc.LineMoved(at, "detached"),
    lambda at, n: voc.LineMoved(at, "attached"),
    lambda at, n: voc.LineMoved(at, "held"),
)

orders = st.lists(st.tuples(st.integers(0, END), st.sampled_from(ORDERS)), max_size=8)


def held_call(
    config: MachineConfig,
    said: list[Said],
    behaviour: Manners,
    given_orders: list[tuple[int, Maker]],
) -> tuple[World, Monitor]:
    """The call, run until all is quiet and the line is there."""
    monitor = Monitor()
    world = World(config, said, behaviour, watch=monitor)
    world.feed(voc.LineMoved(0, "attached"))
    for number, (at_ms, order) in enumerate(given_orders):
        world.later(at_ms, lambda at, make=order, n=number: make(at, n))  # type: ignore[misc]
    world.later(END, lambda at: voc.LineMoved(at, "attached"))
    world.later(END, lambda at: voc.Talk(at, RELEASE, down=False))
    if config.turn.manual:
        world.later(END + 8000, lambda at: voc.Asked(at, 1001, "commit"))
    world.run(QUIET)
    return world, monitor


@settings(max_examples=100)
@given(configs, callers(), manners, orders)
def test_any_call_keeps_its_promises_and_comes_to_rest(
    config: MachineConfig,
    said: list[Said],
    behaviour: Manners,
    given_orders: list[tuple[int, Maker]],
) -> None:
    world, monitor = held_call(config, said, behaviour, given_orders)
    assert_at_rest(world.state)
    assert not monitor.paused
    assert_words_accounted_for(world)
    monitor.check_commands()
    assert [effect for _, effect in replay(world.events, config)] == [e for _, e in world.done]


@settings(max_examples=40)
@given(callers(), manners, orders, st.integers(0, END))
def test_a_hang_up_at_any_moment_ends_everything(
    said: list[Said], behaviour: Manners, given_orders: list[tuple[int, Maker]], at_ms: int
) -> None:
    monitor = Monitor()
    world = World(MachineConfig(), said, behaviour, watch=monitor)
    world.feed(voc.LineMoved(0, "attached"))
    for number, (order_ms, order) in enumerate(given_orders):
        world.later(order_ms, lambda at, make=order, n=number: make(at, n))  # type: ignore[misc]
    world.run(at_ms)
    world.feed(voc.LineMoved(world.at, "closed"))
    before = len(world.done)
    world.run(END)
    assert all(isinstance(effect, voc.Complete) for _, effect in world.done[before:])
    assert monitor.live is None
    assert world.state.mode == "idle"
    monitor.check_commands()
    assert_words_accounted_for(world, until=ms(at_ms))


def assert_at_rest(state: State) -> None:
    assert state.user == "silent"
    assert state.agent == "idle"
    assert state.hold is None
    assert state.transcript.pieces == ()
    assert state.queued == ()
    assert state.narration is None
    assert state.committing is None
    assert not state.woken


def assert_words_accounted_for(world: World, until: int = 1 << 40) -> None:
    """Every word that was reported for good is in a turn that was told, and in one turn only."""
    told = world.of(voc.TellTurn)
    committed = [one for one in told if one.event == "committed"]
    spoken = [word for one in committed for word in one.text.split() if word.startswith("word")]
    assert len(spoken) == len(set(spoken)), f"twice: {spoken}"
    ends = [one for one in told if one.event in ("committed", "dropped", "corrected")]
    known = {word.strip(".?") for one in ends for word in one.text.split()}
    final = [event for event in world.reported if event.final and event.at <= until]
    reported = {word.strip(".?") for event in final for word in event.text.split()}
    lost = reported - known
    tails = world.metrics().count("stt_tail_extension")
    assert len(" ".join(lost)) <= tails * TAIL_EXTENSION_CHARS, f"lost: {sorted(lost)}"
    spans = [(one.start, one.end) for one in world.of(voc.StartReply) if one.start is not None]
    for (_, before), (after, _) in zip(spans, spans[1:], strict=False):
        assert before is None or after is None or before <= after, f"overlap: {spans}"


# ---- nonsense

at_steps = st.sampled_from((0, 160, 320, 320, 320, 4000, 16_000, 64_000))
positions = st.integers(0, 400_000)
texts = st.sampled_from(("", " ", "stop", "yeah", "what is that?", "one two", "one two three", "…"))
numbers = st.integers(0, 5)

Fact = (
    voc.Tick
    | voc.Voice
    | voc.Words
    | voc.Verdict
    | voc.Sounded
    | voc.Silenced
    | voc.Answered
    | voc.Narrated
)

wild: st.SearchStrategy[Fact | Maker] = st.one_of(
    st.builds(
        voc.Tick,
        st.just(0),
        st.sampled_from((0.0, 0.1, 0.4, 0.9)),
        st.sampled_from((0.0, 0.02, 0.3)),
    ),
    st.builds(
        voc.Voice,
        st.just(0),
        st.sampled_from(("start", "confirmed", "misfire", "end", "echo")),
        positions,
    ),
    st.builds(voc.Words, st.just(0), texts, positions, positions, st.booleans()),
    st.builds(
        voc.Verdict,
        st.just(0),
        numbers,
        st.sampled_from((0, 400, 1500)),
        st.just("wild"),
        st.sampled_from((None, 0.1, 0.9)),
        st.sampled_from((None, 600)),
        st.booleans(),
    ),
    st.builds(voc.Sounded, st.just(0), numbers),
    st.builds(voc.Silenced, st.just(0), numbers),
    st.builds(voc.Answered, st.just(0), numbers),
    st.builds(voc.Narrated, st.just(0), st.integers(0, 60)),
    st.sampled_from(ORDERS),
)


@settings(max_examples=200)
@given(configs, st.booleans(), st.lists(st.tuples(at_steps, wild), max_size=60))
def test_nonsense_never_raises_and_leaves_nothing_stuck(
    config: MachineConfig, continuous: bool, story: list[tuple[int, Fact | Maker]]
) -> None:
    config = replace(config, continuous=continuous)
    world = World(config, manners=Manners(stt=(-1,), verdict=((-1, 0.5),)))
    monitor = Monitor()
    for number, (gap, what) in enumerate(story):
        world.at += gap
        event = what(world.at, number) if callable(what) else replace(what, at=world.at)
        live = world.state.reply
        effects = world.feed(event)
        for effect in effects:
            monitor._sound(effect)
            if isinstance(effect, voc.Complete):
                monitor.completed.append(effect.command)
        if isinstance(event, voc.Answered) and live is not None and event.gen == live.gen:
            monitor.live = None
        if hasattr(event, "command") and not isinstance(event, voc.Narrated):
            monitor.asked.add(event.command)
    assert monitor.live == (None if world.state.reply is None else world.state.reply.gen)
    if settle_down(world):
        monitor.asked.add(RELEASE)
    if not config.turn.manual:
        assert world.state.user == "silent"
        assert world.state.transcript.pieces == ()
        assert world.state.hold is None
    assert world.state.agent in ("idle", "thinking", "speaking")
    reply = world.state.reply
    assert reply is None or not reply.withheld
    world.feed(voc.LineMoved(world.at, "closed"))
    completed = [effect.command for effect in world.of(voc.Complete)]
    assert sorted(completed) == sorted(monitor.asked)


def settle_down(world: World) -> bool:
    """The line is there, the room is silent, and whatever sounds comes to its end. Returns
    whether a talk button had to be let go."""
    world.feed(voc.LineMoved(world.at, "attached"))
    down = world.state.talk.down_at is not None
    if down:
        world.feed(voc.Talk(world.at, RELEASE, down=False))
    for frame in range(ms(40_000) // FRAME):
        world.at += FRAME
        world.feed(voc.Tick(world.at))
        state = world.state
        if state.narration is not None:
            world.feed(voc.Narrated(world.at, state.narration))
            continue
        sounding = state.agent in ("thinking", "speaking") and frame % 50 == 0
        if sounding and state.reply is not None and not state.reply.withheld:
            world.feed(voc.Answered(world.at, state.reply.gen))
    return down


def test_a_closed_line_only_completes_commands() -> None:
    state = initial(MachineConfig())
    state, _ = step(state, voc.LineMoved(0, "closed"), MachineConfig())
    for make in ORDERS:
        event = make(320, 7)
        after, effects = step(state, event, MachineConfig())
        command = getattr(event, "command", None)
        assert effects == (() if command is None else (voc.Complete(command),))
        assert after._replace(ignored=state.ignored) == state
