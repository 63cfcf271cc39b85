"""A caller's voice under the agent's: the two-stage barge-in of media/turns on a realtime call.

Facts of the local detector and words of the provider go in, pauses of the line and one decision
come out. The provider's own verdict counts more and comes in as `over`. Owned by one run of a brain
whose model takes turns; a full-duplex model has none (DESIGN 4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from ..media import events as call
from ..media.echo_filter import NoticeKind
from ..media.line import Line
from ..media.turns import bargein


class Barging:
    """See the module. `cut` ends the agent's speech; `protected` asks whether a person's answer is
    awaited on the display, which voice without words may not end. `working`: an answer sounds or is
    on its way, which a voice holds back; `audible`: it was begun to be heard, so it can be cut."""

    def __init__(
        self,
        line: Line,
        config: bargein.BargeInConfig,
        *,
        cut: Callable[[], None],
        protected: Callable[[], bool],
        working: Callable[[], bool],
        audible: Callable[[], bool],
    ) -> None:
        self._line = line
        self._config = config
        self._cut = cut
        self._protected = protected
        self._working = working
        self._audible = audible
        self._state = bargein.BargeIn()
        self._paused = False
        self._heard = False
        """The pause was told: there was something to be heard."""
        self._reason = ""

    @property
    def paused(self) -> bool:
        """The line is silent until this is decided."""
        return self._paused

    def voice(self, kind: NoticeKind, position: int, at: int) -> None:
        """The local detector decided something at `at`, dated to `position`."""
        match kind:
            case "start":
                if self._working():
                    self._feed(bargein.Onset(at, position))
            case "confirmed":
                self._feed(bargein.Confirmed(at))
            case "misfire" | "echo":
                self._feed(bargein.Misfire(at))
            case "end":
                self._feed(bargein.SpeechEnd(at, position))
                if self._paused and not self._audible():
                    self.forget()  # whether that was a turn, the provider knows

    def words(self, text: str, at: int) -> None:
        """The provider read so much of what is said now."""
        if self._state.stage != "idle":
            self._feed(bargein.Report(text, at))

    def tick(self, at: int, *, voiced: bool) -> None:
        """Time passed; `voiced`: the detector still hears the voice."""
        if self._state.stage != "idle":
            self._feed(bargein.Tick(at, at if voiced else None))

    def forget(self) -> None:
        """The caller is not heard any more, or nothing is left that he could interrupt."""
        self._state = bargein.BargeIn()
        self._go_on("misfire")

    def over(self, reason: str, audible: bool, turn: int | None, gen: int | None) -> None:
        """The agent's sound has been ended: by us, by the provider, or by a command (`reason`);
        `audible` sound of the answer `gen` to `turn`."""
        reason, self._reason = self._reason or reason, ""
        told, self._heard = audible or (self._paused and self._heard), False
        self._state, self._paused = bargein.BargeIn(), False
        if told:
            out = self._line.out
            self._line.emit(
                call.Interruption(event="cut", reason=reason, out=out, turn=turn, gen=gen)
            )

    def _feed(self, fact: bargein.Fact) -> None:
        self._state, effects = bargein.step(
            self._state,
            fact,
            self._config,
            protected=self._protected(),
            withheld=not self._audible(),
        )
        for effect in effects:
            match effect:
                case bargein.Pause():
                    self._paused, self._heard = True, self._audible()
                    out = self._line.pause()
                    self._tell("paused", "wordless", out)
                case bargein.Resume(reason):
                    self._go_on(reason)
                case bargein.Cut(reason):
                    self._decided(reason)
                case bargein.Ask():
                    continue

    def _decided(self, reason: bargein.CutReason) -> None:
        """End it; `over` is called before this returns, by whoever is told of every end. Where
        there was nothing left to end, what comes next must not be held back."""
        self._reason = reason
        self._cut()
        self._reason = ""
        self._go_on(reason)

    def _go_on(self, reason: str) -> None:
        if self._paused:
            self._paused = False
            self._line.resume()
            self._tell("resumed", reason, self._line.out)

    def _tell(self, event: Literal["paused", "resumed"], reason: str, out: int) -> None:
        if self._heard:
            self._line.emit(call.Interruption(event=event, reason=reason, out=out))
