"""The brain's ear: voice detection, the speech gate, the echo check and the recogniser.

Plain calls, frame by frame, no queue (DESIGN 3). Owned by one pipeline; it reports, the turn
machine decides, and its gate moves come back here. Nothing here knows turns or the agent. A part
that raises is told and skipped: time goes on, and what needs no ear still works.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Literal

from ..adapters.stt.port import SpeechToText
from ..media.echo import EchoGuard
from ..media.echo_filter import EchoFilter, Notice, Sounding
from ..media.format import PIPELINE
from ..media.frame import FRAME_MS, AudioFrame
from ..media.gate import SpeechGate
from ..media.pcm import Samples
from ..media.recent import Recent
from ..media.vad.port import Vad
from .detectors.port import WINDOW_SAMPLES as WINDOW
from .vocabulary import GateMove

TELL_EVERY = 10_000 // FRAME_MS
"""A part that raises at every frame is told every 10 s."""

SPECULATE = PIPELINE.rate * 96 // 1000
"""Silence after which a recogniser that is asked may begin to read, in samples. What it reads of
it is all that the flush at the end of speech reads (adapters/stt/utterance.TAIL)."""

Part = Literal["stt", "vad"]
Broken = Callable[[Part, Exception], None]


class Ear:
    """See the module. `vad` is None in manual turn mode: nothing is detected, all is heard.
    `broken` is told what a part raised."""

    def __init__(
        self,
        stt: SpeechToText,
        vad: Vad | None,
        gate: SpeechGate | None,
        broken: Broken,
        echo: EchoGuard | None = None,
        sounding: Sounding = lambda: False,
        speculate: bool = True,
    ) -> None:
        self.stt = stt
        self._pausing = vad if speculate and not stt.continuous else None
        """Whose pauses the recogniser is told of."""
        self._pause: int | None = None
        """Where the pause began that the recogniser was told of."""
        self._broken = broken
        self._raised: Counter[Part] = Counter()
        self._vad = vad
        self._gate = gate if not stt.continuous and vad is not None else None
        self._recent = Recent(WINDOW)
        self._echo = None if echo is None else EchoFilter(echo, self._recent, sounding)
        self.prob = 0.0
        """Probability of voice in the last frame; 1 where nothing is detected."""
        self.open = True
        """Whether the microphone is open: neither muted nor under a narration."""

    def notice(self, at: int, samples: Samples) -> list[Notice]:
        """Detect voice in the frame `samples` at `at`; a closed microphone notices nothing."""
        if not self.open:
            self.prob = 0.0
            return []
        self._recent.add(at, samples)
        if self._vad is None:
            self.prob = 1.0
            return []
        try:
            events = self._vad.process(samples, at)
        except Exception as error:  # a model's runtime may raise anything
            self.prob = 0.0
            self._tell("vad", error)
            return []
        self.prob = self._vad.prob
        if not events and (self._echo is None or self._echo.suspect is None):
            return []
        if self._echo is not None:
            return self._echo.sift(events, at + len(samples))
        return [Notice(event.kind, event.position) for event in events]

    def forward(self, frame: AudioFrame, samples: Samples) -> None:
        """Give the recogniser what the gate lets through of `frame`, which holds `samples`. After
        `notice`."""
        if not self.open:
            return
        if self._gate is None:
            self._give(frame)
        else:
            for at, piece in self._gate.feed(frame.at, samples):
                self._give(frame if piece is samples else _framed(at, piece))
        vad = self._pausing
        if vad is not None and (vad.pause is not None or self._pause is not None):
            self._note_pause(vad, frame.end)

    def flush(self, end: int) -> None:
        """The utterance ended at `end`: a final is wanted."""
        self._ask(lambda: self.stt.flush(end))

    def ask(self, end: int) -> None:
        """A report of the words up to `end` is wanted."""
        self._ask(lambda: self.stt.ask(end))

    def settle(self, end: int) -> None:
        """Audio before `end` is done with."""
        self._ask(lambda: self.stt.settle(end))

    def move_gate(self, move: GateMove, start: int | None) -> None:
        """The machine's order to the gate."""
        if self._gate is None:
            return
        match move:
            case "hold":
                self._gate.hold(start)
            case "open":
                for at, piece in self._gate.open(start):
                    self._give(_framed(at, piece))
            case "cancel":
                self._gate.cancel()
            case "close":
                self._gate.close()

    def duck(self, on: bool) -> None:
        """The agent is audible, or not."""
        if self._vad is not None:
            self._vad.duck(on)

    def reset_vad(self) -> None:
        """Forget speech in progress; emits nothing."""
        if self._vad is not None:
            self._vad.reset()

    def set_open(self, on: bool) -> None:
        """Open or close the microphone. Closing forgets what was being detected."""
        if self.open and not on:
            self.reset_vad()
            if self._gate is not None:
                self._gate.close()
        self.open = on

    def window(self) -> Samples:
        """The caller's last 8 s, ending now. Shape [128000]."""
        return self._recent.last()

    def _note_pause(self, vad: Vad, at: int) -> None:
        """Tell the recogniser of a pause that may be the end, once it is long enough; and that it
        was none, unless the end itself came: its flush says more."""
        pause, told = vad.pause, self._pause
        if pause is None:
            self._pause = None
            if told is not None and vad.voiced:
                self._ask(lambda: self.stt.speculate(None))
        elif pause != told and at - pause >= SPECULATE:
            self._pause = pause
            self._ask(lambda: self.stt.speculate(pause))

    def _give(self, frame: AudioFrame) -> None:
        try:
            self.stt.send_audio(frame)
        except Exception as error:  # a vendor's library may raise anything
            self._tell("stt", error)

    def _ask(self, order: Callable[[], None]) -> None:
        try:
            order()
        except Exception as error:  # a vendor's library may raise anything
            self._tell("stt", error)

    def _tell(self, part: Part, error: Exception) -> None:
        if self._raised[part] % TELL_EVERY == 0:
            self._broken(part, error)
        self._raised[part] += 1


def _framed(at: int, samples: Samples) -> AudioFrame:
    return AudioFrame(samples.tobytes(), PIPELINE, at)
