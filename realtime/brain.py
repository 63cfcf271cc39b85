"""A realtime model as the brain of a call: RealtimeSession on a Line.

Implements media's Brain port, so every line and every page runs on it as on the cascade. The local
detector supplies what a provider does not tell soon enough: silence within a blink when the caller
speaks, boundaries for a full-duplex model, and the playback truth of the line (spec/voice 18.11,
W-43). Its tasks live in one TaskGroup inside `run` (owner: the call's brain task).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field

import numpy as np

from ..core.agent import Agent
from ..media import brain as port
from ..media import events as call
from ..media.echo import EchoGuard
from ..media.echo_filter import Notice
from ..media.errors import LineClosed
from ..media.format import PIPELINE, AudioFormat
from ..media.frame import AudioFrame
from ..media.line import Line
from ..media.resample import Resampler
from ..media.transport import Image, LineChanged, Signal
from ..media.turns.backchannel import classify
from ..media.turns.bargein import BargeInConfig
from ..media.vad.port import Vad
from .barging import Barging
from .commanding import Commanding
from .config import SessionConfig
from .ear import Ear
from .events import Audio, ResponseDone, ResponseStarted, Used, Words
from .link import Reconnected
from .playout import Playout
from .port import RealtimeAdapter
from .session import RealtimeSession
from .session_events import (
    AnswerHeard,
    OutputStopped,
    SessionEvent,
    SessionProblem,
    StateChanged,
    TurnStored,
)
from .talk import TalkButton
from .telling import Telling, owners

log = logging.getLogger(__name__)

EARLY_FRAMES = 250
"""Frames kept while the agent's turn queue is waited for: 5 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RealtimeParts:
    """What a realtime brain is made of. Without `vad` a caller is noticed when the provider says
    so; with `manual_turns` it is not used. `echo_guard`: the agent's own voice in the microphone is
    no caller. `click_ms`, `minimum_ms`: see talk. `survivors`: where un-abortable tools end when
    the call is over (the server's group)."""

    agent: Agent
    adapter: RealtimeAdapter
    vad: Callable[[], Vad] | None
    session: SessionConfig = field(default_factory=SessionConfig)
    barge_in: BargeInConfig = field(default_factory=BargeInConfig)
    greeting: str = ""
    click_ms: int = 300
    minimum_ms: int = 350
    echo_guard: bool = True
    survivors: asyncio.TaskGroup | None = None


@dataclass(slots=True)
class _Life:
    """One life on a line."""

    line: Line
    session: RealtimeSession
    playout: Playout
    telling: Telling
    barging: Barging
    commanding: Commanding
    resampler: Resampler
    ear: Ear
    origin: int | None = None
    """Input sample of the call at which the session's sound begins."""


class RealtimeBrain:
    """See the module. `name` on a timeline is the provider's."""

    def __init__(self, parts: RealtimeParts) -> None:
        self._parts = parts
        self._can = parts.adapter.capabilities
        self._life: _Life | None = None
        self._early: deque[AudioFrame] = deque(maxlen=EARLY_FRAMES)
        self._at = 0
        self._running = False

    @property
    def name(self) -> str:
        return self._parts.adapter.provider

    @property
    def input_format(self) -> AudioFormat:
        return PIPELINE

    async def run(self, line: Line) -> None:
        """See media.brain.Brain. Raises AdapterError when the provider is lost for good."""
        if self._running:
            raise RuntimeError("the brain is running already")
        self._running = True
        self._early.clear()  # the input of an earlier life
        try:
            async with asyncio.TaskGroup() as group:
                await self._live(line, group)
        except* LineClosed:
            log.debug("the line closed")
        finally:
            self._running = False

    async def _live(self, line: Line, group: asyncio.TaskGroup) -> None:
        tasks: set[asyncio.Task[None]] = set()

        def spawn(work: Coroutine[None, None, None]) -> None:
            task = group.create_task(work)
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        life = self._assemble(line, spawn)
        spawn(life.playout.run())
        self._life = life
        life.session.listen(self._on_event)
        try:
            await life.session.run(survivors=self._parts.survivors)
        finally:
            self._life = None
            life.telling.close(line.out)
            life.commanding.cancel()
            for task in tasks:
                task.cancel()

    # ---- the caller

    def hear(self, frame: AudioFrame) -> None:
        """20 ms of the caller at 16 kHz."""
        self._at = frame.end
        life = self._life
        if life is None or not life.session.live:
            self._early.append(frame)
            return
        while self._early:
            self._listen(life, self._early.popleft())
        self._listen(life, frame)
        life.playout.tick()
        life.commanding.tick()
        life.barging.tick(self._at, voiced=life.ear.voiced)
        self._rest(life)

    def _listen(self, life: _Life, frame: AudioFrame) -> None:
        if life.origin is None:
            life.origin = frame.at
        samples = frame.array()
        if life.commanding.deaf:
            self._hush(life)
            samples = np.zeros_like(samples)
        else:
            for notice in life.ear.notice(frame.at, samples):
                self._voice(life, notice, frame.end)
        life.session.send_audio(life.resampler.feed(samples).tobytes())

    def _hush(self, life: _Life) -> None:
        """The microphone closes: whatever was being said is over."""
        if life.ear.close():
            life.barging.forget()
            life.telling.speech_began(None)
            self._boundary(life, False)

    def _voice(self, life: _Life, notice: Notice, at: int) -> None:
        """What the local detector says is worth knowing to the session as well."""
        kind, position = notice.kind, notice.position
        if kind != "echo":
            life.line.emit(call.Vad(event=kind, position=position))
        match kind:
            case "start":
                life.telling.speech_began(position)
            case "misfire" | "echo":
                life.telling.speech_began(None)
                self._boundary(life, False)
            case "confirmed":
                self._boundary(life, True)
            case "end":
                life.telling.speech_ended(position)
                self._boundary(life, False)
                life.session.resume_output()
        if self._takes_turns and self._parts.session.interruption:
            life.barging.voice(kind, position, at)

    def _boundary(self, life: _Life, speaks: bool) -> None:
        if life.ear.speaks != speaks:
            life.ear.speaks = speaks
            life.session.user_speech(speaks)

    def signal(self, signal: Signal) -> None:
        """Pictures, and that nobody is there to let go of the button."""
        life = self._life
        if life is None or not life.session.live:
            return
        match signal:
            case Image(mime, data, live):
                session = life.session
                session.send_video_frame(data) if live else session.send_image(data, mime)
            case LineChanged("detached"):
                life.commanding.release()

    def command(self, command: port.Command) -> asyncio.Future[None]:
        """See media.brain.Brain."""
        life = self._life
        if life is None:
            raise RuntimeError("the brain is not running: commands need a live call")
        return life.commanding.take(command)

    # ---- the session

    def _on_event(self, event: SessionEvent) -> None:
        life = self._life
        if life is None:
            return
        match event:
            case Audio(item_id, pcm):
                life.playout.play(item_id, pcm)
                life.telling.sound(item_id)
            case Words(role="assistant", item_id=item_id):
                life.telling.answer_words(item_id)
            case Words():
                self._user_words(life, event)
            case OutputStopped(items):
                self._stopped(life, items)
            case AnswerHeard():
                life.telling.heard(event, narration=not event.kept)
            case TurnStored():
                life.telling.turn_taken(event, self._position)
            case ResponseStarted():
                life.session.resume_output()
                if life.session.narrates(event.request_id):
                    life.telling.narration_started(event.response_id)
                else:
                    life.telling.response_started(turn=True)
            case _:
                self._other(life, event)
        self._rest(life)

    def _other(self, life: _Life, event: SessionEvent) -> None:
        emit = life.line.emit
        match event:
            case ResponseDone(response_id):
                life.telling.response_over(response_id)
            case StateChanged(state):
                if state == "open":
                    life.commanding.opened(self._parts.greeting)
            case SessionProblem(code, stage, message, fatal):
                if not fatal:  # the call tells what ends it
                    emit(call.Problem(code=code, stage=stage, message=message))
            case Reconnected():
                emit(
                    call.Reconnected(
                        restored=event.state_restored,
                        attempt=event.attempt,
                        planned=event.planned,
                        lost_ms=event.lost_ms,
                        replayed_ms=event.replayed_ms,
                        outage_ms=event.outage_ms,
                    )
                )
            case Used() if event.context_tokens is not None and not event.final:
                emit(call.Metric(name="context_tokens", value=float(event.context_tokens)))
            case _:
                return

    def _user_words(self, life: _Life, words: Words) -> None:
        text = life.telling.user_words(words)
        if self._takes_turns:
            # Words of the turn that is being answered may come while its answer sounds.
            if not life.telling.taken(words.item_id):
                life.barging.words(text, self._at)
        elif life.playout.sounding and classify(text, self._parts.barge_in.lexicon) == "stop":
            life.commanding.interrupt("stop_word", "stop_word")

    def _stopped(self, life: _Life, items: tuple[AnswerHeard, ...]) -> None:
        reason = life.commanding.reason or "words"
        said = tuple(item for item in items if item.item_id not in life.telling.asides)
        audible = life.playout.cut_short and life.telling.answering
        life.barging.over(reason, audible, *life.telling.numbers)
        life.telling.cut(said, life.line.out)
        life.commanding.stopped()

    def _started(self, item_id: str, out: int) -> None:
        if self._life is not None and self._life.session.live:
            self._life.session.notify_playback(True)
            self._life.telling.sounds(item_id, out)

    def _ended(self, item_id: str, out: int) -> None:
        if self._life is not None and self._life.session.live:
            self._life.session.heard(item_id)

    def _silent(self) -> None:
        if self._life is not None and self._life.session.live:
            self._life.session.notify_playback(False)
            self._life.commanding.drained()

    def _rest(self, life: _Life) -> None:
        """Mode and the end of an answer follow from who is still at it."""
        session, sounding = life.session, life.playout.sounds_but(life.telling.asides)
        working = session.working
        life.telling.rest(working=working, sounding=sounding, out=life.line.out)
        if session.state == "connecting" or not session.live:
            return
        if not (life.playout.sounding or working) and life.barging.paused:
            life.barging.forget()  # nothing is left to be held back
        if sounding and (life.playout.audible or life.barging.paused):
            life.telling.mode("speaking")
        elif life.commanding.narrating and not life.telling.answering:
            life.telling.mode("listening")
        elif working or not life.telling.answering:
            life.telling.mode("thinking" if working else "listening")

    # ---- assembly

    @property
    def _takes_turns(self) -> bool:
        return self._can.turn_taking != "full_duplex"

    def _position(self, session_sample: int) -> int:
        """An input sample of the session as one of the call."""
        origin = 0 if self._life is None else self._life.origin or 0
        return origin + session_sample * PIPELINE.rate // self._can.input_format.rate

    def _assemble(self, line: Line, spawn: Callable[[Coroutine[None, None, None]], None]) -> _Life:
        parts = self._parts
        playout = Playout(
            line,
            self._can.output_format,
            started=self._started,
            ended=self._ended,
            idle=self._silent,
        )
        session = RealtimeSession(
            parts.agent, adapter=parts.adapter, config=parts.session, playback=playout
        )
        telling = Telling(line.emit, lambda: self._at, owners(parts.adapter.provider))
        barging = Barging(
            line,
            parts.barge_in,
            cut=session.stop_speech,
            protected=lambda: bool(parts.agent.display.pending),
            working=lambda: playout.sounding or session.working,
            audible=lambda: playout.audible,
        )
        commanding = Commanding(
            session,
            playout,
            telling,
            spawn,
            line,
            manual=parts.session.manual_turns,
            talk=TalkButton(*(PIPELINE.samples(ms) for ms in (parts.click_ms, parts.minimum_ms))),
            now=lambda: self._at,
        )
        return _Life(
            line=line,
            session=session,
            playout=playout,
            telling=telling,
            barging=barging,
            commanding=commanding,
            resampler=Resampler(PIPELINE.rate, self._can.input_format.rate),
            ear=self._ear(line),
        )

    def _ear(self, line: Line) -> Ear:
        parts = self._parts
        vad = None if parts.vad is None or parts.session.manual_turns else parts.vad()
        echo = EchoGuard(line.reference) if parts.echo_guard else None

        def broken(error: Exception) -> None:
            log.error("the detector failed", exc_info=error)
            message = f"{type(error).__name__}: {error}"
            line.emit(call.Problem(code="ERR_VAD", stage="vad", message=message))

        return Ear(vad, echo, lambda: line.unplayed, broken)
