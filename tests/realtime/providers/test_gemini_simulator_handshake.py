"""Who is let in by the simulated Gemini Live API, and where."""

from __future__ import annotations

import pytest
from websockets.exceptions import InvalidStatus

from tests.realtime.providers.gemini_peer import PATH, assert_clean, dialled, setup_for
from tests.simulators.gemini_live import KEY, TOKEN, gemini_live
from tests.simulators.realtime_script import Script

TWIN = PATH + "Constrained"


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        (PATH, {}, 403),
        (f"{PATH}?key=wrong", {}, 401),
        (PATH, {"x-goog-api-key": "wrong"}, 401),
        (PATH, {"Authorization": f"Token {TOKEN}"}, 403),
        (f"{PATH}?key={TOKEN}", {}, 401),
        (TWIN, {"x-goog-api-key": KEY}, 401),
        (TWIN, {"Authorization": f"Bearer {TOKEN}"}, 401),
        (f"{TWIN}?access_token=auth_tokens/none", {}, 401),
        ("/ws/google.ai.generativelanguage.v9.GenerativeService.BidiGenerateContent", {}, 404),
        ("/", {}, 404),
    ],
)
async def test_a_handshake_is_refused(path: str, headers: dict[str, str], status: int) -> None:
    async with gemini_live(Script()) as server:
        with pytest.raises(InvalidStatus) as refused:
            async with dialled(server, path, headers):
                pass
    assert refused.value.response.status_code == status
    assert server.wires == []


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        (f"/{PATH}?key={KEY}", {}),
        (PATH.replace("v1beta", "v1alpha"), {"x-goog-api-key": KEY}),
        (TWIN, {"Authorization": f"Token {TOKEN}"}),
        (f"{TWIN}?access_token={TOKEN}", {}),
    ],
)
async def test_a_handshake_is_taken(path: str, headers: dict[str, str]) -> None:
    async with gemini_live(Script()) as server, dialled(server, path, headers) as peer:
        await peer.send({"setup": setup_for(server)})
        assert "setupComplete" in await peer.next()
    assert_clean(server)


async def test_a_wrong_key_may_be_noticed_late() -> None:
    async with (
        gemini_live(Script(), refuses_late=True) as server,
        dialled(server, f"{PATH}?key=wrong") as peer,
    ):
        assert await peer.refused() == (
            1007,
            "API key not valid. Please pass a valid API key.",
        )
    assert server.faults == []
