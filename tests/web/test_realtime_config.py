"""What `brain` in the configuration means, and that nothing secret of it is ever shown."""

from __future__ import annotations

import logging
from io import StringIO
from pathlib import Path

import pytest

from voxglove.web.config import Config, LogConfig, PartConfig, load
from voxglove.web.config_reader import ConfigError
from voxglove.web.config_report import report
from voxglove.web.logs import handler
from voxglove.web.realtime import brain_in_use, key_in_use, open_realtime

KEYS = {"OPENAI_API_KEY": "sk-never-shown-0123456789", "GEMINI_API_KEY": "AIza-never-shown-012"}


def on(name: str, arg: str = "", **options: object) -> Config:
    return Config(brain=PartConfig(name=name, arg=arg, options=options))


def read(folder: Path, text: str, env: dict[str, str] | None = None) -> Config:
    (folder / "v.yaml").write_text(text)
    return load(folder / "v.yaml", env or {})


def test_the_cascade_needs_no_adapter() -> None:
    assert open_realtime(Config(), {}) is None


@pytest.mark.parametrize(
    ("text", "provider", "model"),
    [
        ("openai", "openai", "gpt-realtime-2"),
        ("openai:gpt-realtime", "openai", "gpt-realtime"),
        ("gemini", "gemini", "gemini-3.8-live"),
        ("gpt-live", "openai-live", "gpt-live-1"),
    ],
)
@pytest.mark.parametrize("by", ["file", "environment"])
def test_a_brain_is_named_with_or_without_a_model(
    tmp_path: Path, by: str, text: str, provider: str, model: str
) -> None:
    in_file = by == "file"
    env = {} if in_file else {"VOXGLOVE_BRAIN": text}
    config = read(tmp_path, f"brain: '{text}'\n" if in_file else "", env)
    adapter = open_realtime(config, KEYS)
    assert adapter is not None
    assert (adapter.provider, adapter.model) == (provider, model)
    assert brain_in_use(config, adapter) == f"{provider} {model}"


def test_single_values_of_the_environment_lie_over_a_shorthand(tmp_path: Path) -> None:
    env = {
        "VOXGLOVE_BRAIN": "openai:gpt-realtime",
        "VOXGLOVE_BRAIN__VOICE": "cedar",
        "VOXGLOVE_BRAIN__TEXT_ONLY": "true",
    }
    config = read(tmp_path, "", env)
    assert config.brain == PartConfig(
        name="openai", arg="gpt-realtime", options={"voice": "cedar", "text_only": True}
    )
    below = read(tmp_path, "brain: gemini\n", {"VOXGLOVE_BRAIN__VOICE": "Kore"})
    assert below.brain == PartConfig(name="gemini", options={"voice": "Kore"})
    tls = read(tmp_path, "server: {tls: files}\n", {"VOXGLOVE_SERVER__TLS__MODE": "self-signed"})
    assert tls.server.tls.mode == "self-signed"


@pytest.mark.parametrize(
    ("config", "env", "says"),
    [
        (on("gpt"), KEYS, ("brain: 'gpt'", "cascade", "gpt-live[:model]")),
        (on("openai"), {}, ("brain: 'openai'", "OPENAI_API_KEY")),
        (on("gpt-live"), {}, ("brain: 'gpt-live'", "OPENAI_API_KEY")),
        (on("gemini"), {}, ("brain: 'gemini'", "GEMINI_API_KEY", "GOOGLE_API_KEY")),
        (on("gemini", text_only=True), KEYS, ("gemini does not take", "text_only")),
        (on("gpt-live", language="de"), KEYS, ("does not take", "language")),
        (on("openai", base_url="localhost:1/v1"), KEYS, ("base_url", "ws://")),
        (on("openai", "gpt-live-1"), KEYS, ("GPT-Live has an adapter of its own",)),
    ],
)
def test_a_brain_that_cannot_be_used_is_named_with_the_remedy(
    config: Config, env: dict[str, str], says: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError) as refused:
        open_realtime(config, env)
    for words in says:
        assert words in str(refused.value)
    assert "never-shown" not in str(refused.value)


def test_a_server_of_ones_own_needs_no_key() -> None:
    config = on("openai", base_url="ws://127.0.0.1:9/v1")
    adapter = open_realtime(config, {})
    assert adapter is not None
    assert brain_in_use(config, adapter) == "openai gpt-realtime-2 at 127.0.0.1:9"
    assert key_in_use(config, {}).startswith("no key")
    assert key_in_use(config, KEYS) == "OPENAI_API_KEY is set"


@pytest.mark.parametrize(
    "address",
    [
        "wss://host/v1?token=s3cret-word",
        "wss://user:s3cret-word@host/v1",
        "wss://s3cret-word@host/v1",
        "wss://host/v1#s3cret-word",
    ],
)
def test_an_address_carries_no_key(tmp_path: Path, address: str) -> None:
    with pytest.raises(ConfigError, match=r"brain\.base_url") as refused:
        read(tmp_path, f"brain: {{name: openai, base_url: '{address}'}}\n")
    assert "s3cret" not in str(refused.value)


def test_an_address_that_is_none_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as refused:
        open_realtime(on("openai", base_url="host-s3cret-word/v1"), KEYS)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("voice: 7", "brain.voice"),
        ("text_only: perhaps", "true or false"),
        ("api_key: sk-never-shown-0123456789", "brain takes name, arg, base_url, voice"),
        ("base_ur: 'ws://h'", "brain.base_ur"),
    ],
)
def test_an_option_that_does_not_fit_is_named_and_not_shown(
    tmp_path: Path, option: str, says: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, f"brain: {{name: openai, {option}}}\n")
    assert says in str(refused.value) and "never-shown" not in str(refused.value)


def test_the_report_shows_the_brain_and_no_key(tmp_path: Path) -> None:
    text = "brain: {name: openai, voice: cedar, base_url: 'ws://127.0.0.1:9/v1'}\n"
    env = {**KEYS, "VOXGLOVE_BRAIN__LANGUAGE": "de"}
    shown = report(read(tmp_path, text, env), env).text()
    rows = {line.split()[0]: line.split()[1] for line in shown.splitlines()}
    assert rows["brain.name"] == "openai" and rows["brain.voice"] == "cedar"
    assert rows["brain.base_url"] == "ws://127.0.0.1:9/v1" and rows["brain.language"] == "de"
    assert "never-shown" not in shown


def test_keys_of_realtime_providers_are_kept_out_of_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from voxglove.web.cli.options import secrets

    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, f"plain-{name.lower()}-value")
    stream = StringIO()
    out = handler(LogConfig(), secrets(Config()), stream)
    for name in ("openai", "gemini", "google"):
        value = f"plain-{name}_api_key-value"
        record = logging.LogRecord("t", logging.ERROR, "", 0, f"?key={value} was refused", (), None)
        record.why = f"wss://host/ws?key={value}"
        out.emit(record)
    assert stream.getvalue().count("********") == 6 and "plain-" not in stream.getvalue()
