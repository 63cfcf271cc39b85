"""A remote model on a `/chat` that can be made to fail. The shortest of the rigs."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict
from typing import Any

from tests.adapters.model_rig import Asked, Options, Said, opened, outgoing
from tests.simulators.remote_chat import KEY, RemoteChatSimulator, Scripted, check_body
from tests.simulators.sse import Json, Refused
from voxglove.adapters.credentials import Secret
from voxglove.adapters.models.remote import RemoteModel, RemoteModelConfig
from voxglove.adapters.models.remote_wire import request_body
from voxglove.core.model import ModelRequest
from voxglove.core.usage import Usage

BUSY: Json = {"code": "ERR_MODEL_SERVER", "message": "busy", "retryable": True}


class RemoteRig:
    """`POST /chat`: it only streams, and takes our names, ids and histories as they are."""

    usage = Usage(20, 9, 3, 5)
    modes = (True,)
    thinks = False
    has_sdk = False
    garbage = (b"data: {oops\n\n", b'data: {"type": "done", "message": 5}\n\n')
    noise = b'data: {"type": "new.kind"}\n\ndata: 7\n\n: a note\n\n'
    options: Options = (None, {"anthropic": {"model": "m", "blocks": []}})

    def asked(
        self, *script: Said | Scripted, key: str = KEY, **config: Any
    ) -> AbstractAsyncContextManager[Asked]:
        steps = (self.scripted(one) if isinstance(one, Said) else one for one in script)
        server = RemoteChatSimulator(*steps)

        def make() -> RemoteModel:
            url = f"{config.get('base_url', server.base_url)}/chat"
            silence_s = config.get("timeout_s", 5.0)
            return RemoteModel(RemoteModelConfig(url=url, key=Secret(key), timeout_s=silence_s))

        return opened(server, make)

    def scripted(self, answer: Said) -> Scripted:
        calls = [
            {"tool_name": one.tool_name, "input_args": one.input_args, "id": one.id}
            for one in answer.calls
        ]
        return Scripted(
            deltas=answer.words,
            calls=calls,
            counts=None if answer.counted is None else asdict(answer.counted),
            stop=answer.stop or ("tool_use" if calls else "end_turn"),
            failure=BUSY if answer.breaks else None,
            **outgoing(answer),
        )

    def tool_name(self, name: str) -> str:
        return name

    def bound(self, body: Json) -> object:
        return body.get("max_tokens")

    def problem(self, request: ModelRequest) -> str:
        try:
            check_body(json.loads(request_body(request)))
        except Refused as refused:
            return str(refused)
        return ""


REMOTE = RemoteRig()
