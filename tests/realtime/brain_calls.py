"""Whole calls on the realtime brain, and what of every answer the caller really heard.

The scripted model's voice is noise without a zero, different for every text, so the recording
alone says which samples of which answer were played, and when. Exact for a model that speaks at
16 kHz on a line of 16 kHz (`ABLE_16`). Owned by the brain's tests; it asks the brain nothing.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from tests.realtime.sessions import built
from tests.support.calls import SpanVad
from voxglove.adapters.transports.fixture import Estimate, FixtureTransport
from voxglove.core.agent import Agent
from voxglove.core.messages import Message
from voxglove.core.tool import Tool
from voxglove.media import events as call
from voxglove.media.brain import Command
from voxglove.media.call import Call, CallPolicy
from voxglove.media.format import PIPELINE
from voxglove.media.pcm import Samples
from voxglove.media.transport import CallInfo
from voxglove.media.vad.port import Vad
from voxglove.realtime.brain import RealtimeBrain, RealtimeParts
from voxglove.realtime.config import SessionConfig
from voxglove.realtime.scripted import ABLE, Reply, ScriptedAdapter

RATE = PIPELINE.rate
WORD = RATE * 240 // 1000
"""Samples of one word of an answer."""
REPLY = "alpha bravo charlie delta echo foxtrot golf hotel"
ABLE_16 = replace(ABLE, output_format=PIPELINE)
"""OpenAI's kind: the host may end a response, and shorten what the provider keeps of it."""
DEAF_16 = replace(ABLE_16, can_cancel=False, item_truncate=False, item_delete=False)
"""Gemini's kind: nothing the host says ends a generation."""
DUPLEX_16 = replace(DEAF_16, turn_taking="full_duplex", transcripts="fragments", paced_input=True)
"""GPT-Live's kind: it listens while it speaks."""

STARTED = call.to_line(
    0,
    call.CallStarted(
        call_id="c1",
        line="fixture",
        brain="scripted",
        agent="test",
        stt="",
        tts="",
        model="",
        clock="fast",
        costs={},
    ),
)

E = TypeVar("E", bound=call.CallEvent)


def voiced(text: str, rate: int) -> bytes:
    """The sound of `text`: 240 ms a word, no sample of it zero."""
    draws = np.random.default_rng(zlib.crc32(text.encode()))
    count = len(text.split()) * rate * 240 // 1000
    sound = draws.integers(1_000, 6_000, count) * draws.choice((-1, 1), count)
    return bytes(sound.astype("<i2").tobytes())


@dataclass(frozen=True)
class Says:
    """The caller's voice from `start` to `end` seconds. `text` "" is no words; `noticed` off: the
    provider makes nothing of it; `heard` off: our detector does not."""

    start: float
    end: float
    text: str = ""
    noticed: bool = True
    heard: bool = True


@dataclass(frozen=True)
class Does:
    """Something done at `when` seconds of input."""

    when: float
    act: Callable[[Rung], object]


@dataclass(frozen=True)
class Piece:
    """Samples [start, end) of the answer `text` sounded from input sample `at` on."""

    at: int
    text: str
    start: int
    end: int

    @property
    def stop(self) -> int:
        return self.at + self.end - self.start


@dataclass
class Rung:
    """A call that is or was held."""

    agent: Agent
    adapter: ScriptedAdapter
    lines: list[FixtureTransport]
    live: Call
    spoken: list[str] = field(default_factory=list)
    events: list[tuple[int, call.CallEvent]] = field(default_factory=list)
    futures: list[asyncio.Future[None]] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    history: list[Message] = field(default_factory=list)
    hung_up: float = 0.0
    """Loop time at which `hang_up` was called; the peer's own hang-up is not noted."""
    took_to_end: float = 0.0
    speaks_at_end: bool = False
    """Whether the session took the caller to speak, 100 ms before the end."""

    def of(self, kind: type[E]) -> list[E]:
        return [event for _, event in self.events if isinstance(event, kind)]

    def when(self, kind: type[E], **fields: object) -> int:
        """Input sample of the first event of `kind` with these fields."""
        for at, event in self.events:
            if isinstance(event, kind) and all(getattr(event, k) == v for k, v in fields.items()):
                return at
        raise AssertionError(f"no {kind.__name__} {fields} in\n{self.told()}")

    def told(self) -> str:
        """The timeline, to read in a failure."""
        return "\n".join(f"{at / RATE:7.3f} {event}" for at, event in self.events)

    def lines_told(self) -> list[dict[str, object]]:
        """The timeline as it is written, behind its first line."""
        return [STARTED, *(call.to_line(at, event) for at, event in self.events)]

    @property
    def modes(self) -> list[str]:
        return [event.mode for event in self.of(call.Mode)]

    @property
    def responses(self) -> list[tuple[str, int | None]]:
        return [(event.event, event.gen) for event in self.of(call.Response)]

    @property
    def answers(self) -> list[Message]:
        return [message for message in self.history if message.sender == "agent"]

    def hang_up(self) -> None:
        self.hung_up = asyncio.get_running_loop().time()
        self.live.hang_up()

    def command(self, command: Command) -> asyncio.Future[None]:
        done = self.live.command(command)
        self.futures.append(done)
        return done

    def reattach(self, seconds: float, estimate: Estimate | None = None) -> None:
        """Put the caller on a new carrier with `seconds` of silence to say."""
        fresh = FixtureTransport(
            np.zeros(round(seconds * RATE), np.int16), hangup_after_s=0.0, estimate=estimate
        )
        self.lines.append(fresh)
        self.starts.append(self.live.at)
        self.live.attach(fresh)

    def pieces(self) -> list[Piece]:
        """All that was heard on all carriers, in order. Raises AssertionError for a sound that is
        of no answer, or does not go on where its answer stopped."""
        found: list[Piece] = []
        sounds = {text: np.frombuffer(voiced(text, RATE), "<i2") for text in self.spoken}
        reached: dict[str, int] = {}
        for line, offset in zip(self.lines, self.starts, strict=True):
            heard = line.heard()
            loud = np.flatnonzero(heard)
            at = 0
            while at < len(heard) and len(rest := loud[np.searchsorted(loud, at) :]):
                at = int(rest[0])
                piece = _identify(heard[at:], at + offset, sounds, reached)
                assert piece is not None, f"sound of no answer at {at / RATE}\n{self.told()}"
                found.append(piece)
                reached[piece.text] = piece.end
                at = piece.stop - offset
        return found

    def heard(self, text: str) -> int:
        """Samples of this answer that were heard."""
        return sum(piece.end - piece.start for piece in self.pieces() if piece.text == text)


def _identify(
    heard: Samples, at: int, sounds: dict[str, Samples], reached: dict[str, int]
) -> Piece | None:
    for text, sound in sounds.items():
        start = reached.get(text, 0)
        rest = sound[start:]
        count = min(len(rest), len(heard))
        differs = np.flatnonzero(rest[:count] != heard[:count])
        common = int(differs[0]) if len(differs) else count
        if common >= min(16, len(rest)) and common:
            return Piece(at, text, start, start + common)
    return None


async def hold(
    says: Sequence[Says] = (),
    *,
    replies: Sequence[str | Reply] = (REPLY,),
    does: Sequence[Does] = (),
    tools: Sequence[Tool] = (),
    seconds: float = 8.0,
    config: SessionConfig | None = None,
    adapter: ScriptedAdapter | None = None,
    estimate: Estimate | None = None,
    policy: CallPolicy | None = None,
    greeting: str = "",
    vad: Callable[[], Vad] | None = None,
    line: FixtureTransport | None = None,
    speak: Callable[[str, int], bytes] = voiced,
    echo_guard: bool = False,
) -> Rung:
    """Hold one call of `seconds`. `replies` are the model's answers in order; then "ok kilo"."""
    answers = [one if isinstance(one, Reply) else Reply(text=one) for one in replies]
    adapter = adapter or ScriptedAdapter(capabilities=ABLE_16)
    agent = built(*tools)
    spans = [(round(one.start * RATE), round(one.end * RATE), 0.9) for one in says if one.heard]
    parts = RealtimeParts(
        agent=agent,
        adapter=adapter,
        vad=vad or (lambda: SpanVad(spans)),
        session=config or SessionConfig(),
        greeting=greeting,
        echo_guard=echo_guard,
    )
    live = Call(RealtimeBrain(parts), CallInfo(call_id="c1"), policy)
    line = line or FixtureTransport(
        np.zeros(round(seconds * RATE), np.int16), hangup_after_s=0.0, estimate=estimate
    )
    rung = Rung(agent, adapter, [line], live)
    adapter.answer = lambda asked: answers.pop(0) if answers else Reply(text="ok kilo")

    def spoken(text: str, rate: int) -> bytes:
        rung.spoken.append(text)
        return speak(text, rate)

    adapter.speak = spoken
    live.subscribe(lambda at, event: rung.events.append((at, event)))
    live.attach(line)
    look = Does(seconds - 0.1, _look)
    async with asyncio.TaskGroup() as group:
        others = [
            group.create_task(_act(rung, [*does, look])),
            group.create_task(_script(adapter, says)),
        ]
        loop = asyncio.get_running_loop()
        await live.run()
        rung.took_to_end = loop.time() - rung.hung_up
        for task in others:
            task.cancel()
    rung.history = list(await agent.store.get_messages())
    return rung


def _look(rung: Rung) -> None:
    brain = rung.live.brain
    assert isinstance(brain, RealtimeBrain)
    rung.speaks_at_end = brain._life is not None and brain._life.session.user_speaks


async def _act(rung: Rung, does: Sequence[Does]) -> None:
    loop = asyncio.get_running_loop()
    start = loop.time()
    for deed in sorted(does, key=lambda one: one.when):
        await asyncio.sleep(max(0.0, start + deed.when - loop.time()))
        if rung.live.ended is None:
            deed.act(rung)


async def _script(adapter: ScriptedAdapter, says: Sequence[Says]) -> None:
    """Tell the provider's ear what it hears; what it is not told is silence to it."""
    await asyncio.sleep(0.01)
    for one in says:
        if one.noticed:
            adapter.current.user_says(one.text, round(one.start * 1000), round(one.end * 1000))
