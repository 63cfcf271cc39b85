"""Which agents this server can put on a line: the demo and the user's own (`module:factory`).

The only place that imports a module by a configured name. Runs the user's code at start, so that
a wrong name is told before anybody calls.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from ..core.factory import AgentFactory
from .config import Config
from .config_reader import ConfigError


def own_factories(config: Config) -> Mapping[str, AgentFactory]:
    """Name -> factory for everything under `agents`. Raises ConfigError naming the entry."""
    return {name: load_factory(f"agents.{name}", target) for name, target in config.agents.items()}


def load_factory(key: str, target: str) -> AgentFactory:
    """The callable that `module:factory` names, looked for in the working directory as well.

    Raises ConfigError under `key`; an exception of the module itself comes out as its cause.
    """
    name, _, attribute = target.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(name)
    except Exception as error:
        raise ConfigError(
            key, target, f"importing {name} failed: {type(error).__name__}: {error}"
        ) from error
    factory: Callable[..., object] | None = getattr(module, attribute, None)
    if factory is None:
        raise ConfigError(key, target, f"{name} has no {attribute}")
    if not callable(factory):
        raise ConfigError(key, target, f"{attribute} is not callable; write a function of CallInfo")
    return factory  # type: ignore[return-value]  # checked when it is called
