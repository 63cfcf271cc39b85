"""Opening a link's connections one at a time: wait, leave the old one, renew, set up, connect.

Owned by one link, in whose group each dial is a task. It reports each outcome once, as an event of
the connection table, and decides nothing: how long, with a handle or fresh, stands in the Dial.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from ..adapters.errors import AdapterError, CredentialsRejected
from ..adapters.socket import backoff
from . import lifecycle_vocabulary as voc
from .carried import Handle
from .events import RealtimeEvent
from .leg import Leg
from .linking import LinkConfig, MakeSetup, Refresh, SetupRequest
from .port import RealtimeAdapter

SETUP_FAILED = "ERR_REALTIME_SETUP"
"""Something of ours failed while a connection was prepared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DialParts:
    """What a dial works with. `leave` ends the present connection, `hear` gets the events of the
    new one, `outcome` how it went; `setup`, `refresh` and `jitter` are the link's."""

    setup: MakeSetup
    refresh: Refresh | None
    jitter: Callable[[], float]
    handle: Handle
    leave: Callable[[], Awaitable[None]]
    hear: Callable[[Leg, RealtimeEvent], None]
    outcome: Callable[[voc.Connected | voc.Failed, Exception | None], None]


class Dialler:
    """See the module. `adapter` is the one in use: another after its credentials were renewed."""

    def __init__(
        self,
        adapter: RealtimeAdapter,
        group: asyncio.TaskGroup,
        parts: DialParts,
        config: LinkConfig,
    ) -> None:
        self.adapter = adapter
        self._group = group
        self._parts = parts
        self._config = config
        self._ready: Leg | None = None

    async def dial(self, dial: voc.Dial, *, planned: bool, first: bool) -> None:
        """One attempt. A failure of ours is final at `first`, when nobody talks yet; later it is
        tried again like one of the provider."""
        loop = asyncio.get_running_loop()
        leg = Leg(self._parts.hear)
        try:
            if dial.failures:
                await asyncio.sleep(backoff(dial.failures, self._parts.jitter()))
            if dial.close_first:
                await self._parts.leave()
            if dial.refresh and self._parts.refresh is not None:
                self.adapter = await self._parts.refresh()
            await self._connect(leg, dial, planned)
        except AdapterError as error:
            rejected = isinstance(error, CredentialsRejected)
            failed = voc.Failed(loop.time(), error.code, error.retryable, rejected)
            self._parts.outcome(failed, error)
        except Exception as error:
            self._parts.outcome(voc.Failed(loop.time(), SETUP_FAILED, not first), error)
        else:
            self._ready = leg
            self._parts.outcome(voc.Connected(loop.time()), None)
            if self._ready is leg:  # the session was stopped meanwhile: nobody took it
                self._ready = None
                await leg.close(self._config.close_timeout_s)

    def take(self) -> Leg | None:
        """The connection that was just opened; its taker closes it."""
        ready, self._ready = self._ready, None
        return ready

    async def _connect(self, leg: Leg, dial: voc.Dial, planned: bool) -> None:
        kept = self._parts.handle
        handle, mark = (kept.value, kept.mark) if dial.resume else (None, None)
        setup = await self._parts.setup(SetupRequest(handle, mark, dial.attempt, planned))
        setup = replace(setup, resume_handle=handle)
        await leg.open(self.adapter, setup, self._group, self._config.connect_timeout_s)
