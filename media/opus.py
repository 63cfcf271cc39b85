"""Opus by libopus (RFC 6716, 7587): a decoder with FEC and concealment, a voice encoder with FEC.

Bound by ctypes, because no binding on offer reaches concealment and in-band FEC. The library is
PyAV's own copy where that is installed (found, not imported), else the system's. Each object
belongs to one stream and one thread at a time; nothing here knows RTP.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Iterator
from ctypes import POINTER, c_char_p, c_int, c_int32, c_void_p
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from .errors import MediaError, MediaValueError
from .plc import CodecError

RATE = 16_000
MAX_PACKET_BYTES = 1_275
"""Largest Opus frame (RFC 6716, 3.2.1)."""
MAX_PACKET_MS = 120

_VOIP, _VOICE = 2048, 3001
_SET_BITRATE, _SET_COMPLEXITY, _SET_FEC, _SET_LOSS = 4002, 4010, 4012, 4014
_SET_DTX, _SET_SIGNAL = 4016, 4024
_FRAMES_MS = (2.5, 5, 10, 20, 40, 60)


class OpusMissing(MediaError):
    """No libopus on this machine."""

    code = "ERR_OPUS_MISSING"


class OpusError(CodecError):
    """libopus refused; `number` is its error code (opus_defines.h)."""

    def __init__(self, call: str, number: int) -> None:
        text = library().opus_strerror(number).decode()
        super().__init__(f"{call}: {text} ({number})")
        self.number = number


def candidates() -> Iterator[str]:
    """Where libopus may lie, best first: PyAV's wheel on Linux, macOS, Windows; the system."""
    spec = find_spec("av")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        package = Path(folder)
        for place, pattern in (
            (package.parent / "av.libs", "libopus*"),
            (package / ".dylibs", "libopus*"),
            (package.parent / "av.libs", "*opus*.dll"),
        ):
            yield from (str(path) for path in sorted(place.glob(pattern)))
    system = ctypes.util.find_library("opus")
    if system:
        yield system


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """libopus with its signatures set; loaded once. Raises OpusMissing with the remedy."""
    tried = []
    for path in candidates():
        try:
            return _typed(ctypes.CDLL(path))
        except (OSError, AttributeError) as error:
            tried.append(f"{path}: {error}")
    raise OpusMissing(
        "libopus was not found; install voxglove[webrtc], or the system's libopus"
        + "".join(f"; {line}" for line in tried)
    )


def version() -> str:
    """What libopus calls itself."""
    return str(library().opus_get_version_string().decode())


def _typed(lib: ctypes.CDLL) -> ctypes.CDLL:
    for name, result, arguments in (
        ("opus_get_version_string", c_char_p, []),
        ("opus_strerror", c_char_p, [c_int]),
        ("opus_decoder_create", c_void_p, [c_int32, c_int, POINTER(c_int)]),
        ("opus_decoder_destroy", None, [c_void_p]),
        ("opus_decode", c_int, [c_void_p, c_char_p, c_int32, c_void_p, c_int, c_int]),
        ("opus_encoder_create", c_void_p, [c_int32, c_int, c_int, POINTER(c_int)]),
        ("opus_encoder_destroy", None, [c_void_p]),
        ("opus_encode", c_int32, [c_void_p, c_char_p, c_int, c_void_p, c_int32]),
        # Variadic: only the fixed arguments are declared, each value is wrapped by its caller.
        ("opus_encoder_ctl", c_int, [c_void_p, c_int]),
    ):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


class Decoder:
    """A `plc.Decoder`: mono 16-bit PCM of `rate` out of packets of any Opus kind."""

    def __init__(self, rate: int = RATE) -> None:
        """Raises OpusMissing; MediaValueError for a rate that Opus has not."""
        self._lib = library()
        self._state: int | None = None
        self._rate = _checked_rate(rate)
        error = c_int()
        self._state = self._lib.opus_decoder_create(rate, 1, ctypes.byref(error))
        if error.value:
            raise OpusError("opus_decoder_create", error.value)
        self._longest = rate * MAX_PACKET_MS // 1000
        self._buffer = ctypes.create_string_buffer(2 * self._longest)

    @property
    def rate(self) -> int:
        """Samples a second of all PCM here."""
        return self._rate

    def decode(self, payload: bytes) -> bytes:
        """The sound of `payload`. Raises CodecError: libopus takes an empty one for a loss."""
        if not payload:
            raise CodecError("the packet is empty")
        return self._run(payload, self._longest, 0)

    def conceal(self, samples: int) -> bytes:
        """`samples` (a multiple of 2.5 ms) of what might have followed."""
        return self._run(None, samples, 0)

    def fec(self, payload: bytes, samples: int) -> bytes:
        """The last `samples` before `payload`, out of its redundancy, else concealed."""
        if not payload:
            raise CodecError("the packet is empty")
        return self._run(payload, samples, 1)

    def _run(self, payload: bytes | None, samples: int, fec: int) -> bytes:
        if not 0 < samples <= self._longest:
            raise CodecError(f"{samples} samples are not 1..{self._longest}")
        size = len(payload) if payload else 0
        got = self._lib.opus_decode(self._state, payload, size, self._buffer, samples, fec)
        if got < 0:
            raise OpusError("opus_decode", got)
        return self._buffer.raw[: 2 * got]

    def __del__(self) -> None:
        if getattr(self, "_state", None):
            self._lib.opus_decoder_destroy(self._state)
            self._state = None


class Encoder:
    """Voice at `bitrate` bit/s with redundancy against `loss_percent` of lost packets.

    Below 24,000 bit/s libopus sends no redundancy for wide-band voice.
    """

    def __init__(
        self,
        rate: int = RATE,
        *,
        bitrate: int = 32_000,
        fec: bool = True,
        loss_percent: int = 10,
        complexity: int = 5,
        dtx: bool = False,
    ) -> None:
        """Raises OpusMissing; MediaValueError naming the field that Opus does not take."""
        self._lib = library()
        self._state: int | None = None
        self._rate = _checked_rate(rate)
        error = c_int()
        self._state = self._lib.opus_encoder_create(rate, 1, _VOIP, ctypes.byref(error))
        if error.value:
            raise OpusError("opus_encoder_create", error.value)
        self._out = ctypes.create_string_buffer(MAX_PACKET_BYTES)
        self._set(_SET_SIGNAL, "signal", _VOICE)
        self._set(_SET_BITRATE, "bitrate", bitrate)
        self._set(_SET_FEC, "fec", int(fec))
        self._set(_SET_LOSS, "loss_percent", loss_percent)
        self._set(_SET_COMPLEXITY, "complexity", complexity)
        self._set(_SET_DTX, "dtx", int(dtx))

    @property
    def rate(self) -> int:
        """Samples a second that `encode` takes."""
        return self._rate

    def encode(self, pcm: bytes) -> bytes:
        """One packet of mono PCM of 2.5, 5, 10, 20, 40 or 60 ms."""
        samples = len(pcm) // 2
        if len(pcm) % 2 or samples * 1000 / self._rate not in _FRAMES_MS:
            raise MediaValueError("pcm", f"{len(pcm)} bytes", "encode 2.5, 5, 10, 20, 40 or 60 ms")
        size = self._lib.opus_encode(self._state, pcm, samples, self._out, MAX_PACKET_BYTES)
        if size < 0:
            raise OpusError("opus_encode", size)
        return self._out.raw[:size]

    def _set(self, request: int, field: str, value: int) -> None:
        if self._lib.opus_encoder_ctl(self._state, request, c_int32(value)) != 0:
            raise MediaValueError(field, str(value), "give a value that libopus takes")

    def __del__(self) -> None:
        if getattr(self, "_state", None):
            self._lib.opus_encoder_destroy(self._state)
            self._state = None


def _checked_rate(rate: int) -> int:
    if rate not in (8_000, 12_000, 16_000, 24_000, 48_000):
        raise MediaValueError("rate", f"{rate} Hz", "Opus runs at 8, 12, 16, 24 or 48 kHz")
    return rate
