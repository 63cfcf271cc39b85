"""Where tokens and registrations of MCP servers are kept between runs of the OAuth helper.

One OAuthState per key, for instance one per server and user. Nothing here talks to anybody, and no
repr shows a secret.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from ...core.errors import UsageError
from ...core.mcp.port import McpError


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthState:
    """What is known of one authorisation, as JSON; empty before the first.

    tokens  a token answer (RFC 6749, 5.1)
    client  the registration at the authorisation server (RFC 7591, 3.2.1)
    """

    tokens: Mapping[str, object] = field(default_factory=dict, repr=False)
    client: Mapping[str, object] = field(default_factory=dict, repr=False)


class McpOAuthStore(Protocol):
    """Keeps states. A key that is not there has an empty one."""

    async def get(self, key: str) -> OAuthState: ...

    async def set(self, key: str, state: OAuthState) -> None: ...

    async def delete(self, key: str) -> None:
        """Harmless for a key that is not there."""
        ...


class MemoryOAuthStore:
    """Lives as long as its process."""

    def __init__(self) -> None:
        self._states: dict[str, OAuthState] = {}

    async def get(self, key: str) -> OAuthState:
        return self._states.get(key, OAuthState())

    async def set(self, key: str, state: OAuthState) -> None:
        self._states[key] = state

    async def delete(self, key: str) -> None:
        self._states.pop(key, None)


class FsOAuthStore:
    """One file per key in a folder of its own.

    A file is readable by its owner alone and replaced as a whole, so a reader finds the old state
    or the new one, also after a crash. Keys may be any text up to about 80 bytes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def get(self, key: str) -> OAuthState:
        """Raises McpError for a file that holds something else."""
        return await asyncio.to_thread(self._read, self._path(key))

    async def set(self, key: str, state: OAuthState) -> None:
        await asyncio.to_thread(self._write, self._path(key), state)

    async def delete(self, key: str) -> None:
        await asyncio.to_thread(self._path(key).unlink, missing_ok=True)

    def _path(self, key: str) -> Path:
        name = quote(key, safe="")
        if not key or len(name) > 240:
            raise UsageError("key: 1 to about 80 bytes of text, for instance 'notion:ann'")
        return self._folder / f"{name}.json"

    @staticmethod
    def _read(path: Path) -> OAuthState:
        try:
            found = json.loads(path.read_text())
        except FileNotFoundError:
            return OAuthState()
        except ValueError as error:
            raise _unreadable(path) from error
        match found:
            case {"tokens": dict(tokens), "client": dict(client)}:
                return OAuthState(tokens=tokens, client=client)
        raise _unreadable(path)

    def _write(self, path: Path, state: OAuthState) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # mkstemp makes it with mode 0600, under a name that nobody can have prepared.
        descriptor, temporary = tempfile.mkstemp(dir=self._folder, prefix=".", suffix=".tmp")
        try:
            with os.fdopen(descriptor, "w") as file:
                json.dump(asdict(state), file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise


async def stored_token(store: McpOAuthStore, key: str) -> str | None:
    """The access token of a key, for McpAdapter.get_access_token or `bearer`; None if there is
    none. Whether it is still good, its server says."""
    token = (await store.get(key)).tokens.get("access_token")
    return token if isinstance(token, str) and token else None


def _unreadable(path: Path) -> McpError:
    return McpError(f"{path} holds no OAuth state; delete it and authorise again")
