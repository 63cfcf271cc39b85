"""What a model is told: any history, media, names and limits, and never another agent's prompt."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.adapters.model_rig import HELLO, NOW, PNG, ModelRig, asks, results, said
from tests.adapters.model_values import requests
from voxglove.core.messages import ContentPart, ContentSource, Message, ToolCall, ToolResultData
from voxglove.core.model import ModelLimits, ModelRequest, ToolSpec

PDF = ContentPart(
    "document", source=ContentSource("base64", "application/pdf", data="UERG"), name="menu.pdf"
)
LINKED = ContentPart("image", source=ContentSource("url", "image/png", url="https://x.test/y.png"))
FILM = ContentPart(
    "video", source=ContentSource("base64", "video/mp4", data="RklMTQ=="), name="film.mp4"
)


class RequestCases:
    """Promises of every model behind a server, strict as the vendor's."""

    rig: ClassVar[ModelRig]

    async def test_core_row_031_pictures_and_documents_reach_the_model(self) -> None:
        message = Message(sender="user", text="what is this?", content=(PNG, LINKED, PDF, FILM))
        async with self.rig.asked(said("A cat.")) as asking:
            await asking.ask(ModelRequest(messages=(message,)))
        assert asking.server.refused == [] and "what is this?" in asking.sent
        assert "QUJD" in asking.sent and "https://x.test/y.png" in asking.sent
        for data, name in (("UERG", "menu.pdf"), ("RklMTQ==", "film.mp4")):
            assert data in asking.sent or f"{name} cannot be shown here" in asking.sent

    async def test_core_row_033_damaged_history_is_valid_on_the_wire(self) -> None:
        calls = (ToolCall("look", {"q": 1}, "c.1"), ToolCall("book", "{oops", "c2"))
        history = (
            Message(sender="agent", text="Good evening."),
            Message(sender="user", text="is a table free?"),
            Message(sender="user", text="hello?", content=(PNG,)),
            Message(sender="user", text="  "),
            asks(*calls),
            Message(sender="user", text="are you there?"),
            results(
                ("book", "c2", ToolResultData("aborted", message="hang-up")),
                ("look", "c.1", ToolResultData("success", {"free": 3})),
                ("book", "c2", ToolResultData("success", "told twice")),
                ("gone", "c9", ToolResultData("success", "an orphan")),
            ),
            asks(ToolCall("book", {}, "c3"), text="Well."),
            Message(sender="user", text="thanks"),
            Message(sender="agent", text="Welcome."),
        )
        async with self.rig.asked(said("Bye.")) as asking:
            await asking.ask(ModelRequest(messages=history))
        sent = asking.sent
        assert asking.server.refused == []
        assert "is a table free?" in sent and "hello?" in sent and "QUJD" in sent
        assert sent.count("free") == 2 and "hang-up" in sent, "results are told once"

    def test_core_row_033_any_history_there_is_makes_a_valid_request(self) -> None:
        rig = self.rig

        @settings(max_examples=settings().max_examples // 3)  # five wires share them
        @given(requests(st.sampled_from(rig.options)))
        def valid(request: ModelRequest) -> None:
            assert rig.problem(request) == ""

        valid()

    async def test_half_a_surrogate_pair_does_not_block_the_conversation(self) -> None:
        broken = "\ud83d"
        history = (
            Message(sender="user", text=f"hello {broken}"),
            asks(ToolCall("lookup", {"q": broken}, "c1"), text=broken),
            results(("lookup", "c1", ToolResultData("success", broken))),
        )
        tool = ToolSpec("lookup", broken, {})
        async with self.rig.asked(said("Fine.")) as asking:
            request = ModelRequest(messages=history, tools=(tool,), system_prompt=broken)
            assert (await asking.ask(request)).messages[0].text == "Fine."
        assert asking.server.refused == []

    async def test_names_and_ids_of_any_kind_survive_the_wire(self) -> None:
        strange, long_id = "9files/read ☺", "functions.read:0" + "x" * 150
        tool = ToolSpec(strange, "Reads.", {"anyOf": [{"type": "object"}]})
        history = (
            *HELLO.messages,
            asks(ToolCall(strange, {}, long_id)),
            results((strange, long_id, ToolResultData("success", "x"))),
        )
        name = self.rig.tool_name(strange)
        calls = (ToolCall(name, {}, "c1"), ToolCall("unheard_of", {}, "c2"))
        async with self.rig.asked(said(calls=calls)) as asking:
            result = await asking.ask(ModelRequest(messages=history, tools=(tool, NOW)))
        assert name in asking.sent and asking.server.refused == []
        called = [one.tool_name for one in result.messages[0].tool_calls]
        assert called == [strange, "unheard_of"]

    async def test_one_agents_prompt_never_reaches_another(self) -> None:
        async with self.rig.asked(said("Hi."), said("Hi.")) as asking:
            asking.model.set_system_prompt("Be quick.")
            await asking.ask()
            own = asking.sent
            await asking.ask(replace(HELLO, system_prompt=""))
        assert "Be kind." in own and "Be quick." not in own
        assert "Be kind." not in asking.sent and "Be quick." not in asking.sent

    async def test_a_requests_own_limit_wins(self) -> None:
        async with self.rig.asked(said("Hi."), said("Hi."), max_tokens=900) as asking:
            await asking.ask()
            usual = self.rig.bound(asking.body)
            await asking.ask(replace(HELLO, limits=ModelLimits(max_tokens=33)))
        assert usual in (900, None) and self.rig.bound(asking.body) == 33
