"""Commands of the brain port on a realtime session; each future is done when its effect is over.

Owned by one run of a brain. It asks the session and waits for the sound to end; it decides nothing
about turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine

from ..adapters.errors import AdapterError
from ..core.errors import UsageError
from ..media import brain as port
from ..media import events as call
from ..media.line import Line
from .playout import Playout
from .session import RealtimeSession
from .talk import TalkButton
from .telling import Telling

Future = asyncio.Future[None]


class Commanding:
    """See the module. `manual`: the talk button opens and closes turns. `now`: the input sample
    heard last."""

    def __init__(
        self,
        session: RealtimeSession,
        playout: Playout,
        telling: Telling,
        spawn: Callable[[Coroutine[None, None, None]], None],
        line: Line,
        *,
        manual: bool,
        talk: TalkButton,
        now: Callable[[], int],
    ) -> None:
        self._session = session
        self._playout = playout
        self._telling = telling
        self._spawn = spawn
        self._line = line
        self._manual = manual
        self._talk = talk
        self._now = now
        self._muted = manual
        self._narrations = 0
        self._greeted = False
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._open: set[Future] = set()
        self.reason = ""
        """Why sound is being stopped right now; "" when no command does it."""

    @property
    def deaf(self) -> bool:
        """The caller is not listened to: muted, or under a narration (spec/voice 12)."""
        return self._muted or self._narrations > 0

    def interrupt(self, reason: str, told: str) -> None:
        """Silence, and abortable tools end; the call is told why in the word `told`."""
        self.reason = told
        try:
            self._session.interrupt(reason)
        finally:
            self.reason = ""

    def take(self, command: port.Command) -> Future:
        """Carry `command` out."""
        future: Future = asyncio.get_running_loop().create_future()
        self._open.add(future)
        future.add_done_callback(self._open.discard)
        self._spawn(self._effect(command, future))
        return future

    def opened(self, greeting: str) -> None:
        """The session is open for the first time or again: the greeting is said once."""
        if greeting and not self._greeted:
            self._greeted = True
            self.take(port.Respond(greeting))

    @property
    def narrating(self) -> bool:
        """A narration is read out, or is to be."""
        return self._narrations > 0

    def stopped(self) -> None:
        """The sound was stopped."""
        self._quiet.set()

    def drained(self) -> None:
        """Everything was heard to its end."""
        self._quiet.set()

    def cancel(self) -> None:
        """The call is over."""
        for future in list(self._open):
            future.cancel()

    async def _effect(self, command: port.Command, future: Future) -> None:
        """Task of the brain's group: one command, from the asking to the end of its sound."""
        try:
            await self._perform(command)
        except (AdapterError, UsageError) as error:
            self._fail(future, error)
        except asyncio.CancelledError:
            future.cancel()
            raise
        else:
            if not future.done():
                future.set_result(None)

    def _fail(self, future: Future, error: Exception) -> None:
        code = getattr(error, "code", "ERR_COMMAND")
        self._line.emit(call.Problem(code=str(code), stage="brain", message=str(error)))
        if not future.done():
            future.set_exception(error)

    async def _perform(self, command: port.Command) -> None:
        session = self._session
        match command:
            case port.Say(text):
                if not text.strip():
                    return
                self._stop()
                self._telling.typed(text)
                await self._heard(session.say(text))
            case port.Respond(instruction):
                await self._heard(session.respond(instruction))
            case port.Inject(kind, text):
                done = session.inject(kind=kind, text=text)
                await (self._heard(done) if kind == "user" else done)
            case port.Narrate(text):
                await self._narrate(text)
            case port.Interrupt(reason):
                self.interrupt(reason, "command")
            case _:
                self._microphone(command)

    def _microphone(self, command: port.Command) -> None:
        session = self._session
        match command:
            case port.Mute(on):
                self._muted = on
            case port.Commit():
                session.commit()
            case port.PushToTalk(down):
                self._press() if down else self.release()
            case _:
                self._answer_client()

    def _press(self) -> None:
        """The button takes the floor: the agent falls silent, the microphone is hot."""
        if not self._talk.press(self._now(), muted=self._muted):
            return
        self._stop()
        closed, self._muted = self._muted, False
        if self._manual and closed:
            self._session.user_speech(True)

    def release(self) -> None:
        """The button goes up, or nobody is there any more to hold it down."""
        match self._talk.release(self._now()):
            case "click":
                self._close(not self._talk.was_muted)
            case "held":
                self.tick()

    def tick(self) -> None:
        """20 ms have passed."""
        if self._talk.over(self._now()):
            self._close(self._manual or self._talk.was_muted)

    def _close(self, muted: bool) -> None:
        """The button is done; in manual mode a microphone that closes ends the turn."""
        self._muted = muted
        if self._manual and muted:
            self._session.user_speech(False)
            self._session.commit()

    def _answer_client(self) -> None:
        """A client fell silent by its own reflex: cut, or tell it to go on when nothing is audible
        (row 29)."""
        if self._playout.audible:
            self._stop()
        else:
            out = self._line.out
            self._line.emit(call.Interruption(event="resumed", reason="command", out=out))

    def _stop(self) -> None:
        self.reason = "command"
        try:
            self._session.stop_speech()
        finally:
            self.reason = ""

    async def _narrate(self, text: str) -> None:
        self._narrations += 1
        try:
            await self._heard(self._session.respond(text, verbatim=True))
        finally:
            self._narrations -= 1

    async def _heard(self, answer: Awaitable[None]) -> None:
        """Wait for the answer, and then until its sound was heard or stopped."""
        await answer
        while self._playout.sounding:
            self._quiet.clear()
            await self._quiet.wait()
