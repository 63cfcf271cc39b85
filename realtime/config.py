"""Settings of a realtime session, validated at construction. Knows no provider, reads no file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypedDict

from ..core.errors import UsageError
from ..core.model import Model
from ..core.permissions import PermissionPolicy

BeforeTurn = Callable[[], Awaitable[None] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCompaction:
    """When and by whom a conversation on a call is summarised (spec/voice 18.5).

    context_limit  in tokens, as the provider reports its context
    ratio_limit    the same where it reports a share of its window
    model          writes the summary where the provider cannot do it out of band; None: the
                   transcript itself is the summary
    instructions   for whoever writes it; None: the agent's own compaction instructions
    """

    context_limit: int = 24_000
    ratio_limit: float = 0.85
    model: Model | None = None
    instructions: str | None = None

    def __post_init__(self) -> None:
        if self.context_limit <= 0:
            raise UsageError("LiveCompaction.context_limit: must be positive")
        if not 0 < self.ratio_limit <= 1:
            raise UsageError("LiveCompaction.ratio_limit: must be in (0, 1]")


class Settings(TypedDict, total=False):
    """The settings that a session also takes by name, as the seeds write them."""

    compaction: LiveCompaction | None
    permissions: PermissionPolicy | None
    events: bool
    before_turn: BeforeTurn | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConfig:
    """How a session behaves; the seeds' arguments under their names.

    compaction     None: the provider's window and its own truncation are all there is
    permissions    stands in for the agent's policy while the call lives; None: the agent's
    events         False leaves outside events to the agent's own policy
    before_turn    runs like a turn preparer that is not registered with the agent
    interruption   False: the caller's voice never ends the agent's speech
    manual_turns   the host opens and closes turns (notify_user_speech, commit)
    quiet_ms       nobody talks or works for this long: the agent may speak by itself
    words_wait_s   how long history waits for the words of a turn that was taken
    """

    compaction: LiveCompaction | None = None
    permissions: PermissionPolicy | None = None
    events: bool = True
    before_turn: BeforeTurn | None = None
    interruption: bool = True
    manual_turns: bool = False
    quiet_ms: int = 700
    words_wait_s: float = 3.0

    def __post_init__(self) -> None:
        if self.quiet_ms < 1:
            raise UsageError("SessionConfig.quiet_ms: use 1 or more")
        if self.words_wait_s <= 0:
            raise UsageError("SessionConfig.words_wait_s: must be positive")
