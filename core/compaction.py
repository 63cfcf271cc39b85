"""Compaction: the conversation so far as one summary message the model continues from.

The store keeps everything; only the model's view starts at the last summary. Start and end events
always come in pairs, and the summary's deltas carry phase `compaction`: they are never spoken or
shown (spec core 12, 19.17, 19.18). Owned by the agent, run inside its turn queue.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from .cancel import AbortScope, CancelToken, contained
from .config import CompactionConfig
from .errors import AbortError, ModelError
from .events import CompactionEnd, CompactionStart, RequestStatus, TextDelta, TokenConsumption
from .history import History
from .messages import Message
from .model import Model, ModelEvent, ModelRequest
from .notify import Emitter
from .usage import Usage

logger = logging.getLogger(__name__)

Summarise = Callable[[list[Message], str, CancelToken], Awaitable[tuple[str, Usage]]]
"""Makes a summary of a model's view: (messages, instructions, token) -> (text, what it used)."""

HEADER = "[Conversation summary from compaction]"
FOOTER = "[End of summary. The conversation continues below.]"


class Compactor:
    """Knows the size of the context and summarises it. `size` is in tokens; `pending` gives what a
    summary must name whatever the model wrote."""

    def __init__(
        self,
        config: CompactionConfig | None,
        history: History,
        pending: Callable[[], Awaitable[str]],
    ) -> None:
        self._config = config
        self._history = history
        self._pending = pending
        self._size = 0

    @property
    def size(self) -> int:
        """Tokens of the context, as the last model call or the provider of a session told."""
        return self._size

    def note(self, tokens: int) -> None:
        """The context has this many tokens now, as somebody else counted."""
        self._size = tokens

    def measure(self, usage: Usage, messages: list[Message], answer: Message) -> None:
        """Note the context's size after a model call; characters / 4 where a model counts none."""
        if usage.total:
            self._size = usage.total
        else:
            characters = sum(len(message.text) for message in messages) + len(answer.text)
            self._size = characters // 4

    @property
    def is_due(self) -> bool:
        return self._config is not None and self._size >= self._config.context_limit

    @property
    def is_imminent(self) -> bool:
        """Close enough that a reply with tool calls should start from a summary (row 48)."""
        config = self._config
        return config is not None and self._size >= config.context_limit * config.soft_share

    async def run(self, summarise: Summarise, emitter: Emitter, token: CancelToken) -> bool:
        """Summarise now. False if it failed, was aborted, or history grew meanwhile (what came
        would be hidden behind the summary without being in it): then history is unchanged."""
        config = self._config or CompactionConfig()
        emitter.emit(CompactionStart(current_token_consumption=self._size))
        status: RequestStatus = "failed"
        summary: Message | None = None
        usage = Usage()
        try:
            async with asyncio.timeout(config.timeout_s), AbortScope(token):
                begun = self._history.begun
                summary, usage = await self._summary(config, summarise, token)
            if self._history.begun != begun:
                await self._history.store.add_tokens(usage)
                emitter.emit(TokenConsumption(consumption=usage))
                raise AbortError("the conversation went on")
            await self._store(summary, usage)
            emitter.emit(TokenConsumption(consumption=usage))
            status = "ok"
        except AbortError:
            status = "aborted"
        except Exception as error:  # whatever it is, the turn it came with goes on
            logger.warning("compaction failed", exc_info=error)
        finally:
            emitter.emit(
                CompactionEnd(
                    status=status,
                    current_token_consumption=usage.tokens_out if status == "ok" else self._size,
                    summary_message=summary if status == "ok" else None,
                    consumption=usage,
                )
            )
        if status == "ok":
            self._size = usage.tokens_out
        return status == "ok"

    def by_model(self, model: Model, prompt: str, emitter: Emitter) -> Summarise:
        """A text model as summariser; its deltas are reported with phase `compaction`."""

        def notify(event: ModelEvent) -> None:
            if isinstance(event, TextDelta):
                emitter.emit(replace(event, phase="compaction"))

        async def summarise(
            view: list[Message], instructions: str, token: CancelToken
        ) -> tuple[str, Usage]:
            asked = Message(sender="user", text=instructions, is_compaction_request=True)
            request = ModelRequest(messages=(*view, asked), system_prompt=prompt)
            result = await model.prompt(request, notify, token)
            text = "\n".join(message.text for message in result.messages if message.text)
            return text, result.usage

        return summarise

    async def _summary(
        self, config: CompactionConfig, summarise: Summarise, token: CancelToken
    ) -> tuple[Message, Usage]:
        view = await self._history.view(())
        text, usage = await contained(summarise(view, config.instructions, token))
        if not text.strip():
            raise ModelError("the model returned an empty summary", code="ERR_COMPACTION")
        blocks = [HEADER, text, await self._pending(), FOOTER]
        summary = Message(
            sender="user",
            id=self._history.new_id("msg"),
            text="\n".join(block for block in blocks if block),
            is_compaction=True,
        )
        return summary, usage

    async def _store(self, summary: Message, usage: Usage) -> None:
        store = self._history.store
        await self._history.append(summary)
        await store.reset_counters()
        await store.add_tokens(usage)
