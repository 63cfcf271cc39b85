"""A realtime provider by its name, and the placeholder model that carries such a name.

One of the two factories that may read the environment, and only through their `env` argument
(DESIGN 7). Everything that is wrong is said at construction, with its remedy (row 77). Nothing here
opens a connection.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from ..adapters.credentials import Secret, find
from ..core.cancel import CancelToken
from ..core.errors import ModelError, UsageError
from ..core.model import ModelRequest, ModelResult, Notify
from .port import RealtimeAdapter


@dataclass(frozen=True, slots=True)
class _Provider:
    """A provider's key variables, its default model, and where it is reached otherwise."""

    keys: tuple[str, ...]
    model: str
    base_url_variable: str


_PROVIDERS: Mapping[str, _Provider] = {
    "openai": _Provider(("OPENAI_API_KEY",), "gpt-realtime-2", "OPENAI_REALTIME_BASE_URL"),
    "gemini": _Provider(("GEMINI_API_KEY", "GOOGLE_API_KEY"), "gemini-3.8-live", "GEMINI_LIVE_URL"),
    "openai-live": _Provider(("OPENAI_API_KEY",), "gpt-live-1", "OPENAI_LIVE_BASE_URL"),
}
NO_KEY = Secret("none")
"""Sent to a server of one's own that asks for no key."""
_ALIASES = {"gpt-live": "openai-live", "google": "gemini"}

PROVIDERS: tuple[str, ...] = tuple(_PROVIDERS)
"""Every provider that `create_realtime_adapter` takes; `gpt-live` is another name of
`openai-live`."""
KEY_VARIABLES: tuple[str, ...] = ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")
"""Every variable that may hold a key, for whoever must keep their values out of a log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RealtimeModel:
    """The model of an agent that runs on a realtime provider: its settings, and no text model.

    Made by `realtime_model`. `name` and `set_system_prompt` do what every model's do; `prompt`
    fails with a sentence, for a text turn cannot run on it (spec core 6).
    """

    provider: str | None = None
    model: str | None = None
    voice: str | None = None
    given: Mapping[str, object] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """`provider:model`, as far as they are named."""
        provider = _named(self.provider) if self.provider else "realtime"
        return f"{provider}:{self.model}" if self.model else provider

    def set_system_prompt(self, prompt: str) -> None:
        """The session tells its provider the agent's prompt."""

    async def prompt(
        self, request: ModelRequest, notify: Notify, token: CancelToken
    ) -> ModelResult:
        """Raises ModelError always."""
        raise ModelError(
            f"{self.name} is a realtime model and answers only on a live call: run the agent in a"
            " RealtimeSession, or give it a text model for text turns",
            code="ERR_MODEL_REALTIME",
        )


def realtime_model(
    provider: str | None = None,
    *,
    model: str | None = None,
    voice: str | None = None,
    **options: object,
) -> RealtimeModel:
    """The placeholder model of an agent for calls: `Glove(model=realtime_model("gemini"), …)`.

    What is left out is found when the session makes its adapter (`create_realtime_adapter`, which
    also names the `options`). Raises UsageError for an unknown provider.
    """
    if provider is not None:
        _named(provider)
    return RealtimeModel(provider=provider, model=model, voice=voice, given=options)


def create_realtime_adapter(
    provider: str | None = None,
    *,
    model: str | None = None,
    voice: str | None = None,
    api_key: Secret | str | None = None,
    base_url: str | None = None,
    env: Mapping[str, str] | None = None,
    **options: object,
) -> RealtimeAdapter:
    """The adapter of a realtime provider (spec/voice 18.3, row 77).

    Explicit arguments come first, then REALTIME_PROVIDER, REALTIME_MODEL and REALTIME_VOICE in
    `env`, then the provider's own defaults; with no provider named at all, the first whose key is
    set. The key: `api_key`, else the provider's variable in `env`, else it is an error here and
    not on the call. `options` go to the provider's configuration (OpenAIRealtimeConfig,
    GeminiLiveConfig, GptLiveConfig). `env` None: the environment of this process.

    Raises UsageError naming the argument or the variable.
    """
    given = dict(options) | {"api_key": api_key, "base_url": base_url}
    wish = RealtimeModel(provider=provider, model=model, voice=voice, given=given)
    return adapter_of(wish, env)


def key_variables(provider: str) -> tuple[str, ...]:
    """Where the key of a provider is looked for. Raises UsageError for an unknown provider."""
    return _PROVIDERS[_named(provider)].keys


def adapter_of(wish: RealtimeModel, env: Mapping[str, str] | None = None) -> RealtimeAdapter:
    """The adapter that a placeholder model asks for; see create_realtime_adapter."""
    env = os.environ if env is None else env
    settings = {name: value for name, value in wish.given.items() if value is not None}
    named = wish.provider or env.get("REALTIME_PROVIDER", "").strip() or _first_with_key(env)
    name = _named(named)
    found = _PROVIDERS[name]
    own = bool(settings.get("base_url"))
    settings["key"] = _key(name, settings.pop("api_key", None), env, own=own)
    settings["model"] = wish.model or _from(env, "REALTIME_MODEL", wish.provider) or found.model
    if voice := wish.voice or _from(env, "REALTIME_VOICE", wish.provider):
        settings["voice"] = voice
    address = str(settings.pop("base_url", "") or env.get(found.base_url_variable, "")).strip()
    if address:
        if not address.startswith(("ws://", "wss://", "http://", "https://")):
            # Not shown: a key may be hidden in it.
            raise UsageError("base_url: is no address, begin with wss:// or ws://")
        settings["base_url"] = address
    return _adapter(name, settings)


def _named(provider: str) -> str:
    name = provider.strip().lower()
    name = _ALIASES.get(name, name)
    if name not in _PROVIDERS:
        near = get_close_matches(name, (*PROVIDERS, *_ALIASES), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        known = ", ".join(PROVIDERS)
        raise UsageError(f"provider: {provider!r} is not known, use one of {known}{hint}")
    return name


def _first_with_key(env: Mapping[str, str]) -> str:
    for name, provider in _PROVIDERS.items():
        if find(env, *provider.keys) is not None:
            return name
    raise UsageError(
        "provider: none is named and no key is set; give provider, or set REALTIME_PROVIDER"
    )


def _from(env: Mapping[str, str], variable: str, given: str | None) -> str:
    """A setting of the environment, unless it was made for another provider than the one given."""
    meant = env.get("REALTIME_PROVIDER", "").strip()
    if given is not None and meant and _named(meant) != _named(given):
        return ""
    return env.get(variable, "").strip()


def _key(name: str, given: object, env: Mapping[str, str], *, own: bool) -> Secret:
    """The key. Never in a message, whatever is wrong with it. A server of one's own needs none."""
    if isinstance(given, str):
        given = Secret(given.strip())
    if isinstance(given, Secret):
        if not given:
            raise UsageError("api_key: is empty; leave it out, or give the key")
        return given
    keys = _PROVIDERS[name].keys
    found = find(env, *keys)
    if found is None and own:
        return NO_KEY
    if found is None:
        raise UsageError(f"api_key: {name} needs a key, give api_key or set {' or '.join(keys)}")
    return found


def _adapter(name: str, settings: dict[str, object]) -> RealtimeAdapter:
    try:
        match name:
            case "openai":
                from .providers.openai import OpenAIRealtimeAdapter, OpenAIRealtimeConfig

                return OpenAIRealtimeAdapter(OpenAIRealtimeConfig(**settings))  # type: ignore[arg-type]
            case "gemini":
                from .providers.gemini import GeminiLiveAdapter, GeminiLiveConfig

                return GeminiLiveAdapter(GeminiLiveConfig(**settings))  # type: ignore[arg-type]
            case _:
                from .providers.live import GptLiveAdapter, GptLiveConfig

                return GptLiveAdapter(GptLiveConfig(**settings))  # type: ignore[arg-type]
    except TypeError as error:
        raise UsageError(f"options: {name} does not take them ({error})") from error
