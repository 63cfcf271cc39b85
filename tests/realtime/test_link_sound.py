"""The caller's sound over changes of connection: every sample once, in order, bit for bit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.realtime.links import Linked, linked
from tests.support.vloop import run_virtual
from voxglove.adapters.errors import ConnectionFailed, ProviderRefused
from voxglove.realtime.link import LinkConfig
from voxglove.realtime.scripted import ABLE, ScriptedAdapter

PACED = replace(ABLE, paced_input=True, turn_taking="full_duplex", resume=False)
AWAY = ConnectionFailed("1006", "unreachable")
RATE = ABLE.input_format.rate


def tail(it: Linked, position: int) -> bytes:
    """What the caller said from `position` on."""
    return bytes(it.sound[2 * position :])


def loud(sound: bytearray) -> bytes:
    """`sound` without its samples of silence."""
    samples = np.frombuffer(bytes(sound), "<i2")
    return bytes(samples[samples != 0])


async def test_sound_of_an_outage_is_replayed_from_what_is_settled() -> None:
    adapter = ScriptedAdapter()
    async with linked(adapter) as it:
        await it.talk(4)
        it.link.settle(3 * RATE)
        adapter.refuse(AWAY, AWAY)
        adapter.current.drop()
        await it.talk(3)
        assert bytes(adapter.connections[0].heard) == bytes(it.sound[: 4 * RATE * 2])
        assert bytes(adapter.current.heard) == tail(it, 3 * RATE)
        [report] = it.reports
        assert (report.lost_ms, report.outage_ms) == (0, 750)
        assert 1_740 <= report.replayed_ms <= 1_780


async def test_sound_older_than_the_ring_is_lost_and_reported() -> None:
    adapter = ScriptedAdapter(connect_s=14)
    config = LinkConfig(connect_timeout_s=20)
    async with linked(adapter, config=config) as it:
        await it.talk(1)
        adapter.current.drop()
        await it.talk(16)
        [report] = it.reports
        assert report.replayed_ms == 12_000
        assert 2_950 <= report.lost_ms <= 3_050
        lost = it.position() - len(adapter.current.heard) // 2
        assert abs(lost - 3 * RATE) <= RATE // 20
        assert bytes(adapter.current.heard) == tail(it, lost)
        adapter.connect_s = 0
        adapter.current.drop()
        await it.talk(1)
        assert it.reports[-1].lost_ms < 2_500  # what was reported as lost is not lost again


async def test_times_of_a_connection_are_positions_of_the_session() -> None:
    adapter = ScriptedAdapter()
    async with linked(adapter) as it:
        assert it.link.position_of(0) == 0
        await it.talk(5)
        assert it.link.position_of(1_500) == 1.5 * RATE
        it.link.settle(4 * RATE)
        adapter.current.drop()
        await it.talk(2)
        assert it.link.position_of(0) == 4 * RATE
        assert it.link.position_of(2_000) == 6 * RATE
        assert it.link.position_of(60_000) == 7 * RATE == it.link.heard


async def test_settling_never_goes_back_or_beyond_what_was_said() -> None:
    adapter = ScriptedAdapter()
    async with linked(adapter) as it:
        await it.talk(1)
        it.link.settle(RATE // 2)
        it.link.settle(100)
        adapter.current.drop()
        await it.talk(1)
        assert bytes(adapter.current.heard) == tail(it, RATE // 2)
        it.link.settle(100 * RATE)
        await asyncio.sleep(5)
        adapter.current.drop()
        await it.talk(1)
        assert bytes(adapter.current.heard) == tail(it, 2 * RATE)


async def test_a_paced_provider_hears_silence_when_the_host_gives_none() -> None:
    adapter = ScriptedAdapter(capabilities=PACED)
    async with linked(adapter) as it:
        await it.talk(2)
        await asyncio.sleep(8)  # muted
        await it.talk(2)
        heard = adapter.current
        assert abs(len(heard.heard) // 2 - 12 * RATE) <= RATE // 5
        assert loud(heard.heard) == loud(it.sound)
        gaps = np.diff([at for at, _ in heard.arrivals])
        assert max(gaps) <= 0.2 + 0.021
        assert max(samples for _, samples in heard.arrivals) <= RATE // 10


async def test_a_paced_provider_gets_its_replay_at_twice_the_speed() -> None:
    adapter = ScriptedAdapter(capabilities=PACED)
    async with linked(adapter) as it:
        await it.talk(6)
        adapter.refuse(AWAY)
        adapter.current.drop()
        opened = asyncio.get_running_loop().time() + 0.25
        await it.talk(10)
        arrivals = adapter.current.arrivals
        for second in range(10):
            start = opened + second
            count = sum(samples for at, samples in arrivals if start <= at < start + 1)
            assert count <= 2.15 * RATE
        assert bytes(adapter.current.heard) == bytes(it.sound)


async def test_a_drop_in_the_middle_of_a_paced_replay_starts_it_anew() -> None:
    adapter = ScriptedAdapter(capabilities=PACED)
    async with linked(adapter) as it:
        await it.talk(6)
        adapter.current.drop()
        await it.talk(1)
        assert len(adapter.current.heard) < len(it.sound)
        adapter.current.drop()
        await it.talk(9)
        assert bytes(adapter.current.heard) == bytes(it.sound)
        assert not any(report.lost_ms for report in it.reports)


Blow = tuple[str, float]
BLOWS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "drop",
                "go_away",
                "refuse",
                "handle",
                "expire",
                "settle",
                "move",
                "gap",
                "busy",
                "fatal",
            ]
        ),
        st.sampled_from([0.0, 0.1, 0.5, 1.1]),
    ),
    max_size=10,
)


async def strike(it: Linked, blow: str, settled: list[int]) -> None:
    connections = it.adapter.open_now
    match blow:
        case "drop" | "fatal" if connections:
            connections[0].drop("1006", fatal=blow == "fatal")
        case "go_away" if connections:
            connections[-1].go_away(7)
        case "handle" if connections:
            connections[-1].give_handle()
        case "refuse":
            it.adapter.refuse(AWAY, AWAY)
        case "expire":
            it.adapter.handles.clear()
        case "settle":
            it.link.settle(it.position() - 1_000)
            settled.append(max(0, it.position() - 1_000))
        case "move":
            it.link.move()
        case _:
            it.gap = blow == "gap"


@settings(max_examples=25, deadline=None)
@given(
    closes_first=st.booleans(),
    paced=st.booleans(),
    connect_s=st.sampled_from([0.0, 0.2]),
    blows=BLOWS,
)
def test_whatever_happens_each_connection_hears_one_stretch_of_the_caller(
    closes_first: bool, paced: bool, connect_s: float, blows: Sequence[Blow]
) -> None:
    """From a settled sample on, without a hole; one connection at a time but in a move."""

    async def call() -> None:
        able = replace(ABLE, closes_first=closes_first, paced_input=paced)
        adapter = ScriptedAdapter(capabilities=able, connect_s=connect_s)
        settled = [0]
        async with linked(adapter) as it:
            for blow, seconds in blows:
                await strike(it, blow, settled)
                await it.talk(seconds)
                assert len(adapter.open_now) <= (1 if closes_first else 2)
            await it.talk(0.5)
        assert not adapter.open_now
        assert it.states[-1] == "closed"
        for connection in adapter.connections:
            heard = bytes(connection.heard)
            assert not heard or any(
                heard == bytes(it.sound[2 * start : 2 * start + len(heard)]) for start in settled
            )

    run_virtual(call())


@pytest.mark.parametrize("closes_first", [False, True])
async def test_two_connections_are_open_only_in_a_move(closes_first: bool) -> None:
    """The scripted provider refuses a second one beside the first where it must be closed first."""
    able = replace(ABLE, closes_first=closes_first)
    adapter = ScriptedAdapter(capabilities=able, connect_s=0.1, close_s=0.5)
    async with linked(adapter) as it:
        for _ in range(4):
            adapter.current.give_handle()
            it.link.move()
            await it.talk(4)
            assert adapter.open_now == [adapter.current]
        assert [setup.resume_handle is not None for setup in adapter.setups] == [False, *[True] * 4]
        assert all(report.state_restored for report in it.reports)


async def test_a_provider_that_wants_the_old_one_closed_refuses_two() -> None:
    adapter = ScriptedAdapter(capabilities=replace(ABLE, closes_first=True))
    async with linked(adapter):
        handle = adapter.current.give_handle()
        setup = replace(adapter.setups[0], resume_handle=handle)
        async with asyncio.TaskGroup() as group:
            with pytest.raises(ConnectionFailed, match="still open"):
                await adapter.connect(setup, lambda event: None, group)
            with pytest.raises(ProviderRefused, match="no such handle"):
                await adapter.connect(replace(setup, resume_handle="x"), lambda event: None, group)
