"""livekit-agents as a system under test (bench/README.md; how and why: bench/peers/README.md).

One AgentSession a call, in one process. The line implements livekit's AudioInput and AudioOutput,
the fakes subclass its STT, LLM and TTS. Nothing else is ours. Each call owns its session and the
task that paces its output, and ends both when the socket closes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterable
from functools import partial

from aiohttp import WSMsgType, web
from common import (
    FRAME_BYTES,
    FRAME_S,
    FRAME_SAMPLES,
    GREETING,
    RATE,
    Options,
    open_line,
    parse,
    serve,
    tone,
)
from livekit import rtc
from livekit.agents import (
    DEFAULT_API_CONNECT_OPTIONS,
    NOT_GIVEN,
    Agent,
    AgentSession,
    APIConnectOptions,
    ModelSettings,
    inference,
    llm,
    stt,
    tts,
)
from livekit.agents.voice import io

LATE_S = 0.1
"""Output that fell further behind than this starts a new schedule instead of catching up."""

ECHO_LATE_S = 2.0
"""The same for an echo: it makes a stall good, or the stall would stay in every later frame."""


class SocketInput(io.AudioInput):
    """Audio in: the session itself pulls the socket, so no queue or task stands between."""

    def __init__(self, line: web.WebSocketResponse) -> None:
        super().__init__(label="bench")
        self._line = line
        self.closed = asyncio.Event()

    async def __anext__(self) -> rtc.AudioFrame:
        while True:
            message = await self._line.receive()
            if message.type is WSMsgType.BINARY:
                return rtc.AudioFrame(message.data, RATE, 1, FRAME_SAMPLES)
            if message.type is not WSMsgType.TEXT:
                self.closed.set()
                raise StopAsyncIteration


class SocketOutput(io.AudioOutput):
    """Audio out, 20 ms a message against a schedule, with livekit's pause, flush and clear.

    `pace` is its one task, owned by the call. Playback of a segment has finished when all of it was
    sent, or when it was cleared.
    """

    def __init__(self, line: web.WebSocketResponse, late_s: float) -> None:
        super().__init__(
            label="bench",
            capabilities=io.AudioOutputCapabilities(pause=True),
            sample_rate=RATE,
        )
        self._line = line
        self._late_s = late_s
        self._waiting = bytearray()
        self._pushed = 0
        self._sent = 0
        self._flushed = False
        self._paused = False
        self._wake = asyncio.Event()

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)
        self._waiting += frame.data
        self._pushed += len(frame.data) * 2
        self._wake.set()

    def flush(self) -> None:
        super().flush()
        if self._pushed:
            self._flushed = True
            self._wake.set()
            if not self._waiting:
                self._finish(interrupted=False)

    def clear_buffer(self) -> None:
        self._waiting.clear()
        if self._pushed and self._flushed:
            self._finish(interrupted=True)

    def pause(self) -> None:
        super().pause()
        self._paused = True

    def resume(self) -> None:
        super().resume()
        self._paused = False
        self._wake.set()

    async def pace(self) -> None:
        """Send what waits, in real time, until cancelled or the socket closes."""
        clock = asyncio.get_running_loop().time
        due = 0.0
        while not self._line.closed:
            if not self._sendable():
                self._wake.clear()
                await self._wake.wait()
                continue
            early = due - clock()
            if early > 0:
                await asyncio.sleep(early)
                continue
            if early < -self._late_s:
                due = clock()
            due += FRAME_S
            await self._send()

    def _sendable(self) -> bool:
        enough = 1 if self._flushed else FRAME_BYTES
        return not self._paused and len(self._waiting) >= enough

    async def _send(self) -> None:
        chunk = bytes(self._waiting[:FRAME_BYTES])
        del self._waiting[:FRAME_BYTES]
        if not self._sent:
            self.on_playback_started(created_at=time.time())
        self._sent += len(chunk)
        await self._line.send_bytes(chunk.ljust(FRAME_BYTES, b"\0"))
        if self._flushed and not self._waiting:
            self._finish(interrupted=False)

    def _finish(self, *, interrupted: bool) -> None:
        played = self._sent / (2 * RATE)
        self._pushed = self._sent = 0
        self._flushed = False
        self.on_playback_finished(playback_position=played, interrupted=interrupted)


class FakeStt(stt.STT):
    """Hears the configured words in every segment, after the configured delay."""

    def __init__(self, options: Options) -> None:
        # Streaming with a flush at the end of speech, so that the session's VAD is the only one: a
        # recogniser of segments would make livekit run a second VAD beside it.
        super().__init__(
            capabilities=stt.STTCapabilities(
                streaming=True, interim_results=False, manual_flush=True
            )
        )
        self.options = options

    async def _recognize_impl(
        self, buffer: object, *, language: object = NOT_GIVEN, conn_options: APIConnectOptions
    ) -> stt.SpeechEvent:
        raise NotImplementedError("the fake recogniser streams")

    def stream(
        self, *, language: object = NOT_GIVEN, conn_options: APIConnectOptions
    ) -> FakeSttStream:
        return FakeSttStream(self, conn_options)


class FakeSttStream(stt.RecognizeStream):
    """The stream of FakeStt: a flush asks for the segment."""

    def __init__(self, fake: FakeStt, conn_options: APIConnectOptions) -> None:
        super().__init__(stt=fake, conn_options=conn_options)
        self._options = fake.options
        self._segments = 0

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        async for item in self._input_ch:
            if isinstance(item, self._FlushSentinel):
                loop.call_later(self._options.stt_s, self._answer, self._segments)
                self._segments += 1

    def _answer(self, segment: int) -> None:
        text = self._options.heard(segment)
        if text and not self._event_ch.closed:
            said = stt.SpeechData(language="en", text=text)
            kind = stt.SpeechEventType.FINAL_TRANSCRIPT
            self._event_ch.send_nowait(stt.SpeechEvent(type=kind, alternatives=[said]))


class FakeModel(llm.LLM):
    """Answers everything with the same text, after the configured delay."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        self.options = options

    def chat(
        self,
        *,
        chat_ctx: llm.ChatContext,
        tools: list[llm.Tool] | None = None,
        conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
        **_: object,
    ) -> llm.LLMStream:
        return FakeModelStream(
            self, chat_ctx=chat_ctx, tools=tools or [], conn_options=conn_options
        )


class FakeModelStream(llm.LLMStream):
    """One answer of FakeModel."""

    _llm: FakeModel

    async def _run(self) -> None:
        await asyncio.sleep(self._llm.options.model_s)
        said = llm.ChoiceDelta(role="assistant", content=self._llm.options.answer)
        self._event_ch.send_nowait(llm.ChatChunk(id="fixed", delta=said))


class FakeTts(tts.TTS):
    """Speaks the tone, all of a sentence at once after the configured delay."""

    def __init__(self, options: Options, speech: dict[int, bytes]) -> None:
        super().__init__(
            capabilities=tts.TTSCapabilities(streaming=False), sample_rate=RATE, num_channels=1
        )
        self.options = options
        self.speech = speech

    def synthesize(
        self, text: str, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS
    ) -> tts.ChunkedStream:
        return FakeTtsStream(tts=self, input_text=text, conn_options=conn_options)


class FakeTtsStream(tts.ChunkedStream):
    """One sentence of FakeTts."""

    _tts: FakeTts

    async def _run(self, output_emitter: tts.AudioEmitter) -> None:
        output_emitter.initialize(
            request_id="fixed", sample_rate=RATE, num_channels=1, mime_type="audio/pcm"
        )
        await asyncio.sleep(self._tts.options.tts_s)
        output_emitter.push(self._tts.speech[self._tts.options.spoken_ms(self._input_text)])
        output_emitter.flush()


class EchoAgent(Agent):
    """Plays what the session hears, from the documented hook for its audio."""

    async def stt_node(self, audio: AsyncIterable[rtc.AudioFrame], settings: ModelSettings) -> None:
        output = self.session.output.audio
        async for frame in audio:
            if output is not None:
                await output.capture_frame(frame)


def talking(options: Options, speech: dict[int, bytes]) -> AgentSession[None]:
    """The session of a conversation."""
    vad = inference.VAD()
    handling: dict[str, object] = {"interruption": {"mode": "vad"}}
    if options.by_silence:
        shortest = vad.min_silence_duration or options.min_silence_s
        vad.update_options(min_silence_duration=min(shortest, options.min_silence_s))
        handling["turn_detection"] = "vad"
        handling["endpointing"] = {"min_delay": options.min_silence_s}
    return AgentSession(
        vad=vad,
        stt=FakeStt(options),
        llm=FakeModel(options),
        tts=FakeTts(options, speech),
        turn_handling=handling,
        aec_warmup_duration=None,
    )


def session_of(options: Options, speech: dict[int, bytes]) -> tuple[AgentSession[None], Agent]:
    """The session of one call and its agent."""
    if not options.echo:
        return talking(options, speech), Agent(instructions="Answer.")
    session: AgentSession[None] = AgentSession(
        vad=None,
        stt=FakeStt(options),
        turn_handling={"turn_detection": "manual"},
        aec_warmup_duration=None,
    )
    return session, EchoAgent(instructions="Echo.")


async def one_call(
    request: web.Request, *, options: Options, speech: dict[int, bytes]
) -> web.WebSocketResponse:
    """Build and start the session, answer the upgrade, and wait until the socket closes."""
    session, agent = session_of(options, speech)
    line = open_line()
    heard = SocketInput(line)
    said = SocketOutput(line, ECHO_LATE_S if options.echo else LATE_S)
    session.on("close", lambda _: heard.closed.set())
    session.output.audio = said
    pacing: asyncio.Task[None] | None = None
    try:
        await session.start(agent, record=False)
        await line.prepare(request)
        pacing = asyncio.create_task(said.pace())
        session.input.audio = heard
        if options.greet_ms:
            session.say(GREETING)
        await heard.closed.wait()
    finally:
        if pacing is not None:
            pacing.cancel()
        await session.aclose()
    return line


def main() -> None:
    logging.basicConfig(level=logging.WARNING)
    options = parse("livekit-agents as the bench's system under test.")
    speech = {ms: tone(ms) for ms in {options.tone_ms, options.greet_ms}}
    serve(options, partial(one_call, options=options, speech=speech))


if __name__ == "__main__":
    main()
