"""The price changes while the agent talks: an event for the newest call of a running server.

    python -m examples.sales_call.offer [http://127.0.0.1:8080]

A product catalogue would do the same: POST /sessions/CALL/events. The agent learns of it without
a word at the next turn or tool result; if nobody is talking, it speaks of it at a quiet pause. Sent
twice, it is told once.
"""

from __future__ import annotations

import json
import sys
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from voxglove.core import StoreError
from voxglove.core.stores import list_sessions

from .program import OFFER

FILE = "sales.sqlite3"
"""The server's store, as voxglove.yaml names it."""


def main(server: str) -> int:
    """Exit code 1: there is no call, or no server."""
    try:
        call_id = list_sessions(FILE)[-1].session_id
        told = tell(server, call_id)
    except (StoreError, IndexError, URLError) as error:
        print(f"no call was told: {error}")
        return 1
    print(f"call {call_id}: {'told' if told else 'it knew that already'}")
    return 0


def tell(server: str, call_id: str) -> bool:
    """Post the offer; False when the call has had it before."""
    event = {"id": OFFER.id, "source": OFFER.source, "content": OFFER.content}
    request = Request(
        f"{server}/sessions/{quote(call_id, safe='')}/events",
        json.dumps({"event": event}).encode(),
        {"Content-Type": "application/json"},
    )
    with urlopen(request, timeout=10) as answer:
        return bool(json.load(answer)["accepted"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"))
