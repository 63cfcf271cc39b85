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
from ...media.errors import MediaValueError
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
IDLE_S = 35.0
"""Its pongs were seen to take 30 s (field fault 58)."""
DUE_S = 10.0

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
    user_last          a history must end with the user's turn
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

    def __post_init__(self) -> None:
        if not self.key:
            raise MediaValueError("key", "an empty key", "set GEMINI_API_KEY or GOOGLE_API_KEY")
        if not self.model.strip():
            raise MediaValueError("model", repr(self.model), f"name one such as {MODEL}")
        if not re.match(r"wss?://[^/?#]+", self.base_url):
            raise MediaValueError("base_url", self.base_url, "use wss://host[:port]")
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
        for name, least in (
            ("max_output_tokens", 1),
            ("prefix_padding_ms", 0),
            ("silence_duration_ms", 0),
            ("compression_trigger_tokens", 2),
            ("compression_target_tokens", 1),
            ("thinking_budget", -1),
        ):
            value = getattr(self, name)
            if value is not None and value < least:
                raise MediaValueError(name, str(value), f"use {least} or more")
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise MediaValueError("temperature", str(self.temperature), "use 0 to 2")
        trigger, target = self.compression_trigger_tokens, self.compression_target_tokens
        if target is not None and (trigger is None or target >= trigger):
            remedy = "keep it below compression_trigger_tokens"
            raise MediaValueError("compression_target_tokens", str(target), remedy)

    def _check_generation(self) -> None:
        facts = self.generation
        if self.behavior == "NON_BLOCKING" and not facts.non_blocking:
            raise MediaValueError(
                "blocking_tools", "False", f"{self.model} only waits: leave it out"
            )
        if self.proactive_audio is not None and facts.proactive != "option":
            remedy = f"{self.model} decides that itself: leave it out"
            raise MediaValueError("proactive_audio", str(self.proactive_audio), remedy)
        if self.affective_dialog and not facts.affective:
            raise MediaValueError(
                "affective_dialog", "True", f"{self.model} has none: leave it out"
            )
        if self.thinking_budget is not None and self.thinking_level is not None:
            raise MediaValueError(
                "thinking_level", self.thinking_level, "or thinking_budget, not both"
            )
        if self.thinking_budget is not None and "budget" not in facts.thinking:
            remedy = f"{self.model} takes a thinking_level instead"
            raise MediaValueError("thinking_budget", str(self.thinking_budget), remedy)
        if self.thinking_level is not None and not self._takes_level:
            raise MediaValueError(
                "thinking_level", self.thinking_level, f"{self.model} takes none: leave it out"
            )

    @property
    def _takes_level(self) -> bool:
        """3.8 takes a level only in the variant that is named for its thinking."""
        return "level" in self.generation.thinking or "thinking" in self.model


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
        idle_s=IDLE_S,
        due_s=DUE_S,
    )
