"""What the line does to a realtime call: carriers that break, and its own sound that comes back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import numpy as np
import pytest

from tests.audio_fixtures.echo import EchoPath
from tests.audio_fixtures.load import fixture
from tests.realtime.brain_calls import RATE, REPLY, WORD, Does, Rung, Says, hold
from voxglove.adapters.transports.fixture import Estimate, FixtureTransport
from voxglove.media import brain as port
from voxglove.media import events as call
from voxglove.media.format import PIPELINE
from voxglove.media.frame import AudioFrame
from voxglove.media.transport import Signal
from voxglove.media.vad.energy import EnergyVad
from voxglove.realtime.scripted import Reply

QUESTION = Says(0.3, 0.9, "hello there")


@pytest.mark.parametrize("estimate", [None, Estimate(error=1_600)], ids=["exact", "estimated"])
async def test_an_answer_goes_on_on_the_next_carrier_with_nothing_lost(
    estimate: Estimate | None,
) -> None:
    for step in range(12):
        lost = round(1.4 + 0.17 * step, 2)
        rung = await hold(
            [QUESTION],
            does=[
                Does(0, partial(_break, lost)),
                Does(lost + 0.7, lambda rung: rung.reattach(3.5, estimate)),
            ],
            seconds=9.0,
        )
        assert rung.heard(REPLY) == 8 * WORD, rung.told()
        assert [event for event, _ in rung.responses] == ["started", "audio", "ended"]
        assert [one.heard for one in rung.answers] == [REPLY]
        speaking = rung.modes.index("speaking")
        assert rung.modes[speaking + 1 :][:1] == ["listening"], rung.told()


def _break(when: float, rung: Rung) -> None:
    rung.lines[0].fail_at(round(when * RATE))


class EchoLine(FixtureTransport):
    """A caller's loudspeaker stands beside the microphone: what is played comes back in."""

    path: EchoPath

    async def receive(self) -> AsyncIterator[AudioFrame | Signal]:
        size = PIPELINE.samples(20)
        async for item in super().receive():
            if isinstance(item, AudioFrame):
                played = self.heard()[-size:]
                mixed = item.array().astype(np.int32) + self.path.feed(played)
                pcm = np.clip(mixed, -32_768, 32_767).astype(np.int16).tobytes()
                item = AudioFrame(pcm, item.format, item.at)
            yield item


async def by_loudspeaker(near: str = "", *, guarded: bool = True) -> Rung:
    """The agent speaks with a person's voice from 0.5 s on; the caller says `near` at 2.0 s."""
    sound = np.zeros(RATE * 8, np.int16)
    if near:
        clip = fixture(near).pcm
        sound[2 * RATE : 2 * RATE + len(clip)] = clip[: 6 * RATE]
    line = EchoLine(sound, hangup_after_s=0.0)
    line.path = EchoPath(delay_ms=120, gain_db=-16)
    agent = fixture("agent_hours")
    return await hold(
        [Says(7.8, 7.9, heard=False)],  # from here on the provider hears nothing else
        replies=[Reply(text=agent.transcript)],
        does=[Does(0.5, lambda rung: rung.command(port.Respond("speak")))],
        line=line,
        speak=lambda text, rate: agent.pcm.tobytes(),
        vad=EnergyVad,
        echo_guard=guarded,
    )


async def test_the_agents_own_voice_in_the_microphone_neither_pauses_nor_cuts_it() -> None:
    rung = await by_loudspeaker()
    assert not rung.of(call.Interruption), rung.told()
    assert not rung.of(call.Vad), rung.told()
    assert [event for event, _ in rung.responses] == ["started", "audio", "ended"]
    alone = await by_loudspeaker(guarded=False)
    assert alone.of(call.Interruption), "nothing came back that a detector hears: no test at all"


async def test_a_caller_over_the_agents_own_voice_still_cuts_it() -> None:
    rung = await by_loudspeaker("booking_change")
    assert [one.event for one in rung.of(call.Interruption)][-1] == "cut", rung.told()
    assert rung.when(call.Interruption, event="cut") < 3.5 * RATE
