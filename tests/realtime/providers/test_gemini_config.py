"""Options of Gemini Live: checked against the model's generation, and where they lead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from voxglove.adapters.credentials import Secret
from voxglove.core.errors import UsageError
from voxglove.realtime.providers.gemini import (
    GeminiLiveAdapter,
    GeminiLiveConfig,
    socket_config,
)

MODELS = {
    "3.8": "gemini-3.8-live",
    "3.1": "gemini-3.1-flash-live-preview",
    "2.5": "gemini-2.5-flash-native-audio-preview-12-2025",
}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"key": Secret("")}, "key: set GEMINI_API_KEY"),
        ({"model": " "}, "model: name one"),
        ({"voice": ""}, "voice: name one"),
        ({"base_url": "https://x"}, "base_url: use wss://"),
        ({"temperature": 3.0}, "temperature: use 0 to 2"),
        ({"silence_duration_ms": -1}, "silence_duration_ms: use 0 or more"),
        ({"connect_s": 0.0}, "connect_s: use more than 0"),
        ({"compression_target_tokens": 100_000}, "compression_target_tokens: keep it below"),
        ({"thinking_level": "low"}, "thinking_level: gemini-3.8-live takes none"),
        ({"proactive_audio": False}, "proactive_audio: gemini-3.8-live gives no choice"),
        ({"affective_dialog": True}, "affective_dialog: gemini-3.8-live has none"),
        ({"model": "gemini-3.1-flash-live-preview", "blocking_tools": False}, "blocking_tools"),
        ({"model": "gemini-3.1-flash-live-preview", "thinking_budget": 0}, "thinking_budget"),
        ({"thinking_level": "low", "thinking_budget": 1}, "or thinking_budget, not both"),
    ],
)
def test_an_option_that_the_provider_would_refuse_is_refused_first(
    options: dict[str, object], named: str
) -> None:
    values: dict[str, object] = {"key": Secret("k"), **options}
    with pytest.raises(UsageError, match=named):
        GeminiLiveConfig(**values)  # type: ignore[arg-type]


def test_what_a_generation_can_do_stands_in_its_capabilities() -> None:
    made = {}
    for name, model in MODELS.items():
        config = GeminiLiveConfig(key=Secret("k"), model=model)
        made[name] = GeminiLiveAdapter(config).capabilities
    assert [can.update_tools for can in made.values()] == ["live", "reconnect", "reconnect"]
    for can in made.values():
        assert (can.input_format.rate, can.output_format.rate) == (16_000, 24_000)
        assert can.resume
        assert can.closes_first
        assert not can.can_cancel
    config = GeminiLiveConfig(key=Secret("k"), thinking_level="low", model="x-extended-thinking")
    assert config.generation.context_update, "a name without a number is of the newest"


def test_options_of_an_older_generation_need_its_other_version() -> None:
    model = MODELS["2.5"]
    plain = GeminiLiveConfig(key=Secret("k"), model=model)
    assert ".v1beta." in socket_config(plain).url
    for other in (replace(plain, affective_dialog=True), replace(plain, proactive_audio=True)):
        assert ".v1alpha." in socket_config(other).url


def test_field_fault_58_a_pong_that_takes_thirty_seconds_ends_nothing() -> None:
    socket = socket_config(GeminiLiveConfig(key=Secret("k")))
    assert socket.pong_s >= 30
    assert socket.ping_s is not None
    assert socket.ping_s + socket.pong_s == 35, "and a half-open one is noticed (invariant 8)"


def test_a_version_between_two_has_the_facts_of_the_older_one() -> None:
    since = [
        GeminiLiveConfig(key=Secret("k"), model=model).generation.since
        for model in ("gemini-1.5", "gemini-2.5-x", "gemini-3.5-live", "gemini-4.0", "tuned")
    ]
    assert since == [(2, 0), (2, 0), (3, 0), (3, 8), (3, 8)]


def test_the_key_is_never_shown() -> None:
    config = GeminiLiveConfig(key=Secret("AIzaSecretOfSomebody"))
    assert "Secret" in repr(config)
    assert "AIza" not in repr(config) + repr(socket_config(config)) + socket_config(config).url
