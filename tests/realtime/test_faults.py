"""The fault matrix, asserted: a call survives each moment at which a connection can die."""

from __future__ import annotations

import pytest

from tests.realtime.fault_matrix import KILL_POINTS, PROVIDERS, Provider, hold


def test_the_matrix_has_twenty_kill_points() -> None:
    assert len(KILL_POINTS) >= 20


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("point", KILL_POINTS)
async def test_a_call_survives(provider: Provider, point: str) -> None:
    """No word of the caller inside the window is lost or comes twice, nobody is greeted again, no
    tool runs twice, each call has one result (DESIGN 5.6, 5.8)."""
    held = await hold(provider, point)
    assert held.wrong == []
