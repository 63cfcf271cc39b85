"""The simulated Gemini model of one connection: it answers in turns, speaks, calls, is interrupted.

One task works at a time; questions wait in a queue, and nothing begins while the user speaks. The
session that owns a model feeds it and interrupts it from its reading task. Order of messages:
protocols/gemini-live 5.
"""

from __future__ import annotations

import asyncio
import base64
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle

from tests.simulators.gemini_live_rules import INVALID
from tests.simulators.gemini_live_setup import Generation, Terms
from tests.simulators.gemini_live_talk import Calls, Memory, Talk
from tests.simulators.realtime_script import Asked, AskedBy, Call, Reply
from tests.simulators.realtime_server import Json, Wire
from tests.simulators.tone_words import Samples

OUT_RATE = 24_000
CHUNKS_MS = (40, 60, 80, 100)
TOOL_RUNNING_S = 0.1
TOKENS_PER_SECOND = 25
ENDINGS = {"failed": "RESPONSE_REJECTED", "incomplete": "GENERATED_AUDIO_SAFETY"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Habits of a server that a test may choose.

    says_finished   the last piece of a transcript says `finished`
    voice_activity  tells where it hears voice begin and end
    chatters        sends what a client may leave alone: thoughts, interim words, searches, nothing
    notice_s        how long before the end of a connection goAway comes
    life_s          a connection's life, None for ever
    uncompressed_s  a session's life without contextWindowCompression; its handles die with it
    window_tokens   the context's size: beyond it compression cuts, or the session ends with 1007
    """

    says_finished: bool = False
    voice_activity: bool = False
    chatters: bool = False
    notice_s: float = 60.0
    life_s: float | None = None
    uncompressed_s: float | None = None
    window_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """Why the model is to work."""

    by: AskedBy
    text: str = ""
    results: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Playback:
    """What the server believes the user hears: real time from `start`, up to `end` (loop time).
    `entry` is the place of its words in the history."""

    entry: int
    text: str
    start: float
    end: float

    def heard(self, now: float) -> str:
        """The words that sounded until `now`."""
        words = self.text.split()
        if now >= self.end:
            return self.text
        share = max(0.0, now - self.start) / (self.end - self.start)
        return " ".join(words[: int(len(words) * share)])


class Model:
    """Answers on one connection. `user_speaks` holds back whatever is not begun; `terms` may be
    replaced. All that it starts lives in `group`; a fault that ends the connection is raised there.
    """

    def __init__(
        self,
        wire: Wire,
        group: asyncio.TaskGroup,
        *,
        generation: Generation,
        options: Options,
        terms: Terms,
        talk: Talk,
        memory: Memory,
    ) -> None:
        self.wire = wire
        self.talk = talk
        self.terms = terms
        self.calls = Calls()
        self.user_speaks = False
        self._group = group
        self._generation = generation
        self._options = options
        self._memory = memory
        self._questions: deque[Question] = deque()
        self._task: asyncio.Task[None] | None = None
        self._playback: Playback | None = None
        self._resumable: bool | None = None

    def ask(self, question: Question, *, first: bool = False) -> None:
        """Answer when nothing else is being answered; `first`: before other questions."""
        if first:
            self._questions.appendleft(question)
        else:
            self._questions.append(question)
        self.go_on()

    def go_on(self) -> None:
        """Answer what waits, if the user lets it."""
        if self._task is None and self._questions and not self.user_speaks:
            self._task = self._group.create_task(self._work())

    async def interrupt(self) -> None:
        """Cut whatever is generated, played or waited for. Blocking calls are cancelled."""
        task = self._task
        if task is None:
            return
        self._task = None
        task.cancel()
        await asyncio.wait([task])
        self._forget_unheard()
        await self._content(interrupted=True)
        cancelled = self.calls.cancel()
        if cancelled:
            await self.wire.send({"toolCallCancellation": {"ids": list(cancelled)}})
        await self._turn_complete("", cut=True)

    async def settle(self) -> None:
        """Give a handle if everything is quiet."""
        busy = self._task is not None or self._questions or self.calls.open or self.user_speaks
        if busy or self._resumable is not False:
            return
        self._resumable = True
        handle = self._memory.give(self.talk)
        update: Json = {"newHandle": handle, "resumable": True}
        await self.wire.send({"sessionResumptionUpdate": update})
        await self.wire.at("handle_given")

    async def _work(self) -> None:
        while self._questions and not self.user_speaks:
            await self._turn(self._questions.popleft())
        self._task = None
        await self.settle()

    async def _turn(self, question: Question) -> None:
        """One turn of the model, tool calls that block included."""
        await self._not_resumable()
        reply = self._reply(question)
        await self._user_words(question, reply)
        await asyncio.sleep(reply.after_s)
        await self.wire.at("response_started")
        await self._chatter()
        ending = await self._say(reply)
        while self.calls.blocked:
            reply = self._reply(Question("results", results=await self.calls.results()))
            await asyncio.sleep(reply.after_s)
            ending = await self._say(reply)
        if self._playback is not None or self.terms.text_only:
            await self._content(generationComplete=True)
            if self._options.chatters:
                await self._content(waitingForInput=True)
            await self.wire.at("item_done")
            await self._play_out()
        await self._turn_complete(ending)
        await self.wire.at("response_done")

    def _reply(self, question: Question) -> Reply:
        images, self.talk.images = self.talk.images, 0
        asked = Asked(
            by=question.by,
            text=question.text,
            results=question.results,
            history=tuple(self.talk.history),
            instructions=self.terms.instructions,
            tools=tuple(self.terms.tools),
            images=images,
        )
        return self.wire.script.answer(asked)

    async def _say(self, reply: Reply) -> str:
        """Speak and call; why the turn ends, "" for no special reason."""
        if reply.status == "failed":
            return ENDINGS["failed"]
        if reply.text and self.terms.text_only:
            await self._write(reply.text)
        elif reply.text:
            await self._speak(reply.text)
        if any(isinstance(call.arguments, str) for call in reply.calls):
            return "MALFORMED_FUNCTION_CALL"
        if reply.calls:
            await self._call(reply.calls)
        return ENDINGS.get(reply.status, "")

    async def _chatter(self) -> None:
        if self._options.chatters:
            await self._content()
            thought = {"text": "They greet me.", "thought": True}
            await self._content(modelTurn={"role": "model", "parts": [thought]})
            await self._content(groundingMetadata={"webSearchQueries": ["greetings"]})

    async def _write(self, text: str) -> None:
        self.talk.history.append(("assistant", text))
        for word in _fragments(text):
            await self._content(modelTurn={"role": "model", "parts": [{"text": word}]})
            await asyncio.sleep(0)

    async def _speak(self, text: str) -> None:
        pcm = self.wire.script.speak(text, OUT_RATE)
        await self.wire.at("before_audio")
        now = asyncio.get_running_loop().time()
        start = now if self._playback is None else max(now, self._playback.end)
        end = start + len(pcm) / OUT_RATE
        self._playback = Playback(len(self.talk.history), text, start, end)
        self.talk.history.append(("assistant", text))
        await self._send_speech(pcm, _fragments(text))
        await self.wire.at("audio_done")

    async def _send_speech(self, pcm: Samples, words: list[str]) -> None:
        """Sound and its words, mixed, faster than it plays."""
        at = said = 0
        for length_ms in cycle(CHUNKS_MS):
            if at >= len(pcm):
                return
            chunk = pcm[at : at + OUT_RATE * length_ms // 1000]
            at += len(chunk)
            due = len(words) if at >= len(pcm) else int(len(words) * at / len(pcm))
            told = "".join(words[said:due])
            said = due
            await self._send_chunk(chunk, told, last=due == len(words))
            await self.wire.at("mid_audio")
            await asyncio.sleep(len(chunk) / OUT_RATE / self.wire.script.speed)

    async def _send_chunk(self, chunk: Samples, words: str, *, last: bool) -> None:
        data = base64.b64encode(chunk.tobytes()).decode()
        blob = {"mimeType": f"audio/pcm;rate={OUT_RATE}", "data": data}
        sound = {"role": "model", "parts": [{"inlineData": blob}]}
        if not words or not self.terms.words_out:
            await self._content(modelTurn=sound)
            return
        told = self._transcription(words, last=last)
        if self._generation.bundles:
            await self._content(modelTurn=sound, outputTranscription=told)
        else:
            await self._content(outputTranscription=told)
            await self._content(modelTurn=sound)

    def _transcription(self, words: str, *, last: bool) -> Json:
        finished = {"finished": True} if last and self._options.says_finished else {}
        return {"text": words, **finished}

    async def _user_words(self, question: Question, reply: Reply) -> None:
        """What the user said, now or late."""
        if question.by != "speech" or not question.text or not self.terms.words_in:
            return
        if not reply.words_late_s:
            await self._tell_user_words(question.text, 0.0)
        else:
            late_s = reply.after_s + reply.words_late_s
            self._group.create_task(self._tell_user_words(question.text, late_s))

    async def _tell_user_words(self, text: str, late_s: float) -> None:
        await asyncio.sleep(late_s)
        words = _fragments(text)
        if self._options.chatters:
            await self._content(interimInputTranscription={"text": words[0]})
        for at, word in enumerate(words):
            spaced = word if word.startswith(" ") else f" {word}"
            told = self._transcription(spaced, last=at == len(words) - 1)
            await self._content(inputTranscription=told)
        await self.wire.at("user_words")

    async def _call(self, calls: Sequence[Call]) -> None:
        sent: list[Json] = []
        for call in calls:
            id = call.id or self._memory.call_id()
            blocks = self.terms.tools.get(call.name, self._generation.blocks)
            self.calls.add(id, call.name, blocks)
            assert not isinstance(call.arguments, str)
            sent.append({"id": id, "name": call.name, "args": dict(call.arguments)})
        await self.wire.send({"toolCall": {"functionCalls": list(sent)}})
        await self.wire.at("tool_called")
        self._group.create_task(self._running([str(call["id"]) for call in sent]))

    async def _running(self, ids: Sequence[str]) -> None:
        await asyncio.sleep(TOOL_RUNNING_S)
        if self.calls.still_open(ids):
            await self.wire.at("tool_running")

    async def _play_out(self) -> None:
        if self._playback is not None:
            now = asyncio.get_running_loop().time()
            await asyncio.sleep(max(0.0, self._playback.end - now))

    def _forget_unheard(self) -> None:
        """The history keeps of an interrupted answer what the user can have heard."""
        playback = self._playback
        if playback is None:
            return
        heard = playback.heard(asyncio.get_running_loop().time())
        entry = [("assistant", heard)] if heard else []
        self.talk.history[playback.entry : playback.entry + 1] = entry

    async def _turn_complete(self, reason: str, *, cut: bool = False) -> None:
        played = self._playback
        self._playback = None
        self.talk.responses += 1
        total = self.wire.script.tokens(self.talk.responses)
        spoken_s = 0.0 if played is None else played.end - played.start
        answer = min(total, int(spoken_s * TOKENS_PER_SECOND))
        content: Json = {"turnComplete": True}
        if reason:
            content["turnCompleteReason"] = reason
        if self._generation.says_idle and not cut:
            idle = not self.calls.open and not self._questions
            content["interactionStatus"] = "IDLE" if idle else "IN_PROGRESS"
        usage = usage_of(total - answer, answer)
        await self.wire.send({"serverContent": content, "usageMetadata": usage})
        await self._fit_window(total)

    async def _fit_window(self, total: int) -> None:
        """Compression cuts at a turn of the user; without it a full window is the end."""
        window = self._options.window_tokens
        if window is None or total <= window:
            return
        if not self.terms.compresses:
            await self.wire.close(INVALID, "The input token count exceeds the context window.")
        history = self.talk.history
        later = range(max(1, len(history) // 2), len(history))
        first = next((at for at in later if history[at][0] == "user"), 0)
        del history[:first]

    async def _not_resumable(self) -> None:
        gives = self.terms.resumes and self.wire.script.handles
        if gives and self._resumable is not False:
            self._resumable = False
            await self.wire.send({"sessionResumptionUpdate": {"resumable": False}})

    async def _content(self, **content: object) -> None:
        await self.wire.send({"serverContent": dict(content)})


def usage_of(prompt: int, answer: int) -> Json:
    """The counts of one response."""
    return {
        "promptTokenCount": prompt,
        "responseTokenCount": answer,
        "totalTokenCount": prompt + answer,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": prompt}],
        "responseTokensDetails": [{"modality": "AUDIO", "tokenCount": answer}],
    }


def _fragments(text: str) -> list[str]:
    """Words; each but the first with the space before it."""
    return [word if at == 0 else f" {word}" for at, word in enumerate(text.split())]
