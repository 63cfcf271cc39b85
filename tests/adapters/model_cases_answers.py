"""What an answer is: its events, its tokens, its end; and a real agent that works with it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import ClassVar

import pytest

from tests.adapters.model_rig import (
    HELLO,
    LOOKUP,
    NOW,
    AnswerRig,
    ModelRig,
    agent_of,
    said,
    stopped,
)
from voxglove.core import AbortError, CancelToken, Tool
from voxglove.core.events import ModelResponse, ModelResponseComplete, TextDelta
from voxglove.core.messages import ToolCall, ToolResultData

LOOK = ToolCall("lookup", {"id": 7}, "c1")
TIME = ToolCall("now", {}, "c2")
STRANGE = "tables/free ☺"
SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}}


class AnswerCases:
    """Promises of every model, with a server or without."""

    rig: ClassVar[AnswerRig]

    async def test_core_row_029_deltas_then_calls_then_the_end(self) -> None:
        script = said("One ", "moment", " ☺", calls=(LOOK, TIME), thoughts="They want 7.")
        async with self.rig.asked(script) as asking:
            result = await asking.ask(replace(HELLO, tools=(LOOKUP, NOW)))
        assert "".join(asking.deltas()) == "One moment ☺", "and thoughts are never spoken"
        kinds = asking.kinds()
        assert kinds[-3:] == ["ToolUse", "ToolUse", "ModelResponseComplete"]
        assert set(kinds[:-3]) == {"TextDelta"} and len(kinds) > 4
        assert asking.used() == [("c1", "lookup", {"id": 7}), ("c2", "now", {})]
        (message,), end = result.messages, asking.events[-1]
        made = [(one.tool_name, one.input_args, one.id) for one in message.tool_calls]
        assert made == [("lookup", {"id": 7}, "c1"), ("now", {}, "c2")]
        assert (message.sender, message.text) == ("agent", "One moment ☺")
        assert message.reasoning_content == ("They want 7." if self.rig.thinks else None)
        assert isinstance(end, ModelResponseComplete)
        assert (end.text, end.tool_calls) == (message.text, message.tool_calls)
        assert (end.usage, end.stop_reason) == (result.usage, "tool_use")
        assert result.stop_reason == "tool_use"

    async def test_core_row_032_tokens_are_counted_cached_ones_too(self) -> None:
        async with self.rig.asked(said("Hi.", counted=self.rig.usage)) as asking:
            result = await asking.ask()
        end = asking.events[-1]
        assert result.usage == self.rig.usage
        assert isinstance(end, ModelResponseComplete) and end.usage == self.rig.usage

    async def test_why_an_answer_ended_is_in_cores_words(self) -> None:
        scripts = [said("Hm", stop=stop) for stop in ("", "max_tokens", "refusal")]
        async with self.rig.asked(*scripts) as asking:
            stops = [(await asking.ask()).stop_reason for _ in scripts]
        assert stops == ["end_turn", "max_tokens", "refusal"]

    async def test_a_token_that_has_fired_asks_nothing(self) -> None:
        async with self.rig.asked(said("Hi.")) as asking:
            asking.token.abort("hang-up")
            with pytest.raises(AbortError, match="hang-up"):
                await asking.ask()
            assert asking.server.bodies == [] and asking.events == []
            other = asking.beside()
            assert (await other.ask()).messages[0].text == "Hi."

    @pytest.mark.parametrize("by_token", [True, False])
    async def test_an_answer_stops_in_the_middle_and_the_next_one_comes(
        self, by_token: bool
    ) -> None:
        async with self.rig.asked(said("One ", ending="stall"), said("Two.")) as asking:
            await stopped(asking, by_token=by_token, when=asking.heard.wait())
            assert set(asking.kinds()) == {"TextDelta"}, "half an answer has no end"
            assert (await asking.beside().ask()).messages[0].text == "Two."

    async def test_an_agent_goes_several_rounds_with_tools(self) -> None:
        ran: list[object] = []

        def lookup(value: object) -> ToolResultData:
            ran.append(value)
            if len(ran) == 2:
                raise RuntimeError("the book is closed")
            return ToolResultData("success", "free", render_data={"for": "secret eyes"})

        name = self.rig.tool_name(STRANGE)
        script = (
            said(
                "One moment.",
                calls=(ToolCall(name, {"id": 7}, "c1"), TIME),
                thoughts="Which one?",
            ),
            said(calls=(ToolCall(name, {"id": 8}, "c1"),), thoughts="Again."),  # one id twice
            said("Booked.", counted=self.rig.usage),
            said("Bye."),
        )
        async with self.rig.asked(*script) as asking:
            agent = agent_of(
                asking.model,
                Tool(name=STRANGE, description="Looks up.", do=lookup, json_schema=SCHEMA),
                Tool(name="now", description="The time.", do=lambda value: "noon", json_schema={}),
            )
            first = await agent.process_request("A table, please.")
            second = await agent.process_request("Thanks.")
            sent = [str(body) for body in asking.server.bodies]
        assert (first.text, first.model_calls) == ("Booked.", 3)
        assert (second.text, second.model_calls) == ("Bye.", 1)
        assert first.usage.tokens_in >= self.rig.usage.tokens_in
        assert ran == [{"id": 7}, {"id": 8}] and asking.server.refused == []
        stored = await agent.store.get_messages()
        calls = [one for message in stored for one in message.tool_calls]
        answered = [one.call_id for message in stored for one in message.tool_results]
        assert [one.tool_name for one in calls] == [STRANGE, "now", STRANGE]
        assert answered == [one.id for one in calls] and len(set(answered)) == 3
        assert not [body for body in sent if "secret eyes" in body], "render_data is for people"
        assert all("the book is closed" in body for body in sent[2:])

    async def test_a_cut_answer_is_kept_by_its_agent_and_the_next_request_is_valid(self) -> None:
        async with self.rig.asked(said("A long ", ending="stall"), said("Yes?")) as asking:
            agent, token, spoke = agent_of(asking.model), CancelToken(), asyncio.Event()

            class Ears:
                async def record(self, event: object) -> None:
                    if isinstance(event, TextDelta):
                        spoke.set()

            agent.add_subscriber(Ears())

            async def talk() -> None:
                with pytest.raises(AbortError):
                    await agent.process_request("tell me", token=token)

            async with asyncio.timeout(5), asyncio.TaskGroup() as group:
                group.create_task(talk())
                await spoke.wait()
                token.abort("barge-in")
            result = await agent.process_request("wait")
        assert result.text == "Yes?" and asking.server.refused == []
        cut = next(one for one in await agent.store.get_messages() if one.sender == "agent")
        assert cut.interrupted and cut.text.startswith("A long")
        assert not asking.server.bodies or "[interrupted]" in asking.sent


class WholeCases:
    """Of a model that can also answer in one piece (`stream=False`)."""

    rig: ClassVar[ModelRig]

    async def test_core_row_030_an_answer_in_one_piece_is_one_event(self) -> None:
        script = said("Hi ", "there.", calls=(TIME,), thoughts="Hm.", counted=self.rig.usage)
        async with self.rig.asked(script, said("Hi."), stream=False) as asking:
            result, plain = await asking.ask(replace(HELLO, tools=(NOW,))), await asking.ask()
        assert asking.kinds() == ["ModelResponse", "ModelResponse"]
        (message,), event = result.messages, asking.events[0]
        made = [(one.tool_name, one.input_args, one.id) for one in message.tool_calls]
        assert (message.text, made) == ("Hi there.", [("now", {}, "c2")])
        assert message.reasoning_content == ("Hm." if self.rig.thinks else None)
        assert (result.stop_reason, plain.stop_reason) == ("tool_use", "end_turn")
        assert isinstance(event, ModelResponse) and event.usage == self.rig.usage == result.usage

    async def test_an_agent_need_not_stream(self) -> None:
        script = (said(calls=(TIME,), thoughts="Hm."), said("Noon."))
        async with self.rig.asked(*script, stream=False) as asking:
            now = Tool(name="now", description="The time.", do=lambda value: "12", json_schema={})
            result = await agent_of(asking.model, now).process_request("What time is it?")
        assert (result.text, asking.server.refused) == ("Noon.", [])
