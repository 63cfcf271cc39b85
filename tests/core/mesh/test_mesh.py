"""Agents on a mesh: the tools, both deliveries, waits, and mounting again."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.core.mesh.adapter_suite import Letterbox, MeshAdapterSuite, identity, message
from tests.core.support import Recorder, ScriptedModel, call, make_agent, results, stored
from voxglove.core import (
    Agent,
    CancelToken,
    DuplicateToolError,
    EventConfig,
    MemoryStore,
    UsageError,
)
from voxglove.core.mesh import (
    AgentIdentity,
    IncomingMessage,
    MemoryMeshAdapter,
    Mesh,
    MeshError,
    MeshNetwork,
    mount_mesh,
)
from voxglove.core.mesh.memory import HANDLER_S
from voxglove.core.mesh.tools import TOOL_NAMES

SEND, BROADCAST, LIST, ACK = TOOL_NAMES


class TestMemoryMeshAdapter(MeshAdapterSuite):
    """The adapter in memory."""

    @pytest.fixture(autouse=True)
    def network(self) -> None:
        self.mesh = MeshNetwork()

    def end(self, agent_id: str) -> MemoryMeshAdapter:
        return MemoryMeshAdapter(self.mesh, agent_id)

    async def test_core_row_084_old_messages_cannot_be_acknowledged(self) -> None:
        self.mesh = MeshNetwork(remember=3)
        a, own = await self.joined("a")
        b, _ = await self.joined("b")
        for at in range(4):
            await a.send(message(f"m{at}", "a", "b"))
        with pytest.raises(MeshError) as wrong:
            await b.acknowledge("m0")
        assert wrong.value.code == "unknown_message"
        await b.acknowledge("m1")
        assert [one.ack_of for one in own.letters] == ["m1"]

    async def test_a_handler_that_hangs_delays_a_sender_only_so_long(self) -> None:
        a, _ = await self.joined("a")
        b, box = await self.joined("b")

        async def hangs(incoming: IncomingMessage) -> None:
            await asyncio.Event().wait()

        b.subscribe(hangs)
        loop = asyncio.get_running_loop()
        started = loop.time()
        await a.send(message("m1", "a", "b"))
        assert loop.time() - started == pytest.approx(HANDLER_S)
        assert len(box.letters) == 1

    async def test_an_end_registers_only_itself(self) -> None:
        with pytest.raises(UsageError, match="identity.id"):
            await self.end("a").register(identity("b"))
        with pytest.raises(UsageError, match="remember"):
            MeshNetwork(remember=0)


async def on_mesh(
    network: MeshNetwork, name: str, *steps: Any, store: MemoryStore | None = None, **options: Any
) -> tuple[Agent, ScriptedModel, Mesh]:
    config = options.pop("config", {})
    model = ScriptedModel(*steps)
    agent = make_agent(model, store=store, **config)
    adapter = MemoryMeshAdapter(network, name)
    capabilities = options.pop("capabilities", ())
    who = identity(name, *capabilities)
    return agent, model, await mount_mesh(agent, adapter=adapter, identity=who, **options)


def inbox_of(model: ScriptedModel, at: int = -1) -> str:
    return "\n".join(
        one.text for one in model.requests[at].messages if one.framework_context == "inbox"
    )


def events_of(model: ScriptedModel, at: int = -1) -> str:
    return "\n".join(
        one.text for one in model.requests[at].messages if one.framework_context == "event"
    )


async def outcome(agent: Agent, at: int = -1) -> Any:
    return list((await results(agent)).values())[at].result


async def test_core_row_082_tools_list_and_send() -> None:
    network = MeshNetwork()
    agent, _, _ = await on_mesh(
        network,
        "planner",
        call((LIST, {}), (LIST, {"filter": {"capability": "maths"}})),
        call((LIST, {"filter": {"name_contains": "ORK"}})),
        call((SEND, {"to": "worker", "content": "add 1 and 2"})),
        "sent",
    )
    await on_mesh(network, "worker", capabilities=("maths",))
    await on_mesh(network, "writer")
    assert [tool.name for tool in agent.tools] == list(TOOL_NAMES)
    await agent.process_request("go")
    lists = [(await outcome(agent, at)).data for at in range(3)]
    assert [[one["id"] for one in found["agents"]] for found in lists] == [
        ["worker", "writer"],
        ["worker"],
        ["worker"],
    ]
    assert lists[0]["count"] == 2
    sent = (await outcome(agent)).data
    assert (sent["to"], sent["blocking"]) == ("worker", False)


async def test_core_row_082_a_message_is_read_once_at_the_next_request() -> None:
    network = MeshNetwork()
    a, _, _ = await on_mesh(
        network,
        "planner",
        call(
            (SEND, {"to": "worker", "content": "add 1 and 2"}),
            (BROADCAST, {"content": "lunch"}),
        ),
        "sent",
    )
    b, model, _ = await on_mesh(network, "worker", "three", "well")
    await a.process_request("go")
    assert model.requests == [], "an idle receiver is not woken"
    await b.process_request("check")
    await b.process_request("again")
    told = inbox_of(model, 0)
    assert "[mesh:from:planner]" in told and '"add 1 and 2"' in told
    assert "[mesh:broadcast:from:planner]" in told and '"lunch"' in told
    assert "Planner (planner)" in told
    kept = [one.text for one in await stored(b)]
    assert sum(text.count("add 1 and 2") for text in kept) == 1


async def blocking_pair() -> tuple[Agent, ScriptedModel, Agent, ScriptedModel, str]:
    """A planner who waits for a worker; the message's id."""
    network = MeshNetwork()
    ask = (SEND, {"to": "worker", "content": "add 1 and 2", "blocking": True})
    a, first, _ = await on_mesh(network, "planner", call(ask), "waiting", "thanks", "bye")
    b, second, _ = await on_mesh(network, "worker")
    await a.process_request("go")
    return a, first, b, second, (await outcome(a)).data["message_id"]


async def test_core_row_082_an_acknowledgement_ends_the_wait() -> None:
    a, first, b, second, sent = await blocking_pair()
    reminder = inbox_of(first)
    assert f"[mesh:waiting:{sent}]" in reminder and "still pending" in reminder
    second.then(call((ACK, {"message_id": sent, "note": "on it"})), "ok")
    await b.process_request("check")
    assert f"acknowledge {sent}" in inbox_of(second, 0)
    await a.process_request("and?")
    assert '"on it"' in inbox_of(first) and "still pending" not in inbox_of(first)
    second.then(call((ACK, {"message_id": sent, "note": "twice"})), "ok")
    await b.process_request("again")
    await a.process_request("and?")
    assert '"twice"' not in inbox_of(first), "the first acknowledgement counts"


async def test_core_row_082_a_reply_ends_the_wait_and_is_read_once() -> None:
    a, first, b, second, sent = await blocking_pair()
    reply = {"to": "planner", "content": "it is three", "in_reply_to": sent}
    second.then(call((SEND, reply)), "ok")
    await b.process_request("check")
    await a.process_request("and?")
    told = inbox_of(first)
    assert told.count("it is three") == 1
    assert f"[mesh:waiting:{sent}]" in told and "answered by message" in told


async def test_fault_21_a_wait_survives_a_restart() -> None:
    network, store = MeshNetwork(), MemoryStore()
    ask = (SEND, {"to": "worker", "content": "add", "blocking": True})
    a, _, mesh = await on_mesh(network, "planner", call(ask), "waiting", store=store)
    b, second, _ = await on_mesh(network, "worker")
    await a.process_request("go")
    sent = (await outcome(a)).data["message_id"]
    await mesh.unmount()
    fresh, model, _ = await on_mesh(network, "planner", "good", store=store)
    second.then(call((ACK, {"message_id": sent, "note": "done"})), "ok")
    await b.process_request("check")
    await fresh.process_request("and?")
    assert '"done"' in inbox_of(model) and "still pending" not in inbox_of(model)


async def test_fault_21_nobody_waits_for_an_empty_room() -> None:
    ask = (BROADCAST, {"content": "anybody?", "blocking": True})
    agent, _, _ = await on_mesh(MeshNetwork(), "alone", call(ask), "nobody")
    await agent.process_request("go")
    told = await outcome(agent)
    assert told.status == "error" and told.message.startswith(f"{BROADCAST}: nobody else")
    assert await agent.store.get_inbox_items() == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("delivery", ["inbox", "events"])
async def test_core_row_082_a_send_that_fails_leaves_no_wait(delivery: Any) -> None:
    asks = [
        (SEND, {"to": "nobody", "content": "x", "blocking": True}),
        (SEND, {"to": "me", "content": "x"}),
        (SEND, {"to": "you", "content": "   "}),
        (ACK, {"message_id": "mesh_1"}),
    ]
    agent, model, _ = await on_mesh(MeshNetwork(), "me", call(*asks), "hm", "hm", delivery=delivery)
    await agent.process_request("go")
    told = [one.result for one in (await results(agent)).values()]
    names = (SEND, SEND, SEND, ACK)
    for result, name in zip(told, names, strict=True):
        assert result.status == "error" and (result.message or "").startswith(f"{name}: ")
    await agent.process_request("and?")
    shown = "\n".join(one.text for one in model.requests[-1].messages)
    assert "still pending" not in shown and "mesh_waiting" not in shown


async def test_core_row_082_repeated_deliveries_and_a_missing_inbox() -> None:
    network = MeshNetwork()
    agent, model, _ = await on_mesh(network, "worker", "well")
    other = MemoryMeshAdapter(network, "other")
    await other.register(identity("other"))
    for _ in range(2):
        await other.send(message("m1", "other", "worker"))
    await agent.process_request("check")
    assert "[Inbox: 1 item(s) resolved]" in inbox_of(model)

    class NoInbox:
        identifier = "plain"

    plain = make_agent(ScriptedModel(), store=NoInbox())  # type: ignore[arg-type]
    adapter = MemoryMeshAdapter(network, "plain")
    with pytest.raises(MeshError) as wrong:
        await mount_mesh(plain, adapter=adapter, identity=identity("plain"))
    assert wrong.value.code == "store_unsupported"
    assert plain.tools == () and await adapter.get_agent("plain") is None


async def test_core_row_083_events_wake_and_a_reply_comes_back_by_itself() -> None:
    network = MeshNetwork()
    ask = (SEND, {"to": "worker", "content": "add <1> & 2", "blocking": True})
    a, first, _ = await on_mesh(
        network, "planner", call(ask), "waiting", "so it is three", delivery="events"
    )
    b, second, _ = await on_mesh(network, "worker", delivery="events")
    recorder = Recorder()
    a.add_subscriber(recorder)
    async with a.running(), b.running():

        async def answer(request: Any, notify: Any, token: Any) -> Any:
            sent = (await outcome(a)).data["message_id"]
            reply = {"to": "planner", "content": "three", "in_reply_to": sent}
            return await call((SEND, reply))(request, notify, token)

        second.then(answer, call((ACK, {"message_id": "x"})), "done")
        await a.process_request("go")
        await asyncio.sleep(1)
    assert 'source="mesh:planner" kind="direct"' in events_of(second, 0)
    assert "add &lt;1&gt; &amp; 2" in events_of(second, 0), "escaped"
    waiting = [one.text for one in first.requests[1].messages if "mesh_waiting" in one.text]
    assert len(waiting) == 1 and 'for="worker"' in waiting[0]
    assert 'kind="reply"' in events_of(first, 2) and "three" in events_of(first, 2)
    assert not [one for one in first.requests[2].messages if "mesh_waiting" in one.text]
    assert [one.source for one in recorder.of("event_received")] == ["mesh:worker"]


async def test_core_row_083_acks_that_end_no_wait_are_not_told_and_events_may_defer() -> None:
    network = MeshNetwork()
    a, first, _ = await on_mesh(
        network,
        "planner",
        call((SEND, {"to": "worker", "content": "fyi"})),
        "sent",
        "hello",
        delivery="events",
    )
    b, second, _ = await on_mesh(
        network, "worker", delivery="events", when_idle="defer", config={"events": EventConfig()}
    )
    async with a.running(), b.running():
        await a.process_request("go")
        sent = (await outcome(a)).data["message_id"]
        await asyncio.sleep(1)
        assert second.requests == [], "it waits for the user"
        second.then(call((ACK, {"message_id": sent})), "acknowledged")
        await b.process_request("check")
        await asyncio.sleep(1)
    await a.process_request("hello")
    assert events_of(first) == ""


async def test_core_row_083_an_ack_that_ends_a_wait_is_an_event() -> None:
    network = MeshNetwork()
    ask = (BROADCAST, {"content": "who can?", "blocking": True})
    a, first, _ = await on_mesh(network, "planner", delivery="events")
    first.then(call(ask), "waiting", "thanks")
    box = Letterbox()
    other = MemoryMeshAdapter(network, "other")
    other.subscribe(box)
    await other.register(identity("other"))
    async with a.running():
        await a.process_request("go")
        for _ in range(2):
            await other.acknowledge(box.letters[0].message.id, "I can")
        await asyncio.sleep(1)
    assert "was acknowledged. I can" in events_of(first, 2)
    assert len(first.requests) == 3, "the second one ends no wait"


async def test_core_row_085_a_second_mount_is_refused_and_an_unmount_leaves_nothing() -> None:
    network = MeshNetwork()
    agent, model, mesh = await on_mesh(network, "a", "one", delivery="events")
    adapter = MemoryMeshAdapter(network, "a2")
    with pytest.raises(DuplicateToolError):
        await mount_mesh(agent, adapter=adapter, identity=identity("a2"))
    assert len(agent.tools) == 4 and await adapter.get_agent("a2") is None
    await mesh.unmount()
    await mesh.unmount()
    assert not agent.tools and network.agents == []
    other = MemoryMeshAdapter(network, "b")
    await other.register(identity("b"))
    await other.broadcast(message("m1", "b"))
    await agent.process_request("hi")
    assert events_of(model) == ""
    again = await mount_mesh(agent, adapter=MemoryMeshAdapter(network, "a"), identity=identity("a"))
    assert len(agent.tools) == 4
    await again.unmount()


async def test_a_failed_registration_leaves_nothing() -> None:
    agent = make_agent(ScriptedModel())
    network = MeshNetwork()
    with pytest.raises(UsageError):
        await mount_mesh(agent, adapter=MemoryMeshAdapter(network, "x"), identity=identity("y"))
    assert agent.tools == ()
    with pytest.raises(UsageError, match="delivery"):
        await mount_mesh(
            agent,
            adapter=MemoryMeshAdapter(network, "x"),
            identity=identity("x"),
            delivery="post",  # type: ignore[arg-type]
        )
    with pytest.raises(UsageError, match=r"AgentIdentity\.name"):
        AgentIdentity(id="a", name=" ", description="")


async def test_two_agents_cannot_talk_for_ever() -> None:
    """The wake budget bounds them (spec core 10.4)."""
    network = MeshNetwork()
    pair = []
    for name, other in (("a", "b"), ("b", "a")):
        polite = call((SEND, {"to": other, "content": "thank you"}))
        config = {"events": EventConfig(wake_budget=5)}
        agent, model, _ = await on_mesh(network, name, delivery="events", config=config)
        model.then(*[step for _ in range(40) for step in (polite, "done")])
        pair.append((agent, model))
    (a, first), (b, second) = pair
    async with a.running(), b.running():
        await a.process_request("be polite")
        await asyncio.sleep(100)
    assert len(first.requests) + len(second.requests) < 40


@pytest.mark.parametrize("delivery", ["inbox", "events"])
@pytest.mark.parametrize("how", ["reply", "ack"])
async def test_fault_21_a_third_agent_ends_no_wait_of_others(delivery: Any, how: str) -> None:
    network = MeshNetwork()
    ask = (SEND, {"to": "worker", "content": "add", "blocking": True})
    a, first, _ = await on_mesh(network, "planner", call(ask), "waiting", delivery=delivery)
    await on_mesh(network, "worker", delivery=delivery)
    stranger = MemoryMeshAdapter(network, "stranger")
    await stranger.register(identity("stranger"))
    await a.process_request("go")
    sent = (await outcome(a)).data["message_id"]
    if how == "reply":
        forged = message("m9", "stranger", "planner", "it is nine")
        await stranger.send(replace(forged, in_reply_to=sent))
    else:
        with pytest.raises(MeshError):
            await stranger.acknowledge(sent)
    first.then("still waiting")
    await a.process_request("and?")
    shown = "\n".join(one.text for one in first.requests[-1].messages)
    assert "still pending" in shown or "<mesh_waiting>" in shown
    assert ("it is nine" in shown) == (how == "reply"), "but it is told"


async def test_core_row_082_one_id_of_two_senders_is_two_messages() -> None:
    network = MeshNetwork()
    agent, model, mesh = await on_mesh(network, "worker", "well")
    for sender in ("b", "c"):
        incoming = IncomingMessage(
            message=message("m1", sender, "worker", f"of {sender}"), kind="direct"
        )
        await mesh._receive(incoming)
        await mesh._receive(incoming)
    await agent.process_request("check")
    assert inbox_of(model).count('"of b"') == inbox_of(model).count('"of c"') == 1


async def test_core_row_084_nobody_takes_over_the_id_of_anothers_message() -> None:
    network = MeshNetwork()
    boxes = {}
    for name in ("a", "b", "c"):
        end = MemoryMeshAdapter(network, name)
        boxes[name] = Letterbox()
        end.subscribe(boxes[name])
        await end.register(identity(name))
    await MemoryMeshAdapter(network, "a").send(message("m1", "a", "c"))
    with pytest.raises(UsageError, match="m1"):
        await MemoryMeshAdapter(network, "b").send(message("m1", "b", "c"))
    await MemoryMeshAdapter(network, "a").send(message("m1", "a", "b"))
    await MemoryMeshAdapter(network, "c").acknowledge("m1")
    assert [one.kind for one in boxes["a"].letters] == ["ack"]


class SlowInbox(MemoryStore):
    """Takes its time with inbox items."""

    async def add_inbox_item(self, item: Any) -> None:
        await asyncio.sleep(0.1)
        await super().add_inbox_item(item)
        await asyncio.sleep(0.1)


class SlowAdapter(MemoryMeshAdapter):
    """Takes its time before and after each step."""

    async def send(self, message: Any) -> None:
        await asyncio.sleep(0.1)
        await super().send(message)
        await asyncio.sleep(0.1)

    async def register(self, identity: AgentIdentity) -> None:
        await super().register(identity)
        await asyncio.sleep(0.1)

    async def unregister(self) -> None:
        await asyncio.sleep(0.1)
        await super().unregister()


@pytest.mark.parametrize("delivery", ["inbox", "events"])
@pytest.mark.parametrize("moment", [0.05, 0.15, 0.25, 0.35])
async def test_core_row_082_a_blocking_send_that_is_aborted_leaves_no_wait(
    delivery: Any, moment: float
) -> None:
    network = MeshNetwork()
    ask = (SEND, {"to": "worker", "content": "add", "blocking": True})
    model = ScriptedModel(call(ask), "never mind")
    agent = make_agent(model, store=SlowInbox())
    await mount_mesh(
        agent,
        adapter=SlowAdapter(network, "planner"),
        identity=identity("planner"),
        delivery=delivery,
    )
    await on_mesh(network, "worker")
    token = CancelToken()
    asyncio.get_running_loop().call_later(moment, lambda: token.abort(tools=True))
    await asyncio.gather(agent.process_request("go", token=token), return_exceptions=True)
    if (await outcome(agent)).status == "success":
        return
    model.steps = model.steps[-1:]
    await agent.process_request("well?")
    shown = "\n".join(one.text for one in model.requests[-1].messages)
    assert "still pending" not in shown and "mesh_waiting" not in shown


async def test_core_row_082_whatever_fails_names_its_tool() -> None:
    class Broken(MemoryMeshAdapter):
        async def list_agents(self) -> list[AgentIdentity]:
            raise ConnectionError("bus is down")

    agent = make_agent(ScriptedModel(call((LIST, {})), "hm"))
    await mount_mesh(agent, adapter=Broken(MeshNetwork(), "a"), identity=identity("a"))
    await agent.process_request("go")
    assert (await outcome(agent)).message == f"{LIST}: ConnectionError: bus is down"


async def test_core_row_085_an_agent_listens_until_nobody_knows_it() -> None:
    network = MeshNetwork()
    agent, model = make_agent(ScriptedModel("well")), ScriptedModel()
    mesh = await mount_mesh(
        agent, adapter=SlowAdapter(network, "a"), identity=identity("a"), delivery="inbox"
    )
    _, _, other = await on_mesh(network, "b")
    assert model.requests == []
    leaving = asyncio.ensure_future(mesh.unmount())
    await asyncio.sleep(0.05)
    await MemoryMeshAdapter(network, "b").send(message("m1", "b", "a", "just in time"))
    await leaving
    assert "just in time" in str(await agent.store.get_inbox_items())  # type: ignore[attr-defined]
    assert agent.tools == ()
    await other.unmount()


async def test_core_row_085_a_second_unmount_leaves_the_next_mount_alone() -> None:
    network = MeshNetwork()
    agent, _, mesh = await on_mesh(network, "a")
    await mesh.unmount()
    again = await mount_mesh(agent, adapter=MemoryMeshAdapter(network, "a"), identity=identity("a"))
    await mesh.unmount()
    assert len(agent.tools) == 4 and [one.id for one in network.agents] == ["a"]
    await again.unmount()


async def test_core_row_085_what_is_on_its_way_when_an_agent_leaves_is_not_delivered() -> None:
    network = MeshNetwork()
    slow = asyncio.Event()

    class Looking(MemoryMeshAdapter):
        async def get_agent(self, agent_id: str) -> AgentIdentity | None:
            await slow.wait()
            return await super().get_agent(agent_id)

    agent = make_agent(ScriptedModel("hello"))
    mesh = await mount_mesh(agent, adapter=Looking(network, "a"), identity=identity("a"))
    other = MemoryMeshAdapter(network, "b")
    await other.register(identity("b"))
    sending = asyncio.ensure_future(other.send(message("m1", "b", "a")))
    await asyncio.sleep(0.1)
    await mesh.unmount()
    slow.set()
    await sending
    assert await agent.store.get_inbox_items() == []  # type: ignore[attr-defined]


async def test_core_row_085_a_mount_that_is_cancelled_leaves_nothing() -> None:
    network = MeshNetwork()
    agent = make_agent(ScriptedModel())
    mounting = asyncio.ensure_future(
        mount_mesh(agent, adapter=SlowAdapter(network, "a"), identity=identity("a"))
    )
    await asyncio.sleep(0.05)
    mounting.cancel()
    await asyncio.wait([mounting])
    assert agent.tools == () and network.agents == []


async def test_a_handler_that_cancels_itself_stops_no_sender() -> None:
    network = MeshNetwork()
    a, b, box = MemoryMeshAdapter(network, "a"), MemoryMeshAdapter(network, "b"), Letterbox()

    async def broken(incoming: IncomingMessage) -> None:
        gone = asyncio.get_running_loop().create_future()
        gone.cancel()
        await gone

    for end in (a, b):
        await end.register(identity(end.identifier.rpartition(":")[2]))
    b.subscribe(broken)
    b.subscribe(box)
    await a.send(message("m1", "a", "b"))
    assert len(box.letters) == 1
