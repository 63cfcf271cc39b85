"""What an OpenAI Realtime session is told to be: model, voice, turn detection, limits.

Values only, checked at construction; `openai_items.session_fields` gives them the wire's form.
Source: protocols/openai-realtime 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...adapters.credentials import Secret
from ...core.errors import UsageError

REALTIME_URL = "wss://api.openai.com/v1"
DEFAULT_MODEL = "gpt-realtime-2"

Eagerness = Literal["low", "medium", "high", "auto"]
ReasoningEffort = Literal["minimal", "low", "medium", "high", "xhigh"]
NoiseReduction = Literal["near_field", "far_field"]
KeyHeader = Literal["authorization", "api-key"]


def _check(field: str, holds: bool, remedy: str) -> None:
    if not holds:
        name = field if "." in field else f"OpenAIRealtimeConfig.{field}"
        raise UsageError(f"{name}: {remedy}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerVad:
    """Turns end after silence.

    threshold            0..1, of speech probability
    prefix_padding_ms    sound before the onset that belongs to the turn
    silence_duration_ms  of quiet that ends the turn
    idle_timeout_ms      after an answer the user is silent for this long: the model speaks again;
                         None: never. 5,000..30,000
    """

    threshold: float = 0.5
    prefix_padding_ms: int = 300
    silence_duration_ms: int = 500
    idle_timeout_ms: int | None = None

    def __post_init__(self) -> None:
        idle = self.idle_timeout_ms
        _check("ServerVad.threshold", 0 <= self.threshold <= 1, "use 0..1")
        _check("ServerVad.prefix_padding_ms", self.prefix_padding_ms >= 0, "use 0 or more")
        _check("ServerVad.silence_duration_ms", self.silence_duration_ms > 0, "use 1 or more")
        _check("ServerVad.idle_timeout_ms", idle is None or 5e3 <= idle <= 3e4, "5,000..30,000")


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticVad:
    """Turns end where the words sound finished; `eagerness` bounds the wait: low 8 s, medium (and
    auto) 4 s, high 2 s."""

    eagerness: Eagerness = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIRealtimeConfig:
    """One model of one account.

    key                real or ephemeral (`ek_…`)
    voice              a name, or the id of a voice of your own (`voice_…`)
    base_url           up to `/v1`, `https` stands for `wss`; Azure:
                       `wss://NAME.openai.azure.com/openai/v1`
    key_header         Azure wants `api-key`
    turn_detection     `manual`: our side ends turns (SpeechBoundary, CommitTurn)
    transcription      the model that writes down what the user said; None: turns have no words
    language           of it, ISO 639-1; None: it finds out
    transcription_prompt  words and names that it should know
    noise_reduction    `near_field` for a headset, `far_field` for a room; None for neither
    reasoning_effort   of models that reason; None leaves it to the model
    speed              of speech, 0.25..1.5
    text_only          the model writes and does not speak
    truncation         what happens when the context is full: `auto` drops the oldest items,
                       `disabled` fails the response, a number keeps that share of the context
    max_output_tokens  of one response, 1..4,096; None: no bound
    parallel_tool_calls  None leaves it to the model
    connect_s          bounds connecting until the model is ready
    """

    key: Secret
    model: str = DEFAULT_MODEL
    voice: str = "marin"
    base_url: str = REALTIME_URL
    key_header: KeyHeader = "authorization"
    turn_detection: ServerVad | SemanticVad | Literal["manual"] = ServerVad()
    transcription: str | None = "gpt-4o-transcribe"
    language: str | None = None
    transcription_prompt: str = ""
    noise_reduction: NoiseReduction | None = None
    reasoning_effort: ReasoningEffort | None = None
    speed: float | None = None
    text_only: bool = False
    truncation: Literal["auto", "disabled"] | float = "auto"
    max_output_tokens: int | None = None
    parallel_tool_calls: bool | None = None
    connect_s: float = 15.0

    def __post_init__(self) -> None:
        share, tokens, speed = self.truncation, self.max_output_tokens, self.speed
        known = self.base_url.startswith(("wss://", "ws://", "https://", "http://"))
        _check("key", bool(self.key), "set OPENAI_API_KEY")
        _check("model", bool(self.model), "name one, such as gpt-realtime-2")
        _check("model", not self.model.startswith("gpt-live"), "GPT-Live has an adapter of its own")
        _check("voice", bool(self.voice), "name one, such as marin")
        _check("base_url", known, "begin with wss:// (or ws:// for a local server)")
        _check("speed", speed is None or 0.25 <= speed <= 1.5, "use 0.25..1.5")
        _check("truncation", isinstance(share, str) or 0 < share <= 1, "use a share in 0..1")
        _check("max_output_tokens", tokens is None or 1 <= tokens <= 4096, "use 1..4,096 or None")
        _check("connect_s", self.connect_s > 0, "use more than 0")
