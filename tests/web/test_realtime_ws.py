"""A realtime model on a call over /ws: the same messages as from the cascade."""

from __future__ import annotations

import pytest

from tests.simulators import tone_words
from tests.simulators.realtime_script import Script
from tests.web.realtime_site import (
    PROVIDERS,
    Provider,
    codes,
    heard,
    on_the_line,
    realtime_site,
)

pytestmark = [pytest.mark.real_loop]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_spoken_and_typed_words_are_answered_aloud(provider: Provider) -> None:
    async with realtime_site(provider, Script()) as here, on_the_line(here) as (client, mouth):
        mouth.say("alpha bravo")
        await client.until(lambda one: heard(one, "echo alpha bravo"), 8)
        (said,) = [one for one in client.texts if one["t"] == "utterance"]
        assert said["text"] == "alpha bravo" and said["source"] == "speech"
        assert here.provider.turns == ["alpha bravo"]
        await client.say(t="say", text="kilo")
        await client.until(lambda one: heard(one, "echo kilo"), 8)
        told = [one for one in client.texts if one["t"] == "utterance"][-1]
        assert (told["text"], told["source"]) == ("kilo", "typed")
        assert tone_words.read(bytes(client.audio), 16_000)[-2:] == ["echo", "kilo"]
        assert codes(client) == [] and here.provider.violations == []
