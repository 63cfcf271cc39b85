"""Keyless voice to voice, measured: `python bench/latency.py [--utterances N] [--json FILE]`.

The echo's first chunk, "You said:", comes from the voice's phrase cache after the first call.
`--fresh` answers with the caller's own words instead, so that nothing was ever said before.

Ten callers, one after the other and in real time: each says one sentence and is answered by the
local stack (Whisper, smart-turn, Piper) over an echo. Inference counts when it is ready, as on a
live call. Prints p50 and p90 from the end of speech to the first sample of the answer, with the
share of every stage. Compares nothing and decides nothing: numbers depend on the machine.

Two clocks are shown. `total` is the call's own metric (its parts sum to it); `truth` is read off
the tracks: from the last sample of speech the fixture's file names to the first loud sample of the
agent. They differ by what the voice detector thinks the end of speech is.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.audio_fixtures.dsp import join
from tests.audio_fixtures.load import Fixture, fixture
from tests.support.audio import first_loud_sample
from voxglove.adapters.models.scripted import EchoModel, ScriptedModel
from voxglove.adapters.transports.fixture import FixtureTransport
from voxglove.core import factory
from voxglove.core.agent import Agent
from voxglove.core.builder import Glove
from voxglove.core.cancel import CancelToken
from voxglove.core.model import ModelRequest, ModelResult, Notify
from voxglove.media import events as call
from voxglove.media.call import Call
from voxglove.media.frame import AudioFrame
from voxglove.media.transport import CallInfo, Hangup, Signal
from voxglove.media.turns.latency import PART_NAMES
from voxglove.web.build import CallOptions, Shared, open_call, open_shared
from voxglove.web.config import Config, PartConfig

UTTERANCES = (
    *("ask_hours", "ask_repeat", "booking_2", "booking_3", "booking_cancel", "booking_change"),
    *("utterance", "cards_001", "goforward", "librivox_0930"),
)
"""Seven of the fixture voice, three of people; one turn each."""

LONGEST_S = 10.0
RATE = call.RATE


@dataclass(frozen=True, slots=True)
class Measured:
    """One answer, in milliseconds."""

    name: str
    total: float
    truth: float
    parts: Mapping[str, float]


async def measure(shared: Shared, spoken: Fixture, agent: str = "demo") -> Measured | None:
    """One call in real time; None when it got no answer."""
    audio = join([RATE // 2, spoken.pcm])
    info = CallInfo(call_id=f"bench-{spoken.name}", line="fixture", agent=agent)
    metrics: list[call.Metric] = []
    async with open_call(shared, info, CallOptions(has_display=False)) as opened:

        def keep(_: int, event: call.CallEvent) -> None:
            if isinstance(event, call.Metric) and event.name == "turn_latency":
                metrics.append(event)

        opened.call.subscribe(keep)
        line = _UntilAnswered(audio, opened.call, metrics)
        opened.call.attach(line)
        await opened.call.run()
        heard = line.heard()
    end = RATE // 2 + spoken.spans[-1].end
    first = first_loud_sample(heard, after=end)
    if not metrics or first is None:
        return None
    parts = {part.name: part.ms for part in metrics[0].parts or ()}
    return Measured(spoken.name, metrics[0].total_ms or 0.0, (first - end) * 1000 / RATE, parts)


class _UntilAnswered(FixtureTransport):
    """The fixture line, hung up half a second into the answer."""

    def __init__(
        self, audio: np.ndarray[tuple[int], np.dtype[np.int16]], live: Call, told: list[call.Metric]
    ) -> None:
        super().__init__(audio)
        self._live = live
        self._told = told

    async def receive(self) -> AsyncIterator[AudioFrame | Signal]:
        answered: int | None = None
        async for item in super().receive():
            yield item
            if self._told and answered is None:
                answered = self._live.at
            late = self._live.at >= self.input_end + LONGEST_S * RATE
            if late or (answered is not None and self._live.at >= answered + RATE // 2):
                yield Hangup(by_remote=False)
                return


def quantile(values: Sequence[float], share: float) -> float:
    """By linear interpolation."""
    return float(np.quantile(np.array(values), share))


def report(found: Sequence[Measured]) -> str:
    """The table: one line an utterance, then p50 and p90 of each column."""
    names = [*PART_NAMES]
    lines = [f"{'utterance':16}{'truth':>8}{'total':>8}" + "".join(f"{n:>10}" for n in names)]
    for one in found:
        cells = "".join(f"{one.parts.get(name, 0):10.0f}" for name in names)
        lines.append(f"{one.name:16}{one.truth:8.0f}{one.total:8.0f}{cells}")
    for share in (0.5, 0.9):
        cells = "".join(
            f"{quantile([one.parts.get(name, 0) for one in found], share):10.0f}" for name in names
        )
        truth = quantile([one.truth for one in found], share)
        total = quantile([one.total for one in found], share)
        lines.append(f"p{100 * share:<15.0f}{truth:8.0f}{total:8.0f}{cells}")
    load = os.getloadavg()[0]
    lines.append(f"milliseconds; {os.cpu_count()} cores, load {load:.1f} over the last minute")
    return "\n".join(lines)


class Parrot(EchoModel):
    """Says what it heard, and nothing before it."""

    async def prompt(
        self, request: ModelRequest, notify: Notify, token: CancelToken
    ) -> ModelResult:
        said = next((m.text for m in reversed(request.messages) if m.is_user_turn), "")
        model = ScriptedModel([f"{said} That is what I heard."])
        return await model.prompt(request, notify, token)


def parrot(_: factory.CallInfo) -> Agent:
    """An agent over `Parrot`, under the name the calls ask for."""
    return Glove(model=Parrot(), system_prompt="Repeat what you hear.").build()


async def run(utterances: Sequence[str], *, fresh: bool = False) -> list[Measured]:
    """All utterances, one call after the other."""
    model = PartConfig(name="scripted", arg="echo")
    shared = await open_shared(Config(model=model), {})
    if fresh:
        shared = replace(shared, factories={**shared.factories, "parrot": parrot})
    try:
        await shared.warm()
        agent = "parrot" if fresh else "demo"
        found = [await measure(shared, fixture(name), agent) for name in utterances]
    finally:
        shared.close()
    return [one for one in found if one is not None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 when an utterance got no answer."""
    parser = argparse.ArgumentParser(description="Measure keyless voice-to-voice latency.")
    parser.add_argument("--utterances", type=int, default=len(UTTERANCES), help="how many (1-10)")
    parser.add_argument("--json", type=Path, help="write the numbers there too")
    parser.add_argument("--fresh", action="store_true", help="answer with the caller's words")
    options = parser.parse_args(arguments)
    asked = UTTERANCES[: max(1, options.utterances)]
    found = asyncio.run(run(asked, fresh=options.fresh))
    print(report(found))
    if options.json is not None:
        rows = [{"name": m.name, "total_ms": m.total, "truth_ms": m.truth} | m.parts for m in found]
        options.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    return int(len(found) < len(asked))


if __name__ == "__main__":
    sys.exit(main())
