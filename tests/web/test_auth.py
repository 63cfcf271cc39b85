"""Tokens, origins and keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxglove.web.auth import (
    Signer,
    TokenRefused,
    is_loopback,
    key_allowed,
    new_call_id,
    origin_allowed,
)


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_a_token_says_what_was_signed_until_it_expires() -> None:
    clock = Clock()
    signer = Signer(b"k" * 32, clock)
    token, expires_at = signer.sign("call_1", "demo", "start", 60)
    grant = signer.read(token)
    assert (grant.call_id, grant.agent, grant.purpose) == ("call_1", "demo", "start")
    assert grant.expires_at == expires_at == 1_060
    clock.now = 1_060
    with pytest.raises(TokenRefused, match="expired"):
        signer.read(token)


def test_a_token_of_another_secret_is_refused_and_secrets_stay_hidden() -> None:
    ours, other = Signer.of("a" * 20), Signer.of("b" * 20)
    with pytest.raises(TokenRefused, match="not signed"):
        ours.read(other.sign("c", "a", "start", 60)[0])
    assert "aaaa" not in repr(ours)
    assert Signer.of(None).secret != Signer.of(None).secret


@given(st.integers(0, 10_000), st.characters())
def test_no_changed_character_goes_unnoticed(at: int, other: str) -> None:
    signer = Signer(b"k" * 32, lambda: 0.0)
    token, _ = signer.sign("call_1", "demo", "attach", 60)
    at %= len(token)
    if token[at] == other:
        return
    forged = token[:at] + other + token[at + 1 :]
    try:
        assert signer.read(forged) == signer.read(token)  # unused bits of base64's last character
    except TokenRefused:
        return


@given(st.text(max_size=200))
def test_noise_is_no_token(noise: str) -> None:
    with pytest.raises(TokenRefused):
        Signer(b"k" * 32, lambda: 0.0).read(noise)


ORIGINS = [
    ("http://127.0.0.1:8080", "127.0.0.1:8080", "http", (), True),
    ("http://LOCALHOST:8080", "localhost:8080", "http", (), True),
    ("http://localhost", "localhost:80", "http", (), True),
    ("https://vox.example", "vox.example", "https", (), True),
    ("http://[::1]:8080", "[::1]:8080", "http", (), True),
    ("http://127.0.0.1:8081", "127.0.0.1:8080", "http", (), False),
    ("http://localhost:8080", "127.0.0.1:8080", "http", (), False),
    ("https://127.0.0.1:8080", "127.0.0.1:8080", "http", (), False),
    ("http://127.0.0.1:8080.evil.example", "127.0.0.1:8080", "http", (), False),
    ("https://evil.example", "127.0.0.1:8080", "http", (), False),
    ("null", "127.0.0.1:8080", "http", (), False),
    ("file://", "127.0.0.1:8080", "http", (), False),
    ("", "127.0.0.1:8080", "http", (), False),
    ("https://app.example", "vox.example", "https", ("https://app.example",), True),
    ("https://app.example.evil", "vox.example", "https", ("https://app.example",), False),
    ("https://any.example", "vox.example", "https", ("*",), True),
]


@pytest.mark.parametrize(("origin", "host", "scheme", "allowed", "fine"), ORIGINS)
def test_origins(origin: str, host: str, scheme: str, allowed: tuple[str, ...], fine: bool) -> None:
    assert origin_allowed(origin, host, scheme, allowed) is fine


@pytest.mark.parametrize(
    ("header", "fine"),
    [
        ("Bearer one", True),
        ("bearer two", True),
        ("Bearer  two ", True),
        ("Bearer three", False),
        ("Basic one", False),
        ("Bearer", False),
        ("", False),
        (None, False),
        ("Bearer é", False),
    ],
)
def test_keys(header: str | None, fine: bool) -> None:
    assert key_allowed(header, ("one", "two")) is fine
    assert not key_allowed(header, ())


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("", False),
        ("localhost.evil.example", False),
    ],
)
def test_loopback(host: str, local: bool) -> None:
    assert is_loopback(host) is local


def test_call_ids_are_unique_and_safe_as_file_names() -> None:
    ids = {new_call_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(name.replace("_", "").isalnum() for name in ids)
