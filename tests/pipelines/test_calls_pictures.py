"""Pictures on a call: they go with the next user turn, and are lost by no cut."""

from __future__ import annotations

from tests.support.calls import CallScript, Does, Held, Says, hold_call
from voxglove.core.messages import ContentPart
from voxglove.media import events
from voxglove.media.brain import Say
from voxglove.media.transport import Image

PNG = b"\x89PNG\r\n\x1a\n picture"


def shows(data: bytes = PNG, *, live: bool = False) -> Does:
    return Does(0.5, lambda one: one.brain.signal(Image("image/png", data, live)))


def seen(held: Held) -> list[list[str | None]]:
    """For each user turn of history: the base64 data of its pictures."""
    return [
        [part.source.data for part in message.content if part.type == "image" and part.source]
        for message in held.history
        if message.is_user_turn
    ]


async def test_an_attached_picture_goes_with_the_next_turn_and_only_with_that() -> None:
    held = await hold_call(
        CallScript(
            caller=[Says(1.0, 2.0, "What is this?"), Says(5.0, 6.0, "And now?")],
            model=["A picture.", "Nothing new."],
            does=[shows()],
            seconds=9,
        )
    )
    assert held.turns == ["What is this?", "And now?"], held.told()
    assert [len(pictures) for pictures in seen(held)] == [1, 0]
    asked = held.model.requests[0].messages[-1]
    assert [part.type for part in asked.content] == ["text", "image"]
    assert asked.content[0] == ContentPart("text", text="What is this?")


async def test_of_a_camera_only_the_newest_frame_is_shown() -> None:
    held = await hold_call(
        CallScript(
            caller=[Says(1.0, 2.0, "What do you see?")],
            model=["You."],
            does=[shows(b"old", live=True), shows(b"new", live=True), shows(b"attached")],
            seconds=6,
        )
    )
    assert seen(held) == [["YXR0YWNoZWQ=", "bmV3"]], held.told()  # attached, new


async def test_one_picture_too_many_is_told_and_the_others_are_kept() -> None:
    held = await hold_call(
        CallScript(
            does=[*[shows() for _ in range(5)], Does(1.0, lambda one: one.command(Say("Look.")))],
            model=["I see four."],
            seconds=5,
        )
    )
    assert [len(pictures) for pictures in seen(held)] == [4], held.told()
    assert [problem.code for problem in held.of(events.Problem)] == ["ERR_IMAGE"]


async def test_pictures_of_a_turn_that_a_cut_kept_from_the_agent_go_with_the_next() -> None:
    """The second turn follows so closely that the first was never taken by the agent."""
    held = await hold_call(
        CallScript(
            does=[
                shows(),
                Does(1.0, lambda one: one.command(Say("Look."))),
                Does(1.0, lambda one: one.command(Say("Quick!"))),
            ],
            model=["I see."],
            seconds=5,
        )
    )
    assert sum(len(pictures) for pictures in seen(held)) == 1, held.told()
    words = " ".join(message.text for message in held.history if message.is_user_turn)
    assert "Look." in words and "Quick!" in words
