"""The model's sound on its way to the host: the gate, and what is known about it when it stops.

A stop is one synchronous step: the host falls silent, what was handed out is void, and late sound
of it vanishes by its item's id (spec/voice 18.11b). What was heard then goes to history, and to a
provider that can shorten its own conversation (row 92). Owned by one run of a session.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping

from .commands import CutOutput
from .events import Audio
from .feed import Tell
from .floor import Floor
from .history import Ledger
from .playback import OutputCut, Playback, Played
from .port import Capabilities
from .session_events import OutputStopped, SessionEvent


class Output:
    """See the module. `flush` brings what is settled into history."""

    def __init__(
        self,
        playback: Playback,
        ledger: Ledger,
        floor: Floor,
        capabilities: Capabilities,
        tell: Tell,
        *,
        notify: Callable[[SessionEvent], None],
        spawn: Callable[[Coroutine[None, None, None]], object],
        flush: Callable[[], None],
    ) -> None:
        self._playback = playback
        self._ledger = ledger
        self._floor = floor
        self._can = capabilities
        self._tell = tell
        self._notify = notify
        self._spawn = spawn
        self._flush = flush
        self._void: set[str] = set()
        self._open: dict[str, None] = {}
        self._begun: set[str] = set()
        """Answers of which there are words and no sound yet."""
        self._ended: frozenset[str] = frozenset()
        """Responses that were under way when the sound was stopped: what comes of them late is not
        heard either, whichever item it belongs to."""
        self.closed = False
        """Nothing passes until `resume` (full duplex: the model may go on talking)."""
        self.late = 0
        """Samples that came for items that were stopped, since the beginning."""
        self.answers = 0
        """Interrupted events that answer stops of ours and are still to come."""

    def audio(self, event: Audio, response_id: str) -> bool:
        """Sound of a response came; whether it may be played."""
        samples = len(event.pcm) // 2
        if self.closed or event.item_id in self._void or response_id in self._ended:
            self._keep_out(event.item_id, samples)
            return False
        self._begun.discard(event.item_id)
        self._open[event.item_id] = None
        self._ledger.sound(event.item_id, samples)
        self._playback.add(event.item_id, samples, self._can.output_format.rate)
        return True

    def words(self, item_id: str, response_id: str) -> None:
        """Words of a response came, with sound or before it."""
        if response_id in self._ended:
            self._ledger.unheard(item_id)
        elif item_id not in self._open and item_id not in self._void:
            self._begun.add(item_id)

    def item_done(self, item_id: str) -> None:
        """No more sound of this item."""
        self._begun.discard(item_id)
        self._playback.done(item_id)
        self._open.pop(item_id, None)

    def lost(self) -> None:
        """The connection is gone: nothing more comes of what it had begun, nor any answer."""
        for item_id in list(self._open):
            self.item_done(item_id)
        self.answers = 0

    def stopped(self, item_id: str) -> bool:
        """This item was stopped, or came while the gate was closed."""
        return item_id in self._void

    def stop(self, *, cancel: bool) -> None:
        """Silence now. `cancel`: the provider has to end its generation too."""
        cut = self._playback.cut()
        self._void.update(self._open)
        self._void.update(item for item, played in cut.now.items() if not played.complete)
        self._open.clear()
        if self._can.turn_taking != "full_duplex":  # its responses are no answers to anything
            self._ended = self._floor.responses
        for item_id in self._begun:
            self._ledger.unheard(item_id)
        self._begun.clear()
        self._ledger.cut(cut.now)
        self._floor.playing(False)
        self._notify(OutputStopped(self._ledger.so_far(cut.now)))
        if cut.settled.done():
            self._send(_unheard(cut.settled.result()), cancel=cancel)
            self._settle(cut.settled.result())
            return
        if cancel:
            self._send({}, cancel=True)
        self._spawn(self._settled(cut))

    def heard(self, item_id: str) -> None:
        """The host: this item was heard to its end."""
        self._ledger.heard_whole(item_id)
        self._flush()

    def resume(self) -> None:
        """Sound may pass again, of items that begin from now on."""
        self.closed = False

    def _keep_out(self, item_id: str, samples: int) -> None:
        """Late sound of an item that was stopped, or one that begins behind the closed gate: of
        that nobody hears anything."""
        self.late += samples
        self._ledger.sound(item_id, samples)
        if item_id not in self._void:
            self._void.add(item_id)
            self._ledger.settle({item_id: Played(0, complete=False)})

    async def _settled(self, cut: OutputCut) -> None:
        """Task of the session's group: the carrier tells where it really stopped, soon."""
        played = await cut.settled
        self._send(_unheard(played), cancel=False)
        self._settle(played)

    def _settle(self, played: Mapping[str, Played]) -> None:
        self._ledger.settle(played)
        self._flush()

    def _send(self, heard_ms: Mapping[str, int], *, cancel: bool) -> None:
        if not cancel and (not heard_ms or not self._can.item_truncate):
            return
        # An answer comes at once, from within `tell`, or later: it is no news then.
        self.answers += 1
        if not self._tell(CutOutput(heard_ms, cancel)):
            self.answers -= 1


def _unheard(played: Mapping[str, Played]) -> dict[str, int]:
    return {item: heard.ms for item, heard in played.items() if not heard.complete}
