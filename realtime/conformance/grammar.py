"""The grammar of a connection's events: what holds for any adapter, whatever happened on the call.

Pure: reads events, knows no adapter and waits for nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from ..commands import CutOutput, ProviderCommand
from ..events import (
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

E = TypeVar("E")


class NonConforming(AssertionError):
    """An adapter did not do what the port demands."""


def assert_well_formed(
    events: Sequence[RealtimeEvent], commands: Sequence[ProviderCommand] = ()
) -> None:
    """Hold all events of one connection, from Opened to Closed, to the grammar of `events`.

    `commands` are what it was told. Raises NonConforming.
    """
    for demand, holds in _grammar(events, commands):
        if not holds:
            raise NonConforming(f"the port demands: {demand}\n  told: {brief(events)}")


def _grammar(
    events: Sequence[RealtimeEvent], commands: Sequence[ProviderCommand]
) -> list[tuple[str, bool]]:
    def ids(kind: type[E], key: Callable[[E], str]) -> Counter[str]:
        return Counter(key(event) for event in events if isinstance(event, kind))

    started = ids(ResponseStarted, lambda event: event.response_id)
    ended = ids(ResponseDone, lambda event: event.response_id)
    final = ids(Words, lambda event: event.item_id if event.final else "")
    final.pop("", None)
    cuts = sum(isinstance(command, CutOutput) for command in commands)
    stops = sum(isinstance(event, Interrupted) for event in events)
    opened = [at for at, event in enumerate(events) if isinstance(event, Opened)]
    closed = [at for at, event in enumerate(events) if isinstance(event, Closed)]
    calls = ids(ToolCalls, lambda event: event.response_id)
    return [
        ("Opened comes first, exactly once (events.Opened)", opened == [0]),
        ("Closed comes last, exactly once (events.Closed)", closed == [len(events) - 1]),
        ("a response begins once (events.ResponseStarted)", _once(started)),
        ("one ResponseDone for each ResponseStarted, before Closed", started == ended),
        ("ItemDone at most once for an item", _once(ids(ItemDone, lambda event: event.item_id))),
        ("UserTurn at most once for an item", _once(ids(UserTurn, lambda event: event.item_id))),
        ("final Words at most once for an item (events.Words)", _once(final)),
        ("all calls of a response come at once (events.ToolCalls)", _once(calls)),
        ("ToolCalls belong to a response that began", calls.keys() <= started.keys()),
        ("Audio is whole samples and never empty (events.Audio)", _whole(events)),
        ("no sound and no words of an item after its ItemDone", _silent_after(events)),
        ("every item that sounded has an ItemDone before Closed", _items_end(events)),
        ("an Interrupted for every CutOutput (events.Interrupted)", stops >= cuts),
    ]


def _once(counts: Counter[str]) -> bool:
    return all(count == 1 for count in counts.values())


def _whole(events: Sequence[RealtimeEvent]) -> bool:
    sounds = [event.pcm for event in events if isinstance(event, Audio)]
    return all(sound and len(sound) % 2 == 0 for sound in sounds)


def _silent_after(events: Sequence[RealtimeEvent]) -> bool:
    done: set[str] = set()
    for event in events:
        match event:
            case ItemDone(item_id):
                done.add(item_id)
            case Audio(item_id) | Words("assistant", item_id) if item_id in done:
                return False
            case _:
                pass
    return True


def _items_end(events: Sequence[RealtimeEvent]) -> bool:
    sounded = {event.item_id for event in events if isinstance(event, Audio)}
    return sounded <= {event.item_id for event in events if isinstance(event, ItemDone)}


def brief(events: Sequence[RealtimeEvent]) -> str:
    """Kinds and ids, runs of sound as one, the latest forty."""
    told: list[str] = []
    for event in events:
        text = f"Audio({event.item_id})" if isinstance(event, Audio) else str(event)[:120]
        if not told or told[-1] != text:
            told.append(text)
    return ", ".join(told[-40:]) or "nothing"
