"""A caller's voice under the agent's: the two-stage barge-in of media/turns on a realtime call.

Facts of the local detector and words of the provider go in, pauses of the line and one decision
come out. The provider's own verdict counts more and comes in as `over`. Owned by one run of a brain
whose model takes turns; a full-duplex model has none (DESIGN 4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from ..media import events as call
from ..media.line import Line
from ..media.turns import bargein
from ..media.vad.port import VadEvent


class Barging:
    """See the module. `cut` ends the agent's speech; `protected` asks whether a person's answer is
    awaited on the display, which voice without words may not end."""

    def __init__(
        self,
        line: Line,
        config: bargein.BargeInConfig,
        *,
        cut: Callable[[], None],
        protected: Callable[[], bool],
        speaking: Callable[[], bool],
    ) -> None:
        self._line = line
        self._config = config
        self._cut = cut
        self._protected = protected
        self._speaking = speaking
        self._state = bargein.BargeIn()
        self._paused = False
        self._reason = ""

    @property
    def paused(self) -> bool:
        """The line is silent until this is decided."""
        return self._paused

    def voice(self, event: VadEvent) -> None:
        """The local detector decided something."""
        match event.kind:
            case "start":
                if self._speaking():
                    self._feed(bargein.Onset(event.at, event.position), event.at)
            case "confirmed":
                self._feed(bargein.Confirmed(event.at), event.at)
            case "misfire":
                self._feed(bargein.Misfire(event.at), event.at)
            case "end":
                self._feed(bargein.SpeechEnd(event.at, event.position), event.at)

    def words(self, text: str, at: int) -> None:
        """The provider read so much of what is said now."""
        if self._state.stage != "idle":
            self._feed(bargein.Report(text, at), at)

    def tick(self, at: int, *, voiced: bool) -> None:
        """Time passed; `voiced`: the detector still hears the voice."""
        if self._state.stage != "idle":
            self._feed(bargein.Tick(at, at if voiced else None), at)

    def over(self, reason: str) -> None:
        """The agent's sound has been ended: by us, by the provider, or by a command (`reason`)."""
        reason, self._reason = self._reason or reason, ""
        self._state, self._paused = bargein.BargeIn(), False
        self._line.emit(call.Interruption(event="cut", reason=reason, out=self._line.out))

    def _feed(self, fact: bargein.Fact, at: int) -> None:
        self._state, effects = bargein.step(
            self._state, fact, self._config, protected=self._protected()
        )
        for effect in effects:
            match effect:
                case bargein.Pause():
                    self._paused = True
                    out = self._line.pause()
                    self._tell("paused", "wordless", out)
                case bargein.Resume(reason):
                    self._paused = False
                    self._line.resume()
                    self._tell("resumed", reason, self._line.out)
                case bargein.Cut(reason):
                    self._decided(reason)
                case bargein.Ask():
                    continue

    def _decided(self, reason: bargein.CutReason) -> None:
        """End it; `over` is called before this returns, by whoever is told of every end."""
        self._reason = reason
        self._cut()

    def _tell(self, event: Literal["paused", "resumed"], reason: str, out: int) -> None:
        self._line.emit(call.Interruption(event=event, reason=reason, out=out))
