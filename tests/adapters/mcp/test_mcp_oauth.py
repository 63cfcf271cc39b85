"""Authorising at a server: the whole flow against a real authorisation server, and its refusals."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import webbrowser
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import mcp_types
import pytest
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import AnyUrl

from tests.simulators.mcp_oauth import OAuthProvider, browse
from tests.simulators.mcp_server import McpServer, text
from voxglove.adapters.credentials import Secret
from voxglove.adapters.mcp.auth import bearer
from voxglove.adapters.mcp.client import connect_mcp
from voxglove.adapters.mcp.oauth import (
    FsOAuthStore,
    MemoryOAuthStore,
    OAuthClient,
    OAuthState,
    VerifyCall,
    open_in_browser,
    run_mcp_oauth,
    stored_token,
)
from voxglove.adapters.mcp.oauth_listener import MOST_BYTES, CallbackListener
from voxglove.core.errors import UsageError
from voxglove.core.mcp import McpError, McpUnauthorized

pytestmark = pytest.mark.real_loop


@asynccontextmanager
async def guarded(**options: Any) -> AsyncIterator[tuple[McpServer, OAuthProvider]]:
    server, provider = McpServer(**options), OAuthProvider()
    provider.guard(server)
    server.tool("look")
    async with server.running():
        yield server, provider


@pytest.mark.parametrize("legacy", [False, True], ids=["newer", "sessions"])
async def test_core_row_090_the_whole_flow(legacy: bool) -> None:
    store, steps = MemoryOAuthStore(), list[str]()
    async with guarded(legacy=legacy) as (server, provider):
        with pytest.raises(McpUnauthorized):
            async with connect_mcp("eye", server.url):
                pytest.fail("nobody is authorised yet")
        outcome = await run_mcp_oauth(
            server.url,
            store=store,
            key="eye",
            port=0,
            scope="read",
            on_authorize_url=browse,
            on_progress=steps.append,
        )
        assert outcome == "authorized"
        assert steps == ["listening", "asking", "answered"]
        (asked,) = provider.asked
        assert asked.code_challenge, "PKCE"
        assert str(asked.redirect_uri).startswith("http://127.0.0.1:")
        assert await stored_token(store, "eye") == "access-code1"
        async with connect_mcp(
            "eye", server.url, auth=bearer(lambda: stored_token(store, "eye"))
        ) as connection:
            assert not (await connection.call_tool("look", {})).is_error


async def test_core_row_090_who_is_authorised_is_not_asked_again() -> None:
    store = MemoryOAuthStore()
    async with guarded() as (server, provider):

        async def run(**options: Any) -> str:
            return await run_mcp_oauth(
                server.url, store=store, key="eye", port=0, on_authorize_url=browse, **options
            )

        assert await run() == "authorized"
        assert await run() == "already_authorized"
        assert await run(fresh=True) == "authorized"
        assert len(provider.asked) == 2
        provider.tokens.clear()
        assert await run() == "authorized", "a token that is good no more is replaced"


async def test_core_row_090_a_registration_made_beforehand_is_used() -> None:
    store = MemoryOAuthStore()
    async with guarded() as (server, provider):
        provider.clients["app-1"] = OAuthClientInformationFull(
            client_id="app-1",
            client_secret="s3cret",
            redirect_uris=[AnyUrl("http://localhost:53999/back")],
            token_endpoint_auth_method="client_secret_post",
        )
        await run_mcp_oauth(
            server.url,
            store=store,
            key="eye",
            redirect_url="http://localhost:53999/back",
            client=OAuthClient(client_id="app-1", client_secret=Secret("s3cret")),
            on_authorize_url=browse,
        )
    assert list(provider.clients) == ["app-1"], "nobody was registered"
    assert str(provider.asked[0].redirect_uri) == "http://localhost:53999/back"
    assert (await store.get("eye")).client == {}


async def test_fault_22_a_wrong_state_changes_nothing() -> None:
    answers = []

    async def attacked(url: str) -> None:
        sent = parse_qs(urlsplit(url).query)
        back = sent["redirect_uri"][0]
        for forged in ("?code=evil&state=guessed", "?code=evil", "?error=no&state=x", "x?code=1"):
            answers.append((await browse(back + forged)).status_code)
        answers.append((await browse(f"{back}?state={sent['state'][0]}")).status_code)
        assert (await browse(url)).status_code == 200

    async with guarded() as (server, provider):
        store = MemoryOAuthStore()
        await run_mcp_oauth(server.url, store=store, key="eye", port=0, on_authorize_url=attacked)
        assert await stored_token(store, "eye") == "access-code1"
    assert answers == [400, 400, 400, 404, 400]


async def test_core_row_090_a_refusal_is_told_and_what_was_stored_stays() -> None:
    store = MemoryOAuthStore()
    await store.set("eye", OAuthState(tokens={"access_token": "old"}))
    async with guarded() as (server, provider):
        provider.consent = lambda answer: {
            "error": "access_denied",
            "error_description": "Ann\nsaid no",
            "state": answer["state"],
        }
        with pytest.raises(McpError, match="refused: access_denied Ann said no"):
            await run_mcp_oauth(server.url, store=store, key="eye", port=0, on_authorize_url=browse)
    assert await stored_token(store, "eye") == "old"


async def test_core_row_090_nobody_answers() -> None:
    async with guarded() as (server, _):
        with pytest.raises(McpError, match=r"not authorised within 0\.3 s"):
            await run_mcp_oauth(
                server.url,
                store=MemoryOAuthStore(),
                key="eye",
                port=0,
                on_authorize_url=lambda url: None,
                timeout_s=0.3,
            )


async def test_core_row_090_the_check_can_be_a_call_or_nothing() -> None:
    async def fails(arguments: Mapping[str, Any]) -> mcp_types.CallToolResult:
        return text("no", error=True)

    async with guarded() as (server, _):
        server.tool("fails", fails)
        store = MemoryOAuthStore()

        async def run(verify: Any) -> str:
            return await run_mcp_oauth(
                server.url,
                store=store,
                key="eye",
                port=0,
                on_authorize_url=browse,
                verify=verify,
            )

        await run(False)
        assert "tools/list" not in server.methods
        await run(VerifyCall(tool="look"))
        assert "tools/call" in server.methods
        with pytest.raises(McpError, match="fails answered with an error"):
            await run(VerifyCall(tool="fails"))
        server.statuses.append(("tools/list", 500))
        with pytest.raises(McpError, match="the check failed"):
            await run("list_tools")


async def test_a_server_that_registers_nobody() -> None:
    server, provider = McpServer(), OAuthProvider(registers=False)
    provider.guard(server)
    async with server.running():
        with pytest.raises(McpError, match="not authorised"):
            await run_mcp_oauth(
                server.url, store=MemoryOAuthStore(), key="eye", port=0, on_authorize_url=browse
            )
    with pytest.raises(McpError, match="not authorised"):
        await run_mcp_oauth(server.url, store=MemoryOAuthStore(), key="eye", port=0)


async def test_fault_22_a_browser_gets_the_address_as_one_argument(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[tuple[Any, ...]] = []

    def fake(*given: object) -> bool:
        opened.append(given)
        return True

    monkeypatch.setattr(webbrowser, "open", fake)
    address = "https://a.example/?x=$(touch /tmp/p);'\"&state=1"
    await open_in_browser(address)
    assert opened == [(address,)]
    monkeypatch.setattr(webbrowser, "open", lambda *given: False)
    with pytest.raises(McpError, match="open this address yourself"):
        await open_in_browser(address)


# -- the listener


@pytest.mark.parametrize("path", ["/callback", "/other/place"])
async def test_fault_22_the_listener_honours_the_redirect_address(path: str) -> None:
    async with CallbackListener.listening(0, None) as probe:
        port = urlsplit(probe.redirect_url).port
    url = f"http://localhost:{port}{path}"
    async with CallbackListener.listening(1, url) as listener:
        assert listener.redirect_url == url
        listener.expect("s1")
        assert (
            await browse(f"http://127.0.0.1:{port}/elsewhere?code=c&state=s1")
        ).status_code == 404
        page = await browse(f"http://127.0.0.1:{port}{path}?code=c&state=s1&iss=https://a")
        assert "Authorised" in page.text
        assert (await browse(f"http://127.0.0.1:{port}{path}?code=d&state=s1")).status_code == 200
        answer = await listener.answer()
    assert (answer.code, answer.issuer) == ("c", "https://a"), "the first counts"


async def test_a_tunnel_leads_to_the_port() -> None:
    async with CallbackListener.listening(0, "https://tunnel.example/oauth") as listener:
        assert listener.redirect_url == "https://tunnel.example/oauth"


async def test_the_listener_bears_what_is_no_browser() -> None:
    async with CallbackListener.listening(0, None) as listener:
        listener.expect("s1")
        port = urlsplit(listener.redirect_url).port
        for sent in (b"\r\n\r\n", b"POST /callback HTTP/1.1\r\n\r\n", b"x" * (MOST_BYTES + 1)):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            with_answer = await reader.read()
            assert with_answer == b"" or with_answer.startswith(b"HTTP/1.1 400")
            writer.close()
        _, idle = await asyncio.open_connection("127.0.0.1", port)
    idle.close()


async def test_a_port_that_is_taken_is_named() -> None:
    async with CallbackListener.listening(0, None) as first:
        port = urlsplit(first.redirect_url).port
        assert port is not None
        with pytest.raises(McpError, match=f"port {port}"):
            async with CallbackListener.listening(port, None):
                pytest.fail("it is taken")


@pytest.mark.parametrize("wrong", ["ftp://localhost/x", "localhost/callback", "http://h/x?y=1"])
async def test_a_redirect_address_is_checked(wrong: str) -> None:
    with pytest.raises(UsageError, match="redirect_url"):
        async with CallbackListener.listening(0, wrong):
            pytest.fail("it must not listen")


@pytest.mark.parametrize(
    ("url", "options", "field"),
    [
        ("mcp.example", {}, "server_url"),
        ("https://a.example", {"key": ""}, "key"),
        ("https://a.example", {"timeout_s": 0}, "timeout_s"),
    ],
)
async def test_arguments_are_checked(url: str, options: dict[str, Any], field: str) -> None:
    with pytest.raises(UsageError, match=field):
        await run_mcp_oauth(url, store=MemoryOAuthStore(), **{"key": "k", **options})


# -- stores

STATE = OAuthState(tokens={"access_token": "s3cret-token"}, client={"client_id": "c"})


@pytest.mark.parametrize("kind", ["memory", "files"])
async def test_core_row_090_a_store_keeps_states_by_key(kind: str, tmp_path: Path) -> None:
    store = MemoryOAuthStore() if kind == "memory" else FsOAuthStore(tmp_path / "a" / "b")
    assert await store.get("x") == OAuthState()
    await store.delete("x")
    for key in ("x", "../x", "é / x", "X"):
        await store.set(key, OAuthState(tokens={"access_token": key}))
    assert [await stored_token(store, key) for key in ("x", "../x", "é / x", "X")] == [
        "x",
        "../x",
        "é / x",
        "X",
    ]
    await store.delete("x")
    assert await stored_token(store, "x") is None
    assert "s3cret" not in repr(STATE)


async def test_core_row_090_files_are_private_and_replaced_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mcp"
    store = FsOAuthStore(folder)
    old = os.umask(0)
    try:
        await store.set("eye", STATE)
    finally:
        os.umask(old)
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert await FsOAuthStore(folder).get("eye") == STATE

    def full(descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        await store.set("eye", OAuthState())
    assert await store.get("eye") == STATE
    assert list(folder.iterdir()) == [file], "nothing half written stays"


@pytest.mark.parametrize("found", ["{broken", "[]", json.dumps({"tokens": []}), "\ud83d"])
async def test_a_file_that_holds_something_else_is_named(found: str, tmp_path: Path) -> None:
    (tmp_path / "eye.json").write_bytes(found.encode(errors="surrogatepass"))
    with pytest.raises(McpError, match="delete it"):
        await FsOAuthStore(tmp_path).get("eye")


async def test_a_key_must_fit_a_file_name(tmp_path: Path) -> None:
    for key in ("", "x" * 300):
        with pytest.raises(UsageError, match="key"):
            await FsOAuthStore(tmp_path).get(key)
