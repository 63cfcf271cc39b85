"""A stream of packets through a simulated bad network, for tests without a clock."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from voxglove.media.impair import Impairer, Impairment

T = TypeVar("T")


def impaired(
    packets: Iterable[tuple[float, T]], what: Impairment, seed: int = 0
) -> list[tuple[float, T]]:
    """`packets`, each with the second it was sent, in the order and at the times they arrive.

    The first packet always arrives, and undelayed: a stream that begins with a hole, or late, has
    no start that its end could be measured against.
    """
    way, arrived = Impairer(what, seed), list[tuple[float, int, T]]()
    for number, (sent, packet) in enumerate(packets):
        times = way.arrivals(sent)
        arrived += [(at, number, packet) for at in (times if number else [sent])]
    return [(at, packet) for at, _, packet in sorted(arrived, key=lambda item: item[:2])]
