"""The endpoints known by name that speak OpenAI's chat completions, as one table.

Facts only: where they are, which variable holds the key, what they take. Adding one is adding a
row. Every row's address can be overridden by `base_url` or by the variable `<NAME>_BASE_URL`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .openai_config import (
    COMPATIBLE_DIALECT,
    OPENAI_DIALECT,
    OPENAI_URL,
    ChatDialect,
)

_MODERN = ChatDialect(max_tokens_field="max_completion_tokens")
_REASONING = ChatDialect(reasoning_field="reasoning")
_LLAMA = ChatDialect(reasoning_field="reasoning", reads_video=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One provider. `keys` are the variables that may hold its key, in order; none: needs no key.

    `model` is what it runs when nothing is said; None where that depends on the machine or the
    account. `extra` goes into every request body.
    """

    base_url: str
    keys: tuple[str, ...] = ()
    model: str | None = None
    dialect: ChatDialect = COMPATIBLE_DIALECT
    extra: Mapping[str, object] = field(default_factory=dict)


ENDPOINTS: Mapping[str, Endpoint] = {
    "openai": Endpoint(
        base_url=OPENAI_URL,
        keys=("OPENAI_API_KEY",),
        model="gpt-4.1-mini",
        dialect=OPENAI_DIALECT,
    ),
    "openrouter": Endpoint(
        base_url="https://openrouter.ai/api/v1", keys=("OPENROUTER_API_KEY",), dialect=_REASONING
    ),
    "minimax": Endpoint(
        base_url="https://api.minimax.io/v1",
        keys=("MINIMAX_API_KEY",),
        model="MiniMax-M2.5",
        dialect=_MODERN,
        # Else the model's thoughts stand inside its text, and would be spoken.
        extra={"reasoning_split": True},
    ),
    "kimi": Endpoint(
        base_url="https://api.moonshot.ai/v1",
        keys=("MOONSHOT_API_KEY", "KIMI_API_KEY"),
        model="kimi-k2.6",
    ),
    "glm": Endpoint(
        base_url="https://api.z.ai/api/paas/v4",
        keys=("ZAI_API_KEY", "GLM_API_KEY", "ZHIPUAI_API_KEY"),
        model="glm-5",
    ),
    "mimo": Endpoint(
        base_url="https://api.xiaomimimo.com/v1",
        keys=("MIMO_API_KEY", "XIAOMI_API_KEY"),
        model="mimo-v2.5",
        dialect=_MODERN,
    ),
    "ollama": Endpoint(base_url="http://127.0.0.1:11434/v1", dialect=_LLAMA),
    "lmstudio": Endpoint(base_url="http://127.0.0.1:1234/v1", dialect=_LLAMA),
    "vllm": Endpoint(base_url="http://127.0.0.1:8000/v1", dialect=_REASONING),
}
