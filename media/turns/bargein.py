"""Two-stage barge-in as a pure reducer: pause at the first voice, then cut or go on.

Owned by whoever holds the turn state (the cascade's machine, a realtime session): `step` takes a
state and one fact and gives the next state and what to do. It reads no clock and does no I/O; every
position is an input sample. The rules are those of CONTRACTS E and spec/voice rows 22-31.

Feed it only while the agent has the floor, with reports of speech that began while it had it (by
audio span), and begin with a fresh `BargeIn()` for each answer. The utterance it follows:

    idle --Onset--> paused --stop word, words, wordless voice--> Cut, idle
                    paused --misfire, backchannel only---------> Resume, idle
                    paused --protected and wordless------------> Resume, watching --words--> Cut

                    paused --3 s on, and none of these---------> Resume, watching

`watching` follows an utterance whose sound plays on under it: a stop word in it must still cut.
Before an answer is audible there is nothing to cut: it is only held back (`withheld`), and voice
without words neither ends nor frees it while that voice lasts; who feeds it frees it afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, assert_never

from ..errors import MediaValueError
from .backchannel import ENGLISH, Lexicon, classify
from .words import words

CutReason = Literal["stop_word", "words", "wordless"]
ResumeReason = Literal["misfire", "backchannel", "wordless"]
Stage = Literal["idle", "paused", "watching"]


_DOUBTFUL_WORDS = 2

_POSITIVE = (
    *("rate", "wordless_ms", "report_ms", "ask_ms", "longest_ms"),
    *("request_wordless_ms", "request_report_ms"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BargeInConfig:
    """Numbers of CONTRACTS E. Raises MediaValueError for a value that is not positive."""

    rate: int = 16_000
    wordless_ms: int = 250
    """Voice this long without words cuts."""
    report_ms: int = 500
    """After this long without any report, voice alone decides."""
    ask_ms: int = 250
    """A local recogniser is asked at this age of the onset and every so often."""
    longest_ms: int = 3_000
    """No pause outlasts this without a reason to cut: a detector that never ends a voice, or a
    caller who only hums, must not silence the agent for ever."""
    by_request: bool = False
    """The recogniser reports only when asked, each time later by its inference. The line is silent
    meanwhile, so waiting for words costs the caller nothing, and a cut without words would leave
    both sides silent: voice alone cuts only while it goes on, by the two numbers below, and a
    voice that ended without words never does (docs/decisions/0006)."""
    request_wordless_ms: int = 1_000
    request_report_ms: int = 1_500
    lexicon: Lexicon = ENGLISH

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            if getattr(self, name) <= 0:
                raise MediaValueError(name, str(getattr(self, name)), "use a number above 0")

    def samples(self, ms: int) -> int:
        """`ms` in input samples."""
        return self.rate * ms // 1000


@dataclass(frozen=True, slots=True)
class Onset:
    """Tentative speech: declared at sample `at`, its first voiced sample is `start`."""

    at: int
    start: int


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The detector is sure at `at`: this much voice counts as voice, whatever its exact length."""

    at: int


@dataclass(frozen=True, slots=True)
class Misfire:
    """The tentative speech ended unconfirmed."""

    at: int


@dataclass(frozen=True, slots=True)
class SpeechEnd:
    """Confirmed speech ended; `end` is the last voiced sample, `at` the moment it was known."""

    at: int
    end: int


@dataclass(frozen=True, slots=True)
class Report:
    """What a recogniser heard of this utterance up to sample `at` of the input; "" = no words."""

    text: str
    at: int


@dataclass(frozen=True, slots=True)
class Tick:
    """The input has come to `at`; `voiced_to` is the end of the voice so far, where known."""

    at: int
    voiced_to: int | None = None


Fact = Onset | Confirmed | Misfire | SpeechEnd | Report | Tick


@dataclass(frozen=True, slots=True)
class Pause:
    """Silence on the line from here; keep what is unplayed."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Go on at the paused sample."""

    reason: ResumeReason


@dataclass(frozen=True, slots=True)
class Cut:
    """End the sound. What else ends with it is its owner's to say (row 24)."""

    reason: CutReason


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the local recogniser for a report of the audio up to sample `at`."""

    at: int


Effect = Pause | Resume | Cut | Ask


class BargeIn(NamedTuple):
    """Where one possible interruption stands. A value; `step` gives the next one, frame by frame,
    which is why it is a named tuple: copies are cheap."""

    stage: Stage = "idle"
    start: int = 0
    """First voiced sample of the utterance; meaningless while idle."""
    voiced_to: int = 0
    """End of the voice known so far."""
    confirmed: bool = False
    ended: bool = False
    text: str = ""
    """Latest report that held a word."""
    wordless_to: int | None = None
    """How far a report of no words reached; None before the first report."""
    next_ask: int = 0
    doubted: bool = False
    """A first report of a word or two was not believed yet (by request only)."""


Step = tuple[BargeIn, tuple[Effect, ...]]


@dataclass(frozen=True, slots=True)
class _Guard:
    """What forbids a cut by voice alone; see `step`."""

    protected: bool
    withheld: bool


DEFAULTS = BargeInConfig()
_IDLE = BargeIn()


def step(
    state: BargeIn,
    fact: Fact,
    config: BargeInConfig = DEFAULTS,
    *,
    protected: bool = False,
    withheld: bool = False,
) -> Step:
    """The next state and the effects, in order. `protected`: a push_and_wait slot is pending.
    `withheld`: no sample of the answer was heard yet.

    A fact that means nothing in this state changes nothing and never raises.
    """
    guard = _Guard(protected, withheld)
    match fact:
        case Onset():
            return _onset(state, fact, config)
        case Report():
            return _report(state, fact, config, guard)
        case Confirmed(at):
            if state.stage == "idle":
                return state, ()
            voiced = max(state.voiced_to, at)
            return _weigh(state._replace(confirmed=True, voiced_to=voiced), at, config, guard)
        case Tick(at, voiced_to):
            if state.stage == "idle":
                return state, ()
            if voiced_to is not None and voiced_to > state.voiced_to:
                state = state._replace(voiced_to=voiced_to)
            return _weigh(state, at, config, guard)
        case SpeechEnd():
            return _speech_end(state, fact, config, guard)
        case Misfire():
            return _no_speech(state)
        case _:
            assert_never(fact)


def _onset(state: BargeIn, fact: Onset, config: BargeInConfig) -> Step:
    if state.stage != "idle" and not state.ended:
        return state, ()
    fresh = BargeIn(
        stage="watching" if state.stage == "watching" else "paused",
        start=fact.start,
        voiced_to=fact.at,
        text=state.text if state.stage != "idle" else "",
        next_ask=fact.start + config.samples(config.ask_ms),
    )
    return fresh, (Pause(),) if state.stage == "idle" else ()


def _report(state: BargeIn, fact: Report, config: BargeInConfig, guard: _Guard) -> Step:
    """Words cut in every stage: a late report overrides the misfire that resumed (row 27)."""
    kind = classify(fact.text, config.lexicon)
    if kind == "stop":
        return _IDLE, (Cut("stop_word"),)
    if kind == "words":
        if _too_early(state, fact, config):
            return state._replace(doubted=True), ()
        return _IDLE, (Cut("words"),)
    if state.stage == "idle":
        return state, ()
    if kind == "backchannel":
        heard = state._replace(text=fact.text)
        return _end_as_backchannel(heard) if heard.ended else (heard, ())
    reached = max(fact.at, state.wordless_to or 0)
    if config.by_request and state.ended and reached >= state.voiced_to:
        return _no_speech(state)
    return _weigh(state._replace(wordless_to=reached), fact.at, config, guard)


def _too_early(state: BargeIn, fact: Report, config: BargeInConfig) -> bool:
    """A batch recogniser that is given half of an "uh-huh" writes "I have": while the voice goes
    on, a word or two decide only when the next report has words too, or the voice is over."""
    if not config.by_request or state.stage != "paused" or state.ended or state.doubted:
        return False
    return len(words(fact.text)) <= _DOUBTFUL_WORDS


def _speech_end(state: BargeIn, fact: SpeechEnd, config: BargeInConfig, guard: _Guard) -> Step:
    if state.stage == "idle":
        return state, ()
    if state.text:
        return _end_as_backchannel(state)
    ended = state._replace(ended=True, voiced_to=fact.end)
    if not _enough_voice(ended, config):
        return _no_speech(ended)
    after, effects = _weigh(ended, fact.at, config, guard)
    if after.stage == "watching":
        return _IDLE, effects
    if after.stage == "paused" and not effects:
        return after, (Ask(fact.at),)
    return after, effects


def _no_speech(state: BargeIn) -> Step:
    """A misfire: without words the sound goes on where it stopped (row 28)."""
    if state.text:
        return _end_as_backchannel(state)
    return _IDLE, (Resume("misfire"),) if state.stage == "paused" else ()


def _end_as_backchannel(state: BargeIn) -> Step:
    return _IDLE, (Resume("backchannel"),) if state.stage == "paused" else ()


def _weigh(state: BargeIn, at: int, config: BargeInConfig, guard: _Guard) -> Step:
    """Decide on voice without words, else ask the recogniser when its time has come."""
    if state.stage == "paused":
        if not guard.withheld and _wordless(state, at, config):
            if not guard.protected:
                return _IDLE, (Cut("wordless"),)
            return _let_go(state)
        if at >= state.start + config.samples(config.longest_ms):
            return _let_go(state)
    if state.ended or at < state.next_ask:
        return state, ()
    period = config.samples(config.ask_ms)
    missed = (at - state.next_ask) // period
    return state._replace(next_ask=state.next_ask + (missed + 1) * period), (Ask(at),)


def _let_go(state: BargeIn) -> Step:
    after = _IDLE if state.ended else state._replace(stage="watching")
    return after, (Resume("backchannel" if state.text else "wordless"),)


def _wordless(state: BargeIn, at: int, config: BargeInConfig) -> bool:
    """Voice >= 250 ms that a report called wordless, or that no report explained in 500 ms.

    By request: 1,000 ms and 1,500 ms, of a voice that goes on.
    """
    if state.text or not _enough_voice(state, config):
        return False
    if config.by_request:
        wordless_ms, report_ms = config.request_wordless_ms, config.request_report_ms
        if state.ended or state.voiced_to - state.start < config.samples(wordless_ms):
            return False
    else:
        wordless_ms, report_ms = config.wordless_ms, config.report_ms
    limit = state.start + config.samples(wordless_ms)
    if state.wordless_to is not None and state.wordless_to >= limit:
        return True
    return at >= state.start + config.samples(report_ms)


def _enough_voice(state: BargeIn, config: BargeInConfig) -> bool:
    return state.confirmed or state.voiced_to - state.start >= config.samples(config.wordless_ms)
