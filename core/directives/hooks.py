"""Hooks: code that runs when a user's message names it, before the model sees the message.

A hook may rewrite the message or answer it itself (spec core 1.3, 13.5). Values only; what runs
them is registry.Directives.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from ..cancel import CancelToken
from ..messages import Message
from ..tool import ToolHost

Compact = Callable[[], Awaitable[bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """What a hook or skill may use: the agent (store, display, model, tools), and compaction.

    force_compaction  summarise history now, inside this turn; False if it failed or a tool is
                      outstanding
    """

    agent: ToolHost
    force_compaction: Compact


@dataclass(frozen=True, slots=True, kw_only=True)
class HookContext:
    """`raw_text` is what the user wrote, `parsed_text` the working text, placeholders and earlier
    rewrites in it."""

    name: str
    raw_text: str
    parsed_text: str
    controls: Controls
    token: CancelToken


@dataclass(frozen=True, slots=True, kw_only=True)
class HookOutcome:
    """What a hook wants; None, or an outcome without fields, wants nothing.

    rewrite_text   the new working text; the first wording is kept as pre_modified_text
    short_circuit  the answer of this request: stored, reported and returned; the model is not
                   asked, and later hooks and skills do not run
    """

    rewrite_text: str | None = None
    short_circuit: str | Message | Sequence[Message] | None = None


Hook = Callable[[HookContext], Awaitable[HookOutcome | None] | HookOutcome | None]
