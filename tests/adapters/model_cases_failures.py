"""What a model makes of a server that refuses, fails, lies, stalls or goes away."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import pytest

from tests.adapters.model_rig import HELLO, NOW, ModelRig, Said, asks, results, said
from voxglove.core.messages import Message, ToolCall, ToolResultData
from voxglove.core.model import ModelLimits

REFUSALS = [
    (400, "ERR_MODEL_REFUSED", False),
    (401, "ERR_MODEL_AUTH", False),
    (403, "ERR_MODEL_AUTH", False),
    (404, "ERR_MODEL_REFUSED", False),
    (413, "ERR_MODEL_TOO_LARGE", False),
    (429, "ERR_MODEL_RATE_LIMIT", True),
    (500, "ERR_MODEL_SERVER", True),
    (503, "ERR_MODEL_SERVER", True),
    (504, "ERR_MODEL_SERVER", True),
    (529, "ERR_MODEL_SERVER", True),
]
WRONG_KEY = "wrong-key-0123456789abcdef"
NOW_CALLED = ToolCall("now", {}, "c1")
BEHIND_RESULTS = replace(
    HELLO,
    messages=(
        *HELLO.messages,
        asks(NOW_CALLED),
        results(("now", "c1", ToolResultData("success", "noon"))),
    ),
    tools=(NOW,),
)
CLOSED_S = 2.0
"""A busy machine's time to see that a client has left; how soon it leaves is measured elsewhere."""


class FailureCases:
    """Promises of every model behind a server."""

    rig: ClassVar[ModelRig]

    async def test_refusals_say_whether_to_try_again(self) -> None:
        scripts = [said(status=status) for status, _, _ in REFUSALS]
        for stream in self.rig.modes:
            async with self.rig.asked(*scripts, stream=stream) as asking:
                for status, code, retryable in REFUSALS:
                    error = await asking.fail()
                    assert (status, error.code, error.retryable) == (status, code, retryable)
                    assert error.__cause__ is not None or not self.rig.has_sdk
                    assert error.retry_after_s is None
            assert len(asking.server.bodies) == len(REFUSALS), "the SDK retried by itself"

    async def test_a_wish_to_wait_is_passed_on(self) -> None:
        wishes = [
            (429, {"retry-after": "7"}, 7.0),
            (503, {"retry-after": "3"}, 3.0),
            (429, {"retry-after-ms": "2500"}, 2.5),
        ]
        scripts = [said(status=status, headers=headers) for status, headers, _ in wishes]
        async with self.rig.asked(*scripts) as asking:
            errors = [await asking.fail() for _ in wishes]
        assert [error.retry_after_s for error in errors] == [wish for _, _, wish in wishes]

    async def test_a_wrong_key_is_refused_and_not_shown(self) -> None:
        async with self.rig.asked(said("x"), key=WRONG_KEY) as asking:
            error = await asking.fail()
        assert (error.code, error.retryable) == ("ERR_MODEL_AUTH", False)
        assert WRONG_KEY not in f"{error}{error!r}{asking.model!r}"

    async def test_nobody_listening_can_be_tried_again(self) -> None:
        async with self.rig.asked(base_url="http://127.0.0.1:9") as asking:
            error = await asking.fail()
        assert (error.code, error.retryable) == ("ERR_MODEL_CONNECTION", True)

    async def test_an_error_inside_the_stream_is_an_error(self) -> None:
        async with self.rig.asked(said("Hal", breaks=True)) as asking:
            error = await asking.fail()
        assert (error.code, error.retryable) == ("ERR_MODEL_SERVER", True)
        assert asking.deltas() == ["Hal"] and asking.kinds() == ["TextDelta"]

    @pytest.mark.parametrize("ending", ["early", "drop"])
    async def test_a_stream_that_ends_early_is_no_answer_and_names_no_call(
        self, ending: str
    ) -> None:
        cut = said("Hal", calls=(NOW_CALLED,), ending=ending)
        async with self.rig.asked(cut, said("Hi.")) as asking:
            error = await asking.fail(replace(HELLO, tools=(NOW,)))
            assert asking.kinds() == ["TextDelta"]
            assert (error.code, error.retryable) == ("ERR_MODEL_CONNECTION", True)
            assert (await asking.ask()).messages[0].text == "Hi.", "it is usable afterwards"

    async def test_garbage_in_the_stream_is_named_and_closes_it(self) -> None:
        scripts = [
            said("Hm", garbage=garbage, ending=ending)
            for garbage in self.rig.garbage
            for ending in ("early", "stall")
        ]
        async with self.rig.asked(*scripts) as asking:
            for script in scripts:
                asking.server.closed.clear()
                error = await asking.fail()
                assert (script.garbage, error.code) == (script.garbage, "ERR_MODEL_PROTOCOL")
                assert not error.retryable
                if script.ending == "stall":
                    async with asyncio.timeout(CLOSED_S):
                        await asking.server.closed.wait()

    async def test_what_is_no_answer_at_all_is_an_error(self) -> None:
        bodies = (b"", b"<html>", b"{oops", b"{}", b'"hello"', b"[1]")
        for stream in self.rig.modes:
            async with self.rig.asked(*(said(body=body) for body in bodies), stream=stream) as ask:
                codes = [(await ask.fail()).code for _ in bodies]
            assert set(codes) <= {
                "ERR_MODEL_CONNECTION",
                "ERR_MODEL_PROTOCOL",
                "ERR_MODEL_EMPTY",
            }
            assert stream or codes[2] == "ERR_MODEL_PROTOCOL"

    async def test_events_of_tomorrow_are_passed_over(self) -> None:
        async with self.rig.asked(said("Hi.", noise=self.rig.noise)) as asking:
            assert (await asking.ask()).messages[0].text == "Hi."

    async def test_letters_split_across_packets_stay_whole(self) -> None:
        words = ("Grüße ☺ ", "\u2028日本 ", "👩‍🍳")
        async with self.rig.asked(said(*words, split=3)) as asking:
            result = await asking.ask()
        assert asking.deltas() == list(words) and result.messages[0].text == "".join(words)

    async def test_a_silent_server_is_given_up(self) -> None:
        scripts = [said("Hm", ending=ending) for ending in ("stall", "half_open")]
        async with self.rig.asked(*scripts, timeout_s=0.4) as asking:
            for _ in scripts:
                asking.server.closed.clear()
                error = await asking.fail()
                assert (error.code, error.retryable) == ("ERR_MODEL_STALLED", True)
                async with asyncio.timeout(CLOSED_S):
                    await asking.server.closed.wait()

    async def test_the_limit_of_a_request_bounds_the_whole_call(self) -> None:
        limited = replace(HELLO, limits=ModelLimits(timeout_s=0.1))
        loop = asyncio.get_running_loop()
        for stream in self.rig.modes:
            scripts = [said("Hm", ending=ending) for ending in ("stall", "half_open")]
            async with self.rig.asked(*scripts, stream=stream) as asking:
                for _ in scripts:
                    started = loop.time()
                    error = await asking.fail(limited)
                    assert (error.code, error.retryable) == ("ERR_MODEL_STALLED", True)
                    assert 0.09 < loop.time() - started < 2, "a silence of 5 s is allowed"

    async def test_a_reporter_that_fails_closes_the_stream(self) -> None:
        async with self.rig.asked(said("One", ending="stall")) as asking:

            def fail(event: object) -> None:
                raise RuntimeError("no ears")

            with pytest.raises(RuntimeError, match="no ears"):
                await asking.model.prompt(HELLO, fail, asking.token)
            async with asyncio.timeout(CLOSED_S):
                await asking.server.closed.wait()


class JudgingCases:
    """Of a vendor's model: what is no answer. A remote model leaves that to its server."""

    rig: ClassVar[ModelRig]

    async def test_half_a_whole_answer_is_a_broken_connection(self) -> None:
        async with self.rig.asked(said("x" * 500, ending="drop"), stream=False) as asking:
            error = await asking.fail()
        assert (error.code, error.retryable) == ("ERR_MODEL_CONNECTION", True)

    async def test_an_empty_answer_is_one_only_where_nothing_may_be_left_to_say(self) -> None:
        note = Message(sender="user", text="It is noon.", framework_context="runtime")
        noted = replace(BEHIND_RESULTS, messages=(*BEHIND_RESULTS.messages, note))
        woken = replace(
            HELLO, messages=(*HELLO.messages, Message(sender="agent", text="Hi."), note)
        )
        for stream in self.rig.modes:
            scripts = [said() for _ in range(4)]
            async with self.rig.asked(*scripts, stream=stream) as asking:
                for request in (BEHIND_RESULTS, noted, woken):
                    assert (await asking.ask(request)).messages[0].text == ""
                error = await asking.fail()
            assert (error.code, error.retryable) == ("ERR_MODEL_EMPTY", False)

    async def test_an_answer_that_was_ended_before_it_began_is_an_error(self) -> None:
        for stream, script in _each(self.rig, said(stop="max_tokens"), said(stop="refusal")):
            async with self.rig.asked(script, stream=stream) as asking:
                error = await asking.fail(BEHIND_RESULTS)
            wanted = {"max_tokens": "ERR_MODEL_EMPTY", "refusal": "ERR_MODEL_REFUSED"}
            assert (error.code, error.retryable) == (wanted[script.stop], False)
            assert asking.kinds() == []


def _each(rig: ModelRig, *scripts: Said) -> Iterator[tuple[bool, Said]]:
    for stream in rig.modes:
        for script in scripts:
            yield stream, script
