"""A question that a colleague answers later, in another process, while nobody is talking.

    python support_inbox.py              all three steps below, each in a process of its own
    python support_inbox.py ask          a customer asks; the agent posts what it cannot know
    python support_inbox.py colleague    somebody at the warehouse answers what is open
    python support_inbox.py again        the customer comes back; the answer is shown once

They share the file support.db in the working folder, and nothing else. For a real model replace
`script` in customer() by create_adapter("openai") of voxglove.adapters.models.create.
"""

import asyncio
import sys
from collections.abc import Sequence

from voxglove.adapters.models.scripted import Call, ScriptedModel, Step, say
from voxglove.core import Glove
from voxglove.core.stores import SqliteStore, list_sessions, resolve_inbox_item

FILE = "support.db"
CUSTOMER = "customer-7"

QUESTION = {"tag": "stock", "request": "When is lamp L4 back, and in which colour?"}
ASK: list[Step | str] = [
    say(Call("glove_post_to_inbox", QUESTION)),
    "I have asked the warehouse. You will hear from me.",
]
AGAIN: list[Step | str] = ["The lamp is back on Friday, in blue."]


async def customer(words: str, script: Sequence[Step | str]) -> None:
    """The store brings the history back, and the tool glove_post_to_inbox with it."""
    model = ScriptedModel(script)
    async with SqliteStore(FILE, CUSTOMER, name="Bea") as store:
        agent = Glove(model=model, system_prompt="You are a shop's support.").build(store)
        result = await agent.process_request(words)
        print(f"customer: {words}\nagent:    {result.text}")
        for message in await store.get_messages():
            if message.framework_context == "inbox":
                print(f"(in the history: {message.text.splitlines()[-1]})")


async def colleague() -> None:
    """Answer everything that is open, in every conversation of the file."""
    for session in list_sessions(FILE):
        async with SqliteStore(FILE, session.session_id) as store:
            items = await store.get_inbox_items()
        for item in items:
            if item.status == "pending":
                print(f"warehouse, for {session.name}: {item.request}")
                # No event loop and no agent are needed for this call. One answer wins.
                resolve_inbox_item(FILE, session.session_id, item.id, "Friday, blue only")


async def main(step: str) -> None:
    match step:
        case "ask":
            await customer("Do you still have lamp L4?", ASK)
        case "colleague":
            await colleague()
        case "again":
            await customer("Any news about my lamp?", AGAIN)
        case _:
            for one in ("ask", "colleague", "again"):
                process = await asyncio.create_subprocess_exec(sys.executable, __file__, one)
                if await process.wait() != 0:
                    sys.exit(f"{one} failed")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else ""))
