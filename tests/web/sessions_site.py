"""A server with a store behind `/sessions` and a model behind `/chat`, on a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from tests.web.client import config
from tests.web.echo import EchoCalls
from voxglove.core.model import Model
from voxglove.core.store import Store
from voxglove.core.stores.memory import MemoryStore
from voxglove.web.app import Behind, create_app
from voxglove.web.calls import CallFactory
from voxglove.web.config import Config
from voxglove.web.routes.chat import CHATS, Chats
from voxglove.web.routes.sessions import SESSIONS, Sessions
from voxglove.web.server import SERVER, Server
from voxglove.web.stores import Stores

KEY = "k" * 20


class KeptInMemory:
    """Stores of this process that outlive their handles: what a durable store does, faster."""

    def __init__(self) -> None:
        self.kept: dict[str, MemoryStore] = {}

    def open(self, session_id: str) -> Store:
        if session_id not in self.kept:
            self.kept[session_id] = _Kept(session_id, self)
        return self.kept[session_id]

    @property
    def stores(self) -> Stores:
        return Stores(open=self.open, durable=True, name="memory that lasts")


class _Kept(MemoryStore):
    def __init__(self, identifier: str, home: KeptInMemory) -> None:
        super().__init__(identifier)
        self._home = home

    async def create_sub_agent_store(self, namespace: str, durable: bool = False) -> Store:
        if not durable:
            return await super().create_sub_agent_store(namespace)
        return self._home.open(f"{self.identifier}__{namespace}")


@dataclass(frozen=True, slots=True)
class StoreSite:
    """A running server."""

    url: str
    server: Server
    sessions: Sessions
    chats: Chats


@asynccontextmanager
async def store_site(
    stores: Stores | None = None,
    *,
    model: Callable[[], Model] | None = None,
    configured: Config | None = None,
    build: CallFactory | None = None,
    port: int = 0,
) -> AsyncIterator[StoreSite]:
    """Serve `stores` and `model` on 127.0.0.1, whatever host `configured` speaks of."""
    app = create_app(
        configured or config(),
        build or EchoCalls().factory,
        Behind(stores=stores, model=model),
    )
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0, lingering_time=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield StoreSite(url, app[SERVER], app[SESSIONS], app[CHATS])
    finally:
        await runner.cleanup()
