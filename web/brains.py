"""Which text model an agent gets: what `model` in the configuration means on this machine.

Part of the composition root. Reads keys only from the `env` it is handed, and says in words what
it chose and why, because `auto` must never surprise anybody.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from ..adapters.models.create import (
    PROVIDERS,
    OpenAIApi,
    create_adapter,
    get_available_providers,
)
from ..adapters.models.scripted import EchoModel
from ..core.errors import ModelError, UsageError
from ..core.model import Model
from .config import PartConfig
from .config_reader import ConfigError

AUTO = ("openai", "anthropic", "gemini")
"""The vendors that `auto` looks for, in this order. Each has an extra of its name; every other
provider speaks OpenAI's protocol and needs that one."""
SILENCE_S = 30.0
"""On a call a model that is silent for longer is given up."""
OLLAMA_PORT = 11_434
OLLAMA_WAIT_S = 0.5
"""A local Ollama answers at once or is not there."""

UNSPECIFIED = ("0.0.0.0", "::")
"""Where a server listens that listens everywhere: a client goes to loopback instead."""


async def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A way to get a model for an agent, its name, and why it was chosen.

    A vendor's model is one for all agents, so that its connections stay warm from call to call;
    `aclose` closes it.
    """

    make: Callable[[], Model]
    name: str
    why: str
    local: bool
    aclose: Callable[[], Awaitable[None]] = _nothing


async def open_model(
    part: PartConfig, env: Mapping[str, str], clock: Callable[[], datetime]
) -> OpenedModel:
    """The model that `part` names. Raises ConfigError for a name that is not known, or a vendor
    whose key is not in `env`."""
    match part.name:
        case "auto":
            return await _auto(env, clock)
        case "demo":
            return _demo(clock, "configured")
        case "scripted":
            return _scripted(part)
        case "ollama" if "base_url" not in part.options:
            return await _configured_ollama(part, env)
        case name if name in PROVIDERS:
            return _vendor(part, env, "configured")
        case _:
            known = ", ".join(f"{name}[:model]" for name in PROVIDERS)
            raise ConfigError("model", part.text, f"use auto, demo, {known} or scripted:echo")


async def _auto(env: Mapping[str, str], clock: Callable[[], datetime]) -> OpenedModel:
    """A vendor whose key is set, then a local Ollama, then the demo: the first that can be used."""
    known = {one.name: one for one in get_available_providers(env)}
    for name in AUTO:
        if known[name].available:
            return _vendor(PartConfig(name=name), env, f"{known[name].key_variable} is set")
    if not known["ollama"].available:
        return _demo(clock, "the openai package is not installed")
    address = ollama_address(env)
    names = await ollama_models(address)
    if names:
        return _ollama(address, names[0], env, "a local Ollama answers")
    return _demo(clock, "no vendor's key is set, and no local Ollama answers")


def _demo(clock: Callable[[], datetime], why: str) -> OpenedModel:
    from ..adapters.models.demo import DemoModel

    model = DemoModel(clock=clock)
    return OpenedModel(lambda: model, "demo", why, local=True)


def _scripted(part: PartConfig) -> OpenedModel:
    if part.arg != "echo":
        raise ConfigError("model", part.text, "use scripted:echo")
    return OpenedModel(EchoModel, "scripted:echo", "configured", local=True)


def _vendor(part: PartConfig, env: Mapping[str, str], why: str) -> OpenedModel:
    """A vendor's model, made here and now: what is wrong is said at start, and its SDK is loaded
    before it could hold a call."""
    options = part.options
    try:
        model = create_adapter(
            part.name,
            part.arg or None,
            base_url=str(options["base_url"]) if "base_url" in options else None,
            timeout_s=SILENCE_S,
            api=_api(options),
            env=env,
        )
    except UsageError as error:
        raise ConfigError("model", part.text, str(error)) from error
    except ModelError as error:
        extra = part.name if part.name in AUTO else "openai"
        raise ConfigError("model", part.text, f"run: pip install 'voxglove[{extra}]'") from error
    return OpenedModel(lambda: model, model.name, why, local=False, aclose=model.aclose)


def _api(options: Mapping[str, object]) -> OpenAIApi | None:
    match options.get("api"):
        case None:
            return None
        case "responses" | "chat" as api:
            return api
        case other:
            raise ConfigError("model.api", str(other), "use responses or chat")


async def _configured_ollama(part: PartConfig, env: Mapping[str, str]) -> OpenedModel:
    address = ollama_address(env)
    if part.arg:
        return _ollama(address, part.arg, env, "configured")
    names = await ollama_models(address)
    if not names:
        remedy = f"no Ollama with a chat model answers at {address}: start it, or set OLLAMA_HOST"
        raise ConfigError("model", part.text, remedy)
    return _ollama(address, names[0], env, "configured")


def _ollama(address: str, name: str, env: Mapping[str, str], why: str) -> OpenedModel:
    options = {"base_url": f"{address}/v1"}
    return _vendor(PartConfig(name="ollama", arg=name, options=options), env, why)


def is_local(model: Model) -> bool:
    """Whether `model` needs no other process: only then may a call run faster than real time."""
    from ..adapters.models.anthropic import AnthropicModel
    from ..adapters.models.gemini import GeminiModel
    from ..adapters.models.openai import OpenAIModel
    from ..adapters.models.openai_responses import OpenAIResponsesModel
    from ..adapters.models.remote import RemoteModel

    return not isinstance(
        model, (AnthropicModel, GeminiModel, OpenAIModel, OpenAIResponsesModel, RemoteModel)
    )


def ollama_address(env: Mapping[str, str]) -> str:
    """Where Ollama is, as `http://host:port`: OLLAMA_HOST in the forms Ollama itself takes (host,
    host:port, :port, a URL), else its usual place. Raises ConfigError for anything else."""
    given = env.get("OLLAMA_HOST", "").strip().strip("\"'")
    text = given if "://" in given else f"http://{given}"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ConfigError(
            "OLLAMA_HOST", given, "write host, host:port or http://host:port"
        ) from None
    if parts.scheme not in ("http", "https"):
        raise ConfigError("OLLAMA_HOST", given, "write host, host:port or http://host:port")
    if port is None:
        usual = {"http": 80, "https": 443}[parts.scheme]
        port = usual if "://" in given else OLLAMA_PORT
    host = parts.hostname or "127.0.0.1"
    host = "127.0.0.1" if host in UNSPECIFIED else host
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}:{port}{parts.path.rstrip('/')}"


async def ollama_models(address: str) -> list[str]:
    """Chat models that the Ollama at `address` offers; none when there is none."""
    parts = urlsplit(address)
    secure = True if parts.scheme == "https" else None
    with suppress(OSError, TimeoutError, ValueError, KeyError, TypeError, AttributeError):
        async with asyncio.timeout(OLLAMA_WAIT_S):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=secure)
            try:
                path, host = f"{parts.path}/api/tags", parts.netloc
                request = f"GET {path} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n"
                writer.write(request.encode())
                head, _, body = (await reader.read()).partition(b"\r\n\r\n")
            finally:
                writer.close()
        if b" 200 " in head.split(b"\r\n", 1)[0]:
            return [str(entry["name"]) for entry in json.loads(body)["models"] if _chats(entry)]
    return []


def _chats(entry: Mapping[str, Mapping[str, object]]) -> bool:
    """Embedding models stand in the same list and cannot answer."""
    family = str((entry.get("details") or {}).get("family", ""))
    return "embed" not in str(entry["name"]) and "bert" not in family
