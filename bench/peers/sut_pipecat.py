"""pipecat as a system under test (bench/README.md; how and why: bench/peers/README.md).

One pipeline, worker and runner a call, as pipecat's own servers make them. The line subclasses its
transports as its FastAPI websocket transport does, with the same pacing; the fakes subclass its
services. Nothing else is ours. Each call owns its runner's task and ends it when the socket closes.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncGenerator
from functools import partial

from aiohttp import WSMsgType, web
from common import (
    FRAME_S,
    GREETING,
    RATE,
    Options,
    open_line,
    parse,
    serve,
    tone,
)
from loguru import logger
from pipecat.audio.vad.silero import SileroVADAnalyzer
from pipecat.audio.vad.vad_analyzer import VAD_STOP_SECS, VADParams
from pipecat.frames.frames import (
    Frame,
    InputAudioRawFrame,
    InterruptionFrame,
    LLMContextFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    OutputAudioRawFrame,
    StartFrame,
    TranscriptionFrame,
    TTSAudioRawFrame,
    TTSSpeakFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import (
    LLMContextAggregatorPair,
    LLMUserAggregatorParams,
)
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.settings import STTSettings, TTSSettings
from pipecat.services.stt_service import SegmentedSTTService
from pipecat.services.tts_service import TTSService
from pipecat.transports.base_input import BaseInputTransport
from pipecat.transports.base_output import BaseOutputTransport
from pipecat.transports.base_transport import TransportParams
from pipecat.turns.user_stop import SpeechTimeoutUserTurnStopStrategy
from pipecat.turns.user_turn_strategies import UserTurnStrategies
from pipecat.utils.time import time_now_iso8601
from pipecat.workers.runner import WorkerRunner

PIECE_BYTES = RATE
"""Half a second of audio a TTS frame: `TTSService.chunk_size`, what its HTTP voices push."""

ECHO_LATE_S = 2.0
"""How far behind an echo makes good. Its own line makes nothing good: after a stall it starts a new
schedule, and an echo would stay that much later to the end of the call."""

CLEAR = json.dumps({"t": "clear"})


class SocketInput(BaseInputTransport):
    """Audio in. The call's own coroutine reads the socket and pushes, as pipecat's receive task."""

    async def start(self, frame: StartFrame) -> None:
        await super().start(frame)
        await self.set_transport_ready(frame)


class SocketOutput(BaseOutputTransport):
    """Audio out, paced by a sleep after each 20 ms, as pipecat's FastAPI websocket transport."""

    def __init__(self, params: TransportParams, late_s: float) -> None:
        super().__init__(params)
        self._late_s = late_s
        self.line: web.WebSocketResponse | None = None
        self._due = 0.0

    async def start(self, frame: StartFrame) -> None:
        await super().start(frame)
        await self.set_transport_ready(frame)

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, InterruptionFrame):
            self._due = 0.0
            # What its telephony serializers send; one frame is under way by its pacing.
            if self.line is not None and not self.line.closed:
                await self.line.send_str(CLEAR)

    async def write_audio_frame(self, frame: OutputAudioRawFrame) -> bool:
        if self.line is None or self.line.closed:
            return False
        await self.line.send_bytes(frame.audio)
        wait = self._due - time.monotonic()
        if wait > 0:
            await asyncio.sleep(wait)
            self._due += FRAME_S
            return True
        await asyncio.sleep(0)
        self._due = FRAME_S + (self._due if -wait < self._late_s else time.monotonic())
        return True


class Mirror(FrameProcessor):
    """Input audio becomes output audio."""

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, InputAudioRawFrame):
            frame = OutputAudioRawFrame(frame.audio, frame.sample_rate, frame.num_channels)
        await self.push_frame(frame, direction)


class FakeStt(SegmentedSTTService):
    """Hears the configured words in every segment, after the configured delay."""

    def __init__(self, options: Options) -> None:
        super().__init__(
            # From the end of speech: the VAD's stop and then the fake's own delay.
            ttfs_p99_latency=VAD_STOP_SECS + options.stt_s,
            settings=STTSettings(model=None, language=None),
        )
        self._options = options
        self._segments = 0

    @property
    def wants_wav_segments(self) -> bool:
        return False

    async def run_stt(self, audio: bytes) -> AsyncGenerator[Frame, None]:
        text = self._options.heard(self._segments)
        self._segments += 1
        await asyncio.sleep(self._options.stt_s)
        if text:
            yield TranscriptionFrame(text, "", time_now_iso8601(), finalized=True)


class FakeModel(FrameProcessor):
    """Answers every context with the same text, after the configured delay."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        self._delay_s = options.model_s
        self._answer = options.answer

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if not isinstance(frame, LLMContextFrame):
            await self.push_frame(frame, direction)
            return
        await self.push_frame(LLMFullResponseStartFrame())
        try:
            await asyncio.sleep(self._delay_s)
            await self.push_frame(LLMTextFrame(self._answer))
        finally:
            await self.push_frame(LLMFullResponseEndFrame())


class FakeTts(TTSService):
    """Speaks the tone, all of a sentence at once after the configured delay."""

    def __init__(self, options: Options, speech: dict[int, list[bytes]]) -> None:
        super().__init__(
            push_start_frame=True,
            push_stop_frames=True,
            sample_rate=RATE,
            settings=TTSSettings(model=None, voice=None, language=None),
        )
        self._options = options
        self._speech = speech

    async def run_tts(self, text: str, context_id: str) -> AsyncGenerator[Frame | None, None]:
        await asyncio.sleep(self._options.tts_s)
        for piece in self._speech[self._options.spoken_ms(text)]:
            yield TTSAudioRawFrame(piece, RATE, 1, context_id=context_id)


def turn_taking(options: Options) -> tuple[VADParams, UserTurnStrategies]:
    """Its recommended VAD stop of 0.2 s with the rest of the silence on top, or its default."""
    if not options.by_silence:
        return VADParams(), UserTurnStrategies()
    stop_s = min(VAD_STOP_SECS, options.min_silence_s)
    stop = SpeechTimeoutUserTurnStopStrategy(user_speech_timeout=options.min_silence_s - stop_s)
    return VADParams(stop_secs=stop_s), UserTurnStrategies(stop=[stop])


def pipeline(
    options: Options, speech: dict[int, list[bytes]]
) -> tuple[SocketInput, SocketOutput, Pipeline]:
    """The pipeline of one call, and its two ends."""
    params = TransportParams(audio_in_enabled=True, audio_out_enabled=True, audio_out_10ms_chunks=2)
    source = SocketInput(params)
    sink = SocketOutput(params, ECHO_LATE_S if options.echo else 0.0)
    if options.echo:
        return source, sink, Pipeline([source, Mirror(), sink])
    vad, strategies = turn_taking(options)
    pair = LLMContextAggregatorPair(
        LLMContext(),
        user_params=LLMUserAggregatorParams(
            vad_analyzer=SileroVADAnalyzer(params=vad), user_turn_strategies=strategies
        ),
    )
    stages = [
        *(source, FakeStt(options), pair.user(), FakeModel(options)),
        *(FakeTts(options, speech), sink, pair.assistant()),
    ]
    return source, sink, Pipeline(stages)


async def one_call(
    request: web.Request, *, options: Options, speech: dict[int, list[bytes]]
) -> web.WebSocketResponse:
    """Build the pipeline, let it start, answer the upgrade, and feed it until the socket closes."""
    source, sink, stages = pipeline(options, speech)
    worker = PipelineWorker(
        stages,
        params=PipelineParams(audio_in_sample_rate=RATE, audio_out_sample_rate=RATE),
        enable_rtvi=False,
        enable_turn_tracking=False,
        cancel_on_idle_timeout=False,
        idle_timeout_secs=None,
    )
    started = asyncio.Event()

    @worker.event_handler("on_pipeline_started")
    async def _(*_: object) -> None:
        started.set()

    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    running = asyncio.create_task(runner.run())
    line = open_line()
    try:
        # Frames before the start are dropped, so the caller is let in when someone hears him.
        await started.wait()
        await line.prepare(request)
        sink.line = line
        if options.greet_ms:
            await worker.queue_frame(TTSSpeakFrame(GREETING))
        async for message in line:
            if message.type is WSMsgType.BINARY:
                await source.push_audio_frame(InputAudioRawFrame(message.data, RATE, 1))
    finally:
        await runner.cancel()
        await running
    return line


def main() -> None:
    logger.remove()
    logger.add(sys.stderr, level="WARNING")
    options = parse("pipecat as the bench's system under test.")
    speech = {}
    for ms in {options.tone_ms, options.greet_ms}:
        pcm = tone(ms)
        speech[ms] = [pcm[at : at + PIECE_BYTES] for at in range(0, len(pcm), PIECE_BYTES)]
    serve(options, partial(one_call, options=options, speech=speech))


if __name__ == "__main__":
    main()
