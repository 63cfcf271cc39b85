"""When a call's conversation is summarised, by whom, and how the provider learns of it.

The provider reports how full its context is; at a turn gap the agent's compactor runs with the
summary of whoever can write one: the provider out of band, a text model, or the transcript itself
(spec/voice 18.5, row 89). Owned by one run of a session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from ..core.cancel import CancelToken
from ..core.live import LiveConversation
from ..core.messages import Message, result_text
from ..core.usage import Usage
from .commands import ForgetBefore, Summarise
from .config import LiveCompaction
from .events import Summary, Used
from .feed import Tell
from .port import Capabilities

TRANSCRIPT_CHARS = 12_000
"""Of the latest words, where the transcript itself is the summary."""


class Summaries:
    """See the module. `renew` opens a fresh connection that is seeded with the summary; `forgotten`
    is told that the provider now knows the summary alone."""

    def __init__(
        self,
        config: LiveCompaction | None,
        live: LiveConversation,
        capabilities: Capabilities,
        tell: Tell,
        *,
        renew: Callable[[], None],
        forgotten: Callable[[frozenset[str]], Awaitable[None]],
    ) -> None:
        self._config = config
        self._live = live
        self._can = capabilities
        self._tell = tell
        self._renew = renew
        self._forgotten = forgotten
        self._due = False
        self._count = 0
        self._waiting: dict[str, asyncio.Future[Summary]] = {}

    @property
    def due(self) -> bool:
        """The context is larger than it should be."""
        return self._due

    def measured(self, used: Used) -> None:
        """The provider counted."""
        config = self._config
        if config is None:
            return
        tokens, ratio = used.context_tokens, used.context_ratio
        if tokens is not None:
            self._due = tokens >= config.context_limit
        elif ratio is not None:
            self._due = ratio >= config.ratio_limit

    def came(self, summary: Summary) -> None:
        """The provider's answer to Summarise."""
        waiting = self._waiting.pop(summary.request_id, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(summary)

    def lost(self) -> None:
        """The connection is gone, and what it was writing with it."""
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_result(Summary("", ""))
        self._waiting.clear()

    async def run(self, token: CancelToken) -> bool:
        """Summarise now, at a turn gap. False when it failed or gave way; it is tried again when
        the provider counts again."""
        self._due = False
        if not await self._live.compact(self._summarise, token):
            return False
        seed = await self._live.view()
        known = frozenset(message.id for message in seed)
        if self._can.item_delete:
            summary = next((one.text for one in seed if one.is_compaction), "")
            self._tell(ForgetBefore(summary))
            await self._forgotten(known)
        else:
            self._renew()
        return True

    async def _summarise(
        self, messages: list[Message], instructions: str, token: CancelToken
    ) -> tuple[str, Usage]:
        config = self._config or LiveCompaction()
        asked = config.instructions or instructions
        if self._can.out_of_band:
            written = await self._by_provider(asked)
            if written.text.strip():
                return written.text, written.usage
        if config.model is not None:
            return await self._live.summarise_with(config.model)(messages, asked, token)
        return transcript(messages), Usage()

    async def _by_provider(self, instructions: str) -> Summary:
        self._count += 1
        request_id = f"summary_{self._count}"
        future: asyncio.Future[Summary] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = future
        try:
            if not self._tell(Summarise(request_id, instructions)):
                return Summary(request_id, "")
            return await future
        finally:
            self._waiting.pop(request_id, None)


def transcript(messages: list[Message]) -> str:
    """The conversation as lines of text, results of tools included, the latest TRANSCRIPT_CHARS."""
    text = "\n".join(line for message in messages for line in _lines(message))
    return text if len(text) <= TRANSCRIPT_CHARS else "…" + text[-TRANSCRIPT_CHARS:]


def _lines(message: Message) -> Iterator[str]:
    if message.tool_results:
        for result in message.tool_results:
            yield f"{result.tool_name} gave: {result_text(result.result)}"
    elif message.text.strip():
        yield f"{'User' if message.sender == 'user' else 'You'}: {message.text}"
