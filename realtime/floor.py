"""Who talks or works on a call, and for how long nobody has.

Told every fact by the session it belongs to; its one timer fires when it was quiet for `quiet_s`
(spec/voice 18.8). It decides nothing and sends nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

PRESUMED_S = 5.0
"""Somebody who only seems to speak seems so no longer than this."""


class Floor:
    """Belongs to one session. `on_quiet` is called once per quiet stretch, in the loop."""

    def __init__(self, quiet_s: float, on_quiet: Callable[[], None]) -> None:
        self._quiet_s = quiet_s
        self._on_quiet = on_quiet
        self._user = False
        self._hosts = False
        """The host's own word: the user speaks, whatever becomes of the connection."""
        self._presumed: asyncio.TimerHandle | None = None
        self._playing = False
        self._responses: set[str] = set()
        self._tools = 0
        self._expected = 0
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def user_speaks(self) -> bool:
        return self._user

    @property
    def agent_speaks(self) -> bool:
        """Its sound plays, as far as the host has told."""
        return self._playing

    @property
    def responding(self) -> bool:
        """The model works on a response."""
        return bool(self._responses)

    @property
    def responses(self) -> frozenset[str]:
        """Those that the model works on."""
        return frozenset(self._responses)

    @property
    def tools_run(self) -> bool:
        return self._tools > 0

    @property
    def awaits(self) -> bool:
        """A response was asked for and has not begun."""
        return self._expected > 0

    @property
    def gap(self) -> bool:
        """Nobody talks and nothing is under way: a turn gap."""
        busy = self._user or self._playing or self._responses or self._tools or self._expected
        return not busy

    def user(self, speaks: bool) -> None:
        """As the provider tells."""
        self._forget_presumed()
        self._user = speaks
        self._changed()

    def user_by_host(self, speaks: bool) -> None:
        """As the host tells, who hears the user also while nothing is connected."""
        self._hosts = speaks
        self.user(speaks)

    def presume_user(self) -> None:
        """The user seems to speak. Who tells when that is over is not known: nobody, perhaps."""
        self.user(True)
        loop = asyncio.get_running_loop()
        self._presumed = loop.call_later(PRESUMED_S, self.user, False)

    def playing(self, on: bool) -> None:
        if on != self._playing:
            self._playing = on
            self._changed()

    def response(self, response_id: str, *, runs: bool) -> None:
        """A response began or ended."""
        if runs:
            self._responses.add(response_id)
        else:
            self._responses.discard(response_id)
        self._changed()

    def expect(self, by: int) -> None:
        """A response was asked for (+1), or has begun or will not come (-1)."""
        self._expected = max(0, self._expected + by)
        self._changed()

    def tools(self, by: int) -> None:
        """A batch of calls came (+1) or has its results told (-1)."""
        self._tools = max(0, self._tools + by)
        self._changed()

    def lost(self) -> None:
        """The connection is gone, and all of the model's work with it. Tools and sound go on."""
        self._responses.clear()
        self._expected = 0
        self.user(self._hosts)

    def wait_again(self) -> None:
        """Something new waits for quiet: count it from now, if it is not being counted."""
        if self._timer is None:
            self._changed()

    def close(self) -> None:
        """No more timer."""
        self._closed = True
        self._forget_presumed()
        self._stop()

    def _changed(self) -> None:
        self._stop()
        if self.gap and not self._closed:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._quiet_s, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._on_quiet()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _forget_presumed(self) -> None:
        if self._presumed is not None:
            self._presumed.cancel()
            self._presumed = None
