"""A realtime model on a call over /ws: the same messages as from the cascade."""

from __future__ import annotations

from base64 import b64encode

import pytest
from pydantic import BaseModel

from tests.simulators import tone_words
from tests.simulators.realtime_script import Asked, Fault, Reply, Script
from tests.simulators.realtime_script import Call as ModelCall
from tests.web.client import Client
from tests.web.realtime_site import (
    PROVIDERS,
    Microphone,
    Provider,
    codes,
    events,
    heard,
    on_the_line,
    realtime_site,
)
from voxglove.core import Tool, ToolContext


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


LONG = " ".join(tone_words.WORDS[10:28])


def long_answer(asked: Asked) -> Reply:
    return Reply(text=LONG if "alpha" in asked.text else "golf hotel")


@pytest.mark.parametrize("provider", ["openai", "gemini"])
async def test_a_caller_who_speaks_cuts_the_answer(provider: Provider) -> None:
    async with (
        realtime_site(provider, Script(answer=long_answer)) as here,
        on_the_line(here) as (client, mouth),
    ):
        await interrupted(client, mouth)
        cut = next(one for one in client.texts if one["t"] == "heard")
        assert cut["interrupted"] and str(cut["heard"]).startswith("alpha"), cut
        assert str(cut["unheard"]).strip(), cut
        assert [one["event"] for one in events(client, "response")][:3] == [
            *("started", "audio", "cut"),
        ]
        assert [one["event"] for one in events(client, "interruption")][-1] == "cut"
        await client.until(lambda one: heard(one, "golf hotel"), 10)
        assert here.provider.turns[-1] == "bravo charlie delta"
        assert codes(client) == []


async def test_a_model_that_hears_while_it_speaks_falls_silent_by_itself() -> None:
    async with (
        realtime_site("gpt-live", Script(answer=long_answer)) as here,
        on_the_line(here) as (client, mouth),
    ):
        await interrupted(client, mouth)
        said = next(one for one in client.texts if one["t"] == "heard")
        assert str(said["heard"]).startswith("alpha bravo") and "romeo" not in str(said["heard"])
        assert not said["interrupted"] and said["unheard"] == "", "it said no more than was heard"
        await client.until(lambda one: heard(one, "golf hotel"), 10)
        assert here.provider.turns[-1] == "bravo charlie delta"
        assert codes(client) == []


async def interrupted(client: Client, mouth: Microphone) -> None:
    """The caller asks, listens for a second, and speaks again; until the answer is over."""
    mouth.say("alpha")
    await client.until(lambda one: "speaking" in one.states(), 6)
    await client.until(lambda one: len(one.audio) > 32_000 * 1.2, 4)
    mouth.say("bravo charlie delta")
    await client.until(lambda one: "heard" in one.kinds(), 6)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_tool_waits_for_the_persons_answer_and_then_runs_once(provider: Provider) -> None:
    ran: list[str] = []

    class Table(BaseModel):
        name: str

    async def book(given: Table, context: ToolContext) -> str:
        ran.append(given.name)
        return "mike"

    def answer(asked: Asked) -> Reply:
        if asked.by == "results":
            return Reply(text=f"golf {' '.join(asked.results.values())}")
        return Reply(calls=(ModelCall(name="book", arguments={"name": "kilo"}),))

    tool = Tool(
        name="book", description="Books.", input_model=Table, do=book, requires_permission=True
    )
    async with (
        realtime_site(provider, Script(answer=answer), tools=[tool]) as here,
        on_the_line(here) as (client, mouth),
    ):
        mouth.say("alpha bravo")
        slot = await client.until_kind("slot", 8)
        assert slot["renderer"] == "permission_request" and ran == []
        await client.say(t="resolve", id=slot["id"], value=True)
        await client.until(lambda one: heard(one, "golf"), 8)
        assert ran == ["kilo"]
        told = [(one["event"], one.get("status")) for one in events(client, "tool")]
        assert told == [("started", None), ("result", "success")]
        assert "slot_removed" in client.kinds() and codes(client) == []


async def test_an_answer_in_writing_is_shown_and_nothing_sounds() -> None:
    script = Script(answer=lambda asked: Reply(text=f"echo {asked.text}", text_only=True))
    options: dict[str, object] = {"text_only": True}
    async with (
        realtime_site("openai", script, options=options) as here,
        on_the_line(here) as (client, mouth),
    ):
        mouth.say("alpha bravo")
        await client.until(lambda one: heard(one, "echo alpha bravo"), 8)
        await client.until(lambda one: len(events(one, "response")) == 2)
        (told,) = [one for one in client.texts if one["t"] == "heard"]
        assert told["unheard"] == "" and not told["interrupted"] and told["turnId"] == 1
        assert [one["event"] for one in events(client, "response")] == ["started", "ended"]
        await client.say(t="say", text="kilo")
        await client.until(lambda one: heard(one, "echo kilo"), 8)
        assert bytes(client.audio).strip(b"\0") == b"" and codes(client) == []


PICTURE = b"\xff\xd8\xff\xe0" + bytes(60)


def picture(*, live: bool) -> dict[str, object]:
    data = b64encode(PICTURE).decode()
    return {"t": "image", "mime": "image/jpeg", "data": data} | ({"live": True} if live else {})


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("provider", ["openai", "gemini"])
async def test_a_picture_is_seen_by_the_answer_to_the_next_words(
    provider: Provider, live: bool
) -> None:
    script = Script(answer=lambda asked: Reply(text=f"{('zero', 'one', 'two')[asked.images]} kilo"))
    async with realtime_site(provider, script) as here, on_the_line(here) as (client, _):
        if live:  # a camera's picture of the time before the call is up is no loss
            await client.say(t="say", text="bravo")
            await client.until(lambda one: heard(one, "zero kilo"), 8)
        await client.say(**picture(live=live))
        await client.say(t="say", text="alpha")
        await client.until(lambda one: heard(one, "one kilo"), 8)
        assert codes(client) == [] and here.provider.violations == []


async def test_a_model_without_eyes_says_so_once() -> None:
    async with realtime_site("gpt-live", Script()) as here, on_the_line(here) as (client, _):
        for live in (False, True, True):
            await client.say(**picture(live=live))
        await client.say(t="say", text="alpha")
        await client.until(lambda one: heard(one, "echo"), 8)
        told = [one for one in client.texts if one["t"] == "error"]
        assert len(told) == 1 and "no pictures" in str(told[0]["message"])
        assert here.provider.violations == []


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_provider_that_drops_the_connection_is_come_back_to(provider: Provider) -> None:
    script = Script(faults=[Fault(point="turn_taken", action="drop", nth=2)])
    async with realtime_site(provider, script) as here, on_the_line(here) as (client, mouth):
        mouth.say("alpha bravo")
        await client.until(lambda one: heard(one, "echo alpha bravo"), 10)
        mouth.say("charlie delta")
        await client.until(lambda one: bool(events(one, "reconnected")), 10)
        (told,) = events(client, "reconnected")
        assert told["planned"] is False and told["attempt"] == 1
        assert told["restored"] is (provider == "gemini")
        await client.until(lambda one: heard(one, "echo charlie delta"), 10)
        said = [one["text"] for one in client.texts if one["t"] == "utterance"]
        assert said == ["alpha bravo", "charlie delta"] and "bye" not in client.kinds()
