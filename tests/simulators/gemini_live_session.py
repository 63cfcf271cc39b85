"""One connection of the simulated Gemini Live API: what a client may say when, and what follows.

Owns the connection's tasks: it reads, the model works beside it, timers end it. A breach of the
rules closes the connection with a code and a reason, as the provider does; there are no error
messages. Source: protocols/gemini-live 3, 4 and 7.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from tests.simulators.gemini_live_ear import RATE, Ear, samples_of
from tests.simulators.gemini_live_model import Model, Options, Question
from tests.simulators.gemini_live_rules import (
    INTERNAL,
    Fields,
    Refusal,
    need,
    read_message,
)
from tests.simulators.gemini_live_setup import (
    GENERATIONS,
    GenerationName,
    check_image,
    read_contents,
    read_instructions,
    read_setup,
    read_tools,
)
from tests.simulators.gemini_live_talk import Memory, output_of
from tests.simulators.realtime_script import Fault, Script
from tests.simulators.realtime_server import Gone, Json, Wire

DEADLINE = "Deadline expired before operation could complete."
ERRORS = {
    "insufficient_quota": (INTERNAL, "You exceeded your current quota, please check your plan."),
    "session_expired": (INTERNAL, DEADLINE),
    "invalid_request": (1007, "Request contains an invalid argument."),
    "policy": (1008, "Operation is not implemented, or supported, or enabled."),
}
"""What `error_code` of a fault means here; another one is the reason of a 1011."""


@dataclass(slots=True, kw_only=True)
class Record:
    """What happened on a server, for tests to look at.

    setups          as they were taken, in camel case; `updates` the contextUpdates
    turns           what was heard of the user, a turn each
    tool_responses  by call id
    violations      what a good client would not have done; empty in a good run
    """

    generation: GenerationName
    options: Options
    script: Script
    memory: Memory = field(default_factory=Memory)
    setups: list[Fields] = field(default_factory=list)
    updates: list[Fields] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    tool_responses: dict[str, Fields] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)


class Session:
    """Serves one connection until it is over."""

    def __init__(self, wire: Wire, record: Record) -> None:
        self._wire = wire
        self._record = record
        self._generation = GENERATIONS[record.generation]
        self._seeding = False
        self._group: asyncio.TaskGroup | None = None
        self._model: Model | None = None
        self._ear = Ear(0, manual=False)

    async def run(self) -> None:
        """Raises nothing for what a client does, or a fault."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                group.create_task(self._until_closed())
                await self._read()
                raise Gone
        except* Gone:
            self._group = None

    async def go_away(self, seconds: float) -> None:
        """Announce the end of this connection, and end it then."""
        left = f"{int(seconds)}s" if seconds == int(seconds) else f"{seconds:.3f}s"
        await self._wire.send({"goAway": {"timeLeft": left}})
        self._tasks.create_task(self._end_after(seconds))

    async def fail(self, fault: Fault) -> None:
        """An error of the provider's own: it closes."""
        code, reason = ERRORS.get(fault.error_code, (fault.code, fault.error_code))
        await self._wire.close(code, fault.reason or reason)

    @property
    def _tasks(self) -> asyncio.TaskGroup:
        assert self._group is not None
        return self._group

    async def _until_closed(self) -> None:
        """A task that waits inside a fault must not outlive the socket."""
        await self._wire.socket.wait_closed()
        raise Gone

    async def _end_after(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._wire.at("closing")
        await self._wire.close(INTERNAL, DEADLINE)

    async def _read(self) -> None:
        async for frame in self._wire.messages():
            try:
                kind, message = read_message(frame)
                if self._model is None:
                    need(kind == "setup", f"setup must be the first message, not {kind}")
                    await self._set_up(message)
                else:
                    self._wire.received.append({kind: message})
                    await self._take(self._model, kind, message)
            except Refusal as refusal:
                if refusal.fault_of_client:
                    self._record.violations.append(refusal.reason)
                await self._wire.close(refusal.code, refusal.reason)

    async def _set_up(self, setup: Fields) -> None:
        wire, record = self._wire, self._record
        wire.received.append({"setup": setup})
        await wire.at("setup")
        terms = read_setup(setup, record.generation)
        memory = record.memory
        talk = (
            memory.resume(terms.handle, terms.model, wire)
            if terms.handle
            else memory.begin(terms.model, wire)
        )
        record.setups.append(setup)
        self._seeding = terms.seeds
        silence_ms = terms.silence_ms if terms.silence_ms is not None else record.script.silence_ms
        self._ear = Ear(silence_ms, terms.manual)
        self._model = Model(
            wire,
            self._tasks,
            generation=self._generation,
            options=record.options,
            terms=terms,
            talk=talk,
            memory=memory,
        )
        complete = {"sessionId": talk.id} if self._generation.bundles else {}
        await wire.send({"setupComplete": complete})
        self._limit_life(terms.compresses, talk.id)
        await wire.at("opened")

    def _limit_life(self, compresses: bool, session_id: str) -> None:
        options = self._record.options
        if options.life_s is not None:
            self._tasks.create_task(self._live(options.life_s))
        if options.uncompressed_s is not None and not compresses:
            self._tasks.create_task(self._live(options.uncompressed_s, last_of=session_id))

    async def _live(self, life_s: float, last_of: str = "") -> None:
        notice_s = min(self._record.options.notice_s, life_s)
        await asyncio.sleep(life_s - notice_s)
        if last_of:
            self._record.memory.expire(last_of)
        await self.go_away(notice_s)

    async def _take(self, model: Model, kind: str, message: Fields) -> None:
        seeds = not self._seeding or kind == "clientContent"
        need(seeds, f"{kind} before the initial history is complete")
        takers: dict[str, Callable[[Model, Fields], Awaitable[None]]] = {
            "clientContent": self._client_content,
            "realtimeInput": self._realtime_input,
            "toolResponse": self._tool_response,
            "contextUpdate": self._context_update,
        }
        need(kind in takers, "setup: only as the first message")
        await takers[kind](model, message)

    async def _client_content(self, model: Model, content: Fields) -> None:
        allowed = self._seeding or self._generation.talks_by_content
        need(allowed, "Request contains an invalid argument.")
        parts = read_contents(content.get("turns", []), self._generation)
        if not self._seeding:
            await model.interrupt()
        for role, part in parts:
            self._remember(model, role, part)
        complete = content.get("turnComplete", False)
        if self._seeding:
            self._seeding = not complete
        elif complete:
            await self._wire.at("text_taken")
            model.ask(Question("text", _last_of_user(model)))
            return
        await self._wire.at("context_taken")
        model.go_on()
        await model.settle()

    def _remember(self, model: Model, role: str, part: Fields) -> None:
        history = model.talk.history
        if "text" in part and not part.get("thought"):
            history.append(("user" if role == "user" else "assistant", part["text"]))
        elif "functionResponse" in part:
            history.append(("tool", output_of(part["functionResponse"]["response"])))
        elif "inlineData" in part:
            model.talk.images += 1

    async def _realtime_input(self, model: Model, given: Fields) -> None:
        need(len(given) == 1, f"realtimeInput: exactly one field: {sorted(given)}")
        field_name = next(iter(given))
        match field_name:
            case "audio":
                await self._hear(model, given["audio"])
            case "video":
                check_image(given["video"], "realtimeInput.video")
                model.talk.images += 1
            case "mediaChunks":
                await self._media_chunks(model, given["mediaChunks"])
            case "text":
                need(given["text"].strip(), "realtimeInput.text: must not be blank")
                model.talk.history.append(("user", given["text"]))
                await self._wire.at("text_taken")
                model.ask(Question("text", given["text"]))
            case "activityStart" | "activityEnd":
                await self._activity(model, field_name)
            case _:
                need(not model.terms.manual, "audioStreamEnd needs automatic activity detection")
                need(given["audioStreamEnd"], "realtimeInput.audioStreamEnd: true")
                was_open = self._ear.open
                self._ear.end()
                if was_open:
                    await self._stopped(model)

    async def _media_chunks(self, model: Model, chunks: list[Fields]) -> None:
        takes = self._generation.takes_chunks
        need(takes, "realtime_input.media_chunks is deprecated. Use audio, video, or text instead.")
        for chunk in chunks:
            if chunk["mimeType"].startswith("audio/"):
                await self._hear(model, chunk)
            else:
                check_image(chunk, "realtimeInput.mediaChunks")
                model.talk.images += 1

    async def _hear(self, model: Model, blob: Fields) -> None:
        for heard in self._ear.hear(samples_of(blob)):
            match heard:
                case "started":
                    await self._started(model)
                case "stopped":
                    await self._stopped(model)
                case "speaking":
                    await self._wire.at("caller_speaking")
                case "silent":
                    await self._wire.at("caller_silent")

    async def _activity(self, model: Model, what: str) -> None:
        need(model.terms.manual, f"{what} needs automatic activity detection to be disabled")
        starts = what == "activityStart"
        fits = starts is not self._ear.open
        need(fits, f"{what}: the activity {'is open already' if starts else 'was not started'}")
        if starts:
            self._ear.begin()
            await self._started(model)
        else:
            self._ear.end()
            await self._stopped(model)

    async def _started(self, model: Model) -> None:
        model.user_speaks = True
        await self._tell_activity("ACTIVITY_START")
        if model.terms.interrupts:
            await model.interrupt()

    async def _stopped(self, model: Model) -> None:
        await self._tell_activity("ACTIVITY_END")
        await self._wire.at("caller_stopped")
        text = self._record.script.read(self._ear.take(), RATE)
        self._record.turns.append(text)
        if text:
            model.talk.history.append(("user", text))
        await self._wire.at("turn_taken")
        model.user_speaks = False
        model.ask(Question("speech", text))

    async def _tell_activity(self, kind: str) -> None:
        if self._record.options.voice_activity:
            offset = f"{self._ear.samples / RATE:.3f}s"
            activity: Json = {"voiceActivityType": kind, "audioOffset": offset}
            await self._wire.send({"voiceActivity": activity})

    async def _tool_response(self, model: Model, message: Fields) -> None:
        responses = message["functionResponses"]
        need(responses, "toolResponse.functionResponses: empty")
        loose: dict[str, dict[str, str]] = {}
        for response in responses:
            output = output_of(response["response"])
            blocks = model.calls.answer(response)
            self._record.tool_responses[response["id"]] = response
            model.talk.history.append(("tool", output))
            if not blocks:
                scheduling = response.get("scheduling", "WHEN_IDLE")
                loose.setdefault(scheduling, {})[response["id"]] = output
        await self._wire.at("tool_answered")
        if "INTERRUPT" in loose:
            question = Question("results", results=loose["INTERRUPT"])
            if not model.user_speaks:
                await model.interrupt()
            model.ask(question, first=True)
        if "WHEN_IDLE" in loose:
            model.ask(Question("results", results=loose["WHEN_IDLE"]))
        if "SILENT" in loose:
            await self._wire.at("context_taken")
            await model.settle()

    async def _context_update(self, model: Model, update: Fields) -> None:
        known = self._generation.context_updates
        need(known, 'Unknown name "contextUpdate" at "message": Cannot find field.')
        need(update, "contextUpdate: systemInstruction or tools")
        self._record.updates.append(update)
        if "systemInstruction" in update:
            model.terms = replace(model.terms, instructions=read_instructions(update))
        if "tools" in update:
            tools = read_tools(update["tools"]["tools"], self._generation)
            model.terms = replace(model.terms, tools=tools)
        await self._wire.at("context_taken")


def _last_of_user(model: Model) -> str:
    """What the user wrote since the model spoke last."""
    texts: list[str] = []
    for role, text in reversed(model.talk.history):
        if role != "user":
            break
        texts.insert(0, text)
    return " ".join(texts)
