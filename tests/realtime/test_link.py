"""A link on a scripted provider: what is open, what resumes, what is tried again, what ends."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.realtime.links import linked
from voxglove.adapters.errors import (
    AdapterError,
    ConnectionFailed,
    CredentialsRejected,
    ProviderRefused,
    ProviderStalled,
)
from voxglove.media.errors import MediaValueError
from voxglove.realtime.commands import AppendContext, SendAudio
from voxglove.realtime.events import Closed, GoAway, Opened, Resumable, Used
from voxglove.realtime.lifecycle_vocabulary import HANDLE_REFUSED
from voxglove.realtime.link import Link, LinkConfig, LinkState, SetupRequest
from voxglove.realtime.port import Emit, RealtimeAdapter, Setup
from voxglove.realtime.scripted import ABLE, ScriptedAdapter, ScriptedConnection

AWAY = ConnectionFailed("1006", "unreachable")
REJECTED = CredentialsRejected("401", "the token has expired")
BAD_MODEL = ProviderRefused("model_not_found", "no such model")


async def test_voice_row_078_states_are_connecting_open_reconnecting_open_closed() -> None:
    adapter = ScriptedAdapter()
    async with linked(adapter) as it:
        adapter.current.drop("1011", "internal")
        await asyncio.sleep(1)
    assert it.states == ["connecting", "open", "reconnecting", "open", "closed"]
    assert LinkState("reconnecting", "1011", "internal") in it.told
    assert not adapter.open_now


async def test_voice_row_079_a_drop_resumes_at_first_and_opens_fresh_from_the_store_after() -> None:
    adapter = ScriptedAdapter()
    async with linked(adapter) as it:
        await asyncio.sleep(5)
        it.stored = 3
        handle = adapter.current.give_handle()
        it.stored = 5
        adapter.refuse(AWAY)
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


async def test_a_drop_resumes_at_once_with_the_latest_handle() -> None:
    adapter = ScriptedAdapter()
    async with linked(adapter) as it:
        await asyncio.sleep(5)
        adapter.current.give_handle()
        handle = adapter.current.give_handle()
        adapter.current.drop()
        await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert adapter.setups[1].resume_handle == handle == it.link.handle
        [report] = it.reports
        assert report.state_restored and report.outage_ms == 0


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


@pytest.mark.parametrize(("time_left_s", "moved_at_s"), [(50.0, 45.0), (3.0, 0.0)])
async def test_voice_row_080_without_a_gap_it_moves_five_seconds_before_the_deadline(
    time_left_s: float, moved_at_s: float
) -> None:
    adapter = ScriptedAdapter()
    async with linked(adapter) as it:
        it.gap = False
        adapter.current.go_away(time_left_s)
        start = asyncio.get_running_loop().time()
        while not it.reports:
            await it.talk(0.1)
        moved = asyncio.get_running_loop().time() - start
        assert moved_at_s <= moved <= moved_at_s + 0.2
        await asyncio.sleep(60)
        assert len(adapter.connections) == 2
        assert it.states == ["connecting", "open"]


@pytest.mark.parametrize("gap", [True, False])
async def test_an_hour_cap_is_rotated_before_it_strikes(gap: bool) -> None:
    adapter = ScriptedAdapter(capabilities=replace(ABLE, max_session_s=3_600))
    async with linked(adapter) as it:
        for _ in range(4):
            it.gap = gap
            opened = adapter.current
            asyncio.get_running_loop().call_later(3_600, opened.drop, "1001", "expired")
            await asyncio.sleep(3_596 if not gap else 3_481)
            assert not opened.is_open
        assert len(adapter.connections) == 5
        assert it.link.number == 5
        assert it.states == ["connecting", "open"]
        assert all(report.planned for report in it.reports)


async def test_a_session_that_cannot_open_raises_and_is_closed() -> None:
    adapter = ScriptedAdapter()
    adapter.refuse(BAD_MODEL)
    async with linked(adapter, opened=False) as it:
        with pytest.raises(ProviderRefused, match="no such model"):
            await it.link.open()
        assert it.told[-1] == LinkState("closed", "model_not_found", "no such model")
        await asyncio.sleep(60)
        assert len(adapter.setups) == 1


async def test_opening_is_tried_eight_times_with_growing_waits() -> None:
    adapter = ScriptedAdapter()
    adapter.refuse(*[AWAY] * 8)
    async with linked(adapter, opened=False) as it:
        start = asyncio.get_running_loop().time()
        with pytest.raises(ConnectionFailed, match="unreachable"):
            await it.link.open("kept")
        waited = asyncio.get_running_loop().time() - start
        assert waited == pytest.approx(0.25 + 0.5 + 1 + 2 + 3 * 4)
        assert [setup.resume_handle for setup in adapter.setups] == ["kept", *[None] * 7]


async def test_opening_succeeds_when_the_provider_comes_back() -> None:
    adapter = ScriptedAdapter()
    adapter.refuse(AWAY, AWAY)
    async with linked(adapter) as it:
        it.hear()
        assert it.states == ["connecting", "open"]
        assert not it.reports
        assert bytes(adapter.current.heard) == bytes(it.sound)


async def test_a_fatal_end_is_not_tried_again() -> None:
    adapter = ScriptedAdapter()
    async with linked(adapter) as it:
        adapter.current.drop("insufficient_quota", "no money", fatal=True)
        await asyncio.sleep(60)
        assert it.told[-1] == LinkState("closed", "insufficient_quota", "no money")
        assert len(adapter.setups) == 1
        it.hear()
        assert it.link.heard == 0
        assert not it.link.tell(AppendContext("late"))


async def test_a_provider_that_refuses_for_good_ends_an_outage() -> None:
    adapter = ScriptedAdapter()
    async with linked(adapter) as it:
        adapter.refuse(AWAY, BAD_MODEL)
        adapter.current.drop()
        await asyncio.sleep(60)
        assert it.told[-1] == LinkState("closed", "model_not_found", "no such model")
        assert len(adapter.setups) == 3


async def test_an_outage_ends_the_session_after_eight_tries() -> None:
    adapter = ScriptedAdapter()
    async with linked(adapter) as it:
        await asyncio.sleep(5)
        adapter.refuse(*[AWAY] * 8)
        adapter.current.drop()
        await asyncio.sleep(60)
        assert it.told[-1] == LinkState("closed", "1006", "unreachable")
        assert len(adapter.setups) == 9


async def test_an_expired_token_is_renewed_once_for_a_connection() -> None:
    old, new = ScriptedAdapter(), ScriptedAdapter()
    old.refuse(REJECTED)
    renewed = 0

    async def refresh() -> RealtimeAdapter:
        nonlocal renewed
        renewed += 1
        return new

    async with linked(old, refresh=refresh) as it:
        await asyncio.sleep(5)
        assert (renewed, len(old.setups), len(new.setups)) == (1, 1, 1)
        handle = new.current.give_handle()
        new.refuse(REJECTED)
        new.current.drop()
        await asyncio.sleep(5)
        assert (renewed, new.setups[-1].resume_handle) == (2, handle)
        assert it.reports[-1].attempt == 1
        new.refuse(REJECTED, REJECTED)
        new.current.drop()
        await asyncio.sleep(5)
        assert renewed == 3
        assert it.told[-1] == LinkState("closed", "401", "the token has expired")


async def test_a_token_that_cannot_be_renewed_ends_it() -> None:
    adapter = ScriptedAdapter()

    async def refresh() -> RealtimeAdapter:
        raise CredentialsRejected("403", "no more tokens")

    async with linked(adapter, refresh=refresh) as it:
        adapter.refuse(REJECTED)
        adapter.current.drop()
        await asyncio.sleep(5)
        assert it.told[-1] == LinkState("closed", "403", "no more tokens")


async def test_a_handle_the_provider_does_not_take_is_dropped_and_a_fresh_one_opened_at_once() -> (
    None
):
    adapter = ScriptedAdapter()
    async with linked(adapter) as it:
        await asyncio.sleep(5)
        adapter.handles.discard(adapter.current.give_handle())
        adapter.current.drop()
        await asyncio.sleep(0.01)
        assert it.states[-1] == "open"
        assert adapter.setups[-1].resume_handle is None
        assert it.link.handle is None
        [report] = it.reports
        assert not report.state_restored and report.attempt == 2


async def test_a_handle_that_was_taken_without_the_conversation_counts_as_refused() -> None:
    class Forgetful(ScriptedAdapter):
        async def connect(
            self, setup: Setup, emit: Emit, group: asyncio.TaskGroup
        ) -> ScriptedConnection:
            def forget(event: object) -> None:
                emit(Opened("new") if isinstance(event, Opened) else event)  # type: ignore[arg-type]

            return await super().connect(setup, forget, group)

    adapter = Forgetful()
    async with linked(adapter) as it:
        await asyncio.sleep(5)
        adapter.current.give_handle()
        adapter.current.drop()
        await asyncio.sleep(0.01)
        assert [connection.is_open for connection in adapter.connections] == [False, False, True]
        assert adapter.setups[-1].resume_handle is None
        assert not it.reports[-1].state_restored


async def test_a_handle_that_is_none_keeps_the_last_good_one_with_its_mark() -> None:
    adapter = ScriptedAdapter()
    async with linked(adapter) as it:
        it.stored = 1
        handle = adapter.current.give_handle()
        it.stored = 2
        adapter.current.emit(Resumable(None))
        adapter.current.drop()
        await asyncio.sleep(1)
        assert it.requests[-1] == SetupRequest(handle, 1, 1, planned=False)


async def test_a_stalled_connect_is_given_up_and_tried_again() -> None:
    adapter = ScriptedAdapter(connect_s=100)
    config = LinkConfig(attempts=2, connect_timeout_s=2)
    async with linked(adapter, opened=False, config=config) as it:
        start = asyncio.get_running_loop().time()
        with pytest.raises(ProviderStalled, match="no setup in 2 s"):
            await it.link.open()
        assert asyncio.get_running_loop().time() - start == pytest.approx(4.25)


async def test_what_fails_on_our_side_ends_the_start_and_is_tried_again_later() -> None:
    broken = True

    async def setup(request: SetupRequest) -> Setup:
        if broken:
            raise LookupError("the store is away")
        return Setup(instructions="")

    adapter = ScriptedAdapter()
    async with linked(adapter, opened=False, setup=setup) as it:
        with pytest.raises(LookupError):
            await it.link.open()
        assert it.told[-1] == LinkState("closed", "ERR_REALTIME_SETUP", "the store is away")
    broken = False
    async with linked(adapter, setup=setup) as it:
        broken = True
        adapter.current.drop()
        await asyncio.sleep(1)
        broken = False
        await asyncio.sleep(2)
        assert it.states[-1] == "open"


@pytest.mark.parametrize("after_s", [0.0, 0.1, 0.3])
async def test_stopping_while_it_opens(after_s: float) -> None:
    adapter = ScriptedAdapter(connect_s=0.2)
    adapter.refuse(AWAY)
    async with linked(adapter, opened=False) as it, asyncio.TaskGroup() as group:
        opening = group.create_task(_opens(it.link))
        await asyncio.sleep(after_s)
        await it.link.close()
        assert (await opening) is not None
        await asyncio.sleep(60)
        assert it.states[-1] == "closed"
        assert not adapter.open_now


async def _opens(link: Link) -> AdapterError | None:
    try:
        await link.open()
    except AdapterError as error:
        return error
    return None


async def test_stopping_before_it_opens() -> None:
    adapter = ScriptedAdapter()
    async with linked(adapter, opened=False) as it:
        await it.link.close()
        with pytest.raises(ConnectionFailed, match="stopped before"):
            await it.link.open()
        assert not adapter.setups


async def test_a_cancelled_open_closes_it() -> None:
    adapter = ScriptedAdapter(connect_s=5)
    async with linked(adapter, opened=False) as it:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await it.link.open()
        assert it.states == ["connecting", "closed"]
        await asyncio.sleep(10)
        assert not adapter.connections


async def test_stopping_in_an_outage_and_in_a_move_leaves_nothing_open() -> None:
    for move in (False, True):
        adapter = ScriptedAdapter(connect_s=1)
        async with linked(adapter) as it:
            if move:
                it.link.move()
            else:
                adapter.current.drop()
            await asyncio.sleep(0.5)
            assert len(adapter.setups) == 2
            await it.link.close()
            await asyncio.sleep(5)
            assert not adapter.open_now
            assert len(adapter.connections) == 1


async def test_stops_share_one_end_and_wait_for_the_last_count() -> None:
    adapter = ScriptedAdapter(close_s=2, capabilities=replace(ABLE, usage="duration"))
    async with linked(adapter) as it, asyncio.TaskGroup() as group:
        await it.talk(1)
        start = asyncio.get_running_loop().time()
        for _ in range(3):
            group.create_task(it.link.close())
        await asyncio.sleep(1)
        assert it.states[-1] == "open"  # the last word is awaited
        await it.link.close()
        assert asyncio.get_running_loop().time() - start == pytest.approx(2)
        assert it.states.count("closed") == 1
        finals = [event for event in it.events if isinstance(event, Used) and event.final]
        assert finals == [it.link.used] == [Used(seconds=1.0, final=True)]
        assert it.events[-1] == Closed("1000", clean=True)
        assert it.told[-1] == LinkState("closed")


async def test_a_cancelled_stop_ends_by_itself() -> None:
    adapter = ScriptedAdapter(close_s=2)
    async with linked(adapter) as it:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await it.link.close()
        assert it.states[-1] == "closed"
        await it.link.close()
        await asyncio.sleep(2)
        assert not adapter.open_now


async def test_a_provider_without_a_last_word_is_left_after_a_while() -> None:
    adapter = ScriptedAdapter(close_s=100)
    async with linked(adapter, config=LinkConfig(close_timeout_s=3)) as it:
        start = asyncio.get_running_loop().time()
        await it.link.close()
        assert asyncio.get_running_loop().time() - start == pytest.approx(3)
        assert not adapter.open_now


async def test_commands_reach_the_open_connection_and_are_not_kept_for_another() -> None:
    adapter = ScriptedAdapter(connect_s=1)
    async with linked(adapter, opened=False) as it:
        assert not it.link.tell(AppendContext("early"))
        await it.link.open()
        assert it.link.tell(AppendContext("a"))
        assert it.link.tell(SendAudio(b"\1\0"))
        adapter.current.drop()
        assert not it.link.tell(AppendContext("b"))
        assert it.link.tell(SendAudio(b"\2\0"))
        await asyncio.sleep(3)
        assert it.link.tell(AppendContext("c"))
        assert [c.commands for c in adapter.connections] == [
            [AppendContext("a")],
            [AppendContext("c")],
        ]
        assert bytes(adapter.current.heard) == b"\1\0\2\0"


async def test_during_a_move_the_old_connection_is_told_and_heard_until_the_switch() -> None:
    adapter = ScriptedAdapter(connect_s=1)
    async with linked(adapter) as it:
        old = adapter.current
        it.link.move()
        await asyncio.sleep(0.5)
        assert it.link.tell(AppendContext("during"))
        old.emit(GoAway(3))
        await asyncio.sleep(1)
        assert old.commands == [AppendContext("during")]
        assert GoAway(3) in it.events
        count = len(it.events)
        old._emit(Opened("a ghost"))
        assert len(it.events) == count
        assert it.states == ["connecting", "open"]


async def test_a_fresh_move_does_not_resume() -> None:
    adapter = ScriptedAdapter()
    async with linked(adapter) as it:
        adapter.current.give_handle()
        it.link.move(fresh=True)
        await asyncio.sleep(1)
        assert [setup.resume_handle for setup in adapter.setups] == [None, None]
        assert it.requests[-1] == SetupRequest(None, None, 1, planned=True)


async def test_a_move_waits_for_its_gap_or_its_time() -> None:
    adapter = ScriptedAdapter()
    async with linked(adapter) as it:
        it.gap = False
        it.link.move(within_s=3)
        await asyncio.sleep(2.9)
        assert it.link.number == 1
        await asyncio.sleep(0.2)
        assert it.link.number == 2
        it.link.move()
        await asyncio.sleep(100)
        assert it.link.number == 2
        it.gap = True
        await asyncio.sleep(0.1)
        assert it.link.number == 3


async def test_a_move_that_fails_leaves_the_call_where_it_is() -> None:
    adapter = ScriptedAdapter()
    async with linked(adapter) as it:
        adapter.refuse(BAD_MODEL)
        it.link.move()
        await asyncio.sleep(60)
        assert it.states == ["connecting", "open"]
        assert it.link.tell(AppendContext("still here"))
        adapter.current.drop()
        await asyncio.sleep(60)
        assert it.states[-1] == "closed"
        assert len(adapter.setups) == 2


async def test_the_old_connection_ends_while_the_new_one_opens() -> None:
    adapter = ScriptedAdapter(connect_s=1)
    async with linked(adapter) as it:
        handle = adapter.current.give_handle()
        it.link.move()
        await asyncio.sleep(0.5)
        adapter.current.drop()
        await asyncio.sleep(1)
        assert it.states == ["connecting", "open", "reconnecting", "open"]
        assert len(adapter.setups) == 2
        [report] = it.reports
        assert report.state_restored and report.outage_ms == 500
        assert adapter.setups[-1].resume_handle == handle


async def test_a_connection_that_dies_as_it_opens_is_replaced() -> None:
    class Sickly(ScriptedAdapter):
        async def connect(
            self, setup: Setup, emit: Emit, group: asyncio.TaskGroup
        ) -> ScriptedConnection:
            connection = await super().connect(setup, emit, group)
            if connection.number in (2, 3):
                connection.drop("1011", "sickly")
            return connection

    adapter = Sickly()
    async with linked(adapter) as it:
        await it.talk(5)
        adapter.current.drop()
        await it.talk(2)
        assert [connection.is_open for connection in adapter.connections] == [False] * 3 + [True]
        assert bytes(adapter.current.heard) == bytes(it.sound)
        assert it.states.count("open") == 4
        ends = [type(event) for event in it.events if isinstance(event, Opened | Closed)]
        assert ends == [Opened, Closed] * 3 + [Opened]


async def test_going_away_again_and_again_is_not_answered_without_end() -> None:
    class Restless(ScriptedAdapter):
        async def connect(
            self, setup: Setup, emit: Emit, group: asyncio.TaskGroup
        ) -> ScriptedConnection:
            connection = await super().connect(setup, emit, group)
            asyncio.get_running_loop().call_soon(connection.go_away, 0.5)
            return connection

    adapter = Restless()
    async with linked(adapter):
        await asyncio.sleep(60)
        assert 8 <= len(adapter.connections) <= 60 / 0.4


async def test_seconds_of_all_connections_are_counted_together() -> None:
    adapter = ScriptedAdapter(capabilities=replace(ABLE, usage="duration"))
    async with linked(adapter) as it:
        await it.talk(2)
        it.link.settle(it.position())
        it.link.move()
        await asyncio.sleep(0.1)
        await it.talk(3)
        await it.link.close()
        assert it.link.used == Used(seconds=5.0, final=True)
        counts = [event for event in it.events if isinstance(event, Used)]
        assert [used.seconds for used in counts] == [2.0, 5.0]
        assert [used.final for used in counts] == [False, True]


async def test_an_outage_is_not_counted_into_the_next_move() -> None:
    adapter = ScriptedAdapter(connect_s=1)
    async with linked(adapter) as it:
        adapter.current.drop()
        await asyncio.sleep(5)
        it.link.move()
        await asyncio.sleep(5)
        assert [report.outage_ms for report in it.reports] == [1_000, 0]


async def test_what_is_told_may_ask_for_more_at_once() -> None:
    """A move that the host wants as soon as it hears of the open state comes after that state."""
    adapter = ScriptedAdapter(connect_s=1)
    async with asyncio.TaskGroup() as group:
        told: list[object] = []

        def on_state(state: object) -> None:
            told.append(state)
            if state == LinkState("open"):
                link.move(within_s=0)
                adapter.current.drop()

        async def setup(request: SetupRequest) -> Setup:
            return Setup(instructions="")

        link = Link(
            adapter,
            group=group,
            setup=setup,
            on_event=told.append,
            on_state=on_state,
            at_gap=lambda: False,
        )
        await link.open()
        assert told[:3] == [LinkState("connecting"), LinkState("open"), Opened("session-1")]
        assert told[3:5] == [Closed("1006", "cut"), LinkState("reconnecting", "1006", "cut")]
        await link.close()


async def test_half_a_sample_is_refused() -> None:
    async with linked(ScriptedAdapter()) as it:
        with pytest.raises(MediaValueError):
            it.link.send_audio(b"\0")


@pytest.mark.parametrize("name", ["ring_s", "connect_timeout_s", "close_timeout_s", "gap_poll_s"])
def test_a_configuration_that_cannot_be_kept_is_refused(name: str) -> None:
    with pytest.raises(MediaValueError, match=name):
        LinkConfig(**{name: 0})  # type: ignore[arg-type]


def test_the_refused_handle_has_the_ports_code() -> None:
    assert HANDLE_REFUSED in (RealtimeAdapter.connect.__doc__ or "")
