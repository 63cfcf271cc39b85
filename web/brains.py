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
from importlib.util import find_spec
from urllib.parse import urlsplit

from ..adapters.credentials import find
from ..adapters.models.scripted import EchoModel
from ..core.model import Model
from .config import PartConfig
from .config_reader import ConfigError

DEFAULT_OPENAI = "gpt-4.1-mini"
OLLAMA_PORT = 11_434
OLLAMA_WAIT_S = 0.5
"""A local Ollama answers at once or is not there."""

UNSPECIFIED = ("0.0.0.0", "::")
"""Where a server listens that listens everywhere: a client goes to loopback instead."""


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
            return await _configured_ollama(part, env)
        case _:
            raise ConfigError(
                "model",
                part.text,
                "use auto, demo, openai[:model], ollama[:model] or scripted:echo",
            )


async def _auto(env: Mapping[str, str], clock: Callable[[], datetime]) -> OpenedModel:
    """OpenAI, then a local Ollama, then the demo: the first that can be used."""
    if not _has_sdk():
        return _demo(clock, "the openai package is not installed")
    if find(env, "OPENAI_API_KEY") is not None:
        return _openai(PartConfig(name="openai"), env, "OPENAI_API_KEY is set")
    address = ollama_address(env)
    names = await ollama_models(address)
    if names:
        return _ollama(address, names[0], "a local Ollama answers")
    return _demo(clock, "no OPENAI_API_KEY and no local Ollama")


def _has_sdk() -> bool:
    return find_spec("openai") is not None


def _need_sdk(part: PartConfig) -> None:
    if not _has_sdk():
        raise ConfigError("model", part.text, "run: pip install 'voxglove[openai]'")


def _demo(clock: Callable[[], datetime], why: str) -> OpenedModel:
    from ..adapters.models.demo import DemoModel

    model = DemoModel(clock=clock)
    return OpenedModel(lambda: model, "demo", why, local=True)


def _scripted(part: PartConfig) -> OpenedModel:
    if part.arg != "echo":
        raise ConfigError("model", part.text, "use scripted:echo")
    return OpenedModel(EchoModel, "scripted:echo", "configured", local=True)


def _openai(part: PartConfig, env: Mapping[str, str], why: str) -> OpenedModel:
    from ..adapters.models.openai import OpenAIConfig, OpenAIModel

    _need_sdk(part)
    base_url = str(part.options["base_url"]) if "base_url" in part.options else None
    key = find(env, "OPENAI_API_KEY")
    if key is None and base_url is None:
        raise ConfigError("model", part.text, "set OPENAI_API_KEY, or give base_url")
    config = OpenAIConfig(model=part.arg or DEFAULT_OPENAI, base_url=base_url)

    def make() -> Model:
        return OpenAIModel(config) if key is None else OpenAIModel(config, key)

    return OpenedModel(make, f"openai:{config.model}", why, local=False)


async def _configured_ollama(part: PartConfig, env: Mapping[str, str]) -> OpenedModel:
    _need_sdk(part)
    address = ollama_address(env)
    if part.arg:
        return _ollama(address, part.arg, "configured")
    names = await ollama_models(address)
    if not names:
        remedy = f"no Ollama with a chat model answers at {address}: start it, or set OLLAMA_HOST"
        raise ConfigError("model", part.text, remedy)
    return _ollama(address, names[0], "configured")


def _ollama(address: str, name: str, why: str) -> OpenedModel:
    from ..adapters.models.openai import OpenAIConfig, OpenAIModel

    config = OpenAIConfig(model=name, base_url=f"{address}/v1")
    return OpenedModel(lambda: OpenAIModel(config), f"ollama:{name}", why, local=False)


def is_local(model: Model) -> bool:
    """Whether `model` needs no other process: only then may a call run faster than real time."""
    from ..adapters.models.openai import OpenAIModel

    return not isinstance(model, OpenAIModel)


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
