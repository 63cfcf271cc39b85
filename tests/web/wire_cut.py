"""A wire that can be cut between Chromium and a server in another process: UDP and HTTP.

The page's offers and their answers are rewritten on the way, so that every packet of a call goes
through a relay on loopback. `cut()` and `http_down` take either half away without a word to anyone,
as a lost network does. A test owns the wire for the length of its `async with`.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Page, Route

Address = tuple[str, int]

LOOPBACK = "127.0.0.1"
DATAGRAM = 2_048
CANDIDATES = re.compile(r"a=(?:candidate:[^\r\n]*|end-of-candidates)\r\n")
OURS = re.compile(r"(a=candidate:\S+ 1 udp \S+ 127\.0\.0\.1 )(\d+)( typ host)", re.I)


class Relay:
    """Carries UDP between whoever sends to `port` and `server`, on the running loop. Each sender
    gets a way of its own, as behind a router. `broken`, it swallows everything."""

    def __init__(self, server: Address) -> None:
        self.broken = False
        self._server = server
        self._near = _bound()
        self._ways: dict[Address, socket.socket] = {}
        self.port = int(self._near.getsockname()[1])
        asyncio.get_running_loop().add_reader(self._near, self._there)

    def close(self) -> None:
        """Give the sockets back."""
        for each in (self._near, *self._ways.values()):
            asyncio.get_running_loop().remove_reader(each)
            each.close()

    def _there(self) -> None:
        data, sender = self._near.recvfrom(DATAGRAM)
        way = self._ways.get(sender) or self._way(sender)
        if not self.broken:
            way.sendto(data, self._server)

    def _way(self, sender: Address) -> socket.socket:
        way = self._ways[sender] = _bound()
        asyncio.get_running_loop().add_reader(way, self._back, way, sender)
        return way

    def _back(self, way: socket.socket, sender: Address) -> None:
        data = way.recv(DATAGRAM)
        if not self.broken:
            self._near.sendto(data, sender)


class Wire:
    """Between a page and its server. `offers` came through, `refused` requests did not."""

    def __init__(self) -> None:
        self.offers = 0
        self.refused = 0
        self.http_down = False
        self._relays: list[Relay] = []

    def cut(self) -> None:
        """No packet of the lines there are gets through any more; a later line is whole."""
        for relay in self._relays:
            relay.broken = True

    async def attach(self, page: Page) -> None:
        """Stand between `page` and its server from now on, also after a reload."""
        await page.route("**/rtc/offer", self._offer)
        await page.route("**/rtc/candidate", lambda route: route.fulfill(status=204))
        await page.route("**/rtc/lines/*", self._ask)

    def close(self) -> None:
        """Every socket of it."""
        for relay in self._relays:
            relay.close()

    async def _ask(self, route: Route) -> None:
        if self.http_down:
            self.refused += 1
            await route.abort("connectionrefused")
        else:
            await route.continue_()

    async def _offer(self, route: Route) -> None:
        """The server learns no address of the page, the page only that of the relay."""
        if self.http_down:
            return await self._ask(route)
        sent = json.loads(route.request.post_data or "{}")
        sent["sdp"] = CANDIDATES.sub("", sent["sdp"])
        answer = await route.fetch(post_data=sent)
        told = await answer.json()
        if "sdp" in told:
            self.offers += 1
            told["sdp"] = self._relayed(told["sdp"])
        await route.fulfill(status=answer.status, json=told)

    def _relayed(self, sdp: str) -> str:
        """The answer with one candidate: a relay to the server's on loopback."""
        found = OURS.search(sdp)
        assert found, f"the server offers no way on loopback: {sdp}"
        relay = Relay((LOOPBACK, int(found[2])))
        self._relays.append(relay)
        line = f"{found[1]}{relay.port}{found[3]}\r\n"
        before, after = sdp[: found.start()], sdp[found.start() :]
        return CANDIDATES.sub("", before) + line + CANDIDATES.sub("", after)


@asynccontextmanager
async def wire_of(page: Page) -> AsyncIterator[Wire]:
    """A wire in front of `page`; begin the call after it."""
    wire = Wire()
    await wire.attach(page)
    try:
        yield wire
    finally:
        await page.unroute_all(behavior="wait")
        wire.close()


def _bound() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setblocking(False)
    made.bind((LOOPBACK, 0))
    return made
