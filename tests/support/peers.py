"""Programs a test needs beside Python: skipped without them at a desk, a failure in CI.

A skip that nobody sees is how a suite goes blind, so with CI=true a missing peer fails.
"""

from __future__ import annotations

import os
import shutil

import pytest

PEERS: dict[str, tuple[str, ...]] = {
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "flite": ("flite",),
    "openssl": ("openssl",),
    "coturn": ("turnserver",),
}
"""Debian package -> the names its program may have."""


def in_ci() -> bool:
    """Whether this run may not skip for want of a peer."""
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def require_peer(name: str) -> str:
    """Path of the peer's program.

    Skips the running test when it is missing, or fails it in CI. Raises KeyError for a peer that
    is not in `PEERS`.
    """
    for program in PEERS[name]:
        path = shutil.which(program)
        if path is not None:
            return path
    message = f"{name} is missing: install it (Debian, Ubuntu: apt-get install {name})"
    if in_ci():
        pytest.fail(message, pytrace=False)
    pytest.skip(message)
