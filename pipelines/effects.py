"""Carrying out what the turn machine asks for: one synchronous call per effect.

Owned by one pipeline for one run. Everything slow it starts is a task of the brain's group; what
comes of it goes back to the machine as an event. It decides nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import assert_never

from ..core.external import AgentEvent
from ..media import events as call
from . import vocabulary as voc
from .answers import Answers
from .commands import Commands
from .detectors.port import CONTEXT_TURNS, ContextTurn, TurnQuery
from .narrate import Narrations
from .parts import Parts

CLOSE_S = 0.6
"""Bound on bringing the last answer into history when the call ends. With the recogniser's and
the voices' it fits into what a call gives its brain to end (DESIGN 5.10)."""


class Effects:
    """See the module."""

    def __init__(self, parts: Parts, commands: Commands) -> None:
        self._parts = parts
        self._commands = commands
        self.answers = Answers(parts, self._said)
        self.narrations = Narrations(parts, self.answers)
        self._context: deque[ContextTurn] = deque(maxlen=CONTEXT_TURNS)
        self._muted = False
        self._asking: asyncio.Task[None] | None = None

    def perform(self, effect: voc.Effect) -> None:
        """Carry `effect` out."""
        match effect:
            case voc.Pause():
                self._pause(effect)
            case voc.Resume():
                self._resume(effect)
            case voc.Cut():
                self.answers.cut(effect)
            case voc.StartReply():
                if effect.turn is not None:
                    self._context.append(ContextTurn("user", effect.text))
                self.answers.start(effect)
            case voc.StartNarration(command):
                self._narrate(command)
            case voc.Acknowledge(gen):
                self.answers.acknowledge(gen)
            case voc.EndNarration(command):
                self.narrations.end(command)
                self._microphone()
            case voc.Complete(command):
                self._complete(command)
            case _:
                self._hear(effect)

    def set_muted(self, muted: bool) -> None:
        """The microphone's own state, before any effect."""
        self._muted = muted
        self._microphone()

    def _said(self, heard: str) -> None:
        """The agent was heard to say this: context for the turn detector."""
        if heard.strip():
            self._context.append(ContextTurn("assistant", heard))

    async def aclose(self) -> None:
        """The call is over: what was heard reaches history (bounded), the voices are closed."""
        try:
            async with asyncio.timeout(CLOSE_S):
                await self.answers.settled()
        except TimeoutError:
            self._parts.line.emit(
                call.Problem(code="ERR_STORE", stage="agent", message="history was not settled")
            )
        finally:
            await self._parts.speaker.aclose()

    # ---- sound

    def _pause(self, order: voc.Pause) -> None:
        out = self._parts.line.pause()
        if order.audible:
            self._parts.line.emit(call.Interruption(event="paused", reason="wordless", out=out))

    def _resume(self, order: voc.Resume) -> None:
        line = self._parts.line
        line.resume()
        if order.audible:
            line.emit(call.Interruption(event="resumed", reason=order.reason, out=line.out))

    # ---- the ear

    def _hear(
        self,
        effect: voc.AskDetector
        | voc.FlushStt
        | voc.AskStt
        | voc.SettleStt
        | voc.Gate
        | voc.ResetVad
        | voc.DuckVad
        | voc.Microphone
        | voc.AddContext
        | voc.AnswerClient
        | voc.TellMode
        | voc.TellWords
        | voc.TellTurn
        | voc.TellMetric,
    ) -> None:
        ear = self._parts.ear
        match effect:
            case voc.AskDetector():
                self._ask_detector(effect)
            case voc.FlushStt(end):
                self._parts.speaker.prewarm()
                ear.flush(end)
            case voc.AskStt(end):
                ear.ask(end)
            case voc.SettleStt(end):
                ear.settle(end)
            case voc.Gate(move, start):
                ear.move_gate(move, start)
            case voc.ResetVad(reason):
                ear.reset_vad()
                self._parts.line.emit(call.Metric(name=f"vad_reset_{reason}", value=1.0))
            case voc.DuckVad(on):
                ear.duck(on)
            case voc.Microphone(on):
                self.set_muted(not on)
            case _:
                self._tell(effect)

    def _ask_detector(self, order: voc.AskDetector) -> None:
        detector = self._parts.detector
        if detector is None:
            return
        if self._asking is not None:
            # The newest question of a caller is the only one whose answer counts.
            self._asking.cancel()
        now = self._parts.now()
        query = TurnQuery(
            transcript=order.text,
            audio=self._parts.ear.window(),
            context=tuple(self._context),
            silence_ms=max(0, (now - order.end) * 1000 // call.RATE),
            again=order.again,
        )
        self._asking = self._parts.spawn(self._decide(order.query, query))

    async def _decide(self, number: int, query: TurnQuery) -> None:
        """Task of the brain's group; its answer, late or not, is a fact for the machine."""
        detector = self._parts.detector
        if detector is None:
            return
        try:
            decision = await detector.decide(query)
        except Exception as error:  # DetectorError, or whatever a user's own detector raises
            self._parts.line.emit(
                call.Problem(code="ERR_TURN_DETECTOR", stage="turn", message=str(error))
            )
            self._parts.feed(voc.Verdict(self._parts.now(), number, failed=True))
            return
        self._parts.feed(
            voc.Verdict(
                self._parts.now(),
                number,
                decision.hold_ms,
                decision.reason,
                decision.p,
                decision.ask_again_ms,
            )
        )

    # ---- telling

    def _tell(
        self,
        effect: voc.AddContext
        | voc.AnswerClient
        | voc.TellMode
        | voc.TellWords
        | voc.TellTurn
        | voc.TellMetric,
    ) -> None:
        line = self._parts.line
        match effect:
            case voc.TellMode(mode):
                line.emit(call.Mode(mode=mode))
            case voc.TellWords(text, start, end):
                line.emit(
                    call.Transcript(role="user", text=text, partial=True, start=start, end=end)
                )
            case voc.TellTurn():
                self._tell_turn(effect)
            case voc.TellMetric(name, value):
                line.emit(call.Metric(name=name, value=value))
            case voc.AddContext(text):
                self._parts.spawn(self._add_context(text))
            case voc.AnswerClient(resume):
                line.emit(
                    call.Interruption(
                        event="resumed" if resume else "cut", reason="command", out=line.out
                    )
                )
            case _:
                assert_never(effect)

    def _tell_turn(self, told: voc.TellTurn) -> None:
        if told.event == "committed" and told.turn is not None:
            self.answers.committed(told.turn, told.timing)
        if told.event == "corrected" and told.turn is not None:
            self.answers.correct(told.turn, told.text)
        self._parts.line.emit(
            call.Turn(
                event=told.event,
                reason=told.reason,
                text=told.text,
                hold_ms=told.hold_ms,
                p=told.p,
                turn=told.turn,
            )
        )

    async def _add_context(self, text: str) -> None:
        """Task of the brain's group: the agent learns it at its next step, and is not asked."""
        event = AgentEvent(id="", source="host", content=text)
        try:
            await self._parts.agent.emit_event(event, when_idle="defer")
        except Exception as error:  # a user's own store may raise anything
            self._parts.line.emit(
                call.Problem(code="ERR_STORE", stage="agent", message=f"context lost: {error}")
            )

    # ---- narration and commands

    def _narrate(self, command: int) -> None:
        known = self._commands.open.get(command)
        self.narrations.start(command, known.text if known is not None else "")
        self._microphone()

    def _complete(self, command: int) -> None:
        self._microphone()
        self._commands.complete(command, self.narrations.failure(command))

    def _microphone(self) -> None:
        """Closed while muted or under a narration; the mute state outlives the narration."""
        self._parts.ear.set_open(not self._muted and not self.narrations.running)
