"""Random callers, commands, carriers and providers: what must hold of every realtime call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.realtime.brain_calls import (
    ABLE_16,
    DEAF_16,
    DUPLEX_16,
    RATE,
    WORD,
    Does,
    Rung,
    Says,
    hold,
)
from tests.support.timeline_schema import faults
from voxglove.adapters.transports.fixture import Estimate
from voxglove.media import brain as port
from voxglove.media import events as call
from voxglove.realtime.port import Capabilities
from voxglove.realtime.scripted import Reply, ScriptedAdapter

COMMANDS: list[port.Command] = [
    port.Interrupt(),
    port.ClientBargeIn(),
    port.Mute(on=True),
    port.Mute(on=False),
    port.Respond("go on"),
    port.Say("typed words"),
    port.Narrate("read this out"),
    port.PushToTalk(down=True),
    port.PushToTalk(down=False),
]
ANSWERS = [f"{one} {two} three four {one} {two}" for one in "abcdefgh" for two in "ijklm"]


@dataclass(frozen=True)
class Script:
    says: list[Says]
    does: list[Does]
    able: Capabilities
    replies: list[Reply]
    speed: float
    estimate: Estimate | None
    seconds: float


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    says, when = [], 0.3
    for n in range(draw(st.integers(1, 4))):
        when += draw(st.sampled_from([0.2, 0.5, 0.9, 1.7]))
        length = draw(st.sampled_from([0.15, 0.3, 0.6, 1.1]))
        noticed = draw(st.booleans()) or n == 0
        says.append(Says(round(when, 2), round(when + length, 2), f"words {n}", noticed=noticed))
        when += length
    times = st.sampled_from([0.1, 0.7, 1.3, 1.61, 2.1, 2.9, 4.4])
    picks = draw(st.lists(st.tuples(times, st.sampled_from(COMMANDS)), max_size=4))
    does = [Does(at, _command(one)) for at, one in picks]
    if draw(st.integers(0, 3)) == 0:
        lost = draw(st.sampled_from([1.5, 2.3]))
        does += [Does(0, partial(_break, lost)), Does(lost + 0.6, lambda r: r.reattach(6.0))]
    delays = st.sampled_from([0.0, 0.05, 0.4])
    return Script(
        says=says,
        does=does,
        able=draw(st.sampled_from([ABLE_16, DEAF_16, DUPLEX_16])),
        replies=[Reply(text=text, after_s=draw(delays)) for text in ANSWERS[:12]],
        speed=draw(st.sampled_from([1.0, 4.0, 50.0])),
        estimate=draw(st.sampled_from([None, None, Estimate(error=1_600), Estimate(error=-800)])),
        seconds=when + draw(st.sampled_from([0.3, 1.3, 4.0])),
    )


def _command(command: port.Command) -> Callable[[Rung], object]:
    return lambda rung: rung.command(command)


def _break(when: float, rung: Rung) -> None:
    rung.lines[0].fail_at(round(when * RATE))


def check(rung: Rung, script: Script) -> None:
    pieces = rung.pieces() if script.estimate is None else []
    started = [gen for event, gen in rung.responses if event == "started"]
    over = [gen for event, gen in rung.responses if event in ("ended", "cut")]
    assert started == over, rung.told()
    assert not faults(rung.lines_told()), (faults(rung.lines_told()), rung.told())
    modes = rung.modes
    assert all(a != b for a, b in zip(modes, modes[1:], strict=False)), modes
    assert modes[-1] == "idle" and "idle" not in modes[:-1], rung.told()
    for metric in rung.of(call.Metric):
        if metric.name == "turn_latency" and metric.parts is not None:
            assert abs(sum(part.ms for part in metric.parts) - (metric.total_ms or 0)) <= 1
    for message in rung.answers:
        assert message.playback == "settled", rung.told()
        assert (message.heard or "") + (message.unheard or "") == message.text, message
        if script.estimate is None:
            heard = sum(p.end - p.start for p in pieces if p.text == message.text.strip())
            words = (heard + WORD // 2) // WORD
            assert abs(len((message.heard or "").split()) - words) <= 1, (message, rung.told())
    paused: int | None = None
    for at, event in rung.events:
        if isinstance(event, call.Interruption):
            if event.event == "paused":
                paused = at
            elif paused is not None:
                silent = [p for p in pieces if p.at < at and p.stop > paused + 60 * RATE // 1000]
                assert not silent, (silent, rung.told())
                paused = None


# No shrinking: a failing call prints its whole timeline, and bounded time is worth more.
@given(script=scripts())
@settings(max_examples=40, phases=(Phase.explicit, Phase.generate))
async def test_what_must_hold_holds_on_every_realtime_call(script: Script) -> None:
    rung = await hold(
        script.says,
        replies=script.replies,
        does=script.does,
        adapter=ScriptedAdapter(capabilities=script.able, speed=script.speed),
        estimate=script.estimate,
        seconds=script.seconds,
    )
    check(rung, script)
