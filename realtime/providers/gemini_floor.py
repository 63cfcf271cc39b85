"""What our side knows of the user's turn on a Gemini Live connection. Time is the sound we send.

Pure; owned by one codec. Source: protocols/gemini-live 5.6: no event says that speech began or that
a turn was taken.
"""

from __future__ import annotations

from dataclasses import dataclass

from .gemini_config import INPUT

ANSWER_MS = 5_000
"""An answer begins within this much sound behind the user's turn, or there is none: the provider
tells neither when it takes a turn nor that it leaves one alone."""


@dataclass(slots=True)
class Floor:
    """The turn, and whether an answer to it may be near.

    manual      our side ends turns; `open`: one is open on the wire
    interrupts  the user's voice ends the model's speech
    speaking    the host hears the user now
    answering   the user was heard and stopped, was read, or cut the model: an answer may be near
    silence     bytes of sound that were sent since, and brought none
    """

    manual: bool = False
    interrupts: bool = True
    open: bool = False
    speaking: bool = False
    answering: bool = False
    silence: int = 0

    def expect(self) -> None:
        """An answer may be on its way."""
        self.answering, self.silence = True, 0

    def pass_by(self, pcm: bytes) -> None:
        """Sound was sent: after enough of it no answer comes any more."""
        self.silence += len(pcm)
        if self.silence > ANSWER_MS * INPUT.rate * INPUT.bytes_per_sample // 1000:
            self.answering = False
