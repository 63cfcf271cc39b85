"""What stands on a display: a slot, a change of the stack, and which slots a page shows.

Plain values; display.py owns the stack of them and is where they are imported from.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

DisplayStrategy = Literal["stay", "hide-on-complete", "hide-on-new"]
STRATEGIES: tuple[DisplayStrategy, ...] = ("stay", "hide-on-complete", "hide-on-new")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One thing on the stack; `renderer` names what draws it, `input` is its JSON props."""

    id: str
    renderer: str
    input: object
    strategy: DisplayStrategy = "stay"
    tool_call_id: str | None = None
    tool_name: str | None = None


@dataclass(frozen=True, slots=True)
class DisplayChange:
    """What listeners get: the slot that came or went, and the stack after it (bottom to top)."""

    kind: Literal["pushed", "removed"]
    slot: Slot
    stack: tuple[Slot, ...]


DisplayListener = Callable[[DisplayChange], None]


def visible_slots(slots: Sequence[Slot], pending: Iterable[str]) -> list[Slot]:
    """The slots a page shows (spec core 8): `stay` always, `hide-on-complete` while an answer is
    pending, `hide-on-new` only as the newest slot of its tool (its renderer without a tool)."""
    waiting = set(pending)
    newest = {slot.tool_name or slot.renderer: slot.id for slot in slots}

    def is_visible(slot: Slot) -> bool:
        if slot.strategy == "hide-on-complete":
            return slot.id in waiting
        if slot.strategy == "hide-on-new":
            return newest[slot.tool_name or slot.renderer] == slot.id
        return True

    return [slot for slot in slots if is_visible(slot)]
