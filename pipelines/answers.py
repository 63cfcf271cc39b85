"""The answers of a call: starting and cutting them, and bringing what was heard into history.

Owned by one pipeline for one run. One answer is current; of older ones only their amendments may
be under way. The agent loop writes history; from here it gets `Heard`, once per message: at the
cut's settled truth, or when all was heard (DESIGN 2, 5.4).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ..core.requests import UserInput, Wake
from ..media import events as call
from ..media.line import Progress
from ..media.segments import Heard as HeardSamples
from ..media.turns.heard import Heard, join_heard
from . import vocabulary as voc
from .acknowledge import Rendered
from .amendments import Amendments
from .parts import Parts
from .reply import Failure, Reply
from .sight import Sight
from .speech import Speech, SpeechMarks, Utterance
from .turn_marks import ReplyMarks, latency_of

TOLD = {"superseded": "command"}
"""How a cut that no voice made is called on a timeline (CONTRACTS A)."""

CLOSED = "closed"
"""A cut by the call's end: that is no interruption."""

UNWIND_S = 1.0
"""How long a new answer waits for a cut one to end; it takes a few milliseconds."""


@dataclass(slots=True)
class _Turn:
    """What a committed turn leaves behind: its latency marks and its message."""

    timing: voc.Timing | None = None
    message_id: str | None = None
    correction: str | None = None


@dataclass(slots=True)
class _Open:
    """What is not over yet: cuts without their settled truth, and answers that unwind."""

    cuts: dict[int, _CutReply] = field(default_factory=dict)
    replies: set[asyncio.Task[None]] = field(default_factory=set)
    """Answers whose task has not ended; all but the current one are unwinding."""
    unstored: list[str] = field(default_factory=list)
    """User turns that were cut before the agent had taken them: the next request says them too."""


@dataclass(frozen=True, slots=True)
class _CutReply:
    """A cut answer, what the line will say of it, and where its sound stopped."""

    reply: Reply
    settled: asyncio.Future[tuple[HeardSamples, ...]]
    out: int


class Answers:
    """See the module. All methods but `settled` are synchronous."""

    def __init__(self, parts: Parts, said: Callable[[str], None]) -> None:
        self._parts = parts
        self._said = said
        self.sight = Sight()
        self._current: Reply | None = None
        self._numbers = itertools.count()
        self._turns: dict[int, _Turn] = {}
        self._open = _Open()
        self._amendments = Amendments(parts)
        self._wake: Wake | None = None

    # ---- the machine's orders

    def committed(self, turn: int, timing: voc.Timing | None) -> None:
        """User turn `turn` was committed with these marks."""
        self._turns[turn] = _Turn(timing)
        for old in [key for key in self._turns if key < turn - 8]:
            del self._turns[old]

    def start(self, order: voc.StartReply) -> None:
        """Ask the agent."""
        marks = ReplyMarks()
        wake, self._wake = self._wake, None
        message = None if order.turn is None else self._parts.agent.config.new_id("msg")
        reply = Reply(
            order.gen,
            order.turn,
            lambda: self._request(order, wake),
            self.new_speech(marks),
            marks,
            wake=wake,
            message_id=message,
        )
        self._current = reply
        if order.turn is not None:
            self._tell_user(order, message)
        self._parts.line.emit(call.Response(event="started", turn=order.turn, gen=order.gen))
        older = tuple(self._open.replies)
        task = self._parts.spawn(self._run(reply, older))
        self._open.replies.add(task)
        task.add_done_callback(self._open.replies.discard)

    def cut(self, order: voc.Cut) -> None:
        """End the current answer: one synchronous step from decision to silence (DESIGN 3)."""
        reply, line = self._current, self._parts.line
        if reply is None or reply.gen != order.gen:
            return
        self._current = None
        reply.close(order.reason, tools=order.tools)
        cut = line.cut()
        if order.audible and order.reason != CLOSED:
            line.emit(
                call.Interruption(
                    event="cut",
                    reason=TOLD.get(order.reason, order.reason),
                    out=cut.out,
                    turn=reply.turn,
                    gen=reply.gen,
                )
            )
        self._open.cuts[reply.gen] = _CutReply(reply, cut.settled, cut.out)
        if cut.settled.done():
            self._settle_cut(reply.gen)
        else:
            cut.settled.add_done_callback(lambda _: self._settle_cut(reply.gen))

    def acknowledge(self, gen: int) -> None:
        """Answer `gen` is slow: say so, unless anything of it has come. No history."""
        reply = self._current
        if reply is None or reply.gen != gen or reply.speech.begun:
            return
        phrase = self._parts.acknowledgements.next()
        if phrase is None:
            return
        reply.speech.say_aside(phrase.text, Rendered(phrase))
        self._parts.line.emit(
            call.Transcript(
                role="assistant",
                text=phrase.text,
                partial=False,
                source="narration",
                turn=reply.turn,
                gen=gen,
            )
        )

    def correct(self, turn: int, text: str) -> None:
        """The recogniser's final differs: amend the user's message (row 66)."""
        known = self._turns.get(turn)
        if known is None:
            return
        if known.message_id is None:
            known.correction = text
        else:
            self._amendments.add(self._parts.agent.amend_user(known.message_id, text))

    def woken(self, wake: Wake) -> None:
        """The agent wants to speak by itself; the machine chooses when."""
        earlier = self._wake
        if earlier is not None and earlier.note and earlier.note != wake.note:
            wake = replace(wake, note=f"{earlier.note}\n{wake.note}".rstrip())
        self._wake = wake

    # ---- facts from the line

    def on_progress(self, progress: Progress) -> bool:
        """A segment of the current answer began or ended to sound; False if it is not ours."""
        reply = self._current
        utterance = None if reply is None else reply.speech.owner_of(progress.segment)
        if reply is None or utterance is None:
            return False
        now = self._parts.now()
        if progress.event == "started":
            if not utterance.aside:
                self._first_sound(reply, progress.out, now)
            self._parts.feed(voc.Sounded(now, reply.gen, utterance.aside))
            return True
        utterance.ended = True
        if not self._parts.line.unplayed and not reply.speech.complete:
            self._parts.feed(voc.Silenced(now, reply.gen))
        return True

    async def settled(self) -> None:
        """Wait until what was heard of every earlier answer is in history."""
        self._settle_now()
        await self._amendments.written()

    def close(self) -> None:
        """The call is over: whatever is said now is cut, with what was heard; `settled` stores
        it."""
        self._amendments.close()
        if self._current is not None:
            self.cut(voc.Cut(self._current.gen, CLOSED, tools=True, audible=False))
        self._settle_now()

    def new_speech(self, marks: ReplyMarks) -> Speech:
        """A voice on this line, numbered behind all others."""

        def first_text() -> None:
            marks.first_text = self._parts.now()

        def first_audio() -> None:
            marks.first_audio = self._parts.now()

        return Speech(
            self._parts.line,
            self._parts.speaker,
            lambda: next(self._numbers),
            SpeechMarks(first_text, first_audio),
        )

    # ---- inside

    def _request(self, order: voc.StartReply, wake: Wake | None) -> UserInput:
        words, self._open.unstored = self._open.unstored, []
        if order.source == "wake" and not words:
            return wake or Wake()
        if order.source == "respond" and not words:
            return Wake(note=order.text)
        own = [] if order.source in ("wake", "respond") else [order.text]
        return self.sight.show(" ".join([*words, *own]))

    def _tell_user(self, order: voc.StartReply, message: str | None) -> None:
        self._parts.line.emit(
            call.Transcript(
                role="user",
                text=order.text,
                partial=False,
                start=order.start,
                end=order.end,
                source="typed" if order.source == "typed" else "speech",
                turn=order.turn,
                gen=order.gen,
                message=message,
            )
        )

    async def _run(self, reply: Reply, older: tuple[asyncio.Task[None], ...]) -> None:
        """Task of the brain's group. It asks when the `older` answers have unwound: one of them
        may have been cut before the agent took its user's words (DESIGN 5.5)."""

        async def settled() -> None:
            if older:
                await asyncio.wait(older, timeout=UNWIND_S)
            await self.settled()

        failure = await reply.run(self._parts.agent, self._parts.hold, settled)
        self._note_message(reply)
        if reply.asking.unstored:
            self._open.unstored.append(self.sight.take_back(reply.asking.unstored))
        if self._current is not reply:
            if reply.wake is not None and not reply.asking.answered and not self._amendments.closed:
                # Cut before a model saw why the agent wanted to speak: it still wants to.
                self._wake = self._wake or reply.wake
                self._parts.feed(voc.Woken(self._parts.now()))
            return
        self._current = None
        if failure is None:
            self._conclude(reply, {}, cut=False, out=self._parts.line.out)
        else:
            self._fail(reply, failure)
        code = None if failure is None else failure.code
        self._parts.feed(voc.Answered(self._parts.now(), reply.gen, code))

    def _note_message(self, reply: Reply) -> None:
        known = self._turns.get(reply.turn) if reply.turn is not None else None
        if known is None or reply.asking.user_message_id is None:
            return
        known.message_id = reply.asking.user_message_id
        if known.correction is not None:
            self._amendments.add(self._parts.agent.amend_user(known.message_id, known.correction))
            known.correction = None

    def _fail(self, reply: Reply, failure: Failure) -> None:
        """The answer broke: what was given so far ends where it is, and is told."""
        reply.close("failed", tools=False)
        self._parts.line.emit(
            call.Problem(
                code=failure.code,
                stage=failure.stage,
                message=failure.message,
                turn=reply.turn,
                gen=reply.gen,
            )
        )
        cut = self._parts.line.cut()
        heard = cut.settled.result() if cut.settled.done() else cut.heard
        self._conclude(reply, {one.segment: one for one in heard}, cut=True, out=cut.out)

    def _settle_now(self) -> None:
        """Take the best known truth of every cut: a future's own callbacks come a step later."""
        self._parts.line.settle()
        for gen in tuple(self._open.cuts):
            self._settle_cut(gen)

    def _settle_cut(self, gen: int) -> None:
        """Say and store a cut whose truth is known, once."""
        cut = self._open.cuts.get(gen)
        if cut is None or not cut.settled.done():
            return
        del self._open.cuts[gen]
        heard = {one.segment: one for one in cut.settled.result()}
        self._conclude(cut.reply, heard, cut=True, out=cut.out)

    def _conclude(
        self, reply: Reply, heard: dict[int, HeardSamples], *, cut: bool, out: int
    ) -> None:
        """Say and store what was heard of an answer, once."""
        parts: list[Heard] = []
        for utterance in (one for one in reply.speech.utterances if not one.aside):
            if not cut:
                utterance.ended = True
            share = utterance.heard(heard.get(utterance.segment))
            parts.append(share)
            self._amend(utterance, share, cut=cut)
        whole = join_heard(_spaced(parts))
        self._said(whole.text)
        interrupted = cut and not whole.complete
        text = whole.text + whole.unheard
        if text.strip():
            self._parts.line.emit(
                call.Transcript(
                    role="assistant",
                    text=text,
                    partial=False,
                    heard=whole.text,
                    unheard=whole.unheard,
                    interrupted=interrupted,
                    estimated=whole.estimated,
                    turn=reply.turn,
                    gen=reply.gen,
                )
            )
        self._parts.line.emit(
            call.Response(
                event="cut" if cut else "ended",
                out=out,
                text=text,
                heard=whole.text if cut else None,
                turn=reply.turn,
                gen=reply.gen,
            )
        )

    def _amend(self, utterance: Utterance, share: Heard, *, cut: bool) -> None:
        self._amendments.add(
            self._parts.agent.amend_heard(
                utterance.message_id,
                share.text,
                share.unheard,
                interrupted=cut and not share.complete,
                estimated=share.estimated,
            )
        )

    def _first_sound(self, reply: Reply, out: int, now: int) -> None:
        if reply.marks.sounded:
            return
        reply.marks.sounded = True
        self._parts.line.emit(call.Response(event="audio", out=out, turn=reply.turn, gen=reply.gen))
        known = self._turns.get(reply.turn) if reply.turn is not None else None
        if known is None or known.timing is None:
            return
        latency = latency_of(known.timing, reply.marks, now)
        self._parts.line.emit(
            call.Metric(
                name="turn_latency",
                total_ms=latency.total_ms,
                parts=latency.parts,
                turn=reply.turn,
                gen=reply.gen,
            )
        )


def _spaced(parts: list[Heard]) -> list[Heard]:
    """Messages of one answer are told as one text: with a space where none is written."""
    spaced: list[Heard] = []
    for index, part in enumerate(parts):
        whole, more = part.text + part.unheard, any(p.text + p.unheard for p in parts[index + 1 :])
        if more and whole and not whole[-1].isspace():
            if part.unheard:
                part = replace(part, unheard=f"{part.unheard} ")
            else:
                part = replace(part, text=f"{part.text} ")
        spaced.append(part)
    return spaced
