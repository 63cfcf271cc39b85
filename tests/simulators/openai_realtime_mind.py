"""What a simulated OpenAI realtime model understands, and what its script lets it answer.

No I/O. Owned by `openai_realtime_session`, one for each connection.
"""

from __future__ import annotations

from tests.simulators.openai_realtime_answer import Answer
from tests.simulators.openai_realtime_checks import parts, word
from tests.simulators.openai_realtime_items import Item, call_of, images
from tests.simulators.openai_realtime_wire import RealtimeWire
from tests.simulators.realtime_script import Asked, AskedBy, Reply, Script


class Mind:
    """What the model knows: the conversation in words, and what it has not answered yet."""

    def __init__(self, protocol: RealtimeWire, script: Script) -> None:
        self.protocol = protocol
        self.script = script
        self.words: dict[str, str] = {}
        """What was said in each item that has sound, to the word."""
        self._new: list[Item] = []
        self._images = 0

    def hear(self, item: Item, text: str) -> None:
        """A turn of the user's voice."""
        self.words[item.id] = text
        self._new.append(item)

    def notice(self, item: Item) -> None:
        """An item of the client. One of the past, or before an answer of the past, asks nothing."""
        self._images += images(item)
        if item.id != self.protocol.conversation.last_id:
            return
        if item.role == "assistant":
            self._new.clear()
        else:
            self._new.append(item)

    def reply(self, answer: Answer) -> Reply:
        """What it answers."""
        if answer.out_of_band and answer.text_only:
            return Reply(text=self.script.summary, text_only=True)
        asked = self._asked(answer)
        if not answer.out_of_band:
            self._new.clear()
            self._images = 0
        reply = self.script.answer(asked)
        if reply.text_only:
            answer.params = {**answer.params, "output_modalities": ["text"]}
        return reply

    def texts(self) -> list[tuple[str, str]]:
        """The conversation now, (role or type, text): of an answer that was cut what was heard."""
        return [(item.role or item.type, self._text(item)) for item in self.protocol.conversation]

    def _asked(self, answer: Answer) -> Asked:
        """Why it works now: the newest of what was said and of tools' results decides, unless an
        instruction comes on top of what was said."""
        aside = answer.out_of_band and answer.input is not None
        own = answer.input if aside and answer.input is not None else self._new
        results = dict(call_of(item) for item in own if item.type == "function_call_output")
        last = next((item for item in reversed(own) if item.role == "user" or _result(item)), None)
        instruction = word(answer.params.get("instructions"))
        by: AskedBy = "request"
        if last is not None and _result(last):
            by = "results"
        elif last is not None and not instruction and answer.cause != "idle":
            by = "speech" if last.pieces else "text"
        context = self.texts() if answer.input is None else [(i.role, i.text) for i in answer.input]
        tools = [word(tool.get("name")) for tool in parts(answer.params.get("tools"))]
        return Asked(
            by=by,
            text=self._text(last) if last is not None and by in ("speech", "text") else "",
            instruction=instruction,
            results=results,
            history=[one for one in context if one[0] in ("user", "assistant", "system")],
            instructions=answer.instructions,
            tools=tools if "tools" in answer.params else self.protocol.config.tool_names,
            images=sum(map(images, own)) if aside else self._images,
        )

    def _text(self, item: Item) -> str:
        if item.type == "function_call":
            return word(item.wire.get("name"))
        if item.type == "function_call_output":
            return call_of(item)[1]
        said = self.words.get(item.id)
        if said is None:
            return item.text or self.script.read(item.samples, item.rate)
        if item.cut_ms is None or item.role != "assistant":
            return said
        heard = len(self.script.read(item.samples, item.rate).split())
        return " ".join(said.split()[:heard])


def _result(item: Item) -> bool:
    return item.type == "function_call_output"
