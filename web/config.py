"""The whole configuration of a server: frozen values, read from one file and the environment.

The only place that reads either (DESIGN 7). Knows no adapter: which names exist is checked where
they are built. Errors name the key, the value and the remedy; secrets never show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from ..adapters.credentials import Secret
from ..media.call import CallPolicy
from ..media.turns.bargein import BargeInConfig
from ..media.vad.machine import VadConfig
from ..pipelines.commit import TurnConfig
from .auth import is_loopback, read_origin
from .config_reader import ConfigError, merged_environment, read_section, read_yaml
from .config_store import StoreConfig
from .config_webrtc import WebRtcSection

DEFAULT_FILE = "voxglove.yaml"
ENV_PREFIX = "VOXGLOVE_"

PART_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "brain": ("base_url", "voice", "language", "text_only", "greeting"),
    "stt": (),
    "tts": (),
    "model": ("base_url", "api"),
}
"""What a part's table may hold beside `name` and `arg`."""

CASCADE = "cascade"
"""The brain that is put together of stt, an agent and tts; every other one is a realtime model."""

LOG_LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsConfig:
    """`mode`: off, self-signed (made on first use), or files (`cert` and `key` are PEM paths)."""

    mode: str = "off"
    cert: str = ""
    key: str = ""

    def __post_init__(self) -> None:
        if self.mode not in ("off", "self-signed", "files"):
            raise ConfigError("mode", self.mode, "use off, self-signed or files")
        if self.mode == "files" and not (self.cert and self.key):
            raise ConfigError("cert", self.cert, "give both cert and key (PEM files)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Where the server listens, and who may come in."""

    host: str = "127.0.0.1"
    port: int = 8080
    origins: tuple[str, ...] = ()
    tls: TlsConfig = TlsConfig()
    api_keys: tuple[Secret, ...] = ()
    secret: Secret = Secret("")
    max_calls: int = 80
    max_chats: int = 16
    drain_s: float = 30.0
    developer: bool | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise ConfigError("port", self.port, "use 0..65535 (0 picks a free one)")
        if self.max_calls < 1:
            raise ConfigError("max_calls", self.max_calls, "use 1 or more")
        if self.max_chats < 0:
            raise ConfigError("max_chats", self.max_chats, "use 0 (none) or more")
        if self.drain_s < 0:
            raise ConfigError("drain_s", self.drain_s, "use 0 or more seconds")
        if self.secret.reveal() and len(self.secret.reveal()) < 16:
            raise ConfigError("secret", "(hidden)", "use at least 16 characters")
        for key in self.api_keys:
            if len(key.reveal()) < 16:
                raise ConfigError("api_keys", "(hidden)", "use keys of at least 16 characters")
        for origin in self.origins:
            if origin != "*" and read_origin(origin) is None:
                raise ConfigError("origins", origin, "write https://host[:port], or *")

    @property
    def for_developers(self) -> bool:
        """Whether clients may damage their own line: `auto` is yes for this machine alone."""
        return is_loopback(self.host) if self.developer == "auto" else self.developer


@dataclass(frozen=True, slots=True, kw_only=True)
class CallConfig:
    """How long a call lives and where it is recorded (empty: nowhere)."""

    linger_s: float = 30.0
    idle_s: float = 600.0
    max_s: float = 3_600.0
    record_dir: str = ""

    def __post_init__(self) -> None:
        for name in ("linger_s", "idle_s", "max_s"):
            if getattr(self, name) <= 0:
                raise ConfigError(name, getattr(self, name), "use more than 0 seconds")

    @property
    def policy(self) -> CallPolicy:
        """As the call wants it."""
        return CallPolicy(linger_s=self.linger_s, idle_s=self.idle_s, max_s=self.max_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartConfig:
    """Which adapter, written `name[:arg]` or as a table with `name` and its options."""

    name: str
    arg: str = ""
    options: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.name:
            raise ConfigError("name", self.name, "name an adapter of docs/configuration.md")

    @property
    def text(self) -> str:
        """`name[:arg]`."""
        return f"{self.name}:{self.arg}" if self.arg else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPaths:
    """Files that replace the shipped models."""

    stt: str = ""
    tts: str = ""
    vad: str = ""
    turn: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """`json` off writes plain lines. `pii` on lets spoken and typed words into the log."""

    level: str = "info"
    json: bool = True
    pii: bool = False

    def __post_init__(self) -> None:
        if self.level not in LOG_LEVELS:
            raise ConfigError("level", self.level, f"use one of {', '.join(LOG_LEVELS)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything (CONTRACTS C). The defaults serve the local page with no file at all."""

    server: ServerConfig = ServerConfig()
    agents: Mapping[str, str] = field(default_factory=dict)
    agent: str = "demo"
    webrtc: WebRtcSection = WebRtcSection()
    call: CallConfig = CallConfig()
    brain: PartConfig = PartConfig(name=CASCADE)
    stt: PartConfig = PartConfig(name="whisper")
    tts: PartConfig = PartConfig(name="piper_onnx")
    model: PartConfig = PartConfig(name="auto")
    vad: VadConfig = VadConfig()
    turn: TurnConfig = TurnConfig()
    barge_in: BargeInConfig = BargeInConfig()
    models: ModelPaths = ModelPaths()
    store: StoreConfig = StoreConfig()
    bookings: str = ":memory:"
    """Where the demo's front desk keeps its book: an SQLite file, or nowhere."""
    log: LogConfig = LogConfig()

    def __post_init__(self) -> None:
        for name, target in self.agents.items():
            module, _, factory = target.partition(":")
            if not module or not factory:
                raise ConfigError(f"agents.{name}", target, "write module:factory")
        if self.agent not in self.known_agents:
            known = ", ".join(sorted(self.known_agents))
            raise ConfigError("agent", self.agent, f"use one of {known}, or add it to agents")
        for key, known_options in PART_OPTIONS.items():
            for option in getattr(self, key).options:
                if option not in known_options:
                    remedy = f"{key} takes {', '.join(('name', 'arg', *known_options))}"
                    raise ConfigError(f"{key}.{option}", "(not shown)", remedy)
        _check_brain(self.brain.options)

    @property
    def known_agents(self) -> frozenset[str]:
        """Names that a call may ask for."""
        return frozenset(self.agents) | {"demo"}

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every configured secret, for the log's redaction only."""
        turn = [s for ice in self.webrtc.ice_servers for s in (ice.credential, ice.auth_secret)]
        kept = (self.server.secret, *self.server.api_keys, *turn)
        revealed = tuple(secret.reveal() for secret in kept if secret.reveal())
        return revealed + self.store.secrets


def _check_brain(options: Mapping[str, object]) -> None:
    """Raises ConfigError, which never shows an address: a key may be hidden in it."""
    for name, value in options.items():
        kind = bool if name == "text_only" else str
        if not isinstance(value, kind):
            remedy = "write true or false" if kind is bool else "write text"
            raise ConfigError(f"brain.{name}", "(not shown)", remedy)
    address = urlsplit(str(options.get("base_url", "")))
    if address.username or address.password or address.query or address.fragment:
        remedy = "keys come from the environment: leave out what is before @ and from ? on"
        raise ConfigError("brain.base_url", "(not shown)", remedy)


def load(path: str | Path | None, env: Mapping[str, str]) -> Config:
    """Read the file (`path`, or ./voxglove.yaml when there is one), then the environment over it.

    Raises ConfigError, naming the key, the value and the remedy.
    """
    return read_section(Config, merged_environment(_file(path), env, ENV_PREFIX))


def _file(path: str | Path | None) -> dict[str, object]:
    if path is None:
        return read_yaml(Path(DEFAULT_FILE)) if Path(DEFAULT_FILE).is_file() else {}
    if not Path(path).is_file():
        raise ConfigError("--config", str(path), "there is no such file")
    return read_yaml(Path(path))
