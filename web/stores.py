"""The server's store: where the conversations of its calls are kept, opened once per process.

Part of the composition root: what `store` in the configuration means on this machine. Owned by
build.Shared, which closes it when no call lives any more. A store that cannot be opened ends the
start in words; a secret is in none of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from ..adapters.credentials import Secret, find
from ..core.agent import Agent
from ..core.errors import StoreError, UsageError
from ..core.store import Store
from ..core.stores.memory import MemoryStore
from .config_reader import ConfigError
from .config_store import StoreConfig

StoreFactory = Callable[[str], Store]
"""The store of the conversation with this id; a call's id is that of its conversation."""

TOOLS_S = 3_600.0
"""Tools that outlive their call have deadlines of their own; a store waits no longer than this."""

PROBE = "voxglove-probe"
"""A conversation that is asked for at start, and never written."""


async def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """`open` gives stores; `durable`: they outlive the process; `name` is for people."""

    open: StoreFactory
    durable: bool
    name: str
    aclose: Callable[[], Awaitable[None]] = _nothing

    @asynccontextmanager
    async def session(self, session_id: str) -> AsyncIterator[Store]:
        """The store of one conversation, for a while. Raises UsageError for a bad id."""
        store = self.open(session_id)
        try:
            yield store
        finally:
            await let_go(store)


async def let_go(store: Store) -> None:
    """The store is done with; what it holds of its own is given back."""
    if isinstance(store, _Closable):
        await store.aclose()


@asynccontextmanager
async def kept(
    store: Store, agent: Agent, survivors: asyncio.TaskGroup | None
) -> AsyncIterator[None]:
    """Hold a call's store for its length, and as long as tools of its agent outlive it in
    `survivors`: their results are stored too (DESIGN 5.6)."""
    try:
        yield
    finally:
        if survivors is None or not agent.outstanding:
            await let_go(store)
        else:
            _let_go_later(store, agent, survivors)


def _let_go_later(store: Store, agent: Agent, group: asyncio.TaskGroup) -> None:
    async def wait() -> None:
        try:
            await agent.join_tools(TOOLS_S)
        finally:
            await let_go(store)

    waiting = wait()
    try:
        group.create_task(waiting, name=f"store of {store.identifier}")
    except RuntimeError:  # the group is going down, and the tools with it
        waiting.close()


@runtime_checkable
class _Closable(Protocol):
    """A store that holds something of its own."""

    async def aclose(self) -> None: ...


IN_MEMORY = Stores(open=MemoryStore, durable=False, name="memory")
"""Each call's history goes with the call."""


async def open_stores(config: StoreConfig, env: Mapping[str, str]) -> Stores:
    """What `config` names, ready for use. Raises ConfigError."""
    try:
        match config.kind:
            case "sqlite":
                return await _sqlite(config.path)
            case "postgres":
                return await _postgres(config.dsn or find(env, "DATABASE_URL"))
            case "remote":
                return await _remote(config)
            case _:
                return IN_MEMORY
    except (StoreError, UsageError, OSError) as error:
        raise ConfigError("store", config.kind, f"it cannot be opened: {error}") from error


async def _sqlite(path: str) -> Stores:
    from ..core.stores.sqlite import SqliteStore

    file = _file(path)

    def store(session_id: str) -> Store:
        return SqliteStore(file, session_id)

    # Held to the end: it keeps the file and its thread open between calls.
    held = SqliteStore(file, PROBE)
    try:
        await held.get_messages()
    except BaseException:
        await held.aclose()
        raise
    return Stores(open=store, durable=True, name=f"sqlite:{path}", aclose=held.aclose)


def _file(path: str) -> Path:
    file = Path(path).expanduser()
    if not file.parent.is_dir():
        raise ConfigError("store.path", path, f"make the folder {file.parent} first")
    return file


async def _postgres(dsn: Secret | None) -> Stores:
    if dsn is None:
        raise ConfigError("store.dsn", "", "write postgres:postgresql://…, or set DATABASE_URL")
    try:
        from ..adapters.stores.postgres import open_postgres

        pool = await open_postgres(dsn)
    except ImportError:
        remedy = "run: pip install 'voxglove[postgres]'"
        raise ConfigError("store", "postgres", remedy) from None
    return Stores(open=pool.store, durable=True, name="postgres", aclose=pool.aclose)


async def _remote(config: StoreConfig) -> Stores:
    from ..adapters.stores.remote import RemoteConfig, RemoteStores

    remote = RemoteStores(RemoteConfig(url=config.url, key=config.key))
    try:
        await remote.features(PROBE)
    except BaseException:
        with suppress(StoreError):
            await remote.aclose()
        raise
    return Stores(
        open=remote.store, durable=True, name=f"remote:{config.url}", aclose=remote.aclose
    )
