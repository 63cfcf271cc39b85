"""The plain turn, on a whole virtual call."""

from __future__ import annotations

from tests.support.calls import CallScript, Says, hold_call


async def test_voice_row_006_a_turn_goes_through_its_modes_once() -> None:
    held = await hold_call(
        CallScript(
            caller=[Says(1.0, 2.0, "Hello there.")], model=["Hi, how can I help?"], seconds=8
        )
    )
    assert held.turns == ["Hello there."], held.told()
    assert held.modes == ["listening", "thinking", "speaking", "listening", "idle"], held.told()
    assert held.answers[0].heard == "Hi, how can I help?", held.told()
    assert held.roles() == [("user", "Hello there."), ("agent", "Hi, how can I help?")]
    held.model.verify()
