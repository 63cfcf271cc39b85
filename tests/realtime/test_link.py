"""A link on a scripted provider: what is open, what resumes, what the caller's sound comes to."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.realtime.links import linked
from voxglove.adapters.errors import ConnectionFailed
from voxglove.realtime.scripted import ABLE, ScriptedAdapter


async def test_voice_row_078_states_are_connecting_open_reconnecting_open_closed() -> None:
    adapter = ScriptedAdapter()
    async with linked(adapter) as it:
        adapter.current.drop()
        await asyncio.sleep(1)
    assert it.states == ["connecting", "open", "reconnecting", "open", "closed"]
    assert not adapter.open_now


async def test_voice_row_079_a_drop_resumes_at_first_and_opens_fresh_from_the_store_after() -> None:
    adapter = ScriptedAdapter()
    async with linked(adapter) as it:
        await asyncio.sleep(5)
        it.stored = 3
        handle = adapter.current.give_handle()
        it.stored = 5
        adapter.refuse(ConnectionFailed("1006", "unreachable"))
        adapter.current.drop()
        await asyncio.sleep(1)
        assert [(r.resume_handle, r.mark, r.attempt) for r in it.requests[1:]] == [
            (handle, 3, 1),
            (None, None, 2),
        ]
        assert [setup.resume_handle for setup in adapter.setups] == [None, handle, None]
        [report] = it.reports
        assert (report.state_restored, report.attempt, report.planned) == (False, 2, False)
        assert report.outage_ms == 250


@pytest.mark.parametrize("closes_first", [False, True])
async def test_voice_row_080_go_away_moves_at_a_gap_and_replays_the_caller(
    closes_first: bool,
) -> None:
    adapter = ScriptedAdapter(capabilities=replace(ABLE, closes_first=closes_first), connect_s=0.3)
    async with linked(adapter) as it:
        await it.talk(1)
        handle = adapter.current.give_handle()
        it.link.settle(12_000)
        it.gap = False
        adapter.current.go_away(20)
        await it.talk(2)
        assert len(adapter.connections) == 1
        it.gap = True
        await it.talk(1)
        assert adapter.open_now == [adapter.connections[1]]
        assert adapter.setups[1].resume_handle == handle
        await it.talk(1)
        assert bytes(adapter.current.heard) == bytes(it.sound[2 * 12_000 :])
        [report] = it.reports
        assert report.state_restored and report.planned and not report.lost_ms
        assert report.outage_ms == (300 if closes_first else 0)
        assert report.replayed_ms >= 2_500
        middle = ["reconnecting", "open"] if closes_first else []
        assert it.states == ["connecting", "open", *middle]
