"""Which text model an agent gets: what `model` in the configuration means on this machine.

Part of the composition root. Reads keys only from the `env` it is handed, and says in words what
it chose and why, because `auto` must never surprise anybody.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from ..adapters.credentials import find
from ..adapters.models.demo import DemoModel
from ..adapters.models.openai import OpenAIConfig, OpenAIModel
from ..adapters.models.scripted import EchoModel
from ..core.model import Model
from .config import PartConfig
from .config_reader import ConfigError

DEFAULT_OPENAI = "gpt-4.1-mini"
OLLAMA = ("127.0.0.1", 11_434)
OLLAMA_WAIT_S = 0.5
"""A local Ollama answers at once or is not there."""


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A way to make one model per agent, its name, and why it was chosen."""

    make: Callable[[], Model]
    name: str
    why: str
    local: bool


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
        case "openai":
            return _openai(part, env, "configured")
        case "ollama":
            return await _configured_ollama(part)
        case _:
            raise ConfigError(
                "model",
                part.text,
                "use auto, demo, openai[:model], ollama[:model] or scripted:echo",
            )


async def _auto(env: Mapping[str, str], clock: Callable[[], datetime]) -> OpenedModel:
    if find(env, "OPENAI_API_KEY") is not None:
        return _openai(PartConfig(name="openai"), env, "OPENAI_API_KEY is set")
    names = await ollama_models()
    if names:
        return _ollama(names[0], "a local Ollama answers")
    return _demo(clock, "no OPENAI_API_KEY and no local Ollama")


def _demo(clock: Callable[[], datetime], why: str) -> OpenedModel:
    model = DemoModel(clock=clock)
    return OpenedModel(lambda: model, "demo", why, local=True)


def _scripted(part: PartConfig) -> OpenedModel:
    if part.arg != "echo":
        raise ConfigError("model", part.text, "use scripted:echo")
    return OpenedModel(EchoModel, "scripted:echo", "configured", local=True)


def _openai(part: PartConfig, env: Mapping[str, str], why: str) -> OpenedModel:
    base_url = str(part.options["base_url"]) if "base_url" in part.options else None
    key = find(env, "OPENAI_API_KEY")
    if key is None and base_url is None:
        raise ConfigError("model", part.text, "set OPENAI_API_KEY, or give base_url")
    config = OpenAIConfig(model=part.arg or DEFAULT_OPENAI, base_url=base_url)

    def make() -> Model:
        return OpenAIModel(config) if key is None else OpenAIModel(config, key)

    return OpenedModel(make, f"openai:{config.model}", why, local=False)


async def _configured_ollama(part: PartConfig) -> OpenedModel:
    names = await ollama_models()
    if part.arg:
        return _ollama(part.arg, "configured")
    if not names:
        raise ConfigError("model", part.text, "start Ollama and pull a model, or name another one")
    return _ollama(names[0], "configured")


def _ollama(name: str, why: str) -> OpenedModel:
    host, port = OLLAMA
    config = OpenAIConfig(model=name, base_url=f"http://{host}:{port}/v1")
    return OpenedModel(lambda: OpenAIModel(config), f"ollama:{name}", why, local=False)


async def ollama_models() -> list[str]:
    """Names that the Ollama on this machine offers; none when there is none."""
    host, port = OLLAMA
    with suppress(OSError, TimeoutError, ValueError, KeyError, TypeError):
        async with asyncio.timeout(OLLAMA_WAIT_S):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                request = f"GET /api/tags HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n"
                writer.write(request.encode())
                head, _, body = (await reader.read()).partition(b"\r\n\r\n")
            finally:
                writer.close()
        if b" 200 " in head.split(b"\r\n", 1)[0]:
            return [str(entry["name"]) for entry in json.loads(body)["models"]]
    return []
