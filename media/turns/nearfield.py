"""Is this the caller, or a neighbour? Utterance level against what the caller is known to reach.

A value and two pure functions, owned by whoever commits turns. Time is audio time in samples, so
the reference decays alike for every chunk size (spec/voice 5.2 guard b, row 68).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..errors import MediaValueError


@dataclass(frozen=True, slots=True, kw_only=True)
class NearFieldConfig:
    """Raises MediaValueError for a half-life that is not positive."""

    rate: int = 16_000
    half_life_s: float = 20.0
    ratio: float = 0.25
    """An utterance under this share of the reference is far field."""
    floor: float = 0.01
    """A reference under this RMS (full scale 1) says nothing: everything is accepted."""
    reanchor_after: int = 3
    """This many rejections in a row mean the reference is wrong, not the caller."""

    def __post_init__(self) -> None:
        if self.half_life_s <= 0:
            raise MediaValueError("half_life_s", str(self.half_life_s), "use seconds above 0")


@dataclass(frozen=True, slots=True)
class NearField:
    """The caller's level: a decaying maximum `reference` as of sample `at`."""

    reference: float = 0.0
    at: int = 0
    rejected: int = 0


DEFAULTS = NearFieldConfig()


def reference_at(state: NearField, at: int, config: NearFieldConfig = DEFAULTS) -> float:
    """The reference RMS at sample `at`: halved every `half_life_s` of audio."""
    age = max(0, at - state.at) / config.rate
    return float(state.reference * 0.5 ** (age / config.half_life_s))


def judge(
    state: NearField, peak_rms: float, at: int, config: NearFieldConfig = DEFAULTS
) -> tuple[NearField, bool]:
    """Whether an utterance with this peak RMS (0..1) ending at `at` is the caller, and what that
    teaches. The third rejection in a row is accepted and becomes the new reference."""
    reference = reference_at(state, at, config)
    if reference >= config.floor and peak_rms < config.ratio * reference:
        rejected = state.rejected + 1
        if rejected < config.reanchor_after:
            return replace(state, rejected=rejected), False
        return NearField(peak_rms, at), True
    return NearField(max(peak_rms, reference), at), True
