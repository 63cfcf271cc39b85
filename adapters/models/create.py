"""A text model by its provider's name: `create_adapter("openai")`, and who can be named.

One of the two factories that may read the environment, and only through their `env` argument
(DESIGN 7). Everything that is wrong is said at construction, with its remedy (core row 34). Nothing
here opens a connection.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Literal, Protocol, TypedDict

from ...core.errors import UsageError
from ...core.model import Model
from ..credentials import Secret, find
from .openai_client import NO_KEY
from .openai_config import (
    GATEWAY_DIALECT,
    OPENAI_URL,
    CacheChoice,
    OpenAIConfig,
    ReasoningEffort,
)
from .openai_presets import ENDPOINTS, Endpoint

OpenAIApi = Literal["responses", "chat"]


class VendorModel(Model, Protocol):
    """A Model with connections. It keeps nothing of an agent, so many may share it."""

    async def aclose(self) -> None:
        """Close the connections, at the end."""


@dataclass(frozen=True, slots=True)
class _Native:
    """A provider with a wire of its own."""

    keys: tuple[str, ...]
    model: str
    package: str


_NATIVE: Mapping[str, _Native] = {
    "anthropic": _Native(("ANTHROPIC_API_KEY",), "claude-haiku-4-5", "anthropic"),
    "gemini": _Native(("GEMINI_API_KEY", "GOOGLE_API_KEY"), "gemini-flash-latest", "google.genai"),
}

PROVIDERS: tuple[str, ...] = ("openai", *_NATIVE, *(name for name in ENDPOINTS if name != "openai"))
"""Every name that `create_adapter` takes."""


KEY_VARIABLES: tuple[str, ...] = (
    *(key for native in _NATIVE.values() for key in native.keys),
    *(key for endpoint in ENDPOINTS.values() for key in endpoint.keys),
)
"""Every variable that may hold a key, for whoever must keep their values out of a log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AvailableProvider:
    """A provider as it stands on this machine.

    name           what `create_adapter` takes
    default_model  what it runs when no model is named; None: one must be named
    key_variable   where its key is, or should be put; None: it needs none
    available      its key is set (or not needed) and its SDK installed. Whether a local server runs
                   or a key is good is not asked
    """

    name: str
    default_model: str | None
    key_variable: str | None
    available: bool


def create_adapter(
    provider: str,
    model: str | None = None,
    *,
    api_key: Secret | str | None = None,
    base_url: str | None = None,
    max_tokens: int | None = None,
    stream: bool = True,
    timeout_s: float = 600.0,
    reasoning_effort: ReasoningEffort | None = None,
    cache: CacheChoice = None,
    api: OpenAIApi | None = None,
    env: Mapping[str, str] | None = None,
) -> VendorModel:
    """A Model of `provider`, one of PROVIDERS (spec core 6).

    model      None: the provider's default, where it has one
    api_key    None: the provider's variable in `env`, which a server at a `base_url` of your own
               is sent too. Such a server, and the local providers, need none
    base_url   None: `<PROVIDER>_BASE_URL` in `env`, else the provider's own
    timeout_s  bounds every silence of the server
    cache      True, `5m` or `1h`: keep the prefix of requests at the provider. Gemini and most
               compatible servers do so unasked and have no setting for it
    api        which of OpenAI's wires. None: `responses` for OpenAI itself, `chat` for every other
               server
    env        where keys and addresses are looked up; None: the environment of this process

    Raises UsageError for an unknown provider, a missing model or key, or a value that does not fit;
    ModelError (`ERR_MODEL_MISSING`) where the provider's SDK is not installed.
    """
    env = os.environ if env is None else env
    name = provider.strip().lower()
    if name not in PROVIDERS:
        raise UsageError(_unknown(provider))
    if api is not None and name in _NATIVE:
        raise UsageError(f"api: {name} has one wire; leave it out")
    base_url = _address(name, base_url, env)
    settings = _Settings(
        model=_model(name, model),
        base_url=base_url,
        stream=stream,
        max_tokens=max_tokens,
        timeout_s=timeout_s,
        reasoning_effort=reasoning_effort,
    )
    key = _key(name, api_key, base_url, env)
    match name:
        case "anthropic":
            return _anthropic(settings, cache, key)
        case "gemini":
            return _gemini(settings, key)
        case _:
            return _openai(name, settings, cache, key, api, env)


def get_available_providers(env: Mapping[str, str] | None = None) -> tuple[AvailableProvider, ...]:
    """Every provider in a fixed order, and whether it can be used with what `env` holds; None: the
    environment of this process."""
    env = os.environ if env is None else env
    return tuple(_standing(name, env) for name in PROVIDERS)


class _Settings(TypedDict):
    """What every provider is told, under the names that all configurations have."""

    model: str
    base_url: str | None
    stream: bool
    max_tokens: int | None
    timeout_s: float
    reasoning_effort: ReasoningEffort | None


def _provider(name: str) -> _Native | Endpoint:
    return _NATIVE[name] if name in _NATIVE else ENDPOINTS[name]


def _unknown(provider: str) -> str:
    near = get_close_matches(provider.strip().lower(), PROVIDERS, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"provider: {provider!r} is not known, use one of {', '.join(PROVIDERS)}{hint}"


def _model(name: str, model: str | None) -> str:
    chosen = (model or "").strip() or _provider(name).model
    if not chosen:
        raise UsageError(f"model: {name} has no default, name one of the models it serves")
    return chosen


def _address(name: str, given: str | None, env: Mapping[str, str]) -> str | None:
    """An address of the user's own; None for the provider's usual one, however it was named."""
    address = (given or env.get(f"{name.upper()}_BASE_URL", "")).strip()
    if not address or address.rstrip("/") == OPENAI_URL:
        return None
    if not address.startswith(("http://", "https://")):
        raise UsageError(f"base_url: {address!r} is no address, begin with http:// or https://")
    return address


def _key(
    name: str, given: Secret | str | None, base_url: str | None, env: Mapping[str, str]
) -> Secret:
    """The key. Never in a message, whatever is wrong with it."""
    if isinstance(given, str):
        given = Secret(given.strip())
    if given is not None:
        if not given:
            raise UsageError("api_key: is empty; leave it out, or give the key")
        return given
    keys = _provider(name).keys
    found = find(env, *keys)
    if found is not None:
        return found
    if keys and base_url is None:
        raise UsageError(f"api_key: {name} needs a key, give api_key or set {' or '.join(keys)}")
    return NO_KEY


def _openai(
    name: str,
    settings: _Settings,
    cache: CacheChoice,
    key: Secret,
    api: OpenAIApi | None,
    env: Mapping[str, str],
) -> VendorModel:
    from .openai import OpenAIModel
    from .openai_responses import OpenAIResponsesModel

    endpoint = ENDPOINTS[name]
    itself = name == "openai" and settings["base_url"] is None
    if not itself:
        settings["base_url"] = settings["base_url"] or endpoint.base_url
    config = OpenAIConfig(
        **settings,
        cache=cache,
        vendor=name,
        dialect=GATEWAY_DIALECT if name == "openai" and not itself else endpoint.dialect,
        organization=_header(env, "OPENAI_ORG_ID") if itself else None,
        project=_header(env, "OPENAI_PROJECT_ID") if itself else None,
        extra=endpoint.extra,
    )
    if (api or ("responses" if itself else "chat")) == "responses":
        return OpenAIResponsesModel(config, key)
    return OpenAIModel(config, key)


def _header(env: Mapping[str, str], name: str) -> str | None:
    return env.get(name, "").strip() or None


def _anthropic(settings: _Settings, cache: CacheChoice, key: Secret) -> VendorModel:
    from .anthropic import AnthropicConfig, AnthropicModel

    return AnthropicModel(AnthropicConfig(**settings, cache=cache), key)


def _gemini(settings: _Settings, key: Secret) -> VendorModel:
    from .gemini import GeminiConfig, GeminiModel

    return GeminiModel(GeminiConfig(**settings), key)


def _standing(name: str, env: Mapping[str, str]) -> AvailableProvider:
    provider = _provider(name)
    held = next((key for key in provider.keys if find(env, key) is not None), None)
    package = provider.package if isinstance(provider, _Native) else "openai"
    return AvailableProvider(
        name=name,
        default_model=provider.model,
        key_variable=held or (provider.keys[0] if provider.keys else None),
        available=(held is not None or not provider.keys) and _installed(package),
    )


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # its parent package is not there either
        return False
