"""The machine's short way past silent ticks is the long way, in any call."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given, settings

from tests.pipelines import machine_world
from tests.pipelines.machine_world import Manners, Said
from tests.pipelines.test_machine_orders import (
    Maker,
    callers,
    configs,
    held_call,
    manners,
    orders,
)
from voxglove.pipelines import machine
from voxglove.pipelines import vocabulary as voc
from voxglove.pipelines.state import MachineConfig, State

Effects = tuple[voc.Effect, ...]


class _BothWays:
    """`machine.step`, and for every tick the long way beside it."""

    def __init__(self) -> None:
        self.ticks = 0
        self.short = 0

    def __call__(
        self, state: State, event: voc.TurnEvent, config: MachineConfig
    ) -> tuple[State, Effects]:
        found = machine.step(state, event, config)
        if isinstance(event, voc.Tick) and state.line != "closed":
            self.ticks += 1
            self.short += machine._changes_nothing(state, event, config)
            assert found == machine._whole_step(state, event, config)
        return found


@settings(max_examples=25)
@given(configs, callers(), manners, orders)
def test_a_tick_that_is_passed_by_would_have_changed_nothing(
    config: MachineConfig,
    said: list[Said],
    behaviour: Manners,
    given_orders: list[tuple[int, Maker]],
) -> None:
    both = _BothWays()
    with patch.object(machine_world, "step", both):
        held_call(config, said, behaviour, given_orders)
    assert both.short > both.ticks // 10
