"""`model`: what is chosen, in which order, said in words, and never with the key in them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import pytest

import voxglove.adapters.models.create as create
import voxglove.web.brains as brains
from voxglove.adapters.models.anthropic import AnthropicModel
from voxglove.adapters.models.gemini import GeminiModel
from voxglove.adapters.models.openai import OpenAIModel
from voxglove.adapters.models.openai_responses import OpenAIResponsesModel
from voxglove.core.errors import ModelError
from voxglove.core.model import Model
from voxglove.web.brains import OpenedModel, is_local, ollama_address, open_model
from voxglove.web.config import PartConfig
from voxglove.web.config_reader import ConfigError

NOBODY = {"OLLAMA_HOST": "127.0.0.1:9"}
KEY = {"OPENAI_API_KEY": "sk-never-to-be-shown-0123456789"}

pytestmark = pytest.mark.real_loop


async def chosen(text: str, env: dict[str, str], **options: object) -> OpenedModel:
    name, _, arg = text.partition(":")
    return await open_model(PartConfig(name=name, arg=arg, options=options), env, datetime.now)


@asynccontextmanager
async def ollama(
    *models: str, status: str = "200 OK", raw: bytes | None = None
) -> AsyncIterator[str]:
    """An Ollama's list of models on a free port; yields host:port."""
    listed = [
        {"name": name, "details": {"family": "bert" if "minilm" in name else "llama"}}
        for name in models
    ]
    body = json.dumps({"models": listed}).encode() if raw is None else raw

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        assert request.startswith(b"GET /api/tags HTTP/1.")
        writer.write(f"HTTP/1.1 {status}\r\nConnection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


# ---- auto


async def test_auto_takes_openai_when_its_key_is_set_even_beside_an_ollama() -> None:
    async with ollama("llama3.2") as host:
        opened = await chosen("auto", {**KEY, "OLLAMA_HOST": host})
    assert opened.name == "openai:gpt-4.1-mini" and not opened.local
    assert opened.why == "OPENAI_API_KEY is set"


async def test_auto_takes_a_local_ollama_without_a_key() -> None:
    async with ollama("all-minilm:latest", "nomic-embed-text", "llama3.2:3b", "qwen3") as host:
        opened = await chosen("auto", {"OLLAMA_HOST": host})
    assert opened.name == "ollama:llama3.2:3b", "embedding models cannot talk"
    assert opened.why == "a local Ollama answers" and not opened.local


@pytest.mark.parametrize("key", ["", "   "])
async def test_auto_ends_at_the_demo(key: str) -> None:
    opened = await chosen("auto", {**NOBODY, "OPENAI_API_KEY": key})
    assert (opened.name, opened.local) == ("demo", True)
    assert opened.why == "no vendor's key is set, and no local Ollama answers"


@pytest.mark.parametrize(
    ("status", "raw"),
    [
        ("404 Not Found", b"{}"),
        ("200 OK", b"<html>"),
        ("200 OK", b"[]"),
        ("200 OK", b'{"models": null}'),
        ("200 OK", b'{"models": [1]}'),
        ("200 OK", b'{"models": [{"name": "x", "details": []}]}'),
        ("200 OK", b'{"models": []}'),
    ],
)
async def test_what_answers_but_is_no_ollama_is_none(status: str, raw: bytes) -> None:
    async with ollama(status=status, raw=raw) as host:
        opened = await chosen("auto", {"OLLAMA_HOST": host})
    assert opened.name in ("demo", "ollama:x")
    assert opened.name == "demo" or b'"name"' in raw


async def test_an_ollama_that_hangs_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brains, "OLLAMA_WAIT_S", 0.05)

    async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silence, "127.0.0.1", 0) as server:
        host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        opened = await chosen("auto", {"OLLAMA_HOST": host})
    assert opened.name == "demo"


async def test_without_the_sdk_auto_is_the_demo_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(create, "_installed", lambda package: False)
    opened = await chosen("auto", {**KEY, **NOBODY})
    assert opened.name == "demo" and "openai package" in opened.why

    def missing(*args: object, **options: object) -> Model:
        raise ModelError("no SDK", code="ERR_MODEL_MISSING")

    monkeypatch.setattr(brains, "create_adapter", missing)
    with pytest.raises(ConfigError, match=r"pip install 'voxglove\[openai\]'"):
        await chosen("openai", {**KEY})


async def test_auto_takes_the_first_vendor_with_a_key() -> None:
    claude, gemini = {"ANTHROPIC_API_KEY": "a-key"}, {"GOOGLE_API_KEY": "g-key"}
    assert isinstance((await chosen("auto", claude | gemini)).make(), AnthropicModel)
    opened = await chosen("auto", gemini)
    assert isinstance(opened.make(), GeminiModel) and opened.why == "GOOGLE_API_KEY is set"


# ---- by name


async def test_the_key_is_in_nothing_that_is_shown() -> None:
    opened = await chosen("openai:gpt-4.1", KEY)
    assert "never-to-be-shown" not in f"{opened} {opened.make()!r} {vars(opened.make())}"


async def test_openai_without_a_key_needs_one_or_an_address() -> None:
    with pytest.raises(
        ConfigError, match=r"model: 'openai' .*needs a key, give api_key or set OPENAI_API_KEY"
    ):
        await chosen("openai", NOBODY)
    opened = await chosen("openai:any", NOBODY, base_url="http://127.0.0.1:8000/v1")
    assert opened.name == "openai:any"


async def test_ollama_by_name_needs_no_list_and_without_one_needs_an_ollama() -> None:
    assert (await chosen("ollama:mistral", NOBODY)).name == "ollama:mistral"
    with pytest.raises(ConfigError, match=r"127\.0\.0\.1:9.*OLLAMA_HOST"):
        await chosen("ollama", NOBODY)
    async with ollama("qwen3") as host:
        assert (await chosen("ollama", {"OLLAMA_HOST": host})).name == "ollama:qwen3"


async def test_demo_and_echo_are_local_and_others_are_not() -> None:
    for text in ("demo", "scripted:echo"):
        opened = await chosen(text, {})
        assert opened.local and is_local(opened.make())
    remote: Model = (await chosen("openai", KEY)).make()
    assert isinstance(remote, OpenAIResponsesModel) and not is_local(remote)
    chat = (await chosen("openai", KEY, api="chat")).make()
    assert isinstance(chat, OpenAIModel) and not is_local(chat)
    for name, key in (("anthropic", "ANTHROPIC_API_KEY"), ("gemini", "GEMINI_API_KEY")):
        assert not is_local((await chosen(name, {key: "a-key"})).make())


@pytest.mark.parametrize(
    ("text", "env", "name"),
    [
        ("anthropic:claude-x", {"ANTHROPIC_API_KEY": "k"}, "anthropic:claude-x"),
        ("openrouter:some/model", {"OPENROUTER_API_KEY": "k"}, "openrouter:some/model"),
        ("vllm:qwen", {}, "vllm:qwen"),
        ("lmstudio:qwen", {}, "lmstudio:qwen"),
    ],
)
async def test_every_provider_by_name(text: str, env: dict[str, str], name: str) -> None:
    assert (await chosen(text, env)).name == name


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("anthropic", {}, "ANTHROPIC_API_KEY"),
        ("vllm", {}, "no default"),
        ("openai", {"api": "soap"}, "responses or chat"),
        ("anthropic", {"api": "chat"}, "one wire"),
        ("openai", {"base_url": "nowhere"}, "http://"),
    ],
)
async def test_what_does_not_fit_is_said_at_start(
    text: str, options: dict[str, object], words: str
) -> None:
    env = {} if words == "ANTHROPIC_API_KEY" else {"ANTHROPIC_API_KEY": "k", **KEY}
    with pytest.raises(ConfigError, match=words):
        await chosen(text, env, **options)


@pytest.mark.parametrize("text", ["gpt-5", "scripted", "scripted:parrot"])
async def test_an_unknown_model_names_the_known(text: str) -> None:
    with pytest.raises(ConfigError, match="model: .*scripted:echo"):
        await chosen(text, {})


# ---- OLLAMA_HOST


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("", "http://127.0.0.1:11434"),
        ("box", "http://box:11434"),
        ("box:8000", "http://box:8000"),
        (":8000", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:8000", "http://127.0.0.1:8000"),
        ("http://box", "http://box:80"),
        ("https://box/ollama/", "https://box:443/ollama"),
        ("[::1]:8000", "http://[::1]:8000"),
        (" 'box' ", "http://box:11434"),
    ],
)
async def test_ollama_host_is_read_as_ollama_reads_it(given: str, address: str) -> None:
    assert ollama_address({"OLLAMA_HOST": given}) == address


@pytest.mark.parametrize("given", ["box:many", "ftp://box", "box:99999999"])
async def test_an_ollama_host_that_is_no_address_is_named(given: str) -> None:
    with pytest.raises(ConfigError, match="OLLAMA_HOST"):
        ollama_address({"OLLAMA_HOST": given})
