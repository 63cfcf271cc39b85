"""Tools here, the model there: an agent whose answers come from a voxglove server.

    voxglove serve                                       in one terminal; it holds the key
    python remote_brain.py http://127.0.0.1:8080/chat    in another; it holds the tools

The server answers with the model of its configuration. One that does not listen on loopback alone
wants one of its `server.api_keys`, here in the variable VOXGLOVE_KEY.
"""

import asyncio
import os
import sys

from voxglove.adapters.credentials import Secret
from voxglove.adapters.models.remote import RemoteModel, RemoteModelConfig
from voxglove.core import AbortError, CancelToken, Glove, ModelError, tool


@tool(read_only=True)
def temperature(room: str) -> str:
    """The temperature of a room of this house."""
    return {"cellar": "12 degrees", "kitchen": "21 degrees"}.get(room, "That room has no sensor.")


async def main(url: str) -> int:
    config = RemoteModelConfig(url=url, key=Secret(os.environ.get("VOXGLOVE_KEY", "")))
    model = RemoteModel(config)
    agent = Glove(model=model, system_prompt="You know this house.").fold(temperature).build()
    token = CancelToken()
    asyncio.get_running_loop().call_later(60, token.abort, "too slow")
    try:
        result = await agent.process_request("How cold is the cellar?", token=token)
        print(f"{result.text}  ({result.model_calls} calls, {result.usage.total} tokens)")
    except ModelError as error:
        again = "try again later" if error.retryable else "trying again does not help"
        print(f"{error.code}, {again}: {error}")
        return 1
    except AbortError as error:
        print(f"stopped: {error.reason}")
        return 1
    finally:
        await model.aclose()
    return 0


if __name__ == "__main__":
    target = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080/chat"
    sys.exit(asyncio.run(main(target)))
