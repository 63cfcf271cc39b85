"""The jitter buffer of a voice line: RTP packets in whatever order, runs of playable ones out.

Owned by one receiving stream. It never adds a standing delay: a packet leaves with the packet that
made it playable, and everything ready leaves together, so lag does not stay after a loss. Pure: no
clock, no thread, no codec; every packet's arrival is told in samples of the RTP clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from .errors import MediaValueError

RTP_RATE = 48_000
"""The RTP clock of Opus, whatever the audio's rate (RFC 7587, 4.1)."""

MIN_DEPTH = 2
"""Newer packets that wait before a hole is given up: one survives any swap of neighbours."""

MAX_DEPTH = 6
"""Beyond 120 ms the listener's own clock has filled the hole; waiting longer only costs delay."""

MAX_JUMP = 100
"""A sequence number further off than this belongs to a stream that began anew (RFC 3550, A.1)."""

MEMORY_S = 4.0
"""How long disorder is remembered: the depth has shrunk within 5 s of a calm network."""

FLOOR_S = 30.0
"""The fastest packet of one to two such stretches is what delay is measured against: long enough
to find one that did not wait, short enough to follow a skewed clock (12 ms at 200 ppm)."""

RETIRED_S = 1.0
"""How long packets of a source that was replaced may still straggle in."""

PACKET_MS = 20


@dataclass(frozen=True, slots=True)
class Packet:
    """One RTP packet: sequence number (16 bit), timestamp (32 bit, RTP_RATE), payload."""

    sequence: int
    timestamp: int
    payload: bytes
    ssrc: int = 0


@dataclass(frozen=True, slots=True)
class Ready:
    """A packet in its turn. `lost` packets before it were given up; after a `restart` of the
    stream its timestamp has nothing to do with the one before."""

    packet: Packet
    lost: int = 0
    restart: bool = False


@dataclass(slots=True)
class JitterStatistics:
    """Packets, counted since the stream began. `jitter` is RFC 3550's, in RTP samples."""

    received: int = 0
    released: int = 0
    lost: int = 0
    """Given up. One that arrives after all is counted as late too."""
    late: int = 0
    duplicates: int = 0
    reordered: int = 0
    restarts: int = 0
    jitter: float = 0.0
    max_depth: int = MIN_DEPTH


class JitterBuffer:
    """Orders packets. Holds at most `depth` of them, and only while one before them is missing."""

    def __init__(self, rate: int = RTP_RATE, *, max_depth: int = MAX_DEPTH) -> None:
        if rate <= 0:
            raise MediaValueError("rate", str(rate), "give the RTP clock in Hz")
        if max_depth < MIN_DEPTH:
            raise MediaValueError("max_depth", str(max_depth), f"use {MIN_DEPTH} or more")
        self.statistics = JitterStatistics()
        self._rate = rate
        self._disorder = _Disorder(round(rate * MEMORY_S), max_depth)
        self._order: _Order | None = None
        self._ssrc = 0
        self._retired: tuple[int, int] | None = None
        """The source replaced last, and until when its stragglers are known."""
        self._transit: int | None = None
        self._delay = _Delay(round(rate * FLOOR_S))

    @property
    def delay(self) -> int:
        """How much later than the fastest packet of late the last one left, in RTP samples."""
        return self._delay.last

    @property
    def depth(self) -> int:
        """Newer packets for which a missing one is awaited at present."""
        return self._disorder.depth

    @property
    def held(self) -> int:
        """Packets that wait for a missing one."""
        return len(self._order.held) if self._order else 0

    def add(self, packet: Packet, now: int) -> list[Ready]:
        """Take `packet`, which arrived at RTP sample `now`: what can be played in order from here.

        Never raises for what a peer sends. Time must not run backwards between calls.
        """
        self.statistics.received += 1
        self._disorder.forget(now)
        if self._straggles(packet, now):
            self.statistics.late += 1
            return []
        order = self._order
        number = order.place(packet.sequence) if order else 0
        if order is None or packet.ssrc != self._ssrc or abs(number - order.newest) > MAX_JUMP:
            return self._restart(packet, now)
        self._measure(packet, now)
        if number > order.newest:
            order.newest = number
        elif number not in order.held:
            self._disorder.saw(order.newest - number, now)
        if number < order.next:
            self._came_late(order, number)
            return []
        if number in order.held:
            self.statistics.duplicates += 1
            return []
        if number < order.newest:
            self.statistics.reordered += 1
        order.held[number] = (packet, now)
        ready = self._released(list(self._ready(order, now)))
        if ready:
            self._delay.saw(now, ready[-1].packet.timestamp)
        return ready

    def flush(self) -> list[Ready]:
        """The stream is over: everything that still waits, in order."""
        return self._released(list(self._order.drain()) if self._order else [])

    def _restart(self, packet: Packet, now: int) -> list[Ready]:
        ready = list(self._order.drain()) if self._order else []
        if self._order is not None:
            self.statistics.restarts += 1
            if packet.ssrc != self._ssrc:
                self._retired = (self._ssrc, now + round(RETIRED_S * self._rate))
        self._ssrc = packet.ssrc
        self._order = _Order(packet.sequence)
        self._transit = now - packet.timestamp
        self._delay.restart(now, packet.timestamp)
        ready.append(Ready(packet, restart=True))
        return self._released(ready)

    def _straggles(self, packet: Packet, now: int) -> bool:
        if self._retired is None or packet.ssrc != self._retired[0]:
            return False
        return now < self._retired[1]

    def _came_late(self, order: _Order, number: int) -> None:
        if number in order.given_up:
            order.given_up.remove(number)
            self.statistics.late += 1
        else:
            self.statistics.duplicates += 1

    def _measure(self, packet: Packet, now: int) -> None:
        """Interarrival jitter (RFC 3550, 6.4.1)."""
        transit = now - packet.timestamp
        if self._transit is not None:
            moved = abs(_signed(transit - self._transit, 32))
            if moved < self._rate:  # a timestamp that jumps by seconds is no jitter
                self.statistics.jitter += (moved - self.statistics.jitter) / 16
        self._transit = transit

    def _ready(self, order: _Order, now: int) -> Iterator[Ready]:
        """Packets in order; a hole is stepped over once enough newer ones wait, or long enough."""
        patience = self.depth * PACKET_MS * self._rate // 1000
        while order.held:
            if order.next in order.held:
                yield Ready(order.take(order.next))
                continue
            first = min(order.held)
            if len(order.held) < self.depth and now - order.held[first][1] < patience:
                return
            yield order.step_over(first)

    def _released(self, ready: list[Ready]) -> list[Ready]:
        self.statistics.released += len(ready)
        self.statistics.lost += sum(item.lost for item in ready)
        self.statistics.max_depth = max(self.statistics.max_depth, self.depth)
        return ready


class _Order:
    """One numbering: sequence numbers without their 16-bit wrap, and who waits."""

    def __init__(self, first: int) -> None:
        self.next = first
        """The number that is due."""
        self.newest = first - 1
        self.held: dict[int, tuple[Packet, int]] = {}
        self.given_up: deque[int] = deque(maxlen=MAX_JUMP)
        self.next += 1
        self.newest += 1

    def place(self, sequence: int) -> int:
        """`sequence` counted on beyond 16 bit, nearest to the newest one."""
        return self.newest + _signed(sequence - self.newest, 16)

    def take(self, number: int) -> Packet:
        """The held packet `number`; the next one is due."""
        self.next = number + 1
        return self.held.pop(number)[0]

    def step_over(self, number: int) -> Ready:
        """The held packet `number`, giving up all that is missing before it."""
        lost = number - self.next
        self.given_up.extend(range(self.next, number))
        return Ready(self.take(number), lost)

    def drain(self) -> Iterator[Ready]:
        """All held packets in order."""
        while self.held:
            yield self.step_over(min(self.held))


class _Disorder:
    """How far packets come out of order of late, and the depth that answers it.

    The second largest displacement within the memory counts: one stray packet is no jitter, and
    every real loss is waited for as long as the depth says.
    """

    def __init__(self, memory: int, max_depth: int) -> None:
        self._memory = memory
        self._max = max_depth
        self._seen: deque[tuple[int, int]] = deque(maxlen=200)
        self.depth = MIN_DEPTH

    def saw(self, behind: int, now: int) -> None:
        """A packet came `behind` newer ones."""
        self._seen.append((now, behind))
        self._settle()

    def forget(self, now: int) -> None:
        """Let go of what lies too far back."""
        before = len(self._seen)
        while self._seen and now - self._seen[0][0] > self._memory:
            self._seen.popleft()
        if len(self._seen) != before:
            self._settle()

    def _settle(self) -> None:
        worst = sorted((behind for _, behind in self._seen), reverse=True)
        needed = worst[1] + 1 if len(worst) > 1 else MIN_DEPTH
        self.depth = min(max(needed, MIN_DEPTH), self._max)


class _Delay:
    """How late packets leave, against the fastest of late. Follows any clock that drifts."""

    def __init__(self, stretch: int) -> None:
        self.last = 0
        self._stretch = stretch
        self._since = self._origin = 0
        self._floors = (0, 0)
        """The least transit of the stretch before and of this one."""

    def restart(self, now: int, timestamp: int) -> None:
        """A new numbering: its first packet is the fastest so far."""
        self._since, self._origin = now, now - timestamp
        self._floors, self.last = (0, 0), 0

    def saw(self, now: int, timestamp: int) -> None:
        """A packet left."""
        transit = _signed(now - timestamp - self._origin, 32)
        before, here = self._floors
        if now - self._since > self._stretch:
            self._since, before, here = now, here, transit
        self._floors = (before, min(here, transit))
        self.last = transit - min(self._floors)


def _signed(value: int, bits: int) -> int:
    """`value` modulo 2**bits, as the nearest number around zero."""
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half
