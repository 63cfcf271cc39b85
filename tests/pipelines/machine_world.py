"""A call in miniature round the turn machine: a caller, a detector, a recogniser and a line.

All of it runs on input samples, without audio and without a loop: what the effects ask for comes
back as events, as late as the world says. `Monitor` watches the promises of DESIGN 5 meanwhile.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from voxglove.pipelines import vocabulary as voc
from voxglove.pipelines.detectors.port import TurnQuery
from voxglove.pipelines.detectors.smart_turn import weigh
from voxglove.pipelines.machine import MachineConfig, State, initial, step

FRAME = 320
_Kind = TypeVar("_Kind")


def ms(value: float) -> int:
    """Milliseconds as samples."""
    return round(value * 16)


@dataclass(frozen=True)
class Said:
    """A voice at [start, end) milliseconds. `text` "" is a cough. Words are spread evenly."""

    start: float
    end: float
    text: str = ""
    level: float = 0.1

    def words(self) -> list[tuple[str, int, int]]:
        """Each word with its samples."""
        parts = self.text.split()
        size = (ms(self.end) - ms(self.start)) / max(1, len(parts))
        first = ms(self.start)
        return [
            (word, first + round(index * size), first + round((index + 1) * size))
            for index, word in enumerate(parts)
        ]


@dataclass(frozen=True, kw_only=True)
class Manners:
    """How the parts round the machine behave; times in milliseconds. A negative delay: never."""

    stt: Sequence[float] = (60,)
    """Delay of each answer in turn, the last one repeated."""
    verdict: Sequence[tuple[float, float]] = ((40, 0.9),)
    """(delay, p) of each verdict in turn, the last one repeated."""
    think: float = 300
    speak: float = 2_000
    parts: int = 1
    """An answer falls silent between this many parts."""
    narrate: float = 800
    aside: float = 600


@dataclass
class _Voice:
    """The model of a reply or narration on the line: sound left to play, and whether it sounds."""

    gen: int
    begins: int
    left: list[int]
    narration: bool = False
    audible: bool = False
    aside: int = 0
    """Sound left of the phrase that announces it; it sounds while this is positive."""
    announced: bool = False


@dataclass
class World:
    """Drives one machine; `tells` and `done` hold every effect with its sample."""

    config: MachineConfig = field(default_factory=MachineConfig)
    said: Sequence[Said] = ()
    manners: Manners = field(default_factory=Manners)
    at: int = 0
    done: list[tuple[int, voc.Effect]] = field(default_factory=list)
    events: list[voc.TurnEvent] = field(default_factory=list)
    watch: Callable[[World, voc.TurnEvent, tuple[voc.Effect, ...]], None] | None = None

    def __post_init__(self) -> None:
        self.state: State = initial(self.config)
        self.paused = False
        self.settled = 0
        self.muted = self.config.turn.muted_at_start
        self.reported: list[voc.Words] = []
        self._voices: list[_Voice] = []
        self._due: list[tuple[int, int, voc.TurnEvent]] = []
        self._count = itertools.count()
        self._answers = itertools.count()
        self._verdicts = itertools.count()
        for one in self.said:
            self._detect(one)

    # ---- what a test says

    def later(self, at_ms: float, event: Callable[[int], voc.TurnEvent]) -> World:
        """`event(at)` happens at this millisecond."""
        self._push(ms(at_ms), event(ms(at_ms)))
        return self

    def run(self, until_ms: float) -> World:
        """Frame by frame."""
        while self.at + FRAME <= ms(until_ms):
            self.at += FRAME
            self._play()
            while self._due and self._due[0][0] <= self.at:
                event = heapq.heappop(self._due)[2]
                deaf = self.muted or self.state.narration is not None
                if not (deaf and isinstance(event, voc.Voice)):
                    self.feed(event)
            if self.config.continuous and not self.muted and self.state.narration is None:
                self._report_unasked()
            prob, level = self._loudness()
            self.feed(voc.Tick(self.at, prob, level))
        return self

    def feed(self, event: voc.TurnEvent) -> tuple[voc.Effect, ...]:
        """One event, now."""
        self.events.append(event)
        self.state, effects = step(self.state, event, self.config)
        for effect in effects:
            self.done.append((event.at, effect))
            self._perform(effect)
        if self.watch is not None:
            self.watch(self, event, effects)
        return effects

    # ---- what a test asks

    def of(self, kind: type[_Kind]) -> list[_Kind]:
        """All effects of one kind."""
        return [effect for _, effect in self.done if isinstance(effect, kind)]

    def when(self, kind: type[voc.Effect]) -> list[float]:
        """The milliseconds of all effects of one kind."""
        return [at / 16 for at, effect in self.done if isinstance(effect, kind)]

    def turns(self, event: str = "committed") -> list[str]:
        """Texts of all turns so decided."""
        return [told.text for told in self.of(voc.TellTurn) if told.event == event]

    def reasons(self, event: str = "dropped") -> list[str]:
        """Reasons of all turns so decided."""
        return [told.reason for told in self.of(voc.TellTurn) if told.event == event]

    def cuts(self) -> list[str]:
        """Reasons of all cuts."""
        return [cut.reason for cut in self.of(voc.Cut)]

    def resumes(self) -> list[str]:
        """Reasons of all resumes."""
        return [resume.reason for resume in self.of(voc.Resume)]

    def metrics(self) -> list[str]:
        """Names of all metrics."""
        return [metric.name for metric in self.of(voc.TellMetric)]

    # ---- the detector

    def _detect(self, one: Said) -> None:
        start, end = ms(one.start), ms(one.end)
        if end - start < ms(96) or self.config.turn.manual:
            return
        self._push(start + ms(96), voc.Voice(start + ms(96), "start", start))
        if end - start >= ms(250):
            self._push(start + ms(250), voc.Voice(start + ms(250), "confirmed", start))
        kind: voc.VadKind = "end" if end - start >= ms(250) else "misfire"
        self._push(end + ms(192), voc.Voice(end + ms(192), kind, end))

    def _loudness(self) -> tuple[float, float]:
        heard = [one for one in self.said if ms(one.start) < self.at <= ms(one.end) + FRAME]
        if self.muted or not heard:
            return 0.0, 0.0
        return 0.9, max(one.level for one in heard)

    def _push(self, at: int, event: voc.TurnEvent) -> None:
        heapq.heappush(self._due, (at, next(self._count), event))

    # ---- the recogniser

    def _recognise(self, end: int, *, final: bool) -> None:
        spoken = [word for one in self.said for word in one.words()]
        mine = [word for word in spoken if self.settled <= (word[1] + word[2]) // 2 < end]
        start = min([max(self.settled, word[1]) for word in mine] + [end])
        text = " ".join(word[0] for word in mine)
        delay = self._of(self.manners.stt, self._answers)
        if delay >= 0:
            # Reports come in the order in which they were asked for (the port's promise).
            at = max(self.at + ms(delay), self.reported[-1].at if self.reported else 0)
            words = voc.Words(at, text, start, end, final)
            self._push(at, words)
            self.reported.append(words)

    def _report_unasked(self) -> None:
        """A recogniser that segments by itself: a partial after each word, a final 300 ms after
        each voice."""
        for one in self.said:
            ends = [word[2] for word in one.words() if self.at - FRAME < word[2] <= self.at]
            if ends:
                self._recognise(ends[-1] + 1, final=False)
            if one.text and self.at - FRAME < ms(one.end + 300) <= self.at:
                self._recognise(ms(one.end), final=True)
                self.settled = max(self.settled, ms(one.end))

    def _judge(self, order: voc.AskDetector) -> None:
        delay, p = self._of(self.manners.verdict, self._verdicts)
        if delay < 0:
            return
        at = self.at + ms(delay)
        asked = TurnQuery(transcript=order.text, silence_ms=max(0, self.at - order.end) // 16)
        said = weigh(p, asked)
        verdict = voc.Verdict(at, order.query, said.hold_ms, said.reason, p, said.ask_again_ms)
        self._push(at, verdict)

    @staticmethod
    def _of(items: Sequence[_Kind], count: itertools.count[int]) -> _Kind:
        return items[min(next(count), len(items) - 1)]

    # ---- the line

    def _perform(self, effect: voc.Effect) -> None:
        match effect:
            case voc.Pause():
                self.paused = True
            case voc.Resume():
                self.paused = False
            case voc.Cut(gen):
                self.paused = False
                self._voices = [one for one in self._voices if one.narration or one.gen != gen]
            case voc.StartReply(gen):
                share = ms(self.manners.speak) // self.manners.parts
                begins = self.at + ms(self.manners.think)
                self._voices.append(_Voice(gen, begins, [share] * self.manners.parts))
            case voc.Acknowledge(gen):
                for voice in self._voices:
                    if not voice.narration and voice.gen == gen and self.at < voice.begins:
                        voice.aside = ms(self.manners.aside)
            case voc.StartNarration(command):
                length = ms(self.manners.narrate)
                self._voices.append(_Voice(command, self.at, [length], narration=True))
            case voc.EndNarration(command):
                self._voices = [v for v in self._voices if not v.narration or v.gen != command]
            case _:
                self._perform_hearing(effect)

    def _perform_hearing(self, effect: voc.Effect) -> None:
        match effect:
            case voc.FlushStt(end):
                self._recognise(end, final=True)
                if self.config.continuous:
                    self.settled = max(self.settled, end)
            case voc.AskStt(end):
                self._recognise(end, final=False)
            case voc.SettleStt(end):
                self.settled = max(self.settled, end)
            case voc.AskDetector():
                self._judge(effect)
            case voc.Microphone(on):
                self.muted = not on
            case _:
                pass

    def _play(self) -> None:
        """20 ms of sound of whatever is first in line."""
        if self.paused or self.state.line in ("detached", "closed") or not self._voices:
            return
        narrations = [one for one in self._voices if one.narration]
        voice = narrations[0] if narrations else self._voices[0]
        if voice.aside > 0:
            self._play_aside(voice)
            return
        if self.at < voice.begins:
            return
        if not voice.left:
            self._voices.remove(voice)
            self._end(voice)
            return
        if not voice.audible:
            voice.audible = True
            if not voice.narration:
                self.feed(voc.Sounded(self.at, voice.gen))
                if self.paused:
                    return
        voice.left[0] -= FRAME
        if voice.left[0] <= 0:
            voice.left.pop(0)
            if voice.left:
                voice.audible = False
                voice.begins = self.at + ms(self.manners.think)
                self.feed(voc.Silenced(self.at, voice.gen))

    def _play_aside(self, voice: _Voice) -> None:
        if not voice.announced:
            voice.announced = True
            self.feed(voc.Sounded(self.at, voice.gen, aside=True))
            if self.paused or voice not in self._voices:
                return
        voice.aside -= FRAME
        if voice.aside <= 0 and self.at < voice.begins:
            self.feed(voc.Silenced(self.at, voice.gen))

    def _end(self, voice: _Voice) -> None:
        if voice.narration:
            self.feed(voc.Narrated(self.at, voice.gen))
        else:
            self.feed(voc.Answered(self.at, voice.gen))


@dataclass
class Monitor:
    """Raises at the first broken promise. Use it as a world's `watch`."""

    live: int | None = None
    gens: int = 0
    paused: bool = False
    undecided: int | None = None
    """Onset of a voice nobody decided about."""
    asked: set[int] = field(default_factory=set)
    completed: list[int] = field(default_factory=list)

    def __call__(self, world: World, event: voc.TurnEvent, effects: tuple[voc.Effect, ...]) -> None:
        """Check one step."""
        command = getattr(event, "command", None)
        if command is not None and not isinstance(event, voc.Narrated):
            self.asked.add(command)
        if isinstance(event, voc.Sounded) and event.gen == self.live:
            self._check_start(world, event)
        if isinstance(event, voc.Answered) and event.gen == self.live:
            self.live = None
        for effect in effects:
            self._sound(effect)
            if isinstance(effect, voc.Complete):
                self.completed.append(effect.command)
        self._decide(world, event, effects)
        assert not (self.paused and self.live is None), "paused without an answer"

    def _check_start(self, world: World, event: voc.Sounded) -> None:
        """DESIGN 5.2: nothing starts to sound over a voice nobody decided about."""
        if self.undecided is None or self.paused:
            return
        limit = ms(world.config.barge_in.longest_ms)
        assert event.at - self.undecided >= limit, f"spoke over a voice of {self.undecided}"

    def _decide(self, world: World, event: voc.TurnEvent, effects: tuple[voc.Effect, ...]) -> None:
        if world.state.user == "tentative" and isinstance(event, voc.Voice):
            self.undecided = event.position
        told = [one for one in effects if isinstance(one, voc.TellTurn)]
        let_go = any(isinstance(one, voc.Resume) and one.audible for one in effects)
        if (
            world.state.user == "silent"
            or let_go
            or any(one.event in ("committed", "dropped") and one.reason != "typed" for one in told)
        ):
            self.undecided = None

    def _sound(self, effect: voc.Effect) -> None:
        match effect:
            case voc.StartReply(gen):
                assert self.live is None, f"{self.live} still lives beside {gen}"
                assert gen > self.gens
                self.live = self.gens = gen
            case voc.Cut(gen):
                assert gen == self.live, f"cut {gen}, but {self.live} lives"
                self.live, self.paused = None, False
            case voc.Pause():
                assert not self.paused, "paused twice"
                assert self.live is not None
                self.paused = True
            case voc.Resume():
                assert self.paused, "resumed what was not paused"
                self.paused = False
            case _:
                pass

    def check_commands(self) -> None:
        """Each completed once."""
        assert sorted(self.completed) == sorted(self.asked)


def attached(
    config: MachineConfig | None = None, *said: Said, manners: Manners | None = None
) -> World:
    """A call whose carrier is there, watched."""
    world = World(config or MachineConfig(), said, manners or Manners(), watch=Monitor())
    world.feed(voc.LineMoved(0, "attached"))
    return world
