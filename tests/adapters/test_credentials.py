"""Keys: found in the environment that was given, never shown."""

from __future__ import annotations

import pickle

import pytest

from voxglove.adapters.credentials import Secret, find, require
from voxglove.adapters.errors import CredentialsRejected

KEY = "sk-live-0123456789abcdefghij"


def test_a_secret_shows_its_end_at_most() -> None:
    secret = Secret(KEY)
    for shown in (repr(secret), str(secret), f"{secret}", f"{secret:>40}", f"{[secret]}"):
        assert "ghij" in shown and "0123" not in shown
    assert secret.reveal() == KEY


def test_a_short_secret_shows_nothing() -> None:
    assert repr(Secret("hunter2")) == "Secret(…)"


def test_a_secret_is_not_pickled() -> None:
    with pytest.raises(TypeError, match="variable"):
        pickle.dumps(Secret(KEY))


def test_the_first_variable_that_is_set_wins() -> None:
    env = {"A": "  ", "B": f" {KEY}\n", "C": "other"}
    assert find(env, "A", "B", "C") == Secret(KEY)
    assert find(env, "A", "Z") is None
    assert require(env, "C") == Secret("other")


def test_a_missing_key_is_asked_for_by_name() -> None:
    with pytest.raises(CredentialsRejected, match="OPENAI_API_KEY or VOXGLOVE_KEY") as caught:
        require({}, "OPENAI_API_KEY", "VOXGLOVE_KEY")
    assert not caught.value.retryable
