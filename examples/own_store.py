"""A store of your own: a file of JSON lines. Talk, start it again, and it remembers.

    python own_store.py              two conversations after each other, on the same file
    python own_store.py openai       the same with a provider

A store must do what voxglove.core.Store says, and no more: what it leaves out (inbox, tasks,
permissions, sub-agents' stores) is switched off. The suite of tests/core/store_suite.py checks any
store by subclassing: tests/examples/test_own_store.py does so with this one.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from voxglove.adapters.models.create import create_adapter
from voxglove.adapters.models.scripted import EchoModel
from voxglove.core import (
    Glove,
    Message,
    MessagePatch,
    StoreError,
    UnknownMessageError,
    Usage,
    UsageError,
    apply_patch,
    decode_message,
    encode_message,
)


class JsonLines:
    """One message a line; an amended message is written once more, and the last line counts."""

    def __init__(self, folder: Path, session_id: str) -> None:
        self.identifier = session_id
        self._path = folder / f"{quote(session_id, safe='')}.jsonl"
        self._window = Usage()
        self._turns = 0

    async def get_messages(self) -> list[Message]:
        lines = self._path.read_bytes().splitlines() if self._path.exists() else []
        latest = {message.id: message for message in map(decode_message, lines)}
        return list(latest.values())

    async def append_messages(self, messages: Sequence[Message]) -> None:
        known = {message.id for message in await self.get_messages()}
        ids = [message.id for message in messages]
        if not all(ids) or len(set(ids)) < len(ids) or known & set(ids):
            raise UsageError("messages: each has an id that was not used before")
        self._write(messages)

    async def amend_message(self, message_id: str, patch: MessagePatch) -> Message:
        for message in await self.get_messages():
            if message.id == message_id:
                amended = apply_patch(message, patch)
                self._write([amended])
                return amended
        raise UnknownMessageError(f"message_id: {message_id!r} is not in {self.identifier}")

    async def get_token_count(self) -> int:
        return self._window.total

    async def add_tokens(self, usage: Usage) -> None:
        self._window += usage

    async def get_turn_count(self) -> int:
        return self._turns

    async def increment_turn(self) -> None:
        self._turns += 1

    async def reset_counters(self) -> None:
        self._window, self._turns = Usage(), 0

    def _write(self, messages: Sequence[Message]) -> None:
        try:
            with self._path.open("ab") as file:  # small and local; else use a thread
                file.write(b"".join(encode_message(message) + b"\n" for message in messages))
        except OSError as error:
            raise StoreError(f"{self._path}: {error}") from error


async def talk(words: str) -> None:
    """One life of the process: nothing but the file is left of it."""
    model = create_adapter(*sys.argv[1:3]) if sys.argv[1:] else EchoModel()
    agent = Glove(model=model).build(JsonLines(Path(), "ada"))
    result = await agent.process_request(words)
    stored = await agent.store.get_messages()
    print(f"{result.text}  ({len(stored)} messages; tools: {len(agent.tools)})")


async def main() -> None:
    await talk("My name is Ada.")
    await talk("What is my name?")


if __name__ == "__main__":
    asyncio.run(main())
