"""A realtime provider that knows what to say: in memory, on the loop's clock, for tests and demos.

An equal of the vendors' adapters: it takes every command, reports in a provider's order, and fails
when it is told to. It is strict where a provider is: an unknown handle is refused, and a second
connection beside the first where its capabilities say so. One adapter may serve several sessions.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ..adapters.errors import AdapterError, ConnectionFailed, ProviderRefused
from ..core.usage import Usage
from ..media.format import AudioFormat
from .commands import (
    CommitTurn,
    CutOutput,
    ProviderCommand,
    RequestResponse,
    SendAudio,
    SendText,
    SendToolResults,
    SpeechBoundary,
    Summarise,
)
from .events import (
    Closed,
    GoAway,
    Interrupted,
    Opened,
    RealtimeEvent,
    Resumable,
    Summary,
    Used,
    UserSpeech,
    UserTurn,
    Words,
)
from .lifecycle_vocabulary import HANDLE_REFUSED
from .port import Capabilities, Emit, Setup
from .scripted_model import Answer, Asked, Ear, Heard, Mouth, Reply, echo, hum

__all__ = ["ABLE", "Answer", "Asked", "Reply", "ScriptedAdapter", "ScriptedConnection", "echo"]

ABLE = Capabilities(
    turn_taking="provider",
    inputs=frozenset({"audio", "text", "image", "video"}),
    outputs=frozenset({"audio", "text"}),
    input_format=AudioFormat(24_000),
    output_format=AudioFormat(24_000),
    item_delete=True,
    item_truncate=True,
    can_cancel=True,
    update_tools="live",
    update_instructions="live",
    resume=True,
    out_of_band=True,
)
"""A provider that can do everything. Use `dataclasses.replace` to take things away."""

SUMMARY = "A summary."


class ScriptedAdapter:
    """A RealtimeAdapter. `connections` are all it opened, `setups` all it was asked to open with,
    refused ones included; both oldest first.

    answer      what the model says to what it is asked; `echo` repeats
    read        the words in the caller's sound of one turn (PCM, rate), where no `user_says` tells
    speak       the sound of a text at a rate
    silence_ms  of the caller that ends his turn, where the provider decides
    speed       how many times faster than real time speech goes out
    connect_s   a connection takes this long to open; `close_s` to say its last word
    """

    provider = "scripted"
    model = "scripted-1"

    def __init__(
        self,
        answer: Answer = echo,
        *,
        capabilities: Capabilities = ABLE,
        read: Callable[[bytes, int], str] = lambda pcm, rate: "",
        speak: Callable[[str, int], bytes] = hum,
        silence_ms: int = 500,
        speed: float = 4.0,
        connect_s: float = 0.0,
        close_s: float = 0.0,
    ) -> None:
        self.answer = answer
        self.capabilities = capabilities
        self.read = read
        self.speak = speak
        self.silence_ms = silence_ms
        self.speed = speed
        self.connect_s = connect_s
        self.close_s = close_s
        self.connections: list[ScriptedConnection] = []
        self.setups: list[Setup] = []
        self.handles: set[str] = set()
        """Those it takes. Take one out to make it expire."""
        self._refusals: deque[AdapterError] = deque()

    @property
    def current(self) -> ScriptedConnection:
        """The newest connection."""
        return self.connections[-1]

    @property
    def open_now(self) -> list[ScriptedConnection]:
        """Connections that are open."""
        return [connection for connection in self.connections if connection.is_open]

    def refuse(self, *errors: AdapterError) -> None:
        """The next connects fail with these, one each."""
        self._refusals.extend(errors)

    async def connect(
        self, setup: Setup, emit: Emit, group: asyncio.TaskGroup
    ) -> ScriptedConnection:
        """As the port says; after `connect_s`."""
        self.setups.append(setup)
        await asyncio.sleep(self.connect_s)
        if self._refusals:
            raise self._refusals.popleft()
        handle = setup.resume_handle
        if handle is not None and not (self.capabilities.resume and handle in self.handles):
            raise ProviderRefused(HANDLE_REFUSED, f"no such handle: {handle}")
        if handle is not None and self.capabilities.closes_first and self.open_now:
            raise ConnectionFailed("1011", "the earlier connection is still open")
        connection = ScriptedConnection(self, setup, emit, len(self.connections) + 1)
        self.connections.append(connection)
        connection.start(group)
        return connection


class ScriptedConnection:
    """A Connection, and the strings to pull on it. Its times are milliseconds of the sound that
    it was sent."""

    def __init__(self, adapter: ScriptedAdapter, setup: Setup, emit: Emit, number: int) -> None:
        self._adapter = adapter
        self._emit = emit
        self.setup = setup
        self.number = number
        self.commands: list[ProviderCommand] = []
        """All it was told but sound, oldest first."""
        self.heard = bytearray()
        """All sound it was sent."""
        self.arrivals: list[tuple[float, int]] = []
        """When sound came (loop time), and how many samples."""
        self.is_open = True
        self.silent = False
        """True: it says nothing any more, and stays open."""
        able = adapter.capabilities
        detects = able.turn_taking == "provider" and not setup.manual_turns
        self._ear = Ear(able.input_format.rate, adapter.silence_ms, detects)
        self._mouth = Mouth(able.output_format.rate, adapter.speak, adapter.speed, self.emit)
        self._turns = 0
        self._handles = 0

    def start(self, group: asyncio.TaskGroup) -> None:
        """Tell that it is open; what it says is a task of `group`."""
        resumed = self.setup.resume_handle is not None
        self.emit(Opened(f"session-{self.number}", resumed=resumed))
        group.create_task(self._mouth.run(self._answered))

    # ---- the port

    def tell(self, command: ProviderCommand) -> None:
        if not self.is_open:
            return
        if isinstance(command, SendAudio):
            self._listen(command.pcm)
            return
        self.commands.append(command)
        match command:
            case SendText(text, respond, request_id) if respond:
                self._respond(Asked(by="text", text=text), request_id)
            case RequestResponse(instruction, request_id):
                self._respond(Asked(by="request", instruction=instruction), request_id)
            case SendToolResults(outputs, respond) if respond:
                results = {output.call_id: output.text for output in outputs}
                self._respond(Asked(by="results", results=results))
            case Summarise(request_id):
                self.emit(Summary(request_id, SUMMARY, Usage(10, 5)))
            case SpeechBoundary() | CommitTurn() | CutOutput():
                self._boundary(command)
            case _:
                pass

    async def close(self) -> None:
        if self.is_open:
            try:
                await asyncio.sleep(self._adapter.close_s)
                self.emit(replace(self._counted(), final=True))
            finally:
                self._end(Closed("1000", clean=True))

    # ---- the strings

    def user_says(self, text: str, start_ms: int, end_ms: int) -> None:
        """The sound from `start_ms` to `end_ms` will be `text`, whatever it holds."""
        self._ear.expect(text, start_ms, end_ms)

    def drop(self, code: str = "1006", reason: str = "cut", *, fatal: bool = False) -> None:
        """The connection ends by itself."""
        self._end(Closed(code, reason, fatal=fatal))

    def go_away(self, time_left_s: float) -> None:
        """Announce its end, and end it then."""
        self.emit(GoAway(time_left_s))
        end = partial(self.drop, "1011", "deadline expired")
        asyncio.get_running_loop().call_later(time_left_s, end)

    def give_handle(self) -> str:
        """Give a new handle that restores the conversation as it is now."""
        self._handles += 1
        handle = f"handle-{self.number}-{self._handles}"
        self._adapter.handles.add(handle)
        self.emit(Resumable(handle))
        return handle

    def emit(self, event: RealtimeEvent) -> None:
        """Report `event`, unless it is silent or over."""
        if self.is_open and not self.silent:
            self._emit(event)

    # ---- the model

    def _end(self, closed: Closed) -> None:
        if self.is_open:
            self._mouth.close()
            self.is_open = False
            self._emit(closed)

    def _listen(self, pcm: bytes) -> None:
        self.heard += pcm
        self.arrivals.append((asyncio.get_running_loop().time(), len(pcm) // 2))
        for heard in self._ear.hear(self.heard):
            self._take(heard)

    def _boundary(self, command: SpeechBoundary | CommitTurn | CutOutput) -> None:
        match command:
            case CutOutput(_, cancel):
                self.emit(Interrupted(self._mouth.speaking))
                if cancel and self._adapter.capabilities.can_cancel:
                    self._mouth.cut()
            case _ if not self.setup.manual_turns:
                pass  # it has an ear of its own
            case SpeechBoundary(speaking) if speaking:
                self._ear.begin()
            case _:
                heard = self._ear.end()
                if heard is not None:
                    self._take(heard)

    def _take(self, heard: Heard) -> None:
        """The caller began, or his turn is over and is answered."""
        if heard.end_ms is None:
            self._turns += 1
            item = f"user-{self.number}-{self._turns}"
            self.emit(UserSpeech("started", item, heard.start_ms))
            if self.setup.interruption and self._mouth.speaking:
                self.emit(Interrupted(self._mouth.speaking))
                self._mouth.cut()
            return
        item = f"user-{self.number}-{self._turns}"
        rate = self._adapter.capabilities.input_format.rate
        first, last = (round(ms * rate / 1000) * 2 for ms in (heard.start_ms, heard.end_ms))
        text = heard.text or self._adapter.read(bytes(self.heard[first:last]), rate)
        self.emit(UserSpeech("stopped", item, heard.end_ms))
        self.emit(UserTurn(item, heard.start_ms, heard.end_ms))
        words = Words("user", item, text, True, heard.start_ms, heard.end_ms)
        self.emit(words)
        self._respond(Asked(by="speech", text=text))

    def _respond(self, asked: Asked, request_id: str = "") -> None:
        self._mouth.say(self._adapter.answer(asked), f"{self.number}", request_id)

    def _answered(self) -> None:
        """A response is over: what a provider tells then."""
        self.emit(self._counted())
        if self._adapter.capabilities.resume:
            self.give_handle()

    def _counted(self) -> Used:
        able = self._adapter.capabilities
        if able.usage == "duration":
            return Used(seconds=able.input_format.ms(len(self.heard) // 2) / 1000)
        return Used(Usage(10, 5), context_tokens=15 * (1 + self._mouth.responses))
