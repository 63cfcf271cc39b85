"""What happens in a session, told to the call: turns, answers, words, modes, where the time went.

The same events in the same order as the cascade tells them, so that pages, logs and tests need not
know which brain is on the line (CONTRACTS A). Owned by one run of a brain; it decides nothing. One
*answer* is everything the model does for one turn: its responses, tools between them included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ..media import events as call
from ..media.turns.latency import PartName, TurnMarks, turn_latency
from .events import Words
from .session_events import AnswerHeard, TurnStored

Emit = Callable[[call.CallEvent], None]


@dataclass(slots=True)
class _Marks:
    """Input samples at which a turn came to its stages; see media.turns.latency."""

    speech_end: int | None = None
    vad_end: int | None = None
    decided: int | None = None
    first_text: int | None = None
    first_audio: int | None = None


@dataclass(slots=True)
class _Answer:
    """One answer. `waits`: items whose end is not known yet."""

    turn: int | None
    gen: int
    marks: _Marks
    texts: list[str] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    broken: bool = False
    """One of its items was not heard to its end."""
    waits: dict[str, None] = field(default_factory=dict)
    audible: bool = False


@dataclass(slots=True)
class _Turns:
    """`count` turns so far. `unanswered`: the latest, until an answer to it begins; what the model
    says after that comes of itself and belongs to no turn. `voice`: where the caller's voice began
    that no turn is known of yet."""

    count: int = 0
    unanswered: int | None = None
    voice: int | None = None

    def begin(self) -> int:
        """The number of a new turn."""
        self.count += 1
        self.unanswered = self.count
        return self.count

    def answer(self) -> int | None:
        """The turn that is answered now, if one waits for it."""
        number, self.unanswered = self.unanswered, None
        return number


@dataclass(slots=True)
class _Said:
    """The user's words of one item so far, which began at input sample `first`, as far as anybody
    here heard. `final`: no more words come, and the provider has not taken the turn yet."""

    first: int
    text: str = ""
    final: bool = False
    turn: int | None = None
    message: str | None = None
    start: int | None = None
    end: int | None = None


class Telling:
    """See the module. `now` is the input sample heard last, `settings` the configuration keys that
    own the parts of a turn's latency."""

    def __init__(
        self, emit: Emit, now: Callable[[], int], settings: Mapping[PartName, str]
    ) -> None:
        self._emit = emit
        self._now = now
        self._settings = settings
        self._mode: call.ModeName = "idle"
        self._turns = _Turns()
        self._gen = 0
        self._marks = _Marks()
        self._answer: _Answer | None = None
        self._users: dict[str, _Said] = {}
        self._items: dict[str, _Answer] = {}
        self._aside = ""
        """The response that reads out a narration."""
        self.asides: set[str] = set()
        """Items of narrations whose end is not told."""

    @property
    def numbers(self) -> tuple[int | None, int | None]:
        """Turn and generation of the answer that is under way."""
        return (None, None) if self._answer is None else (self._answer.turn, self._answer.gen)

    @property
    def answering(self) -> bool:
        """An answer was begun whose end is not told yet."""
        return self._answer is not None

    # ---- the user

    def speech_began(self, start: int | None) -> None:
        """The local detector: the caller's first voiced sample; None: it was nothing."""
        if start is None or self._turns.voice is None:
            self._turns.voice = start

    def speech_ended(self, end: int) -> None:
        """The local detector: the caller's last voiced sample, known now."""
        self._marks.speech_end, self._marks.vad_end = end, self._now()

    def user_words(self, words: Words) -> str:
        """Words of the caller; returns all of this turn so far. Final ones are told once the turn
        is taken, with its number and place."""
        said = self._said(words.item_id)
        said.text = words.text if words.final else said.text + words.text
        said.final = words.final
        text = said.text.strip()
        if said.turn is not None and words.final:
            self._user_said(said, partial=False)
        elif said.turn is None and text:
            self._user_said(said, partial=True)
        return text

    def taken(self, item_id: str) -> bool:
        """The provider has the turn that these are words of."""
        said = self._users.get(item_id)
        return said is not None and said.turn is not None

    def turn_taken(self, stored: TurnStored, position: Callable[[int], int]) -> None:
        """The provider has the caller's turn; positions become those of the call."""
        said = self._said(stored.item_id)
        said.turn, said.message = self._turns.begin(), stored.message_id
        said.end = self._now() if stored.end is None else position(stored.end)
        said.start = min(said.first, said.end) if stored.start is None else position(stored.start)
        self._turns.voice = None
        self._marks.decided = self._now()
        if self._marks.speech_end is None:
            self._marks.speech_end = said.end
        self._emit(
            call.Turn(
                event="committed",
                reason="provider",
                text=said.text.strip(),
                turn=said.turn,
                message=stored.message_id,
            )
        )
        if said.final:
            self._user_said(said, partial=False)

    def typed(self, text: str, message_id: str | None = None) -> None:
        """The user typed: a turn whose words are known."""
        number = self._turns.begin()
        self._marks = _Marks()
        self._emit(call.Turn(event="committed", reason="typed", text=text, turn=number))
        self._emit(
            call.Transcript(
                role="user",
                text=text,
                partial=False,
                source="typed",
                turn=number,
                message=message_id,
            )
        )

    # ---- the agent

    def response_started(self, *, turn: bool) -> None:
        """The model works; of one answer only the first response is told. `turn`: for the user."""
        if self._answer is not None:
            return
        self._gen += 1
        marks, self._marks = self._marks, _Marks()
        number = self._turns.answer() if turn else None
        self._answer = _Answer(number, self._gen, marks)
        self._emit(call.Response(event="started", turn=number, gen=self._gen))

    def narration_started(self, response_id: str) -> None:
        """What is said in this response is no answer."""
        self._aside = response_id

    def response_over(self, response_id: str) -> None:
        """The model is done with it."""
        if self._aside == response_id:
            self._aside = ""

    def answer_words(self, item_id: str) -> None:
        """The model's words came."""
        if self._aside:
            self.asides.add(item_id)
            return
        answer = self._answer
        if answer is None:
            return
        self._items.setdefault(item_id, answer)
        answer.waits.setdefault(item_id)
        if answer.marks.first_text is None:
            answer.marks.first_text = self._now()

    def sound(self, item_id: str) -> None:
        """The model's sound came."""
        self.answer_words(item_id)
        answer = self._items.get(item_id)
        if answer is not None and answer.marks.first_audio is None:
            answer.marks.first_audio = self._now()

    def sounds(self, item_id: str, out: int) -> None:
        """An item's first sample was heard, at output sample `out`."""
        answer = self._items.get(item_id)
        if answer is None or answer.audible or answer is not self._answer:
            return
        answer.audible = True
        self._emit(call.Response(event="audio", out=out, turn=answer.turn, gen=answer.gen))
        self._latency(answer)

    def heard(self, told: AnswerHeard, *, narration: bool = False) -> None:
        """The end of one item is known."""
        answer = self._items.pop(told.item_id, None)
        self.asides.discard(told.item_id)
        if told.text.strip():
            self._emit(
                call.Transcript(
                    role="assistant",
                    text=told.text,
                    partial=False,
                    source="narration" if narration else "speech",
                    heard=told.heard,
                    unheard=told.unheard,
                    interrupted=told.interrupted,
                    estimated=told.estimated,
                    turn=None if answer is None else answer.turn,
                    gen=None if answer is None else answer.gen,
                )
            )
        if answer is not None:
            answer.waits.pop(told.item_id, None)
            if told.kept:
                answer.texts.append(told.text.strip())
                answer.heard.append(told.heard.strip())
            answer.broken = answer.broken or told.interrupted

    def cut(self, stopped: tuple[AnswerHeard, ...], out: int) -> None:
        """The answer was stopped; what was heard of it is known as far as now."""
        answer, self._answer = self._answer, None
        if answer is None:
            return
        answer.texts += [one.text.strip() for one in stopped]
        answer.heard += [one.heard.strip() for one in stopped]
        self._tell_cut(answer, out)

    def close(self, out: int) -> None:
        """The call is over, and with it whatever was under way."""
        self.cut((), out)
        self.mode("idle")

    def rest(self, *, working: bool, sounding: bool, out: int) -> None:
        """Nothing of it may be under way any more: then the answer has ended."""
        answer = self._answer
        if answer is None or working or sounding or answer.waits:
            return
        self._answer = None
        if answer.broken:
            self._tell_cut(answer, out)
            return
        text = _joined(answer.texts)
        self._emit(
            call.Response(event="ended", out=out, text=text, turn=answer.turn, gen=answer.gen)
        )

    def mode(self, mode: call.ModeName) -> None:
        """The public mode, told when it changes."""
        if mode != self._mode:
            self._mode = mode
            self._emit(call.Mode(mode=mode))

    # ---- inside

    def _tell_cut(self, answer: _Answer, out: int) -> None:
        self._emit(
            call.Response(
                event="cut",
                out=out,
                text=_joined(answer.texts),
                heard=_joined(answer.heard),
                turn=answer.turn,
                gen=answer.gen,
            )
        )

    def _said(self, item_id: str) -> _Said:
        while len(self._users) > 32:
            del self._users[next(iter(self._users))]
        first = self._now() if self._turns.voice is None else self._turns.voice
        return self._users.setdefault(item_id, _Said(first))

    def _user_said(self, said: _Said, *, partial: bool) -> None:
        self._emit(
            call.Transcript(
                role="user",
                text=said.text.strip(),
                partial=partial,
                start=said.start,
                end=said.end,
                turn=said.turn,
                message=None if partial else said.message,
            )
        )

    def _latency(self, answer: _Answer) -> None:
        marks, now = answer.marks, self._now()
        if answer.turn is None or marks.speech_end is None or marks.speech_end > now:
            return
        found = turn_latency(
            TurnMarks(
                speech_end=marks.speech_end,
                vad_end=marks.vad_end,
                decided=marks.decided,
                first_text=marks.first_text,
                first_audio=marks.first_audio,
                output=now,
            ),
            settings=self._settings,
        )
        self._emit(
            call.Metric(
                name="turn_latency",
                total_ms=found.total_ms,
                parts=found.parts,
                turn=answer.turn,
                gen=answer.gen,
            )
        )


def _joined(parts: Iterable[str]) -> str:
    return " ".join(part for part in parts if part)


def owners(provider: str) -> dict[PartName, str]:
    """Whose setting each part of the time is."""
    return {
        "vad_wait": "vad.silence_ms",
        "turn": f"brain.{provider}",
        "stt": f"brain.{provider}",
        "agent": f"brain.{provider}",
        "tts": f"brain.{provider}",
        "output": "line",
    }
