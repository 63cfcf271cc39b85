"""What an OpenAI model is told to be: one server, one model, and what that server understands.

Values only, checked at construction. Shared by both wires (openai.py, openai_responses.py); the
endpoints that are known by name are in openai_presets.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from ...core.errors import UsageError

OPENAI_URL = "https://api.openai.com/v1"

ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
CacheChoice = bool | Literal["5m", "1h"] | None
"""`5m` is True; `1h` also asks the provider to keep the prefix longer (spec core 6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatDialect:
    """What a server of chat completions takes beyond what they all take.

    max_tokens_field  the name of the bound on an answer's length
    reads_files       documents as file parts; otherwise the model reads that there is one
    reads_video       videos where images go (spec core 6); otherwise as documents
    reasoning_field   where reasoning is handed back on tool turns; None: never handed back
    returns_extras    opaque signatures of thoughts are handed back as they came (openai_extras.py)
    cache_hints       prompt_cache_key and prompt_cache_retention
    call_id_chars     the longest tool call id it takes; Kimi's hold the function's whole name
    """

    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = "max_tokens"
    reads_files: bool = False
    reads_video: bool = True
    reasoning_field: Literal["reasoning_content", "reasoning"] | None = "reasoning_content"
    returns_extras: bool = True
    cache_hints: bool = False
    call_id_chars: int = 100


OPENAI_DIALECT = ChatDialect(
    max_tokens_field="max_completion_tokens",
    reads_files=True,
    reads_video=False,
    reasoning_field=None,
    returns_extras=False,
    cache_hints=True,
    call_id_chars=40,
)
COMPATIBLE_DIALECT = ChatDialect()
GATEWAY_DIALECT = ChatDialect(max_tokens_field="max_completion_tokens")
"""Of servers in front of OpenAI's models (Azure, LiteLLM), which may have others behind them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIConfig:
    """One model on one server. `base_url` None is OpenAI.

    vendor               first part of the model's name in reports
    max_tokens           of an answer; a request's own limit wins
    timeout_s            bounds every silence of the server; connecting never takes over 10 s
    cache                True, `5m` or `1h`: one agent's requests are routed to one cache; `1h`
                         also asks for longer retention. Cached tokens are counted in any case
    cache_key            what that routing goes by; None derives it from prompt and tools
    parallel_tool_calls  None leaves it to the server
    dialect              of chat completions; None: OpenAI's own, or any compatible server's where
                         `base_url` is given
    encrypted_reasoning  Responses only: ask for reasoning that can be handed back. None: where
                         `reasoning_effort` is set, because other models refuse the question
    organization         OpenAI's headers of that name, and `project`
    extra                goes into the request body as it is, over everything else
    """

    model: str
    base_url: str | None = None
    vendor: str = "openai"
    stream: bool = True
    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: ReasoningEffort | None = None
    timeout_s: float = 30.0
    cache: CacheChoice = None
    cache_key: str | None = None
    parallel_tool_calls: bool | None = None
    dialect: ChatDialect | None = None
    encrypted_reasoning: bool | None = None
    organization: str | None = None
    project: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise UsageError("OpenAIConfig.model: name the model, such as gpt-4.1-mini")
        if self.timeout_s <= 0:
            raise UsageError("OpenAIConfig.timeout_s: must be positive")
        if self.max_tokens is not None and self.max_tokens <= 0:
            raise UsageError("OpenAIConfig.max_tokens: must be positive, or None for no bound")
        if self.reasoning_effort not in (None, *get_args(ReasoningEffort)):
            words = ", ".join(get_args(ReasoningEffort))
            raise UsageError(f"OpenAIConfig.reasoning_effort: use one of {words}")
        if self.cache not in (None, True, False, "5m", "1h"):
            raise UsageError("OpenAIConfig.cache: use True, False, '5m' or '1h'")

    @property
    def chat_dialect(self) -> ChatDialect:
        """The dialect in force."""
        if self.dialect is not None:
            return self.dialect
        return OPENAI_DIALECT if self.base_url is None else COMPATIBLE_DIALECT

    @property
    def wants_encrypted_reasoning(self) -> bool:
        """Whether a Responses request asks for reasoning in the form it can be handed back in."""
        if self.encrypted_reasoning is not None:
            return self.encrypted_reasoning
        return self.reasoning_effort not in (None, "none")
