"""A line that passes everything on to another one.

For lines of the composition root that change one thing about what they receive: they override
`receive` and nothing else. Owns nothing; the call closes the inner line through it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from ..media.frame import AudioFrame
from ..media.transport import CallTransport, Signal, TransportInfo


class WrappedTransport(CallTransport):
    """`inner` as a CallTransport."""

    def __init__(self, inner: CallTransport) -> None:
        self._inner = inner

    @property
    def info(self) -> TransportInfo:
        return self._inner.info

    async def receive(self) -> AsyncIterator[AudioFrame | Signal]:
        async for item in self._inner.receive():
            yield item

    async def send(self, frame: AudioFrame) -> bool:
        return await self._inner.send(frame)

    def clear(self) -> int:
        return self._inner.clear()

    def played(self) -> int:
        return self._inner.played()

    async def send_data(self, message: Mapping[str, object]) -> None:
        await self._inner.send_data(message)

    async def aclose(self, reason: str) -> None:
        await self._inner.aclose(reason)
