"""Ranges, locks and reasons agree: what pyproject.toml asks for is locked and justified."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
SERVED = ("local", "openai", "anthropic", "gemini", "mcp", "postgres", "webrtc")
LOCKS = {
    "requirements.lock": SERVED,
    "requirements-test.lock": (*SERVED, "test"),
}
PYTHONS = ("3.11", "3.12", "3.13")
PIN = re.compile(r"^(?P<requirement>[A-Za-z0-9][^\\]*?)\s*\\?$")


def project() -> dict[str, list[str]]:
    """Extra -> its requirement lines; the base under ''."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {"": config["dependencies"], **config["optional-dependencies"]}


def pins(lock: str, python: str) -> dict[str, Version]:
    """Package -> locked version on Linux under `python`."""
    environment = {"python_version": python, "python_full_version": f"{python}.1"}
    environment |= {"sys_platform": "linux", "os_name": "posix", "platform_system": "Linux"}
    environment |= {"platform_python_implementation": "CPython", "implementation_name": "cpython"}
    found: dict[str, Version] = {}
    for line in (ROOT / lock).read_text().splitlines():
        match = PIN.match(line)
        if not match:
            continue
        requirement = Requirement(match["requirement"])
        if requirement.marker is None or requirement.marker.evaluate(environment):
            (pin,) = requirement.specifier
            assert pin.operator == "=="
            assert requirement.name not in found, f"{requirement.name} is pinned twice"
            found[canonicalize_name(requirement.name)] = Version(pin.version)
    return found


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("lock", LOCKS)
def test_the_lock_satisfies_every_range(lock: str, python: str) -> None:
    locked = pins(lock, python)
    for extra in ("", *LOCKS[lock]):
        for line in project()[extra]:
            wanted = Requirement(line)
            assert wanted.specifier.contains(locked[canonicalize_name(wanted.name)]), line


@pytest.mark.parametrize("python", PYTHONS)
def test_what_is_tested_is_what_is_served(python: str) -> None:
    served, tested = pins("requirements.lock", python), pins("requirements-test.lock", python)
    assert served.items() <= tested.items()


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_hashes_and_no_address(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert "://" not in text
    blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
    assert blocks and all("--hash=sha256:" in block for block in blocks)


def test_every_direct_dependency_has_a_reason() -> None:
    reasons = (ROOT / "docs" / "dependencies.md").read_text()
    listed = set(re.findall(r"^\| `([\w.-]+)`", reasons, flags=re.MULTILINE))
    wanted = {Requirement(line).name for lines in project().values() for line in lines}
    assert wanted <= listed
