"""Endpointing: how long to hold a turn after the speech ended, and whether its text is a turn.

Pure rules over values (CONTRACTS E, spec/voice 5). The machine asks; nothing here has state,
clocks or I/O. Holds are milliseconds counted from the last voiced sample, never from the moment a
detector answered (row 62).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..media.errors import MediaValueError
from ..media.turns.nearfield import NearFieldConfig
from .detectors.heuristic import Tiers, tier_of
from .detectors.port import Decision, PauseEma, TurnQuery
from .detectors.smart_turn import SmartTurnConfig, weigh


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnConfig:
    """Numbers of CONTRACTS E; keys of `turn` in the configuration. Milliseconds say so.

    Raises MediaValueError for a negative wait or a probability outside 0..1.
    """

    manual: bool = False
    start_muted: bool | None = None
    detector: SmartTurnConfig = SmartTurnConfig()
    detector_timeout_ms: int = 350
    tiers: Tiers = Tiers()
    stable_ms: int = 1_500
    stable_again_ms: int = 800
    stable_hold_ms: int = 500
    sweep_ms: int = 400
    sweep_still_ms: int = 1_200
    final_timeout_ms: int = 4_000
    fresh_ms: int = 3_000
    evidence_p: float = 0.15
    room_p: float = 0.05
    voice_p: float = 0.35
    deaf_ms: int = 10_000
    deaf_again_ms: int = 5_000
    quiet_ms: int = 700
    lost_voice_ms: int = 1_500
    """A voice the detector neither hears nor ends for this long is over."""
    long_voice_ms: int = 8_000
    """A voice this long is asked about while it lasts, and holds nothing up if it has no words."""
    long_again_ms: int = 2_000
    speculate: bool = True
    """A recogniser that is asked reads at 96 ms of silence already; kept if that was the end."""
    acknowledge_after_ms: int = 1_000
    """An answer without words for this long after its turn is acknowledged; 0 never does."""
    acknowledgements: tuple[str, ...] = ("One moment.", "Let me check that.")
    """What is said then, in turn; made when the call begins, and no part of history."""
    talk_click_ms: int = 300
    talk_minimum_ms: int = 350
    near_field: NearFieldConfig = NearFieldConfig()

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if name.endswith("_ms") and value < 0:
                raise MediaValueError(f"turn.{name}", str(value), "use 0 or more milliseconds")
            if name.endswith("_p") and not 0 <= value <= 1:
                raise MediaValueError(f"turn.{name}", str(value), "use a probability 0..1")
        if self.acknowledge_after_ms and len({*self.acknowledgements} - {""}) < 2:
            remedy = "give two phrases or more: none is said twice in a row"
            raise MediaValueError("turn.acknowledgements", str(self.acknowledgements), remedy)

    @property
    def muted_at_start(self) -> bool:
        """Whether the microphone is closed until somebody opens it (row 3)."""
        return self.manual if self.start_muted is None else self.start_muted


@dataclass(frozen=True, slots=True)
class Answer:
    """What the detector said, and of which text it knew."""

    asked_text: str
    decision: Decision | None
    """None: no detector, or it did not answer in time (row 61)."""
    late: bool = False
    again: bool = False
    """It was the second answer about the same silence."""


def hold_for(
    text: str, config: TurnConfig, answer: Answer, *, waited_ms: int, pauses: PauseEma
) -> Decision:
    """How long a turn of `text` is held, counted from its last voiced sample.

    A detector that only listened is weighed again once the text is known: "a question and p >= .2"
    needs both. Without an answer the tiers decide, stretched by the caller's own pauses.
    """
    decision = answer.decision
    if decision is None:
        tier = tier_of(text)
        reason = f"fallback:{tier}" if answer.late else tier
        return Decision(pauses.stretch(config.tiers.hold(tier)), reason)
    if decision.p is not None and text != answer.asked_text:
        query = TurnQuery(transcript=text, silence_ms=waited_ms, again=answer.again)
        return weigh(decision.p, query, config.detector)
    return decision
