"""Amendments of stored messages: what was heard, and what the user really said.

The only code that changes a message after it was stored, apart from the results of tools. All of
it goes through History (DESIGN 2, 5.4).
"""

from collections.abc import Mapping

from .errors import UsageError
from .history import History
from .messages import MessagePatch, with_text


class Amendments:
    """Owned by the agent."""

    def __init__(self, history: History) -> None:
        self._history = history

    async def heard(
        self, message_id: str, heard: str, unheard: str, *, interrupted: bool, estimated: bool
    ) -> None:
        """Settle a spoken answer; the last call wins."""
        patch: MessagePatch = {
            "playback": "settled",
            "heard": heard,
            "unheard": unheard,
            "interrupted": interrupted,
            "estimated": estimated,
        }
        await self._history.amend(message_id, patch)

    async def progress(self, message_id: str, heard: str) -> None:
        """Remember how far playback got; playback stays pending."""
        await self._history.amend(message_id, {"heard": heard, "estimated": True})

    async def user(self, message_id: str, text: str, *, stand_in: str | None = None) -> None:
        """Correct a user message, also while its request still waits; media parts are kept.

        The first wording is kept unless it is `stand_in`: that was nobody's. Raises UsageError for
        any other kind of message.
        """
        message = await self._history.find(message_id)
        if not message.is_user_turn:
            raise UsageError(f"message_id: {message_id!r} is not a user turn")
        amended = with_text(message, text)
        patch: MessagePatch = {"text": text}
        if stand_in is None or message.text != stand_in:
            patch["pre_modified_text"] = amended.pre_modified_text or message.text
        if message.content:
            patch["content"] = amended.content
        await self._history.amend(message_id, patch)

    async def any_pending(self) -> bool:
        messages = await self._history.store.get_messages()
        return any(message.playback == "pending" for message in messages)

    async def settle_pending(self, last_position: Mapping[str, int]) -> list[str]:
        """Settle what a crash left pending; see Agent.settle_pending."""
        settled = []
        for message in await self._history.store.get_messages():
            if message.playback != "pending":
                continue
            heard = message.heard or ""
            if message.id in last_position:
                heard = message.text[: max(0, last_position[message.id])]
            rest = message.text[len(heard) :]
            await self.heard(
                message.id, heard, rest, interrupted=bool(rest.strip()), estimated=True
            )
            settled.append(message.id)
        return settled
