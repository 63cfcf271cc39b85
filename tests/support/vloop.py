"""The virtual loop for tests: which loop a test runs on. Never a second implementation of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from voxglove.media.virtual_loop import Stuck, VirtualLoop, run_virtual

__all__ = ["Stuck", "VirtualLoop", "current", "loop_factories", "run_virtual"]

REAL_LOOP_MARKERS = ("real_loop", "browser", "soak")
"""Tests that talk to another process, or measure real time, wait on the real clock."""


def loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The one loop this test runs on: virtual unless a marker asks for the real one."""
    if any(item.get_closest_marker(name) for name in REAL_LOOP_MARKERS):
        return {"real": asyncio.SelectorEventLoop}
    return {"virtual": VirtualLoop}


def current() -> VirtualLoop:
    """The running virtual loop, for `with current().hold():`. Raises where the loop is real."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualLoop):
        raise RuntimeError("this test runs on the real loop: remove its real_loop marker")
    return loop
