"""The `store` section: which store keeps the conversations of a server. A frozen value.

Written as one text, `kind:place`, or as a table. What comes after `postgres:` may hold a password
and is a secret. Opens nothing: stores.py does.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from ..adapters.credentials import Secret
from .config_reader import ConfigError

KINDS = {"memory": (), "sqlite": ("path",), "postgres": ("dsn",), "remote": ("url", "key")}
"""Kind -> the fields that belong to it."""
SHORT = 6
"""A password below this many characters is not looked for in the log by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """`kind` decides which of the other fields may be set."""

    kind: str = "memory"
    path: str = ""
    dsn: Secret = Secret("")
    url: str = ""
    key: Secret = Secret("")

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            remedy = "write memory, sqlite:PATH, postgres:DSN or remote:URL"
            raise ConfigError("kind", self.kind, remedy)
        for name in ("path", "dsn", "url", "key"):
            if getattr(self, name) and name not in KINDS[self.kind]:
                raise ConfigError(name, "(hidden)", f"a store of kind {self.kind} takes no {name}")
        if self.kind == "sqlite" and not self.path:
            raise ConfigError("path", self.path, "write sqlite:PATH")
        if self.kind == "remote":
            self._check_url()

    def _check_url(self) -> None:
        remedy = "write remote:http[s]://host[:port], and the key into store.key"
        try:
            parts = urlsplit(self.url)
        except ValueError:
            raise ConfigError("url", "(hidden)", remedy) from None
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise ConfigError("url", "(hidden)" if "@" in self.url else self.url, remedy)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no log may show: the DSN, the password in it (unless it is a common word's length,
        which would black out half the log), the key."""
        dsn = self.dsn.reveal()
        try:
            password = unquote(urlsplit(dsn).password or "")
        except ValueError:
            password = ""
        password = password if len(password) >= SHORT else ""
        return tuple(found for found in (dsn, password, self.key.reveal()) if found)
