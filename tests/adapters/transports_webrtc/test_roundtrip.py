"""Echo round trip over two real peers on loopback, ours beside stock aiortc in the same run.

The numbers that count come from bench/webrtc.py, with each peer in a process of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.adapters.transports_webrtc.roundtrip import Bursts, Echo, Kind, caller, side

pytestmark = pytest.mark.real_loop

Tell = Callable[[str], None]

GENEROUS_MS = 90
"""The target; 26 ms where nobody else wants the machine."""


async def trips(echo: Kind, calling: Kind, seconds: float) -> Bursts:
    """One call in which a burst a second comes back."""
    far, bursts = side(echo), Bursts()
    async with caller(calling, bursts.pull, bursts.hear) as near, asyncio.TaskGroup() as group:
        await near.accept(await far.answer(near.offer))
        group.create_task(far.run(Echo()), name="echo")
        await asyncio.sleep(seconds)
        await far.aclose()
    return bursts


@pytest.mark.slow
async def test_an_echo_comes_back_within_90_ms_where_stock_takes_over_200(tell: Tell) -> None:
    ours, stock = await trips("ours", "ours", 6.5), await trips("stock", "stock", 6.5)
    tell(
        f"echo round trip, p50 / p90: ours {ours.quantile(0.5):.0f} / {ours.quantile(0.9):.0f} ms,"
        f" stock both sides {stock.quantile(0.5):.0f} / {stock.quantile(0.9):.0f} ms"
    )
    assert len(ours.trips_ms) >= 5 and len(stock.trips_ms) >= 4
    assert ours.quantile(0.5) <= GENEROUS_MS
    assert ours.quantile(0.5) * 2 <= stock.quantile(0.5)


@pytest.mark.soak
async def test_a_stock_caller_is_answered_sooner_by_ours(tell: Tell) -> None:
    ours, stock = await trips("ours", "stock", 30), await trips("stock", "stock", 30)
    tell(
        f"echo round trip of a stock caller: ours {ours.quantile(0.5):.0f} ms,"
        f" stock {stock.quantile(0.5):.0f} ms"
    )
    assert ours.quantile(0.5) + 60 <= stock.quantile(0.5)
