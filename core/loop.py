"""The agent loop: one request from the user's turn to the final answer.

Order per request (spec core 2 with section 19): its opening (opening.Opening), a short wait for
outstanding tools; then model call, store, tools, until an answer has no calls. Whatever
ends it early, what was generated is stored and every call has a result or a running tool behind
it. Owned by the agent, which serialises requests; nothing here starts a task.
"""

import asyncio
from collections.abc import Callable, Sequence

from .agent_parts import Parts
from .cancel import AbortScope, contained, to_the_end
from .directives.sub_agents import INVOKE_SUB_AGENT
from .draft import Draft
from .errors import CancelledElsewhere, ModelError
from .events import TokenConsumption
from .executor import CallScope
from .intake import store_answers
from .messages import Message
from .model import Model, ModelRequest, ModelResult
from .opening import Opening
from .requests import Request, RequestResult, StopKind
from .runs import Batch, results_id
from .tool import Tool
from .usage import Usage

MAX_TURNS_TEXT = "I had to stop here: this request reached its limit of {limit} model calls."
NOTHING_NEW = "[The user said nothing new. Continue only if something is left to say.]"
KEEP_PARTIAL_S = 2.0

Brain = Callable[[], tuple[Model, str]]


class RequestRun:
    """Runs one request; used once."""

    def __init__(self, parts: Parts, brain: Brain, request: Request) -> None:
        self._parts = parts
        self._brain = brain
        self._request = request
        self._opening = Opening(parts, request, self._compact)
        self._usage = Usage()
        self._calls = 0
        self._tools: tuple[Tool, ...] = ()

    @property
    def user_stored(self) -> bool:
        """Whether the request's user message is in the store."""
        return self._opening.user_stored

    async def run(self) -> RequestResult:
        """The final answer. Raises AbortError, ModelError, StoreError; history stays valid."""
        answers = await self._opening.run()
        if answers:
            return await self._answered(answers, "hook")
        await self._join_tools()
        if not await self._anything_new():
            return self._result((), "nothing_new")
        while True:
            self._request.token.raise_if_aborted()
            if self._calls >= self._parts.config.max_turns:
                return await self._give_up()
            answer = await self._ask()
            if answer.tool_calls:
                await self._run_tools(answer)
                await self._opening.inject("running")
            elif not await self._goes_on():
                return self._result((answer,))

    async def _join_tools(self) -> None:
        """A turn while tools run waits a little for them, but not for a person's answer."""
        parts = self._parts
        display = parts.host.display
        pending = {slot.tool_call_id for slot in display.stack if slot.id in display.pending_ids}
        asking = {one for one in pending if one}
        if asking - parts.runs.running:  # a sub-agent asks on our display, with a call of its own
            asking |= parts.runs.calls_of(INVOKE_SUB_AGENT)
        await parts.runs.join(parts.config.join_wait_s, self._request.token, asking)

    async def _anything_new(self) -> bool:
        """False for a wake that came too late: a turn before it has answered its event."""
        parts, wake = self._parts, self._request.wake
        if wake is None or wake.reason != "event" or wake.note or parts.runs.unseen:
            return True
        view = await parts.history.view(parts.runs.running)
        last = next((one for one in reversed(view) if one.framework_context != "history"), None)
        return last is not None and last.sender == "user" and not last.is_compaction

    async def _ask(self) -> Message:
        """One model call, stored. A cut or failed call leaves its partial text behind."""
        parts, request = self._parts, self._request
        model, prompt = self._brain()
        tools = self._tools = parts.toolset.tools
        messages = await self._messages()
        draft = self._draft(messages)
        try:
            async with AbortScope(request.token):
                asked = ModelRequest(
                    messages=tuple(messages),
                    tools=tuple(tool.spec for tool in tools),
                    system_prompt=prompt,
                    limits=request.limits,
                )
                result = await contained(model.prompt(asked, draft.notify, request.token))
            if not result.messages:
                raise ModelError(f"{model.name} returned no message", code="ERR_MODEL_EMPTY")
        except CancelledElsewhere as error:
            await self._keep_partial(draft)
            raise ModelError(
                f"{model.name}: the model call was cancelled, by nobody here"
            ) from error
        except BaseException:
            await self._keep_partial(draft)
            raise
        draft.close()
        answer = draft.message(result.messages)
        await self._store(answer, result, messages)
        return answer

    async def _messages(self) -> list[Message]:
        """The model's view, with what only this request shows at its tail (19.2)."""
        parts, wake = self._parts, self._request.wake
        tail = await self._tail()  # first: a slow provider must not make the view old
        # Read before the store: a result that comes during the read may not be in the view.
        stored = parts.runs.unseen
        messages = await parts.history.view(parts.runs.running)
        parts.runs.seen(stored)
        note = wake.note if wake is not None else ""
        if not note and (not messages or messages[-1].sender == "agent"):
            note = NOTHING_NEW
        messages += tail
        if note:
            messages.append(
                Message(sender="user", id="runtime", text=note, framework_context="runtime")
            )
        return messages

    async def _tail(self) -> list[Message]:
        """The blocking-inbox reminder, then the runtime context: shown in this call only."""
        reminder = await self._parts.inbox.reminder()
        context = await self._opening.context.values(self._request.token)
        tail = [] if reminder is None else [reminder]
        return [*tail, *(value.message for value in context)]

    def _draft(self, messages: list[Message]) -> Draft:
        history = self._parts.history

        def taken() -> set[str]:
            return {call.id for message in messages for call in message.tool_calls}

        emitter, playback = self._request.emitter, self._request.playback
        return Draft(history.open_draft(), history.new_id, taken, emitter, playback)

    async def _keep_partial(self, draft: Draft) -> None:
        """Store what was said before the end. Bounded: a stuck store must not hold the caller."""
        draft.close()
        partial, history = draft.partial(), self._parts.history
        again = False

        async def keep() -> None:
            nonlocal again
            if partial is None or (again and await history.holds(partial.id)):
                return
            again = True
            await history.append(partial)

        try:
            if partial is not None:
                await to_the_end(keep, KEEP_PARTIAL_S)
        finally:
            history.drop_draft(draft.message_id)

    async def _store(self, answer: Message, result: ModelResult, view: list[Message]) -> None:
        parts, emitter = self._parts, self._request.emitter
        self._calls += 1
        self._usage += result.usage
        parts.compactor.measure(result.usage, view, answer)
        store = parts.history.store
        await store.add_tokens(result.usage)
        emitter.emit(TokenConsumption(consumption=result.usage))
        await store.increment_turn()
        if not answer.tool_calls:
            await parts.history.append(answer)
        else:
            await self._compact_before_calls()
            await parts.runs.reserve(answer, emitter.emit)

    async def _compact_before_calls(self) -> None:
        """So that a call and its result stay on one side of the boundary (row 48)."""
        if self._parts.compactor.is_imminent:
            await self._compact()

    async def _compact(self) -> bool:
        """Summarise inside this request; False if it failed, was aborted, or tools still run: a
        summary between a call and its late result would hide the result from the model."""
        parts, request = self._parts, self._request
        if parts.runs.running:
            return False
        model, prompt = self._brain()
        summarise = parts.compactor.by_model(model, prompt, request.emitter)
        done = await parts.compactor.run(summarise, request.emitter, request.token)
        if done:
            await self._opening.context.tell_again(parts.history)
        return done

    async def _run_tools(self, answer: Message) -> None:
        parts, request = self._parts, self._request
        token, stop = parts.runs.tokens(request.token)
        # The tools the model was shown, even if they were replaced meanwhile (row 12).
        scope = CallScope(parts.host, self._tools, token, stop, request.gate)
        batch = Batch(
            results_id(answer), answer.tool_calls, scope, request.emitter.emit, asyncio.Event()
        )
        await parts.runs.run(batch, request.token)

    async def _goes_on(self) -> bool:
        """After a text answer: another round only for what came from outside and asks for it, never
        on a call, where the holder picks the moment."""
        if self._request.in_call or self._calls >= self._parts.config.max_turns:
            return False
        if not self._parts.events.take_wake():
            return False
        await self._opening.inject("running")
        return True

    async def _give_up(self) -> RequestResult:
        text = MAX_TURNS_TEXT.format(limit=self._parts.config.max_turns)
        result = await self._answered((Message(sender="agent", text=text),), "max_turns")
        self._parts.runs.seen(self._parts.runs.unseen)
        return result

    async def _answered(self, answers: Sequence[Message], stop: StopKind) -> RequestResult:
        """End with answers that no model gave."""
        request = self._request
        stored = await store_answers(
            self._parts, answers, request.emitter.emit, playback=request.playback
        )
        return self._result(stored, stop)

    def _result(self, answers: tuple[Message, ...], stop: StopKind = "text") -> RequestResult:
        user = self._request.user
        return RequestResult(
            request_id=self._request.id,
            user_message_id=user.id if user is not None else None,
            messages=answers,
            usage=self._usage,
            model_calls=self._calls,
            stop=stop,
        )
