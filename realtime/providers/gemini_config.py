"""Options of a Gemini Live model, and what differs between its generations, as a table of facts.

Values only. No code asks for a model's name: it asks for a fact (`Generation`), which a model has
by the number in its name. Source: protocols/gemini-live 1, 3, 4, 7, 9; the vendor's pages on moving
from 2.5 to 3.1 and to 3.8.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ...adapters.credentials import Secret
from ...core.errors import UsageError
from ...media.format import AudioFormat
from ..port import Capabilities

MODEL = "gemini-3.8-live"
ORIGIN = "wss://generativelanguage.googleapis.com"
TOKEN_PREFIX = "auth_tokens/"
"""Ephemeral tokens begin so; they open another method of the service, with another header."""

INPUT = AudioFormat(16_000)
OUTPUT = AudioFormat(24_000)
CONNECTION_S = 600.0
"""About ten minutes; the provider announces the end of each one a minute before (goAway)."""
PING_S, PONG_S = 5.0, 30.0
"""Its pongs were seen to take 30 s (field fault 58): together the 35 s of invariant 8. While nobody
speaks no message comes for minutes, so messages alone say nothing of a connection that is idle."""
DUE_S = 10.0
LEAST = {
    "max_output_tokens": 1,
    "prefix_padding_ms": 0,
    "silence_duration_ms": 0,
    "compression_trigger_tokens": 2,
    "compression_target_tokens": 1,
    "thinking_budget": -1,
}
"""Smallest values of options that are numbers."""

Behavior = Literal["BLOCKING", "NON_BLOCKING"]
Sensitivity = Literal["high", "low"]
ThinkingLevel = Literal["minimal", "low", "medium", "high"]
TurnCoverage = Literal["activity", "all_input", "activity_and_all_video"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What a generation of models does.

    since              first version that does so
    behavior           of a function that declares none
    non_blocking       functions may be declared NON_BLOCKING
    context_update     instructions and tools change on the open connection; else by a reconnect
    history_config     reads a history at the start without answering it
    user_last          clientContent must end with the user's turn
    content_any_time   clientContent is taken after the initial history too
    text_turns         typed text is a turn of clientContent; else realtimeInput.text
    thinking           which measure of thinking it takes
    proactive          audio that asks for no answer may get none: a choice, never, or always
    affective          takes enableAffectiveDialog
    """

    since: tuple[int, int]
    behavior: Behavior
    non_blocking: bool
    context_update: bool
    history_config: bool
    user_last: bool
    content_any_time: bool
    text_turns: bool
    thinking: frozenset[Literal["budget", "level"]]
    proactive: Literal["option", "never", "always"]
    affective: bool


GENERATIONS = (
    Generation(
        since=(2, 0),
        behavior="BLOCKING",
        non_blocking=True,
        context_update=False,
        history_config=False,
        user_last=True,
        content_any_time=True,
        text_turns=True,
        thinking=frozenset({"budget"}),
        proactive="option",
        affective=True,
    ),
    Generation(
        since=(3, 0),
        behavior="BLOCKING",
        non_blocking=False,
        context_update=False,
        history_config=True,
        user_last=False,
        content_any_time=False,
        text_turns=False,
        thinking=frozenset({"level"}),
        proactive="never",
        affective=False,
    ),
    Generation(
        since=(3, 8),
        behavior="NON_BLOCKING",
        non_blocking=True,
        context_update=True,
        history_config=True,
        user_last=False,
        content_any_time=True,
        text_turns=False,
        thinking=frozenset({"budget"}),
        proactive="always",
        affective=False,
    ),
)
"""Oldest first. A version between two has the facts of the older one."""


def generation_of(model: str) -> Generation:
    """The facts of a model by the version in its name; the newest for a name without one."""
    found = re.search(r"(\d+)\.(\d+)", model)
    if found is None:
        return GENERATIONS[-1]
    version = (int(found[1]), int(found[2]))
    known = [one for one in GENERATIONS if one.since <= version]
    return known[-1] if known else GENERATIONS[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class GeminiLiveConfig:
    """One model with its voice. What is None is left to the provider.

    key                        an API key, or an ephemeral token (`auth_tokens/…`)
    voice                      one of the prebuilt voices
    language                   BCP 47, such as `de-DE`
    base_url                   `wss://host[:port]`; the path comes from `api_version` and the key
    api_version                None: v1alpha for tokens, affective dialog and proactive audio
    blocking_tools             the model waits for results, or talks on; None: as its generation
    start_sensitivity, end_sensitivity, prefix_padding_ms, silence_duration_ms
                               of the provider's own detector; unused where the host ends turns
    turn_coverage              what belongs to a user's turn
    compression_trigger_tokens context size at which old turns are dropped, down to
                               compression_target_tokens (half by default). None: never, and then
                               the provider ends a session after 15 minutes, with video after two
    proactive_audio            the model may keep silent; only where that is a choice
    affective_dialog           it answers to the tone of voice; only where that exists
    thinking_budget, thinking_level
                               one of them at most, as the generation takes it
    transcription_languages    hints for the user's transcript
    google_search              let the model search by itself
    connect_s                  bounds connecting until the setup was taken
    """

    key: Secret
    model: str = MODEL
    voice: str = "Puck"
    language: str | None = None
    base_url: str = ORIGIN
    api_version: Literal["v1alpha", "v1beta"] | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    blocking_tools: bool | None = None
    start_sensitivity: Sensitivity | None = None
    end_sensitivity: Sensitivity | None = None
    prefix_padding_ms: int | None = None
    silence_duration_ms: int | None = None
    turn_coverage: TurnCoverage | None = None
    compression_trigger_tokens: int | None = 100_000
    compression_target_tokens: int | None = None
    proactive_audio: bool | None = None
    affective_dialog: bool = False
    thinking_budget: int | None = None
    thinking_level: ThinkingLevel | None = None
    transcription_languages: tuple[str, ...] = ()
    google_search: bool = False
    connect_s: float = 15.0

    def __post_init__(self) -> None:
        address = re.match(r"wss?://[^/?#]+", self.base_url)
        _check("key", bool(self.key), "set GEMINI_API_KEY or GOOGLE_API_KEY")
        _check("model", bool(self.model.strip()), f"name one, such as {MODEL}")
        _check("voice", bool(self.voice.strip()), "name one, such as Puck")
        _check("base_url", address is not None, "use wss://host[:port]")
        _check("connect_s", self.connect_s > 0, "use more than 0")
        self._check_numbers()
        self._check_generation()

    @property
    def generation(self) -> Generation:
        """The facts of the model."""
        return generation_of(self.model)

    @property
    def behavior(self) -> Behavior:
        """Of every function of ours."""
        if self.blocking_tools is None:
            return self.generation.behavior
        return "BLOCKING" if self.blocking_tools else "NON_BLOCKING"

    @property
    def target_tokens(self) -> int | None:
        """What a compression leaves; None where there is none."""
        if self.compression_trigger_tokens is None:
            return None
        return self.compression_target_tokens or self.compression_trigger_tokens // 2

    def _check_numbers(self) -> None:
        for name, least in LEAST.items():
            value = getattr(self, name)
            _check(name, value is None or value >= least, f"use {least} or more, or None")
        warm = self.temperature
        _check("temperature", warm is None or 0 <= warm <= 2, "use 0 to 2, or None")
        trigger, target = self.compression_trigger_tokens, self.compression_target_tokens
        fits = target is None or (trigger is not None and target < trigger)
        _check("compression_target_tokens", fits, "keep it below compression_trigger_tokens")

    def _check_generation(self) -> None:
        facts, budget, level = self.generation, self.thinking_budget, self.thinking_level
        waits = self.behavior == "BLOCKING" or facts.non_blocking
        _check("blocking_tools", waits, f"{self.model} always waits for tools: leave it out")
        free = self.proactive_audio is None or facts.proactive == "option"
        _check("proactive_audio", free, f"{self.model} gives no choice: leave it out")
        feels = facts.affective or not self.affective_dialog
        _check("affective_dialog", feels, f"{self.model} has none: leave it out")
        _check("thinking_level", budget is None or level is None, "or thinking_budget, not both")
        takes = budget is None or "budget" in facts.thinking
        _check("thinking_budget", takes, f"{self.model} takes a thinking_level instead")
        takes = level is None or self._takes_level
        _check("thinking_level", takes, f"{self.model} takes none: leave it out")

    @property
    def _takes_level(self) -> bool:
        """3.8 takes a level only in the variant that is named for its thinking."""
        return "level" in self.generation.thinking or "thinking" in self.model


def _check(field: str, holds: bool, remedy: str) -> None:
    if not holds:
        raise UsageError(f"GeminiLiveConfig.{field}: {remedy}")


def capabilities(config: GeminiLiveConfig) -> Capabilities:
    """What a session may expect of the model.

    A connection lasts about ten minutes; a session with compression was seen to be cut after 58
    minutes, which is far behind the tenth connection and needs no rule of its own.
    """
    live = config.generation.context_update
    return Capabilities(
        turn_taking="provider",
        inputs=frozenset({"audio", "text", "image", "video"}),
        outputs=frozenset({"audio"}),
        input_format=INPUT,
        output_format=OUTPUT,
        update_tools="live" if live else "reconnect",
        update_instructions="live" if live else "reconnect",
        resume=True,
        closes_first=True,
        max_session_s=CONNECTION_S,
        due_s=DUE_S,
    )
