"""Programs a test needs beside Python: skipped without them at a desk, a failure in CI.

A skip that nobody sees is how a suite goes blind, so with CI=true a missing peer fails.
"""

from __future__ import annotations

import glob
import os
import re
import shutil

import pytest

PEERS: dict[str, tuple[str, ...]] = {
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "flite": ("flite",),
    "openssl": ("openssl",),
    "coturn": ("turnserver",),
    "postgresql": ("postgres",),
}
"""Debian package -> the names its program may have."""

FOLDERS: dict[str, str] = {"postgresql": "/usr/lib/postgresql/*/bin"}
"""Where Debian keeps programs that are not on the PATH; the highest version counts."""


def in_ci() -> bool:
    """Whether this run may not skip for want of a peer."""
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def require_peer(name: str) -> str:
    """Path of the peer's program.

    Skips the running test when it is missing, or fails it in CI. Raises KeyError for a peer that
    is not in `PEERS`.
    """
    folders = sorted(glob.glob(FOLDERS.get(name, "")), key=_version, reverse=True)
    places = os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)])
    for program in PEERS[name]:
        path = shutil.which(program, path=places)
        if path is not None:
            return path
    message = f"{name} is missing: install it (Debian, Ubuntu: apt-get install {name})"
    if in_ci():
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


def _version(folder: str) -> list[int]:
    """The numbers in a path, so that 15 comes after 9."""
    return [int(number) for number in re.findall(r"\d+", folder)]
