"""RealtimeSession: a built agent on a realtime model (spec/voice 18.3, seeds).

The agent is authored as for text; its tools, permissions, store, context, inbox, goals and
subscribers work on the live session. The session holds the agent's turn queue while it lives. It
owns its tasks: `run` is their owner, `start` and `stop` wrap it for hosts without a task group.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Literal, Unpack

from ..adapters.errors import AdapterError
from ..core.agent import Agent
from ..core.cancel import AbortScope, CancelToken, Unsubscribe
from ..core.errors import AbortError, UsageError
from ..core.notify import Hearing, Subscriber
from ..media.format import AudioFormat
from .commands import SendImage, SendVideoFrame
from .config import SessionConfig, Settings
from .due import Made
from .events import Used
from .factory import RealtimeModel, adapter_of
from .lifecycle_vocabulary import Phase
from .linking import Refresh
from .listeners import EventName, Listeners
from .playback import EstimatedPlayback, Playback
from .port import RealtimeAdapter
from .run import Run
from .session_events import SessionEvent, SessionProblem, StateChanged

log = logging.getLogger(__name__)

CLOSE_S, HURRY_S = (14.0, 5.0), (0.8, 0.5)
"""How long the provider may take for its last word, and the store for what is not written yet: at a
stop, and when the call is hung up (DESIGN 5.10)."""
NOT_LIVE = "the session is not live: call start() first, and nothing after stop()"


class RealtimeSession:
    """See the module.

    agent     a built agent that is not running elsewhere
    adapter   the provider; None: made from the agent's model (`realtime_model`) and `env`
    config    see SessionConfig; its compaction, permissions, events and before_turn may also be
              given here by their names
    playback  who knows what was heard; None: estimated from the time, see `notify_playback`
    refresh   an adapter with a new key, when a short-lived one was rejected; asked once for each
              connection that is sought
    env       where settings and keys are looked up; None: the environment of this process

    Raises UsageError without a provider or its key (row 77).
    """

    def __init__(
        self,
        agent: Agent,
        *,
        adapter: RealtimeAdapter | None = None,
        config: SessionConfig | None = None,
        playback: Playback | None = None,
        refresh: Refresh | None = None,
        env: Mapping[str, str] | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        self.agent = agent
        self.adapter = adapter or _adapter_of(agent, env)
        self.config = replace(config or SessionConfig(), **settings)
        self._playback = playback or EstimatedPlayback()
        self._refresh = refresh
        self._listeners = Listeners(self.adapter.capabilities.output_format)
        self._subscribers: list[Subscriber | Hearing] = []
        self._state: Phase = "connecting"
        self._run: Run | None = None
        self._life: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._opened = asyncio.Event()
        self._failure: AdapterError | None = None
        self._broken: Exception | None = None
        self._leaving = CancelToken()
        self._used = Used()

    # ---- life

    @property
    def input_format(self) -> AudioFormat:
        """What `send_audio` takes."""
        return self.adapter.capabilities.input_format

    @property
    def output_format(self) -> AudioFormat:
        """What `on("audio")` gives."""
        return self.adapter.capabilities.output_format

    @property
    def state(self) -> Phase:
        """connecting, open, reconnecting or closed (row 78)."""
        return self._state

    @property
    def live(self) -> bool:
        """Whether orders are taken: from the beginning of `run` or `start` until `stop`."""
        return self._run is not None and not self._stopping.is_set()

    @property
    def user_speaks(self) -> bool:
        """As the host or the provider last told."""
        return self._run is not None and self._run.parts.floor.user_speaks

    @property
    def speaking(self) -> bool:
        """The agent's sound plays, as far as the host has told."""
        return self._run is not None and self._run.parts.floor.agent_speaks

    @property
    def working(self) -> bool:
        """The model or a tool is at work, or an answer is due."""
        run = self._run
        if run is None:
            return False
        floor = run.parts.floor
        return floor.responding or floor.tools_run or run.parts.due.answer or floor.awaits

    @property
    def failure(self) -> AdapterError | None:
        """Why the session ended by itself; None while it lives and after `stop`."""
        return self._failure

    async def run(
        self, *, resume_handle: str | None = None, survivors: asyncio.TaskGroup | None = None
    ) -> Used:
        """Live until `stop`, or until the provider is lost for good; once. Gives the final usage.

        Waits for the agent's turn queue first (row 87). Raises AdapterError when it cannot be
        opened, or when it ended by itself, and StoreError when history cannot be read for that.
        Cancelled: the conversation is in the store, everything is closed. Un-abortable tools end
        in `survivors`.
        """
        if self._run is not None or self._state == "closed":
            raise UsageError("run: a session lives once; make a new one for the next call")
        self._listeners.notify(StateChanged("connecting"))
        try:
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(self.agent.running(survivors))
                hold = await stack.enter_async_context(
                    self.agent.turn_queue.hold("realtime session", self._leaving)
                )
                self._seat(stack)
                async with asyncio.TaskGroup() as group:
                    self._run = run = Run(self._made(), group)
                    if self.config.events:
                        hold.on_wake(run.woken)
                    await self._live(run, resume_handle)
        except AbortError:
            if not self._stopping.is_set():
                raise
            log.debug("stopped before it had its turn")
        finally:
            self._run = None
            self._tell(StateChanged("closed"))
            self._opened.set()
        if (error := self._broken or self._failure) is not None:
            raise error
        return self._used

    async def _live(self, run: Run, resume_handle: str | None) -> None:
        patience = CLOSE_S
        try:
            async with AbortScope(self._leaving):
                await run.open(resume_handle)
                await run.opened()
            self._opened.set()
            await self._stopping.wait()
        except AbortError:
            log.debug("stopped before it opened")
        except AdapterError as error:
            self._failure = error
        except Exception as error:
            self._broken = error
        except asyncio.CancelledError:
            patience = HURRY_S
            raise
        finally:
            self._stopping.set()
            try:
                self._used = await run.close(*patience)
            except Exception as error:
                self._broken = self._broken or error

    def _seat(self, stack: AsyncExitStack) -> None:
        for subscriber in self._subscribers:
            self.agent.add_subscriber(subscriber)
            stack.callback(self.agent.remove_subscriber, subscriber)

    def _made(self) -> Made:
        live = self.agent.live(permissions=self.config.permissions)
        return Made(
            agent=self.agent,
            live=live,
            adapter=self.adapter,
            config=self.config,
            playback=self._playback,
            refresh=self._refresh,
            notify=self._tell,
            fail=self._fail,
        )

    def _tell(self, event: SessionEvent) -> None:
        if isinstance(event, StateChanged):
            if event.state == self._state:
                return
            self._state = event.state
        self._listeners.notify(event)

    def _fail(self, error: AdapterError) -> None:
        """Something without which the session cannot live is gone for good."""
        if self._failure is None and not self._stopping.is_set():
            self._failure = error
            self._tell(SessionProblem(error.code, "provider", str(error), fatal=True))
            self._stopping.set()

    async def start(self, *, resume_handle: str | None = None) -> None:
        """Open the session and return when it is open; it lives on until `stop`.

        Raises AdapterError when it cannot be opened, UsageError the second time. Cancelled: it is
        stopped.
        """
        if self._life is not None:
            raise UsageError("start: a session starts once; make a new one for the next call")
        owner = asyncio.get_running_loop()
        self._life = owner.create_task(self._lived(resume_handle), name="realtime session")
        try:
            await self._opened.wait()
        except asyncio.CancelledError:
            await self._left()
            raise
        if self._state == "closed":
            await self._left()
            raise (
                self._broken
                or self._failure
                or AdapterError("ERR_REALTIME_CLOSED", "stopped before it opened")
            )

    async def _lived(self, resume_handle: str | None) -> None:
        """The one task of `start`; `stop` joins it. A failure is kept for whoever asks."""
        try:
            await self.run(resume_handle=resume_handle)
        except AdapterError as error:
            self._failure = error
        except Exception as error:
            self._broken = error

    async def stop(self) -> Used:
        """End the session and wait for the provider's final usage. Concurrent stops share one
        ending; each gets the same usage (row 90). Raises what the ending raised, after it."""
        await self._left()
        if self._broken is not None:
            raise self._broken
        return self._used

    async def _left(self) -> None:
        """End it, and return when it has ended."""
        self._stopping.set()
        self._leaving.abort("stopped")
        if self._life is not None:
            await asyncio.wait([self._life])

    # ---- what goes in

    def send_audio(self, pcm: bytes) -> None:
        """The caller's next samples, mono in `input_format`, any length of whole samples.

        Also while it reconnects: the last 12 s are sent again (DESIGN 5.8).
        """
        self._alive.send_audio(pcm)

    def send_video_frame(self, jpeg: bytes) -> None:
        """What a camera sees now. A provider without eyes is told once, by a problem."""
        self._alive.parts.link.tell(SendVideoFrame(jpeg))

    def send_image(self, data: bytes, mime: str) -> None:
        """A picture the user shows; it asks for no answer by itself."""
        self._alive.send_image(SendImage(data, mime))

    async def say(self, text: str) -> None:
        """The user typed `text`. Turn preparers run and context is told first; returns when the
        answer is over. Raises UsageError for blank text."""
        if not text.strip():
            raise UsageError("say: text must not be blank")
        await self._alive.orders.say(text)

    def inject(self, *, kind: Literal["user", "context"], text: str) -> asyncio.Future[None]:
        """Text for the agent: `user` is spoken about, `context` is only known. The future is done
        when the answer is over, or the text is told."""
        return self._alive.orders.inject(kind, text)

    def respond(self, instruction: str = "", *, verbatim: bool = False) -> asyncio.Future[None]:
        """Let the agent speak by a one-off instruction, which is no history. `verbatim`: read it
        out as it is, and keep neither. The future is done when the response is over."""
        return self._alive.orders.respond(instruction, verbatim=verbatim)

    def narrates(self, request_id: str) -> bool:
        """Whether this request is for a text to be read out (`respond`, `verbatim`)."""
        ask = None if self._run is None else self._run.parts.asks.get(request_id)
        return ask is not None and ask.verbatim and bool(ask.instruction)

    # ---- floor

    def interrupt(self, reason: str = "interrupted") -> None:
        """Silence: the host flushes its playback on `interrupted`, abortable tools end. A model
        that listens while it speaks stays shut out until `resume_output`."""
        self._alive.orders.interrupt(reason)

    def stop_speech(self) -> None:
        """End speech and generation, and nothing else: what a barge-in does (DESIGN 5.6)."""
        self._alive.orders.stop_speech()

    def resume_output(self) -> None:
        """Let sound pass again after `interrupt` (spec/voice 18.11)."""
        self._alive.parts.output.resume()

    async def notify_user_speech(self, speaking: bool) -> None:
        """The host hears the user begin or stop: preparers run, context and events are told.
        Returns when they are. It commits nothing and cancels no work (spec/voice 18.11)."""
        await self._alive.orders.boundary(speaking)

    def user_speech(self, speaking: bool) -> asyncio.Future[None]:
        """`notify_user_speech` for a host that must not wait."""
        return self._alive.orders.boundary(speaking)

    def commit(self) -> None:
        """The user's turn is over now, whatever the provider's detector thinks."""
        self._alive.orders.commit()

    def notify_playback(self, playing: bool) -> None:
        """The host's sound begins, or has run out: for the quiet pause, and for what was heard."""
        run = self._alive
        run.parts.floor.playing(playing)
        if not playing and isinstance(self._playback, EstimatedPlayback):
            self._playback.ran_out()
            for item_id in self._playback.finished():
                run.parts.output.heard(item_id)

    def heard(self, item_id: str) -> None:
        """A host that knows (`playback`): this item was heard to its end."""
        self._alive.parts.output.heard(item_id)

    # ---- who listens

    def listen(self, listener: Callable[[SessionEvent], None]) -> Unsubscribe:
        """Hear every event of the session, synchronously; returns the way out."""
        return self._listeners.add(listener)

    def on(self, name: EventName, callback: Callable[..., None]) -> Unsubscribe:
        """Hear one kind: audio(pcm, format), interrupted(), transcript(Transcript), state(state),
        resumable(handle), reconnected(Reconnected), usage(Used), problem(SessionProblem). Raises
        UsageError for another name."""
        return self._listeners.on(name, callback)

    def add_subscriber(self, subscriber: Subscriber | Hearing) -> None:
        """Hear the agent's events while this session lives, and only then."""
        self._subscribers.append(subscriber)
        if self._run is not None:
            self.agent.add_subscriber(subscriber)

    @property
    def _alive(self) -> Run:
        if self._run is None or self._stopping.is_set():
            raise UsageError(NOT_LIVE)
        return self._run


def _adapter_of(agent: Agent, env: Mapping[str, str] | None) -> RealtimeAdapter:
    """From the agent's placeholder model; another model says nothing about a provider."""
    model = agent.model
    return adapter_of(model if isinstance(model, RealtimeModel) else RealtimeModel(), env)
