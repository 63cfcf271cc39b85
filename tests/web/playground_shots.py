"""Takes the pictures of docs/playground.md anew, from the recorded call:

PYTHONPATH=. .venv/bin/python tests/web/playground_shots.py
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.web.playground_page import Message, Playground, line, playground, recorded

IMAGES = Path(__file__).parents[2] / "docs" / "images"
DESK, PHONE = (1200, 760), (360, 740)

QUESTION: Message = {
    "t": "slot",
    "id": "permission",
    "renderer": "permission_request",
    "input": {
        "toolName": "cancel_booking",
        "toolInput": {"booking_id": 1, "name": "Anna Smith", "time": "19:30"},
    },
    "strategy": "stay",
}


TASKS = [
    ("Find a free table", "Finding a free table", "completed"),
    ("Ask the manager about the dog", "Asking the manager about the dog", "in_progress"),
    ("Book the table", "Booking the table", "pending"),
]
ITEMS: list[dict[str, object]] = [
    {"tag": "manager", "request": "May a guest bring a small dog on Friday?", "blocking": True},
    {"tag": "kitchen", "request": "Is there a soup without celery?", "response": "Tomato soup."},
]


async def take(open_page: Playground, name: str) -> None:
    """A picture, once fonts, sound and sliders rest."""
    await asyncio.sleep(0.7)  # the clock ticks twice a second
    await open_page.page.screenshot(path=IMAGES / f"{name}.png", animations="disabled")


async def after_a_cut() -> None:
    async with playground(DESK, start=False) as open_page:
        await take(open_page, "first")
        await open_page.start()
        await open_page.booking(12.5)
        await take(open_page, "cut")


async def questions_and_events() -> None:
    async with playground(DESK, dark=True) as open_page:
        await open_page.booking()
        await open_page.hear(QUESTION)
        await open_page.page.get_by_role("tab", name="Events").click()
        await open_page.pictures(4)
        await open_page.page.locator(".entry", has_text="committed").last.click()
        await take(open_page, "question")


async def developer() -> None:
    async with playground(DESK) as open_page:
        page = open_page.page
        await open_page.booking(20.7)
        await page.get_by_role("tab", name="Developer").click()
        for knob, value in (("Loss", "10"), ("Burst", "3"), ("Jitter", "80")):
            await page.get_by_label(knob).fill(value)
        await page.get_by_text("10 % lost").wait_for()
        await page.click("#wave-legend")
        await take(open_page, "developer")


async def agent() -> None:
    tasks = [
        {"id": str(n), "content": content, "activeForm": doing, "status": status}
        for n, (content, doing, status) in enumerate(TASKS)
    ]
    items = [
        {"id": str(n), "blocking": False, **one}
        | {"status": "resolved" if "response" in one else "pending"}
        for n, one in enumerate(ITEMS)
    ]
    async with playground(DESK) as open_page:
        await open_page.booking(12.5)
        await open_page.hear(recorded()[0][0][1] | {"inbox": "/sessions/call_recorded/inbox"})
        await open_page.hear(line("tasks", tasks=tasks), line("inbox", items=items))
        await open_page.page.locator(".plan-piece").click()
        await take(open_page, "agent")


async def phone() -> None:
    async with playground(PHONE, dark=True) as open_page:
        await open_page.booking(12.5)
        await take(open_page, "phone")
        await open_page.page.click("#panel-toggle")
        await take(open_page, "phone-turns")


async def main() -> None:
    """All of them."""
    IMAGES.mkdir(exist_ok=True)
    for scene in (after_a_cut, questions_and_events, developer, agent, phone):
        await scene()


if __name__ == "__main__":
    asyncio.run(main())
