"""Whole calls for the regression tests: a caller's track in, events and both sounds out.

Owned by the tests of this folder; everything runs over the same composition root as `voxglove
call`. A call here may feed the agent's sound back into the caller's microphone and may begin with a
typed turn, which the command line cannot. It never judges.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from tests.audio_fixtures.echo import EchoPath
from voxglove.adapters.transports.fixture import FixtureTransport
from voxglove.media import events as call
from voxglove.media.brain import Say
from voxglove.media.call import Call
from voxglove.media.frame import AudioFrame
from voxglove.media.pcm import Samples, pcm_of
from voxglove.media.transport import CallInfo, Hangup, Signal, TransportInfo
from voxglove.media.virtual_loop import run_virtual
from voxglove.web.build import CallOptions, Shared, open_call

RATE = call.RATE


@dataclass(slots=True)
class Held:
    """A call that was held. `caller` is what the brain was given, `agent` what the peer heard;
    both begin at input sample 0."""

    events: list[tuple[int, call.CallEvent]] = field(default_factory=list)
    caller: Samples = field(default_factory=lambda: np.zeros(0, np.int16))
    agent: Samples = field(default_factory=lambda: np.zeros(0, np.int16))

    def lines(self) -> list[dict[str, object]]:
        """The timeline as JSON objects."""
        return [call.to_line(at, event) for at, event in self.events]

    def turns(self, event: str = "committed") -> list[tuple[int, call.Turn]]:
        """The turn decisions of that kind."""
        return [(at, e) for at, e in self.events if isinstance(e, call.Turn) and e.event == event]

    def interruptions(self, event: str) -> list[tuple[int, call.Interruption]]:
        """Where the agent's sound paused, resumed or was cut."""
        found = [(at, e) for at, e in self.events if isinstance(e, call.Interruption)]
        return [(at, e) for at, e in found if e.event == event]

    def spoken(self) -> list[call.Transcript]:
        """What the agent said, as stored."""
        found = [e for _, e in self.events if isinstance(e, call.Transcript)]
        return [e for e in found if e.role == "assistant" and not e.partial]


Tell = Callable[[str], None]
"""Keeps a measured number for the end of the test run (the fixture `tell`)."""

Over = Callable[[int, Held], bool]
"""Whether the call is to end at that input sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One call. `typed` is said at its first frame; `echo` carries the agent's sound back."""

    audio: Samples
    over: Over
    agent: str = "talker"
    typed: str | None = None
    echo: EchoPath | None = None
    name: str = "call"
    fast: bool = True
    cost_factor: float = 1.0


def hold(shared: Shared, order: Order) -> Held:
    """Hold the call on a virtual loop."""
    return run_virtual(held(shared, order))


async def held(shared: Shared, order: Order) -> Held:
    """Hold the call on the running loop."""
    result = Held()
    info = CallInfo(call_id=f"regression-{order.name}", line="fixture", agent=order.agent)
    options = CallOptions(
        frame_clocked=True, cost_factor=order.cost_factor, fast=order.fast, has_display=False
    )
    async with open_call(shared, info, options) as opened:
        live = opened.call
        live.subscribe(lambda at, event: result.events.append((at, event)))
        opened.announce()
        line = _Line(order, live, result)
        live.attach(line)
        await live.run()
        result.agent = line.inner.heard()
        result.caller = np.concatenate(line.given) if line.given else result.caller
    return result


class _Line:
    """The fixture line with a loudspeaker that its microphone may hear."""

    def __init__(self, order: Order, live: Call, result: Held) -> None:
        self.inner = FixtureTransport(order.audio)
        self.given: list[Samples] = []
        self._order = order
        self._live = live
        self._result = result
        self._typed = order.typed

    @property
    def info(self) -> TransportInfo:
        return self.inner.info

    async def receive(self) -> AsyncIterator[AudioFrame | Signal]:
        async for item in self.inner.receive():
            if self._order.over(self._live.at, self._result):
                yield Hangup(by_remote=False)
                return
            yield self._mixed(item) if isinstance(item, AudioFrame) else item
            self._say()

    async def send(self, frame: AudioFrame) -> bool:
        return await self.inner.send(frame)

    def clear(self) -> int:
        return self.inner.clear()

    def played(self) -> int:
        return self.inner.played()

    async def send_data(self, message: Mapping[str, object]) -> None:
        await self.inner.send_data(message)

    async def aclose(self, reason: str) -> None:
        await self.inner.aclose(reason)

    def _mixed(self, frame: AudioFrame) -> AudioFrame:
        near = frame.array()
        if self._order.echo is not None:
            played = self.inner.heard()[-len(near) :]
            leak = self._order.echo.feed(played).astype(np.int32)
            near = np.clip(near + leak, -32768, 32767).astype(np.int16)
        self.given.append(near)
        return AudioFrame(pcm_of(near), frame.format, frame.at)

    def _say(self) -> None:
        if self._typed is not None and len(self.given) > 10:
            text, self._typed = self._typed, None
            self._live.command(Say(text))


def after(sample: int) -> Over:
    """The call ends there."""
    return lambda at, _: at >= sample


def quiet_for(seconds: float, since: int, cap_s: float = 30.0) -> Over:
    """The call ends when nobody spoke or thought for `seconds` after input sample `since`."""

    def over(at: int, result: Held) -> bool:
        if at - since < seconds * RATE:
            return False
        return at - _busy_until(result, at) >= seconds * RATE or at - since >= cap_s * RATE

    return over


def _busy_until(result: Held, at: int) -> int:
    """The last sample at which something went on; `at` while it goes on."""
    last = 0
    for when, event in result.events:
        match event:
            case call.Mode(mode=mode):
                last = at if mode in ("thinking", "speaking") else when
            case call.Vad(event=kind):
                last = max(when, at if kind in ("start", "confirmed") else 0)
            case call.Turn() | call.Transcript() | call.Response():
                last = max(last, when)
    return last
