"""Every adapter of the package against the suite that third parties run (spec/voice 18.12)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from tests.realtime.conforming import ScriptedPeer, scripted_peer, simulated_peer
from voxglove.realtime.commands import CutOutput, ProviderCommand, SendAudio, SendToolResults
from voxglove.realtime.conformance import (
    CASES,
    MakePeer,
    NonConforming,
    Peer,
    assert_well_formed,
    run_case,
)
from voxglove.realtime.events import (
    Audio,
    Closed,
    Interrupted,
    ItemDone,
    Opened,
    RealtimeEvent,
    ResponseDone,
    ResponseStarted,
    ToolCalls,
    UserTurn,
    Words,
)
from voxglove.realtime.port import Capabilities, Connection, Emit, RealtimeAdapter, Setup

PEERS: dict[str, MakePeer] = {
    "scripted": scripted_peer,
    "openai": simulated_peer("openai"),
    "gemini": simulated_peer("gemini"),
    "gemini-3.1": simulated_peer("gemini", "3.1"),
    "gpt-live": simulated_peer("gpt-live"),
}
CLAIMS = {
    "scripted": set(),
    "openai": {"resumes_with_its_handle"},
    "gemini": {"summarises_out_of_band", "forgets_what_was_summarised"},
    "gemini-3.1": {
        "summarises_out_of_band",
        "forgets_what_was_summarised",
        "takes_new_instructions",
        "takes_new_tools",
    },
    "gpt-live": {
        "resumes_with_its_handle",
        "ends_speech_for_the_user",
        "summarises_out_of_band",
        "forgets_what_was_summarised",
    },
}
"""What is not claimed, and so left out: all else must have been run."""


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("peer", PEERS)
async def test_conforms(peer: str, case: str) -> None:
    assert await run_case(case, PEERS[peer]) is (case not in CLAIMS[peer])


def test_every_case_says_what_it_demands() -> None:
    assert all(case.demand.strip() for case in CASES.values())


# ---- the suite finds what is wrong


Bend = Callable[[RealtimeEvent], Iterator[RealtimeEvent]]


class Broken:
    """The scripted adapter with one thing wrong: `bend` of its events, `lose` of its commands."""

    def __init__(
        self,
        inner: RealtimeAdapter,
        bend: Bend | None,
        lose: Callable[[ProviderCommand], bool],
        capabilities: Capabilities,
    ) -> None:
        self._inner = inner
        self._bend = bend
        self._lose = lose
        self.provider, self.model, self.capabilities = "broken", inner.model, capabilities

    async def connect(self, setup: Setup, emit: Emit, group: asyncio.TaskGroup) -> Connection:
        def bent(event: RealtimeEvent) -> None:
            for one in self._bend(event) if self._bend else (event,):
                emit(one)

        connection = await self._inner.connect(setup, bent, group)
        tell = connection.tell
        connection.tell = lambda command: None if self._lose(command) else tell(command)  # type: ignore[method-assign]
        return connection


def broken_peer(
    bend: Bend | None = None,
    lose: Callable[[ProviderCommand], bool] = lambda command: False,
    **claims: object,
) -> MakePeer:
    @asynccontextmanager
    async def make() -> AsyncIterator[Peer]:
        peer = ScriptedPeer()
        can = replace(peer.scripted.capabilities, **claims)  # type: ignore[arg-type]
        peer.under_test = Broken(peer.scripted, bend, lose, can)
        yield peer

    return make


def _without(kind: type[RealtimeEvent]) -> Bend:
    def bend(event: RealtimeEvent) -> Iterator[RealtimeEvent]:
        if not isinstance(event, kind):
            yield event

    return bend


def _twice(kind: type[RealtimeEvent]) -> Bend:
    def bend(event: RealtimeEvent) -> Iterator[RealtimeEvent]:
        yield event
        if isinstance(event, kind):
            yield event

    return bend


def _half(event: RealtimeEvent) -> Iterator[RealtimeEvent]:
    yield replace(event, pcm=event.pcm[::2]) if isinstance(event, Audio) else event


def _renamed(event: RealtimeEvent) -> Iterator[RealtimeEvent]:
    renames = isinstance(event, Words) and event.role == "user"
    yield replace(event, item_id="other") if isinstance(event, Words) and renames else event


def _unasked(event: RealtimeEvent) -> Iterator[RealtimeEvent]:
    yield replace(event, request_id="") if isinstance(event, ResponseStarted) else event


def _calm(event: RealtimeEvent) -> Iterator[RealtimeEvent]:
    yield replace(event, clean=True) if isinstance(event, Closed) else event


class Holed:
    """Loses every second chunk of sound."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, command: ProviderCommand) -> bool:
        self._count += isinstance(command, SendAudio)
        return isinstance(command, SendAudio) and self._count % 2 == 0 and any(command.pcm)


FAULTS: dict[str, tuple[str, MakePeer]] = {
    "Closed twice": ("closes_in_order", broken_peer(_twice(Closed))),
    "no Opened": ("opens_before_anything", broken_peer(_without(Opened))),
    "no Interrupted": ("confirms_every_cut", broken_peer(_without(Interrupted))),
    "Interrupted twice": ("confirms_every_cut", broken_peer(_twice(Interrupted))),
    "no ItemDone": ("tells_a_broken_connection", broken_peer(_without(ItemDone))),
    "no ResponseDone": ("tells_a_broken_connection", broken_peer(_without(ResponseDone))),
    "UserTurn twice": ("tells_a_users_turn_once", broken_peer(_twice(UserTurn))),
    "words of another item": ("tells_a_users_turn_once", broken_peer(_renamed)),
    "calls twice": ("tells_calls_and_takes_results", broken_peer(_twice(ToolCalls))),
    "half the sound": ("tells_speech_from_beginning_to_end", broken_peer(_half)),
    "no request ids": ("answers_typed_text", broken_peer(_unasked)),
    "a break called clean": ("tells_a_broken_connection", broken_peer(_calm)),
    "sound with holes": ("carries_sound_to_the_sample", broken_peer(lose=Holed())),
    "results lost": (
        "tells_calls_and_takes_results",
        broken_peer(lose=lambda command: isinstance(command, SendToolResults)),
    ),
    "cuts ignored": (
        "ends_what_is_cut",
        broken_peer(lose=lambda command: isinstance(command, CutOutput)),
    ),
    "usage in time is claimed": ("counts_what_was_used", broken_peer(usage="duration")),
}
"""What is wrong -> the case that must find it, and a peer with that adapter."""


@pytest.mark.parametrize("wrong", FAULTS)
async def test_a_broken_adapter_is_found(wrong: str) -> None:
    case, make = FAULTS[wrong]
    with pytest.raises(NonConforming, match="the port demands: "):
        await run_case(case, make)


def test_the_grammar_names_what_it_misses() -> None:
    good: list[RealtimeEvent] = [
        Opened("s"),
        ResponseStarted("r"),
        Audio("i", b"\0\0"),
        ItemDone("i"),
        ResponseDone("r"),
        Closed("1000", clean=True),
    ]
    assert_well_formed(good)
    for at in range(len(good)):
        if not isinstance(good[at], Audio):
            with pytest.raises(NonConforming):
                assert_well_formed(good[:at] + good[at + 1 :])
    with pytest.raises(NonConforming, match="no sound"):
        assert_well_formed([*good[:4], good[2], *good[4:]])
    with pytest.raises(NonConforming, match="CutOutput"):
        assert_well_formed(good, [CutOutput()])
