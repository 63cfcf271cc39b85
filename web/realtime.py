"""A realtime model as the brain of every call: what `brain` in the configuration means.

Part of the composition root, beside `brains` (text models) and `stack` (speech). One adapter serves
all calls of the process; each call gets a brain of its own. What a cascade does not need is
imported by whoever needs it: a server starts faster without.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..adapters.credentials import find
from ..core.agent import Agent
from ..core.errors import UsageError
from .config import CASCADE, Config
from .config_reader import ConfigError
from .stack import Speech

if TYPE_CHECKING:
    from ..realtime import RealtimeAdapter, RealtimeBrain

BRAINS = ("openai", "gemini", "gpt-live")
"""What `brain` may name beside `cascade`."""


def open_realtime(config: Config, env: Mapping[str, str]) -> RealtimeAdapter | None:
    """The adapter that `brain` names; None for the cascade. Opens no connection. Raises ConfigError
    for an unknown name, a missing key, or an option that does not fit."""
    part = config.brain
    if part.name == CASCADE:
        return None
    if part.name not in BRAINS:
        known = ", ".join(f"{name}[:model]" for name in BRAINS)
        raise ConfigError("brain", part.text, f"use cascade, or one of {known}")
    from ..realtime.factory import RealtimeModel, adapter_of

    options = dict(part.options)
    options.pop("greeting", None)
    wish = RealtimeModel(
        provider=part.name,
        model=part.arg or None,
        voice=str(options.pop("voice")) if "voice" in options else None,
        given=options,
    )
    try:
        return adapter_of(wish, env)
    except UsageError as error:
        raise ConfigError("brain", part.text, str(error)) from error


def realtime_brain(
    config: Config,
    adapter: RealtimeAdapter,
    speech: Speech,
    agent: Agent,
    survivors: asyncio.TaskGroup | None,
) -> RealtimeBrain:
    """The brain of one call."""
    from ..realtime import LiveCompaction, RealtimeBrain, RealtimeParts, SessionConfig

    manual = config.turn.manual
    return RealtimeBrain(
        RealtimeParts(
            agent=agent,
            adapter=adapter,
            vad=None if manual else speech.vad,
            session=SessionConfig(compaction=LiveCompaction(), manual_turns=manual),
            barge_in=replace(config.barge_in, by_request=False),
            greeting=str(config.brain.options.get("greeting", "")),
            click_ms=config.turn.talk_click_ms,
            minimum_ms=config.turn.talk_minimum_ms,
            survivors=survivors,
        )
    )


def key_in_use(config: Config, env: Mapping[str, str]) -> str:
    """Which variable holds the key, in words."""
    from ..realtime.factory import key_variables

    names = key_variables(config.brain.name)
    found = next((name for name in names if find(env, name) is not None), None)
    return f"{found} is set" if found else "no key, which a server of your own may not need"


def brain_in_use(config: Config, adapter: RealtimeAdapter) -> str:
    """Who answers, and where, in a word or two; never with a key."""
    where = urlsplit(str(config.brain.options.get("base_url", ""))).netloc.rpartition("@")[2]
    return f"{adapter.provider} {adapter.model}" + (f" at {where}" if where else "")
