"""Configuration: defaults, file, environment, and errors that name key, value and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from voxglove.adapters.credentials import Secret
from voxglove.web.config import Config, PartConfig, ServerConfig, load
from voxglove.web.config_reader import ConfigError, read_section, read_yaml
from voxglove.web.config_report import report


def read(text: str, tmp_path: Path, env: dict[str, str] | None = None) -> Config:
    path = tmp_path / "voxglove.yaml"
    path.write_text(text)
    return load(path, env or {})


def test_no_file_at_all_serves_the_local_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = load(None, {})
    assert config == Config()
    assert (config.server.host, config.server.port) == ("127.0.0.1", 8080)
    assert (config.server.max_calls, config.server.drain_s) == (80, 30)
    assert (config.call.linger_s, config.call.idle_s, config.call.max_s) == (30, 600, 3600)
    (tmp_path / "voxglove.yaml").write_text("agent: demo\nserver: {port: 9}\n")
    assert load(None, {}).server.port == 9


def test_everything_can_be_said_in_a_file(tmp_path: Path) -> None:
    config = read(
        """
server:
  host: 0.0.0.0
  port: 9000
  origins: [https://app.example]
  tls: true
  api_keys: [aaaaaaaaaaaaaaaaaaaa]
  secret: bbbbbbbbbbbbbbbbbbbb
  max_calls: 5
agents: {sales: "shop.agents:sales"}
agent: sales
call: {linger_s: 10, record_dir: /tmp/calls}
stt: whisper:base
tts: {name: piper_onnx, arg: voice.onnx}
model: {name: openai, arg: gpt-x, base_url: "http://localhost:11434/v1"}
vad: {silence_ms: 300}
turn: {quiet_ms: 500, near_field: {ratio: 0.3}}
barge_in: {report_ms: 400}
models: {vad: /models/vad.onnx}
log: {level: debug, json: false}
""",
        tmp_path,
    )
    assert config.server.tls.mode == "self-signed"
    assert config.server.api_keys == (Secret("a" * 20),)
    assert config.stt == PartConfig(name="whisper", arg="base")
    assert config.tts == PartConfig(name="piper_onnx", arg="voice.onnx")
    assert config.model.options == {"base_url": "http://localhost:11434/v1"}
    assert config.model.text == "openai:gpt-x"
    assert (config.vad.silence_ms, config.turn.quiet_ms) == (300, 500)
    assert (config.turn.near_field.ratio, config.barge_in.report_ms) == (0.3, 400)
    assert config.call.policy.linger_s == 10
    assert config.known_agents == {"sales", "demo"}


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    env = {
        "VOXGLOVE_SERVER__PORT": "9001",
        "VOXGLOVE_SERVER__ORIGINS": "[https://a.example, https://b.example]",
        "VOXGLOVE_SERVER__SECRET": "12345678901234567890",
        "VOXGLOVE_LOG__JSON": "false",
        "VOXGLOVE_MODEL": "scripted:echo",
        "VOXGLOVE_TURN__EVIDENCE_P": "0.6",
        "VOXGLOVE_SERVER__TLS": "true",
        "PATH": "/bin",
        "VOXGLOVE_": "nothing",
    }
    config = read("server: {port: 1, max_calls: 7}\nmodel: demo\n", tmp_path, env)
    assert (config.server.port, config.server.max_calls) == (9001, 7)
    assert config.server.origins == ("https://a.example", "https://b.example")
    assert config.server.secret.reveal() == "12345678901234567890", "digits stay text"
    assert config.log.json is False
    assert config.model == PartConfig(name="scripted", arg="echo")
    assert config.turn.evidence_p == 0.6
    assert config.server.tls.mode == "self-signed"


BAD = [
    ("serverr: {}", "serverr", "did you mean server"),
    ("server: {prot: 1}", "server.prot", "did you mean port"),
    ("server: {port: eighty}", "server.port", "whole number"),
    ("server: {port: 8080.5}", "server.port", "whole number"),
    ("server: {port: true}", "server.port", "whole number"),
    ("server: {port: 70000}", "server.port", "0..65535"),
    ("server: {max_calls: 0}", "server.max_calls", "1 or more"),
    ("server: {drain_s: -1}", "server.drain_s", "0 or more"),
    ("server: {origins: example.org}", "server.origins", "list"),
    ("server: {origins: [example.org]}", "server.origins", "https://host"),
    ("server: {api_keys: [short]}", "server.api_keys", "16 characters"),
    ("server: {secret: short}", "server.secret", "16 characters"),
    ("server: {tls: {cert: a.pem}}", "server.tls.cert", "both cert and key"),
    ("server: {tls: maybe}", "server.tls.mode", "self-signed"),
    ("server: 5", "server", "table"),
    ("agents: {a: nonsense}", "agents.a", "module:factory"),
    ("agent: nobody", "agent", "add it to agents"),
    ("call: {linger_s: 0}", "call.linger_s", "more than 0"),
    ("call: {linger_s: soon}", "call.linger_s", "a number"),
    ("tts: {name: piper_onnx, speed: 1.2}", "tts.speed", "tts takes name, arg"),
    ("server: {origins: ['https://a.example/']}", "server.origins", "write https://host"),
    ("stt: ''", "stt.name", "name an adapter"),
    ("stt: 5", "stt", "table"),
    ("vad: {positive: 2}", "vad.negative", "negative < positive"),
    ("vad: {positiv: 0.4}", "vad.positiv", "did you mean positive"),
    ("turn: {quiet_ms: -1}", "turn.quiet_ms", "0 or more"),
    ("turn: {near_field: {half_life_s: 0}}", "turn.near_field.half_life_s", "above 0"),
    ("barge_in: {ask_ms: 0}", "barge_in.ask_ms", "above 0"),
    ("log: {level: loud}", "log.level", "debug, info"),
    ("[1, 2]", "voxglove.yaml", "key: value"),
    ("a: [", "voxglove.yaml", "no valid YAML"),
]


@pytest.mark.parametrize(("text", "key", "remedy"), BAD, ids=[bad[0][:40] for bad in BAD])
def test_an_error_names_the_key_and_the_remedy(
    text: str, key: str, remedy: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text, tmp_path)
    assert caught.value.key.endswith(key)
    assert remedy in str(caught.value)
    assert "cannot be used" in str(caught.value)


def test_a_missing_file_and_a_broken_variable_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load(tmp_path / "absent.yaml", {})
    with pytest.raises(ConfigError, match="server.port"):
        load(None, {"VOXGLOVE_SERVER__PORT": "["})
    with pytest.raises(ConfigError, match="server.prot"):
        load(None, {"VOXGLOVE_SERVER__PROT": "1"})


def test_secrets_never_show(tmp_path: Path) -> None:
    secret = "correct-horse-battery"
    text = f"server: {{secret: {secret}, api_keys: [{secret}x]}}"
    config = read(text, tmp_path)
    assert secret not in repr(config)
    assert secret not in report(config, {}).text()
    assert set(config.secrets) == {secret, f"{secret}x"}
    with pytest.raises(ConfigError) as caught:
        read(f"server: {{secrett: {secret}}}", tmp_path)
    assert secret not in str(caught.value)


def test_the_report_says_where_each_value_came_from(tmp_path: Path) -> None:
    path = tmp_path / "voxglove.yaml"
    path.write_text("server: {port: 9}\nstt: whisper:base\n")
    env = {"VOXGLOVE_SERVER__MAX_CALLS": "3"}
    found = report(load(path, env), env, read_yaml(path))
    sources = {line.key: (line.value, line.source) for line in found.lines}
    assert sources["server.port"] == ("9", "file")
    assert sources["server.max_calls"] == ("3", "environment")
    assert sources["server.host"] == ("127.0.0.1", "default")
    assert sources["stt"] == ("whisper:base", "file")
    assert any("secret" in note for note in found.advice)


def test_advice_for_a_server_that_others_reach() -> None:
    notes = report(Config(server=ServerConfig(host="0.0.0.0", origins=("*",))), {}).advice
    assert any("tls" in note for note in notes)
    assert any("api_keys" in note for note in notes)
    assert any("any web page" in note for note in notes)


def test_the_reader_needs_a_mapping() -> None:
    with pytest.raises(ConfigError, match="table"):
        read_section(ServerConfig, [1, 2], "server")


TURN = """
webrtc:
  ice_servers:
    - {urls: ["stun:turn.example:3478"]}
    - {urls: ["turn:turn.example:3478?transport=udp"], username: u, credential: hidden-credential}
    - {urls: ["turns:turn.example"], auth_secret: hidden-auth-secret, ttl_s: 600}
"""


def test_secrets_of_turn_servers_are_masked_and_redacted(tmp_path: Path) -> None:
    config = read(TURN, tmp_path)
    assert {"hidden-credential", "hidden-auth-secret"} <= set(config.secrets)
    text = report(config, {}, read_yaml(tmp_path / "voxglove.yaml")).text()
    assert "hidden-" not in text and "hidden-" not in repr(config)
    assert "webrtc.ice_servers[1].credential" in text and "(file)" in text


@pytest.mark.parametrize(
    ("webrtc", "field"),
    [
        ("{ice_servers: [{}]}", "ice_servers[0].urls"),
        ('{ice_servers: [{urls: ["http://x"]}]}', "ice_servers[0].urls"),
        ('{ice_servers: [{urls: ["turn:"]}]}', "ice_servers[0].urls"),
        ('{ice_servers: [{urls: ["stun:x?transport=udp"]}]}', "ice_servers[0].urls"),
        ('{ice_servers: [{urls: ["turn:x"]}]}', "ice_servers[0].urls"),
        ('{ice_servers: [{urls: ["turn:x"], username: u}]}', "ice_servers[0].username"),
        (
            '{ice_servers: [{urls: ["turn:x"], username: u, auth_secret: hidden-secret}]}',
            "ice_servers[0].auth_secret",
        ),
        (
            '{ice_servers: [{urls: ["turn:x"], auth_secret: hidden-secret, ttl_s: 1}]}',
            "ice_servers[0].ttl_s",
        ),
        ('{ice_servers: {urls: ["turn:x"], credential: hidden-secret}}', "ice_servers"),
        ("{host_addresses: [eth0]}", "host_addresses"),
        ("{connect_s: 11}", "connect_s"),
        ("{relay_only: true}", "relay_only"),
    ],
)
def test_what_webrtc_cannot_use_is_named(webrtc: str, field: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(f"webrtc: {webrtc}", tmp_path)
    assert caught.value.key == f"webrtc.{field}"
    assert "hidden-" not in str(caught.value)


def test_developers_are_those_on_this_machine_unless_said_otherwise() -> None:
    assert ServerConfig().for_developers
    assert not ServerConfig(host="0.0.0.0").for_developers
    assert ServerConfig(host="0.0.0.0", developer=True).for_developers
    assert not ServerConfig(developer=False).for_developers
