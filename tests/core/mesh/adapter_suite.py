"""What every MeshAdapter must do: subclass, give `end(agent_id)`, inherit the tests.

Ends made by one test belong to one network. `settle` waits until what was sent has arrived; a
transport with a delay overrides it.
"""

from __future__ import annotations

import asyncio

import pytest

from voxglove.core.mesh import (
    AgentIdentity,
    IncomingMessage,
    MeshAdapter,
    MeshError,
    MeshMessage,
)


def identity(agent_id: str, *capabilities: str) -> AgentIdentity:
    return AgentIdentity(
        id=agent_id,
        name=agent_id.title(),
        description=f"is {agent_id}",
        capabilities=capabilities,
        metadata={"floor": 3},
    )


def message(id: str, from_id: str, to: str = "", content: str = "hello") -> MeshMessage:
    return MeshMessage(id=id, from_id=from_id, to=to, content=content, created_at="now")


class Letterbox:
    """A handler that keeps what came."""

    def __init__(self) -> None:
        self.letters: list[IncomingMessage] = []

    async def __call__(self, incoming: IncomingMessage) -> None:
        self.letters.append(incoming)

    @property
    def contents(self) -> list[tuple[str, str]]:
        return [(one.kind, one.message.content) for one in self.letters]


class MeshAdapterSuite:
    """See the module."""

    def end(self, agent_id: str) -> MeshAdapter:
        raise NotImplementedError

    async def settle(self) -> None:
        await asyncio.sleep(0)

    async def joined(self, agent_id: str) -> tuple[MeshAdapter, Letterbox]:
        end, box = self.end(agent_id), Letterbox()
        end.subscribe(box)
        await end.register(identity(agent_id))
        return end, box

    async def test_core_row_081_agents_are_known_while_registered(self) -> None:
        a, _ = await self.joined("a")
        b, _ = await self.joined("b")
        await b.register(identity("b", "maths"))
        assert sorted(one.id for one in await a.list_agents()) == ["a", "b"], "oneself too"
        assert await a.get_agent("b") == identity("b", "maths")
        await b.unregister()
        await b.unregister()
        assert await a.get_agent("b") is None
        assert a.identifier != b.identifier

    async def test_core_row_081_a_message_reaches_its_receiver_alone(self) -> None:
        a, own = await self.joined("a")
        _, box = await self.joined("b")
        _, other = await self.joined("c")
        await a.send(message("m1", "a", "b"))
        await self.settle()
        (letter,) = box.letters
        assert letter.kind == "direct" and letter.message.id == "m1"
        assert letter.message.from_id == "a" and letter.message.to == "b"
        assert own.letters == other.letters == []

    async def test_core_row_081_nobody_speaks_in_anothers_name(self) -> None:
        a, _ = await self.joined("a")
        _, box = await self.joined("b")
        await a.send(message("m1", "president", "b"))
        await self.settle()
        assert [one.message.from_id for one in box.letters] == ["a"]

    async def test_core_row_081_a_broadcast_reaches_the_others(self) -> None:
        a, own = await self.joined("a")
        _, b = await self.joined("b")
        _, c = await self.joined("c")
        await self.end("silent").register(identity("silent"))
        await a.broadcast(message("m1", "a"))
        await self.settle()
        assert own.letters == []
        assert b.contents == c.contents == [("broadcast", "hello")]

    async def test_core_row_081_an_acknowledgement_goes_back_to_the_sender(self) -> None:
        a, own = await self.joined("a")
        b, box = await self.joined("b")
        c, _ = await self.joined("c")
        await a.send(message("m1", "a", "b"))
        await self.settle()
        await b.acknowledge("m1", "will do")
        await self.settle()
        (ack,) = own.letters
        assert (ack.kind, ack.ack_of, ack.ack_note) == ("ack", "m1", "will do")
        assert ack.message.from_id == "b" and len(box.letters) == 1
        with pytest.raises(MeshError) as wrong:
            await b.acknowledge("nothing")
        assert wrong.value.code == "unknown_message"

    async def test_fault_21_only_a_receiver_may_acknowledge(self) -> None:
        a, own = await self.joined("a")
        b, _ = await self.joined("b")
        c, _ = await self.joined("c")
        await a.send(message("m1", "a", "b"))
        await self.settle()
        for stranger in (c, a):
            with pytest.raises(MeshError) as wrong:
                await stranger.acknowledge("m1")
            assert wrong.value.code == "unknown_message"
        assert own.letters == []

    async def test_core_row_081_unknown_agents_are_errors(self) -> None:
        a, _ = await self.joined("a")
        with pytest.raises(MeshError) as wrong:
            await a.send(message("m1", "a", "nobody"))
        assert wrong.value.code == "unknown_agent"
        with pytest.raises(MeshError) as wrong:
            await a.send(message("m2", "a"))
        assert wrong.value.code == "unknown_agent"
        stranger = self.end("stranger")
        with pytest.raises(MeshError) as wrong:
            await stranger.send(message("m3", "stranger", "a"))
        assert wrong.value.code == "not_registered"

    async def test_core_row_081_a_bad_handler_stops_nobody(self) -> None:
        a, _ = await self.joined("a")
        b, box = await self.joined("b")

        async def bad(incoming: IncomingMessage) -> None:
            raise ValueError("broken")

        gone = b.subscribe(bad)
        _, c = await self.joined("c")
        await a.broadcast(message("m1", "a"))
        await self.settle()
        assert len(box.letters) == len(c.letters) == 1
        gone()
        gone()

    async def test_core_row_081_who_left_hears_nothing(self) -> None:
        a, _ = await self.joined("a")
        b, box = self.end("b"), Letterbox()
        gone = b.subscribe(box)
        await b.register(identity("b"))
        gone()
        await a.send(message("m1", "a", "b"))
        await b.unregister()
        await a.broadcast(message("m2", "a"))
        await self.settle()
        assert box.letters == []
