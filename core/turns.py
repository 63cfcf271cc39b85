"""Turns of one agent: a request from its acceptance, through the turn queue, to its end.

Whatever goes into history in its turn comes through here: requests, fixed answers, a compaction
that was asked for. Owned by the agent; what happens inside a request is loop.RequestRun's business.
"""

import asyncio
from contextlib import AbstractAsyncContextManager
from functools import partial

from .agent_parts import Parts
from .cancel import CancelToken
from .commit import CommitGate, Committed
from .errors import AbortError, UsageError
from .events import RequestEnded, RequestStarted, RequestStatus
from .lifetime import Lifetime
from .loop import RequestRun
from .messages import Message
from .mind import Mind
from .model import ModelLimits
from .notify import Emitter, Listener, Notifier, Subscriber
from .requests import Request, RequestResult, UserInput, read_input
from .turn_queue import WAITS_FOR_ITSELF, Hold, TurnQueue
from .upkeep import Upkeep
from .wakes import Wakes


class Turns:
    """One turn at a time. The arguments of its methods are explained in Agent's."""

    def __init__(
        self,
        parts: Parts,
        mind: Mind,
        queue: TurnQueue,
        lifetime: Lifetime,
        notifier: Notifier,
        emitter: Emitter,
        upkeep: Upkeep,
        wakes: Wakes,
    ) -> None:
        self._parts = parts
        self._mind = mind
        self._queue = queue
        self._lifetime = lifetime
        self._notifier = notifier
        self._emitter = emitter
        self._upkeep = upkeep
        self._wakes = wakes

    async def process(
        self,
        request: UserInput,
        *,
        token: CancelToken | None,
        hold: Hold | None,
        playback: bool,
        subscriber: Listener | Subscriber | None,
        committed: Committed | None,
        message_id: str | None,
        limits: ModelLimits | None,
    ) -> RequestResult:
        """See Agent.process_request."""
        config = self._parts.config
        wake, user = read_input(request, message_id, config.new_id)
        self._lifetime.check_open()
        own = token.child() if token is not None else CancelToken()
        emitter = Emitter(self._notifier, config.name, config.new_id("req"), subscriber)
        accepted = Request(
            id=emitter.run_id,
            user=user,
            wake=wake,
            token=own,
            gate=CommitGate(committed, own),
            emitter=emitter,
            playback=playback,
            in_call=hold is not None,
            limits=limits or config.limits,
        )
        with self._parts.history.announced(user):
            self._lifetime.compaction.abort("a request came")
            async with self._turn(hold, own):
                own.raise_if_aborted()
                return await self._notifier.during(self._serve(accepted, hold))

    async def answer(
        self,
        text: str,
        *,
        hold: Hold | None,
        token: CancelToken | None,
        playback: bool,
        message_id: str | None,
    ) -> str:
        """See Agent.append_answer."""
        identity = message_id or self._parts.config.new_id("msg")
        answer = Message(
            sender="agent", id=identity, text=text, playback="pending" if playback else None
        )
        with self._parts.history.announced(answer):
            async with self._turn(hold, token):
                await self._parts.history.append(answer)
        return identity

    async def compact(self, token: CancelToken | None, hold: Hold | None) -> bool:
        """See Agent.compact."""
        own = token.child() if token is not None else CancelToken()
        async with self._turn(hold, own):
            return await self._notifier.during(self._upkeep.compact(own))

    def _turn(
        self, hold: Hold | None, token: CancelToken | None
    ) -> AbstractAsyncContextManager[None]:
        """A turn, unless the asker is what the present one waits for. Raises UsageError."""
        if self._parts.runs.awaits_this_task:
            raise UsageError(WAITS_FOR_ITSELF)
        return self._queue.turn(hold, token)

    async def _serve(self, request: Request, hold: Hold | None) -> RequestResult:
        """Run one request and report its beginning and end, whatever happens."""
        runs, emitter = self._parts.runs, request.emitter
        self._lifetime.active, runs.quiet = request.token, False
        user_id = request.user.id if request.user is not None else None
        emitter.emit(RequestStarted(user_message_id=user_id))
        status: RequestStatus = "failed"
        why: str | None = None
        brain = partial(self._mind.current, on_call=request.in_call)
        run = RequestRun(self._parts, brain, request)
        try:
            with self._emitter.during(emitter.run_id):
                result = await run.run()
            status = "ok"
        except AbortError as error:
            status, why, error.user_stored = "aborted", error.reason, run.user_stored
            raise
        except asyncio.CancelledError:
            status, why = "aborted", "cancelled"
            raise
        except Exception as error:
            why = str(error) or type(error).__name__
            raise
        finally:
            self._lifetime.active, runs.quiet = None, True
            emitter.emit(RequestEnded(status=status, error=why))
            emitter.detach()
            runs.announce()
            self._wakes.wake_now()
        await self._upkeep.compact_after(hold, request.token)
        return result
