"""A model by its provider's name, and what is said when there can be none."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from tests.simulators.openai_chat import OpenAIChatSimulator, Scripted, finish, text_chunk
from voxglove.adapters.credentials import Secret
from voxglove.adapters.models.anthropic import AnthropicModel
from voxglove.adapters.models.create import PROVIDERS, create_adapter, get_available_providers
from voxglove.adapters.models.gemini import GeminiModel
from voxglove.adapters.models.openai import OpenAIModel
from voxglove.adapters.models.openai_config import GATEWAY_DIALECT, OPENAI_DIALECT, OpenAIConfig
from voxglove.adapters.models.openai_presets import ENDPOINTS
from voxglove.adapters.models.openai_responses import OpenAIResponsesModel
from voxglove.core.cancel import CancelToken
from voxglove.core.errors import ModelError, UsageError
from voxglove.core.messages import Message
from voxglove.core.model import Model, ModelRequest

KEY = "sk-a-very-secret-key-0123456789"
Make = Callable[..., Model]


@pytest_asyncio.fixture
async def make() -> AsyncIterator[Make]:
    """create_adapter with an empty environment; every model is closed at the end."""
    made: list[Any] = []

    def create(provider: str, model: str | None = None, **options: Any) -> Model:
        options.setdefault("env", {})
        adapter = create_adapter(provider, model, **options)
        made.append(adapter)
        return adapter

    yield create
    for adapter in made:
        await adapter.aclose()


def config_of(model: Model) -> OpenAIConfig:
    assert isinstance(model, (OpenAIModel, OpenAIResponsesModel))
    return model._config


def test_core_row_034_an_unknown_provider_is_named_with_what_there_is() -> None:
    with pytest.raises(UsageError, match=r"provider: 'opena' .* openrouter, .*mean openai\?"):
        create_adapter("opena", env={"OPENAI_API_KEY": KEY})
    with pytest.raises(UsageError, match="'bedrock' is not known"):
        create_adapter("bedrock", env={})


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "openrouter", "kimi"])
def test_core_row_034_a_missing_key_names_its_variable(provider: str) -> None:
    variable = {"kimi": "MOONSHOT_API_KEY"}.get(provider, f"{provider.upper()}_API_KEY")
    with pytest.raises(UsageError, match=f"api_key: {provider} needs a key.*{variable}"):
        create_adapter(provider, "m", env={variable: "  "})
    with pytest.raises(UsageError, match="api_key: is empty"):
        create_adapter(provider, "m", api_key=" ", env={variable: KEY})


@pytest.mark.parametrize("provider", ["ollama", "lmstudio", "vllm", "openrouter"])
def test_core_row_034_a_model_must_be_named_where_there_is_no_default(provider: str) -> None:
    for model in (None, "", " "):
        with pytest.raises(UsageError, match=f"model: {provider} has no default"):
            create_adapter(provider, model, api_key=KEY, env={})


@pytest.mark.parametrize(
    ("provider", "package"), [("openai", "openai"), ("kimi", "openai"), ("anthropic", "anthropic")]
)
def test_core_row_034_a_missing_sdk_says_what_to_install(
    provider: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModelError, match=rf"pip install 'voxglove\[{package}\]'") as caught:
        create_adapter(provider, "m", api_key=KEY, env={})
    assert caught.value.code == "ERR_MODEL_MISSING" and not caught.value.retryable


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"timeout_s": 0}, "timeout_s"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"cache": "2h"}, "cache"),
        ({"reasoning_effort": "huge"}, "reasoning_effort"),
        ({"base_url": "localhost:8000"}, "base_url"),
    ],
)
def test_core_row_034_a_value_that_does_not_fit_is_named(
    options: dict[str, Any], field: str
) -> None:
    for provider in ("openai", "ollama", "anthropic"):
        with pytest.raises(UsageError, match=field):
            create_adapter(provider, "m", api_key=KEY, env={}, **options)


def test_no_error_shows_a_key() -> None:
    cases: list[dict[str, Any]] = [{"base_url": "x"}, {"timeout_s": 0}, {"api": "chat"}]
    for options in cases:
        with pytest.raises(UsageError) as caught:
            create_adapter("anthropic", "m", api_key=KEY, env={"ANTHROPIC_API_KEY": KEY}, **options)
        assert KEY not in str(caught.value)


async def test_openai_speaks_responses_unless_it_is_somebody_elses_server(make: Make) -> None:
    env = {"OPENAI_API_KEY": KEY, "OPENAI_PROJECT_ID": "proj"}
    usual = make("openai", env=env)
    assert isinstance(usual, OpenAIResponsesModel) and usual.name == "openai:gpt-4.1-mini"
    assert config_of(usual).chat_dialect == OPENAI_DIALECT and config_of(usual).project == "proj"
    named = make("openai", env=env | {"OPENAI_BASE_URL": "https://api.openai.com/v1/"})
    assert isinstance(named, OpenAIResponsesModel)
    assert isinstance(make("openai", env=env, api="chat"), OpenAIModel)
    for options in ({"base_url": "http://x/v1"}, {"env": env | {"OPENAI_BASE_URL": "http://x/v1"}}):
        proxied = make("openai", **options)
        assert isinstance(proxied, OpenAIModel) and config_of(proxied).base_url == "http://x/v1"
        assert config_of(proxied).chat_dialect == GATEWAY_DIALECT
        assert config_of(proxied).project is None
    assert isinstance(make("vllm", "m", api="responses"), OpenAIResponsesModel)


@pytest.mark.parametrize("provider", [name for name in ENDPOINTS if name != "openai"])
async def test_every_compatible_provider_is_at_its_own_address(provider: str, make: Make) -> None:
    endpoint = ENDPOINTS[provider]
    model = make(provider, None if endpoint.model else "m", api_key=KEY if endpoint.keys else None)
    config = config_of(model)
    assert isinstance(model, OpenAIModel) and model.name.startswith(f"{provider}:")
    assert config.base_url == endpoint.base_url and config.chat_dialect == endpoint.dialect
    assert config.timeout_s == 600 and config.stream and config.extra == endpoint.extra
    moved = make(provider, "m", env={f"{provider.upper()}_BASE_URL": "http://127.0.0.1:1/v1"})
    assert config_of(moved).base_url == "http://127.0.0.1:1/v1"


async def test_the_other_wires_are_made_by_name(make: Make) -> None:
    claude = make("Anthropic", env={"ANTHROPIC_API_KEY": KEY}, cache="1h", max_tokens=100)
    assert isinstance(claude, AnthropicModel) and claude.name.startswith("anthropic:claude")
    gemini = make("gemini", "g", api_key=Secret(KEY), reasoning_effort="low")
    assert isinstance(gemini, GeminiModel) and gemini.name == "gemini:g"


def test_who_is_available_is_read_from_the_environment_that_is_given() -> None:
    env = {"GOOGLE_API_KEY": KEY, "OPENAI_API_KEY": " "}
    found = {one.name: one for one in get_available_providers(env)}
    assert tuple(found) == PROVIDERS
    usable = {name for name, one in found.items() if one.available}
    assert usable == {"gemini", "ollama", "lmstudio", "vllm"}
    assert found["gemini"].key_variable == "GOOGLE_API_KEY"
    assert found["openai"].key_variable == "OPENAI_API_KEY"
    assert found["ollama"].key_variable is None and found["ollama"].default_model is None
    assert KEY not in repr(found)


def test_a_provider_without_its_sdk_is_not_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "google.genai", raising=False)
    for package in ("openai", "google"):
        monkeypatch.setitem(sys.modules, package, None)
    env = {"GEMINI_API_KEY": KEY, "OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
    usable = {one.name for one in get_available_providers(env) if one.available}
    assert usable == {"anthropic"}


def test_the_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIMO_API_KEY", KEY)
    assert {one.name: one for one in get_available_providers()}["mimo"].available
    monkeypatch.delenv("MIMO_API_KEY")
    with pytest.raises(UsageError, match="MIMO_API_KEY"):
        create_adapter("mimo")


@pytest.mark.real_loop
async def test_a_server_without_keys_answers(make: Make) -> None:
    script = Scripted(choices=[text_chunk("Hi."), finish("stop")])
    async with OpenAIChatSimulator(script, compatible=True, key="none").running() as server:
        model = make("ollama", "llama3.2", base_url=server.base_url, max_tokens=50)
        request = ModelRequest(messages=(Message(sender="user", text="hello"),))
        result = await model.prompt(request, lambda event: None, CancelToken())
    assert result.messages[0].text == "Hi." and server.bodies[0]["max_tokens"] == 50
