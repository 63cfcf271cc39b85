"""One answer: the agent's request and its voice, under one generation.

A task of the brain's group, started by the machine's `StartReply` and ended by its own completion
or by a cut. A cut closes its voice and fires its token in one synchronous step; the task itself
then unwinds (DESIGN 4, 6). Its own failure becomes a fact for the machine, never an exception.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from ..core.agent import Agent
from ..core.cancel import CancelToken
from ..core.errors import AbortError, ModelError
from ..core.events import (
    CompactionEnd,
    CompactionStart,
    ModelResponse,
    ModelResponseComplete,
    RequestStarted,
    SubscriberEvent,
    TextDelta,
    ToolUse,
)
from ..core.messages import ContentPart
from ..core.requests import UserInput, Wake
from ..core.turn_queue import Hold
from ..media.errors import LineClosed
from .speech import Speech, SpeechFailed
from .turn_marks import ReplyMarks

ANSWERED = (TextDelta, ToolUse, ModelResponse, ModelResponseComplete)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an answer ended early: wire code, stage and words for a `problem` event."""

    code: str
    stage: str
    message: str


@dataclass(slots=True)
class Asking:
    """How far the request came. `unstored`: the user's words, when a cut came before the agent
    had taken them. `answered`: a model was shown the conversation as it stood at the start."""

    user_message_id: str | None = None
    unstored: str | Sequence[ContentPart] = ""
    answered: bool = False
    compacting: bool = False


@dataclass(slots=True)
class Reply:
    """A running answer to user turn `turn` (None: the agent's own)."""

    gen: int
    turn: int | None
    request: Callable[[], UserInput]
    """What to ask, once everything earlier is in history."""
    speech: Speech
    marks: ReplyMarks
    token: CancelToken = field(default_factory=CancelToken)
    wake: Wake | None = None
    """What the agent wanted to say by itself, answered by this request whatever it is about."""
    message_id: str | None = None
    """The id that the user's words get in history."""
    asking: Asking = field(default_factory=Asking)

    async def run(
        self, agent: Agent, hold: Hold, settled: Callable[[], Awaitable[None]]
    ) -> Failure | None:
        """Ask and speak until all of it was heard; `settled` first brings what was heard of
        earlier answers into history. Returns why it failed, if it did.

        A cut ends it silently. Cancellation ends the request and the voice.
        """
        failure: Failure | None = None
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._ask(agent, hold, settled), name=f"reply.{self.gen}.ask")
                group.create_task(self.speech.run(), name=f"reply.{self.gen}.voice")
        except* (AbortError, LineClosed):
            failure = None
        except* Exception as failed:
            # A user's model or a vendor's voice may raise anything; the call goes on (DESIGN 6).
            failure = _failure(_leaves(failed))
        return failure

    def close(self, reason: str, *, tools: bool) -> None:
        """The generation is over: its voice is void, its request aborted."""
        self.speech.close()
        self.token.abort(reason, tools=tools)

    async def _ask(self, agent: Agent, hold: Hold, settled: Callable[[], Awaitable[None]]) -> None:
        await settled()
        request = self.request()
        try:
            await agent.process_request(
                request,
                token=self.token,
                hold=hold,
                playback=True,
                subscriber=self._hear_agent,
                message_id=None if isinstance(request, Wake) else self.message_id,
            )
        except AbortError as aborted:
            if request and not isinstance(request, Wake) and not aborted.user_stored:
                self.asking.unstored = request
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody cancelled us: a library under the model leaks its own. A group would take the
            # request for well ended, and its voice would wait for ever for more text.
            raise ModelError("the model's request was cancelled from within") from None
        self.speech.finish()

    def _hear_agent(self, event: SubscriberEvent) -> None:
        """The request's events, in the agent's own step: in order, before anybody else.

        Between compaction_start and compaction_end nothing is speech (row 55).
        """
        self.asking.answered = self.asking.answered or isinstance(event, ANSWERED)
        match event:
            case TextDelta() if event.phase == "answer" and not self.asking.compacting:
                self.speech.say(event.message_id, event.text)
            case ModelResponse() if not self.asking.compacting:
                self.speech.say(event.message_id, event.text)
                self.speech.end_message(event.message_id)
            case ModelResponseComplete() if not self.asking.compacting:
                self.speech.end_message(event.message_id)
            case RequestStarted():
                self.asking.user_message_id = event.user_message_id
            case CompactionStart():
                self.asking.compacting = True
            case CompactionEnd():
                self.asking.compacting = False
            case _:
                return


def _failure(errors: list[BaseException]) -> Failure:
    """The voice's failure if there is one, else the request's."""
    for error in errors:
        if isinstance(error, SpeechFailed):
            return Failure(error.code, "tts", str(error))
    error = errors[0]
    return Failure("ERR_GLOVE_REQUEST", "agent", f"{type(error).__name__}: {error}")


def _leaves(group: BaseException) -> list[BaseException]:
    if isinstance(group, BaseExceptionGroup):
        return [leaf for one in group.exceptions for leaf in _leaves(one)]
    return [group]
