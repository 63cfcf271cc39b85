"""A server's tool as an agent's: name, schema, permission, results, shape of the answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.mcp.servers_rig import HANGS, FakeConnection, FakeServer, info, says
from tests.core.support import ScriptedModel, call, make_agent, results, until
from voxglove.core import CancelToken, ToolResultData
from voxglove.core.errors import AbortError, UsageError
from voxglove.core.mcp import (
    McpCatalogueEntry,
    McpError,
    McpToolInfo,
    McpToolResult,
    McpUnauthorized,
    bridge_mcp_tool,
    bridge_mcp_tools,
)
from voxglove.core.mcp.names import LONGEST, tool_names
from voxglove.core.mcp.shape import MOST_FIELDS, shape_of


async def no_auth() -> Mapping[str, str]:
    return {}


def connection(server: FakeServer, namespace: str = "notion") -> FakeConnection:
    return FakeConnection(namespace, server, no_auth)


async def outcome(answer: McpToolResult | Exception, arguments: object = None) -> ToolResultData:
    """What an agent stores after its model called the tool once."""
    server = FakeServer(answers={"search": answer})
    tool = bridge_mcp_tool(connection(server), info("search"), True)
    agent = make_agent(ScriptedModel(call(("notion__search", arguments or {})), "done"), tool)
    await agent.process_request("go")
    (result,) = (await results(agent)).values()
    return result.result


def test_core_row_086_a_bridged_tool() -> None:
    tool = info("search")
    made = bridge_mcp_tool(connection(FakeServer()), tool, False)
    assert made.name == "notion__search"
    assert made.spec.parameters is tool.input_schema, "verbatim"
    assert made.description == "search it"
    assert (made.requires_permission, made.read_only) == (True, False)


@pytest.mark.parametrize(
    ("server_mode", "read_only", "asks"),
    [(False, False, True), (False, True, False), (True, False, False), (True, True, False)],
)
def test_core_row_086_permission_by_default(server_mode: bool, read_only: bool, asks: bool) -> None:
    made = bridge_mcp_tool(
        connection(FakeServer()), info("search", read_only=read_only), server_mode
    )
    assert made.requires_permission is asks
    assert made.read_only is read_only


async def test_core_row_086_structured_data_comes_before_text() -> None:
    content = [{"type": "text", "text": "two pages"}]
    given = await outcome(McpToolResult(content=content, structured={"pages": ["a", "é"]}))
    assert given.status == "success"
    assert given.data == '{"pages":["a","é"]}'
    assert given.render_data == content


async def test_core_row_086_a_structured_text_is_json_too() -> None:
    assert (await outcome(McpToolResult(structured="plain"))).data == '"plain"'


async def test_core_row_086_text_blocks_are_joined() -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    blocks = [{"type": "text", "text": "one"}, image, {"type": "text", "text": "two"}]
    given = await outcome(McpToolResult(content=blocks))
    assert given.data == "one\ntwo"
    assert given.render_data == blocks


async def test_core_row_086_content_without_text_is_json_without_long_bytes() -> None:
    image = {"type": "image", "data": "x" * 50_000, "mimeType": "image/png"}
    file = {"type": "resource", "resource": {"uri": "a:b", "blob": "y" * 50_000}}
    given = await outcome(McpToolResult(content=[image, file]))
    assert json.loads(str(given.data)) == [
        {**image, "data": "[50000 characters of base64]"},
        {"type": "resource", "resource": {"uri": "a:b", "blob": "[50000 characters of base64]"}},
    ]
    assert given.render_data == [image, file], "a page gets them"


async def test_core_row_086_an_error_of_the_tool() -> None:
    given = await outcome(says("no such page", error=True))
    assert (given.status, given.message, given.data) == ("error", "no such page", None)


async def test_core_row_087_auth_expired_is_a_contract() -> None:
    given = await outcome(McpUnauthorized("notion: the server refused the token"))
    assert given == ToolResultData("error", None, "auth_expired")


async def test_fault_22_a_text_that_names_401_is_not_unauthorised() -> None:
    given = await outcome(McpError("notion: page 401 not found, Unauthorized author"))
    assert given.message == "notion: page 401 not found, Unauthorized author"
    empty = await outcome(McpError(""))
    assert empty.message == "McpError"


async def test_arguments_that_are_no_object_are_refused_here() -> None:
    given = await outcome(says("never"), "{broken")
    assert (given.status, given.message) == ("error", "The arguments must be a JSON object.")


async def test_fault_22_an_abort_cancels_the_call() -> None:
    server = FakeServer(answers={"search": HANGS})
    tool = bridge_mcp_tool(connection(server), info("search"), True)
    agent = make_agent(ScriptedModel(call(("notion__search", {})), "done"), tool)
    token = CancelToken()

    async def stop() -> None:
        await until(lambda: bool(server.calls))
        token.abort("stop", tools=True)

    async with asyncio.TaskGroup() as group:
        group.create_task(stop())
        with pytest.raises(AbortError):
            await agent.process_request("go", token=token)
    (result,) = (await results(agent)).values()
    assert result.result.status == "aborted"
    assert server.cancelled == 1


def test_a_tool_without_words_is_described_by_its_name() -> None:
    bare = McpToolInfo(name="go", description=" \u202e ")
    assert bridge_mcp_tool(connection(FakeServer()), bare, True).description == "go"


# -- names


def test_fault_22_names_fit_every_provider() -> None:
    names = ["read page", "x" * 100, "x" * 101, "ключ", "files/read", "a.b", "Look", "look", ""]
    made = tool_names("notion", names)
    assert all(len(name) <= LONGEST for name in made)
    assert all(set(name) <= set(ALLOWED) for name in made)
    assert len({name.lower() for name in made}) == len(names)
    assert made[0].startswith("notion__read_page_")
    assert tool_names("notion", names) == made, "the same from start to start"
    assert tool_names("notion", ["search", "fetch-all_2"]) == [
        "notion__search",
        "notion__fetch-all_2",
    ]


def test_fault_22_a_name_made_to_look_like_another_keeps_its_own() -> None:
    (fitted,) = tool_names("n", ["a b"])
    twin = fitted.removeprefix("n__")
    made = tool_names("n", ["a b", twin])
    assert made[1] == fitted
    assert made[0] != fitted
    assert tool_names("n", [twin, "a b"]) == made[::-1], "the order does not matter"


ALLOWED = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"


@given(st.lists(st.text(max_size=80) | st.text("aA_-", max_size=70), unique=True, max_size=12))
def test_fault_22_names_never_collide(names: list[str]) -> None:
    made = tool_names("ns", names)
    assert len({name.lower() for name in made}) == len(names)
    for name in made:
        assert name.startswith("ns__")
        assert 1 <= len(name) <= LONGEST
        assert set(name) <= set(ALLOWED)


def test_a_name_listed_twice_is_offered_once() -> None:
    tools = bridge_mcp_tools(connection(FakeServer()), [info("a"), info("b"), info("a")], True)
    assert [tool.name for tool in tools] == ["notion__a", "notion__b"]


@pytest.mark.parametrize("wrong", ["", "a__b", "_a", "a_", "a b", "é", "x" * 33])
def test_fault_22_ids_that_could_make_two_tools_one_name_are_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match=r"McpCatalogueEntry\.id"):
        McpCatalogueEntry(id=wrong, name="N", description="", url="https://n.example")


@pytest.mark.parametrize(
    ("name", "url"), [(" ", "https://a"), ("N", "ftp://a"), ("N", "a.example")]
)
def test_an_entry_is_checked(name: str, url: str) -> None:
    with pytest.raises(UsageError, match="McpCatalogueEntry"):
        McpCatalogueEntry(id="n", name=name, description="", url=url)


# -- what a tool returns, in a line


def thing(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "line"),
    [
        (None, ""),
        ({}, ""),
        ({"type": "object"}, ""),
        (thing(), ""),
        (thing(id=TEXT, n={"type": "integer"}), "{id: string, n: integer}"),
        ({"type": "object", "properties": {"id": TEXT}}, "{id?: string}"),
        (thing(tags={"type": "array", "items": TEXT}), "{tags: string[]}"),
        (thing(all={"type": "array"}), "{all: any[]}"),
        (thing(state={"enum": ["open", "closed", 3]}), '{state: "open" | "closed" | 3}'),
        (thing(states={"type": "array", "items": {"enum": ["a", "b"]}}), '{states: ("a" | "b")[]}'),
        (thing(kind={"const": "page"}), '{kind: "page"}'),
        (thing(when={"anyOf": [TEXT, {"type": "null"}]}), "{when: string}"),
        (thing(when={"type": ["string", "null"]}), "{when: string}"),
        (thing(when={"type": ["string", "integer"]}), "{when: string | integer}"),
        (thing(gone={"type": "null"}), "{gone: null}"),
        (thing(at={"oneOf": [TEXT, thing(x=TEXT)]}), "{at: string | {x: string}}"),
        ({"properties": {"inferred": {"items": TEXT}}}, "{inferred?: string[]}"),
        ({"type": "array", "items": thing(a=TEXT)}, "{a: string}[]"),
        (thing(one={"allOf": [TEXT]}), "{one: string}"),
        (thing(odd=True), "{odd: any}"),
        (thing(**{"a\nb": TEXT}), "{a b: string}"),
    ],
)
def test_core_row_086_the_shape_of_an_answer(schema: dict[str, Any] | None, line: str) -> None:
    assert shape_of(schema) == line


def test_core_row_086_the_shape_is_added_to_the_description() -> None:
    tool = info("search", output_schema=thing(id=TEXT))
    made = bridge_mcp_tool(connection(FakeServer()), tool, True)
    assert made.description == "search it\nReturns: {id: string}"


def test_a_shape_follows_references_and_ends() -> None:
    page = thing(title=TEXT, child={"$ref": "#/$defs/Page"}, odd={"$ref": "other.json"})
    schema = {"$ref": "#/$defs/Page", "$defs": {"Page": page}}
    line = shape_of(schema)
    assert line.startswith("{title: string, child: ")
    assert "…" in line
    assert "odd: any" in line


def test_a_shape_is_bounded() -> None:
    many = thing(**{f"f{at}": TEXT for at in range(100)})
    assert shape_of(many).count("string") == MOST_FIELDS
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(5_000):
        deep = {"anyOf": [deep, {"type": "integer"}]}
    assert len(shape_of(thing(deep=deep))) < 200
    nested: dict[str, Any] = TEXT
    for at in range(20):
        nested = thing(**{f"n{at}": nested})
    assert shape_of(nested) == "{n19: {n18: {n17: {n16: …}}}}"
    wide = thing(one={"enum": [f"v{at}" for at in range(500)]})
    assert len(shape_of(wide)) < 120
