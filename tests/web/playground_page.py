"""The page with a call that tests play: a recorded booking, or whatever messages a test makes up.

`Playground` serves the static files for real and puts playground/fake_call.js in the place of
call.js, so a view is tested without a socket, a microphone or a wait.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from playwright.async_api import Page, Route

from tests.web import browser
from tests.web.client import site

FOLDER = Path(__file__).parent / "playground"
Message = dict[str, Any]


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


PICTURE = b"".join(
    (
        b"\x89PNG\r\n\x1a\n",
        _chunk(b"IHDR", struct.pack(">2I5B", 8, 8, 8, 0, 0, 0, 0)),
        _chunk(b"IDAT", zlib.compress((b"\x00" + bytes(range(0, 256, 32))) * 8)),
        _chunk(b"IEND", b""),
    )
)
"""8 x 8 grey pixels as a PNG."""


@lru_cache(maxsize=1)
def recorded() -> tuple[list[tuple[float, Message]], list[list[float]]]:
    """Messages of a real call with their arrival second, and the sound of both sides by 20 ms."""
    found = json.loads((FOLDER / "booking.json").read_text())
    return [(one["at"], one["message"]) for one in found["messages"]], found["waves"]


def line(kind: str, t: float = 1.0, **fields: object) -> Message:
    """A timeline line as it comes over the line."""
    return {"t": "event", "event": {"t": t, "at": round(t * 16_000), "type": kind, **fields}}


def latency(turn: int, total: float, **parts: float) -> Message:
    """A `turn_latency` of which each part is owned by a setting of its name."""
    owned = [{"name": name, "ms": ms, "setting": f"{name}.ms"} for name, ms in parts.items()]
    return {"t": "metric", "name": "turn_latency", "turn": turn, "total_ms": total, "parts": owned}


def past_of(messages: list[Message]) -> Message:
    """The `timeline` by which a server tells these messages to a page that comes anew. Their
    answers stand where they ended."""
    entries: dict[str, Message] = {}
    for number, message in enumerate(messages):
        turn = {} if message.get("turnId") is None else {"turn": message["turnId"]}
        match message:
            case {"t": "utterance", "text": text, "source": source}:
                found = {"kind": "user", "text": text, **turn}
                entries[f"m{number}"] = found | ({"source": source} if source == "typed" else {})
            case {"t": "heard", "heard": heard, "unheard": unheard, "interrupted": cut}:
                words = {"text": heard + unheard, "heard": heard, "unheard": unheard}
                found = {"kind": "agent_text", **words, **turn}
                entries[f"m{number}"] = found | ({"interrupted": True} if cut else {})
            case {"t": "event", "event": {"type": "tool", "id": call, **fields}}:
                known = entries.setdefault(call, {"kind": "tool", "status": "running"})
                known |= {k: fields[k] for k in ("name", "input", "status") if k in fields}
                known |= {k: fields[k] for k in ("duration_ms",) if k in fields}
            case {"t": "slot", "id": slot, **fields}:
                entries[slot] = {**fields, "kind": "slot", "state": "open"}
            case {"t": "slot_removed", "id": slot}:
                entries[slot]["state"] = "gone"
    told = [{**entry, "id": name} for name, entry in entries.items()]
    return {"t": "timeline", "entries": told, "earlier": 0}


@dataclass
class Playground:
    """An open page with a fake call."""

    chrome: browser.Browser

    @property
    def page(self) -> Page:
        return self.chrome.page

    async def start(self) -> None:
        await self.chrome.start()
        await self.hear(recorded()[0][0][1])

    async def hear(self, *messages: Message) -> None:
        """These messages come from the server, now."""
        await self.page.evaluate("(m) => window.fakeCall.hear(...m)", list(messages))

    async def booking(self, until: float = 1e9) -> None:
        """The recorded call, from its `ready` to second `until`, at once."""
        messages, waves = recorded()
        await self.hear(*(message for at, message in messages if at <= until))
        frames = min(len(waves), round(until * 50)) if until < 1e8 else len(waves)
        await self.page.evaluate("([w, n]) => window.fakeCall.play(w, 0, n)", [waves, frames])
        await self.pictures()

    async def conversation(self) -> list[list[str]]:
        """Each item of the conversation as it is shown: its class, and its words."""
        found = await self.page.evaluate(CONVERSATION)
        assert isinstance(found, list)
        return found

    async def pictures(self, count: int = 2) -> None:
        """Wait until the browser has drawn."""
        for _ in range(count):
            await self.page.evaluate("() => new Promise((done) => requestAnimationFrame(done))")

    async def asked(self, what: str) -> list[list[Any]]:
        """What the page asked its call for, in order: the arguments of each `what`."""
        found = await self.page.evaluate("() => window.fakeCall.asked")
        return [one[1:] for one in found if one[0] == what]

    async def texts(self, selector: str) -> list[str]:
        return await self.chrome.texts(selector)


CONVERSATION = """() => [...document.querySelectorAll("#transcript > *")]
  .filter((one) => !one.hidden && one.id !== "empty")
  .map((one) => [one.className, one.textContent])"""


@asynccontextmanager
async def playground(
    size: tuple[int, int] = (1280, 800), *, dark: bool = False, start: bool = True
) -> AsyncIterator[Playground]:
    """The page, its call begun unless `start` is False. Fails when the page logged an error."""
    async with (
        site() as here,
        browser.opened("about:blank", dark=dark, size=size, allow=False) as chrome,
    ):
        await chrome.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await chrome.context.route("**/static/call.js", _fake)
        await chrome.page.goto(here.url + "/")
        opened = Playground(chrome)
        if start:
            await opened.start()
        yield opened
        assert chrome.errors == []


async def _fake(route: Route) -> None:
    await route.fulfill(path=FOLDER / "fake_call.js", content_type="text/javascript")
