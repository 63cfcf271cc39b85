"""The vendors' SDKs are heavy: loaded only for the model that needs them, and perhaps missing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.adapters.model_values import NAMES
from voxglove.adapters.credentials import Secret
from voxglove.adapters.models.anthropic import AnthropicConfig, AnthropicModel
from voxglove.adapters.models.connections import kept_open
from voxglove.adapters.models.gemini import GeminiConfig, GeminiModel
from voxglove.adapters.models.wire_names import WireNames, WordRule
from voxglove.core.errors import ModelError, UsageError
from voxglove.core.model import Model

MAKERS: dict[str, Callable[[Secret], Model]] = {
    "anthropic": lambda key: AnthropicModel(AnthropicConfig(model="m"), key),
    "google.genai": lambda key: GeminiModel(GeminiConfig(model="m"), key),
}


def test_no_sdk_is_loaded_before_a_model_is_made() -> None:
    code = (
        "import sys, voxglove.adapters.models.anthropic, voxglove.adapters.models.gemini\n"
        "heavy = {'anthropic', 'google.genai', 'httpx2', 'openai'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("sdk", MAKERS)
def test_a_missing_sdk_is_named_with_the_remedy(sdk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, sdk, None)
    with pytest.raises(ModelError, match="pip install 'voxglove") as caught:
        MAKERS[sdk](Secret("x"))
    assert caught.value.code == "ERR_MODEL_MISSING"


@pytest.mark.parametrize("sdk", MAKERS)
def test_without_a_key_nothing_is_looked_up(sdk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from the machine")
    monkeypatch.setenv("GOOGLE_API_KEY", "from the machine")
    with pytest.raises(UsageError, match="api_key"):
        MAKERS[sdk](Secret(""))


RULES = [
    WordRule(letters="A-Za-z0-9_-", first="A-Za-z0-9_-", longest=64),
    WordRule(letters="A-Za-z0-9_.-", first="A-Za-z_", longest=64),
]


@pytest.mark.parametrize("rule", RULES)
@given(st.lists(NAMES, unique=True, max_size=6))
@example(["look", "files/read", "files.read", "ключ", "", "9lives", "x" * 200, "x" * 201, " "])
def test_every_name_fits_its_wire_and_comes_back(rule: WordRule, names: list[str]) -> None:
    shown = WireNames(rule, names)
    wire = [shown.wire(name) for name in names]
    assert all(rule.takes(word) for word in wire) and len(set(wire)) == len(names)
    assert [shown.ours(word) for word in wire] == names


def test_a_name_that_fits_stays_and_one_nobody_was_shown_passes() -> None:
    for rule in RULES:
        shown = WireNames(rule, ["look"])
        assert shown.wire("look") == "look" and shown.ours("unheard_of") == "unheard_of"


def test_connections_outlive_a_turn() -> None:
    assert kept_open().keepalive_expiry == 60, "the clients' own 5 s are shorter than a turn"
