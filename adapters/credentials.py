"""Keys of vendors: looked up in an environment that is handed in, never shown by accident.

Values only. This module never reads `os.environ` itself (DESIGN 7): whoever composes the call
passes an `env`, and tests pass their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from .errors import CredentialsRejected

SHOWN = 4
"""Characters of a long secret that its repr shows, so that two keys can be told apart."""


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A key. `repr`, `str`, formatting show its last letters at most; `reveal` gives it."""

    _value: str

    def reveal(self) -> str:
        """The key itself, for the one place that sends it."""
        return self._value

    def __repr__(self) -> str:
        shown = self._value[-SHOWN:] if len(self._value) >= 5 * SHOWN else ""
        return f"Secret(…{shown})"

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is not pickled: pass the name of its variable instead")


def find(env: Mapping[str, str], *names: str) -> Secret | None:
    """The first of the variables `names` that is set and not blank, white space stripped."""
    for name in names:
        value = env.get(name, "").strip()
        if value:
            return Secret(value)
    return None


def require(env: Mapping[str, str], *names: str) -> Secret:
    """As `find`. Raises CredentialsRejected naming the variables, never a value."""
    found = find(env, *names)
    if found is None:
        raise CredentialsRejected("ERR_CREDENTIALS", f"no key: set {' or '.join(names)}")
    return found
