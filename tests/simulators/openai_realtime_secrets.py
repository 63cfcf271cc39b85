"""Ephemeral keys of the simulated OpenAI realtime model: `POST /v1/realtime/client_secrets`.

A key opens sessions until it expires, and its session settings are what they start with
(protocols/openai-realtime section 1.1). A session that runs outlives its key.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from tests.simulators.openai_realtime_checks import (
    Json,
    Refused,
    fields,
    integer,
    one_of,
    part,
    whole,
    word,
)
from tests.simulators.openai_realtime_config import Config
from tests.simulators.openai_realtime_events import SESSION

DEFAULT_S = 600
REQUEST = fields(
    {},
    {
        "expires_after": fields(
            {}, {"anchor": one_of("created_at"), "seconds": integer(10, 7_200)}
        ),
        "session": SESSION,
    },
)


@dataclass(slots=True)
class Secrets:
    """The real key, and the ephemeral ones. `lifetime_s` overrules what clients ask for."""

    key: str
    lifetime_s: float | None = None
    made: dict[str, tuple[float, Json]] = field(default_factory=dict)
    """Ephemeral key -> loop time of its end, session settings."""

    def opens(self, key: str) -> bool:
        """This key is good now."""
        deadline, _ = self.made.get(key, (0.0, {}))
        return key == self.key or asyncio.get_running_loop().time() < deadline

    def start(self, key: str) -> Json:
        """What a session opened with this key starts with."""
        return self.made.get(key, (0.0, {}))[1]

    def make(self, body: object) -> Json:
        """A new key. Raises Refused."""
        REQUEST("", body)
        session = {"type": "realtime", "model": "gpt-realtime", **part(body, "session")}
        config = Config(word(session["model"]), 500)
        config.update(session, busy=False)
        asked_s = whole(part(body, "expires_after").get("seconds"), DEFAULT_S)
        lifetime_s = asked_s if self.lifetime_s is None else self.lifetime_s
        value = f"ek_{len(self.made) + 1}"
        self.made[value] = asyncio.get_running_loop().time() + lifetime_s, session
        expires_at = int(time.time() + asked_s)
        told = {"id": f"sess_{value}", "object": "realtime.session", "expires_at": expires_at}
        return {"value": value, "expires_at": expires_at, "session": config.session | told}


@asynccontextmanager
async def serving(secrets: Secrets) -> AsyncIterator[str]:
    """Serve keys on loopback until the block ends; gives `http://127.0.0.1:PORT`."""

    async def create(request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {secrets.key}":
            return _error(401, Refused("invalid_api_key", "Incorrect API key provided."))
        try:
            return web.json_response(secrets.make(json.loads(await request.text() or "{}")))
        except ValueError:
            return _error(400, Refused("invalid_json", "The body is not valid JSON."))
        except Refused as refused:
            return _error(400, refused)

    app = web.Application()
    app.router.add_post("/v1/realtime/client_secrets", create)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _error(status: int, refused: Refused) -> web.Response:
    error = {"type": "invalid_request_error", "code": refused.code, "message": refused.message}
    return web.json_response({"error": {**error, "param": refused.param}}, status=status)
