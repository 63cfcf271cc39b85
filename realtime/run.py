"""One life of a realtime session: from the first connection to the last word of the provider.

Puts the parts together and keeps them alive: the worker that does in order what must wait, the
seeding of new connections, what happens when one is lost. Owned by the session, in whose group its
tasks live.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from functools import partial

from ..adapters.errors import AdapterError, ProviderRefused
from ..core.cancel import CancelToken
from ..core.requests import Wake
from .asks import GO_ON, Asks
from .commands import AppendContext, ProviderCommand, SendImage
from .dispatch import Dispatch
from .due import Due, Made, Parts
from .events import RealtimeEvent, Used
from .feed import Feed
from .floor import Floor
from .history import Ledger
from .link import Link, LinkState, Reconnected, SetupRequest
from .orders import Orders
from .output import Output
from .playback import EstimatedPlayback
from .port import Setup
from .report import Report
from .session_events import SessionProblem, StateChanged
from .summaries import Summaries, transcript
from .tools import ToolParts, ToolPath
from .worker import Worker

log = logging.getLogger(__name__)

MARGIN_S = 2.0
"""Sound that is replayed although nobody was heard in it: a voice is noticed a little late."""
MAX_UNSEEN = 4
"""Pictures that wait for a connection."""
MEANWHILE = "[Said while the connection was being changed:]\n"


class Run:
    """See the module. `orders` is the host's side."""

    def __init__(self, made: Made, group: asyncio.TaskGroup) -> None:
        self._made = made
        self._group = group
        self._tasks: set[asyncio.Task[None]] = set()
        self._worker = Worker(
            due_at=self._due_at, overdue=self._overdue, failed=self._failed, full=self._full
        )
        self.later = self._worker.later
        self._seeded: frozenset[str] = frozenset()
        self._unseen: deque[SendImage] = deque(maxlen=MAX_UNSEEN)
        self._margin = round(made.can.input_format.rate * MARGIN_S)
        self._introduced = 0
        """The connection, by its number, that knows what was said on earlier ones."""
        self._replayed = False
        """The provider hears the latest turn of the user again, and will answer it by itself."""
        self.parts = self._parts = self._assemble()
        self._dispatch = Dispatch(self._parts)
        self.orders = Orders(self._parts, self._dispatch)

    # ---- life

    async def open(self, resume_handle: str | None) -> None:
        """Connect for the first time; raises AdapterError, and what preparing a setup raised."""
        await self._parts.link.open(resume_handle)

    async def close(self, patience_s: float, store_s: float) -> Used:
        """Everything that was said reaches history; the provider's last word is awaited so long,
        then orders that wait and the store `store_s` each. Every task of this run has ended or is
        cancelled afterwards, and nobody waits for an order.

        Raises after all that what the store raised; it was told, too (row 90).
        """
        parts = self._parts
        failed: Exception | None = None
        parts.token.abort("the call ended", tools=True)
        cut = self._made.playback.cut()
        parts.ledger.settle(cut.now)
        try:
            async with asyncio.timeout(patience_s):
                await parts.link.close()
        except TimeoutError:
            log.info("the provider took too long to end the session")
        finally:
            try:
                failed = await self._worker.tried(self._put_away(store_s))
            finally:
                parts.asks.close()
                self.orders.close()
                parts.report.close()
                parts.floor.close()
                for task in self._tasks:
                    task.cancel()
        if failed is not None:
            raise failed
        return parts.link.used or Used()

    async def _put_away(self, store_s: float) -> None:
        """What was ordered before the end is done, and what was said is written."""
        ledger = self._parts.ledger
        ledger.lost(last=True)
        try:
            async with asyncio.timeout(store_s):
                await self._worker.worked_off()
        except TimeoutError:
            log.warning("the store or a preparer is too slow for the end of the call")
        async with asyncio.timeout(store_s):
            await ledger.flush(last=True)

    def send_audio(self, pcm: bytes) -> None:
        """The caller's next samples. Silence that is long past need not be sent again, where
        somebody tells when the caller speaks."""
        parts = self._parts
        parts.link.send_audio(pcm)
        if parts.due.spoken is False and not parts.floor.user_speaks and not parts.ledger.hears:
            parts.link.settle(parts.link.heard - self._margin)

    def send_image(self, image: SendImage) -> None:
        """A picture, in order with what is typed; one that no connection takes now waits."""
        self.later(partial(self._show, image))

    async def _show(self, image: SendImage) -> None:
        if not self._parts.link.tell(image):
            self._unseen.append(image)

    def spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """A task of the session's group whose failure is told and ends nothing else."""
        task = self._group.create_task(self._worker.safely(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def woken(self, wake: Wake) -> None:
        """Something from outside asks for a turn (spec/voice 18.8)."""
        self._parts.due.wake = True
        self._parts.floor.wait_again()

    def _tell(self, command: ProviderCommand) -> bool:
        """Until a new connection is introduced, it is told as little as while none is open: what
        is asked of it then is told once."""
        link = self._parts.link
        return link.number == self._introduced and link.tell(command)

    # ---- the worker

    def _due_at(self) -> float | None:
        """When to look without being told: words that never came, sound that has run out."""
        playback, ends = self._made.playback, None
        if isinstance(playback, EstimatedPlayback):
            ends = playback.ends_at
            if ends is None and playback.holds and self._parts.floor.agent_speaks:
                ends = 0.0  # it ran out meanwhile
        times = [at for at in (self._parts.ledger.overdue_at, ends) if at is not None]
        return min(times, default=None)

    async def _overdue(self) -> None:
        playback = self._made.playback
        if isinstance(playback, EstimatedPlayback):
            for item_id in playback.finished():
                self._parts.ledger.heard_whole(item_id)
            if playback.ends_at is None:
                self._parts.floor.playing(False)
        await self._parts.ledger.flush()

    def _failed(self, error: Exception) -> None:
        code = getattr(error, "code", "ERR_REALTIME")
        self._problem(str(code), "agent", str(error) or type(error).__name__)

    def _full(self) -> None:
        stuck = "the store or a preparer holds the session up"
        self._made.fail(AdapterError("ERR_REALTIME_OVERLOAD", stuck))

    # ---- the connection

    def _on_event(self, event: RealtimeEvent) -> None:
        self._dispatch.on_event(event)

    def _on_state(self, told: LinkState | Reconnected) -> None:
        if isinstance(told, Reconnected):
            self._lost()
            self._parts.ledger.seeded(self._seeded)
            self._made.notify(told)
            self.later(partial(self._reopened, told))
            return
        if told.phase == "reconnecting":
            self._lost()
        self._made.notify(StateChanged(told.phase))
        if told.phase == "closed" and told.code:
            self._made.fail(ProviderRefused(told.code, told.reason or told.code))

    def _lost(self) -> None:
        """The provider's work on the old connection is gone; sound that was received plays on."""
        parts = self._parts
        parts.asks.lost()
        parts.summaries.lost()
        parts.report.close()
        parts.floor.lost()
        self._leaves()
        parts.due.begun = False
        parts.output.lost()

    def _leaves(self) -> None:
        """No more words come on the old connection."""
        self._replayed = self._parts.ledger.lost() or self._replayed

    async def _setup(self, request: SetupRequest) -> Setup:
        """What a new connection starts from: the agent as it is now, history as it is stored."""
        parts, made = self._parts, self._made
        prompt, tools = await parts.feed.opening()
        await parts.ledger.flush()
        moves = request.planned and parts.link.state.code in ("", "move")
        if moves and parts.floor.gap and not parts.ledger.pending and not parts.due.spoken:
            second = made.can.input_format.rate  # an onset that nobody has noticed yet
            parts.link.settle(parts.link.heard - second)
        resumed = request.resume_handle is not None
        known = request.mark if resumed and isinstance(request.mark, frozenset) else frozenset()
        outstanding = made.agent.outstanding
        history = await made.live.view_since(known)
        parts.tools.seeded(history, outstanding)
        whole = [one for one in history if outstanding.isdisjoint(c.id for c in one.tool_calls)]
        self._seeded = known | frozenset(message.id for message in whole)
        if resumed and request.mark is None:
            history = []  # a handle that the host kept: the provider knows what it knew
        return Setup(
            instructions=prompt,
            tools=tools,
            history=tuple(history),
            resume_handle=request.resume_handle,
            manual_turns=made.config.manual_turns,
            interruption=made.config.interruption,
        )

    async def opened(self) -> None:
        """The first connection is open: what is known beside history goes in, and then, in order,
        what was asked for meanwhile."""
        self._introduced = self._parts.link.number
        self._parts.ledger.seeded(self._seeded)
        await self._parts.feed.opened(fresh=True)
        self._parts.tools.introduced()
        self.spawn(self._worker.run())

    async def _reopened(self, told: Reconnected) -> None:
        """A new connection carries the session. What it missed is told, and what the old one owed
        is asked again: a question once, an answer from where it was heard (DESIGN 5.8)."""
        parts = self._parts
        self._introduced = parts.link.number
        await self._worker.safely(parts.feed.opened(fresh=not told.state_restored))
        parts.tools.introduced()
        await self._worker.safely(self._tell_missed())
        while self._unseen and parts.link.tell(self._unseen[0]):
            self._unseen.popleft()
        again = parts.asks.repeat()
        for command in again:
            parts.link.tell(command)
        if not again and parts.due.answer and not self._replayed and not parts.tools.running:
            ask = parts.asks.new(GO_ON if parts.ledger.answer_begun else "")
            parts.link.tell(parts.asks.tell(ask))
        self._replayed = False

    async def _tell_missed(self) -> None:
        """Turns that were stored between the seed and the change."""
        parts, live = self._parts, self._made.live
        await parts.ledger.flush()
        missed = await live.view_since(self._seeded | parts.ledger.pending)
        text = transcript([one for one in missed if not (one.tool_calls or one.tool_results)])
        if text and parts.link.tell(AppendContext(MEANWHILE + text)):
            parts.ledger.tell_known(frozenset(message.id for message in missed))

    async def _forgotten(self, known: frozenset[str]) -> None:
        """The provider's conversation is the summary alone now."""
        self._parts.ledger.seeded(known)
        await self._parts.feed.forgotten()

    # ---- quiet

    def _on_quiet(self) -> None:
        due = self._parts.due
        due.begun = False  # nothing became of a turn that seemed to begin, or has not yet
        if due.wake or due.speech:
            self.later(self.orders.speak_at_pause)
        elif self._parts.summaries.due:
            self.spawn(self._summarise())  # beside the rest: it may wait for the provider

    async def _summarise(self) -> None:
        if self._parts.floor.gap:
            await self._parts.summaries.run(self._parts.token.child())

    def _held_up(self) -> bool:
        return self._parts.floor.responding or self._parts.link.state.phase != "open"

    def _owe(self) -> None:
        self._parts.due.speech = True
        self._parts.floor.wait_again()

    def _given_up(self, error: AdapterError) -> None:
        self._parts.due.answer = False
        self._problem(error.code, "provider", str(error))

    def _problem(self, code: str, stage: str, message: str) -> None:
        self._made.notify(SessionProblem(code, stage, message))

    # ---- assembly

    def _assemble(self) -> Parts:
        made, config = self._made, self._made.config
        floor = Floor(config.quiet_ms / 1000, self._on_quiet)
        link = Link(
            made.adapter,
            group=self._group,
            setup=self._setup,
            on_event=self._on_event,
            on_state=self._on_state,
            at_gap=lambda: floor.gap,
            on_leave=self._leaves,
            mark=lambda: ledger.known,
            refresh=made.refresh,
        )
        ledger = Ledger(
            made.agent,
            made.live,
            made.can.output_format.rate,
            position=link.position_of,
            settled=link.settle,
            over=made.notify,
            words_wait_s=config.words_wait_s,
        )
        feed = Feed(
            made.live,
            made.can,
            self._tell,
            reconnect=link.move,
            told=ledger.tell_known,
            report=lambda stage, error: self._problem("ERR_TURN_PREPARER", stage, str(error)),
            before_turn=config.before_turn,
            events=config.events,
        )
        return Parts(
            made=made,
            link=link,
            ledger=ledger,
            feed=feed,
            floor=floor,
            asks=Asks(floor.expect, self._given_up, held_up=self._held_up),
            tools=self._tool_path(link, ledger, feed, floor),
            output=self._output(link, ledger, floor),
            summaries=Summaries(
                config.compaction,
                made.live,
                made.can,
                link.tell,
                renew=partial(link.move, fresh=True),
                forgotten=self._forgotten,
            ),
            report=Report(made.live),
            due=Due(),
            tell=self._tell,
            later=self.later,
            spawn=self.spawn,
            problem=self._problem,
            token=CancelToken(),
        )

    def _tool_path(self, link: Link, ledger: Ledger, feed: Feed, floor: Floor) -> ToolPath:
        return ToolPath(
            ToolParts(
                live=self._made.live,
                ledger=ledger,
                feed=feed,
                floor=floor,
                tell=link.tell,
                spawn=self.spawn,
                connection=lambda: link.number,
                respond=lambda: not floor.user_speaks,
                owe=self._owe,
                owed=lambda: self._parts.due.answer,
                failed=self._failed,
            )
        )

    def _output(self, link: Link, ledger: Ledger, floor: Floor) -> Output:
        return Output(
            self._made.playback,
            ledger,
            floor,
            self._made.can,
            link.tell,
            notify=self._made.notify,
            spawn=self.spawn,
            flush=lambda: self.later(ledger.flush),
        )
