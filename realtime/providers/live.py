"""GPT-Live (`openai-live`): a model that listens while it speaks, over `/live/sessions`.

The codec is in `live_wire.py`, the connection in `driver.py`; here is how the two are opened and
what the model can do. Holds a key and options, nothing of a call (spec/voice 18.10, 18.11).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ...adapters.credentials import Secret
from ...adapters.socket import SocketConfig
from ...core.errors import UsageError
from ...media.format import AudioFormat
from ..port import Capabilities, Connection, Emit, Setup
from .driver import DriverLimits, open_connection
from .live_start import Delegation, LiveOptions
from .live_wire import LiveCodec

LIVE_URL = "wss://api.openai.com/v1"
RATES = (16_000, 24_000)
SESSION_S = 7_200.0
"""The provider ends a session after two hours; a link moves before."""
FINISH_S = 10.0
"""The provider lets delegated work end for so long before its last word."""
DUE_S = 10.0
"""Sound comes as long as sound is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GptLiveConfig:
    """One model of one account.

    key                       real; this endpoint takes no key in a subprotocol
    voice                     a name, or the id of a voice of your own (`voice_…`)
    base_url                  up to `/v1`; Azure: `wss://NAME.openai.azure.com/openai/v1`
    azure                     the key goes into `api-key`
    rate                      of the sound in both directions, 16,000 or 24,000 Hz
    delegation                who does delegated work: `responses`, a text model with the agent's
                              tools; `client`, the agent's own tool `delegate`
    delegation_model          that text model
    delegation_instructions   of it; "" gives it the agent's
    delegation_effort         its reasoning effort; "" leaves it to the model
    delegation_max_tokens     of one response of it; None: no bound
    acknowledgement_delay_ms  before the voice says by itself that it is looking
    store                     the provider keeps the session, for its recording
    safety_identifier         stable and anonymous, of the end user
    service_tier              "" leaves it to the account
    connect_s                 bounds connecting until the model is ready
    """

    key: Secret
    model: str = "gpt-live-1"
    voice: str = "marin"
    base_url: str = LIVE_URL
    azure: bool = False
    rate: int = 16_000
    delegation: Delegation = "responses"
    delegation_model: str = "gpt-5.6-luna"
    delegation_instructions: str = ""
    delegation_effort: str = ""
    delegation_max_tokens: int | None = None
    acknowledgement_delay_ms: int = 0
    store: bool = False
    safety_identifier: str = ""
    service_tier: str = ""
    connect_s: float = 15.0

    def __post_init__(self) -> None:
        limit = self.delegation_max_tokens
        known = self.base_url.startswith(("ws://", "wss://"))
        _check("key", bool(self.key), "set OPENAI_API_KEY")
        _check("model", bool(self.model), "name one, such as gpt-live-1")
        _check("voice", bool(self.voice), "name one, such as marin")
        _check("base_url", known, "begin with wss:// (or ws:// for a local server)")
        _check("rate", self.rate in RATES, "use 16000 or 24000")
        _check("delegation", self.delegation in ("responses", "client"), "use responses or client")
        _check("delegation_model", bool(self.delegation_model), "name one, such as gpt-5.6-luna")
        _check("delegation_max_tokens", limit is None or limit > 0, "use 1 or more, or None")
        _check("acknowledgement_delay_ms", self.acknowledgement_delay_ms >= 0, "use 0 or more")
        _check("connect_s", self.connect_s > 0, "use more than 0")

    def options(self) -> LiveOptions:
        """What of it goes into session.start."""
        return LiveOptions(
            model=self.model,
            voice=self.voice,
            rate=self.rate,
            delegation=self.delegation,
            delegation_model=self.delegation_model,
            delegation_instructions=self.delegation_instructions,
            delegation_effort=self.delegation_effort,
            delegation_max_tokens=self.delegation_max_tokens,
            acknowledgement_delay_ms=self.acknowledgement_delay_ms,
            store=self.store,
            safety_identifier=self.safety_identifier,
        )

    def socket(self) -> SocketConfig:
        """Where and how to connect: nothing of the session is in the address."""
        headers: dict[str, str | Secret] = {"api-key": self.key}
        if not self.azure:
            headers = {"Authorization": Secret(f"Bearer {self.key.reveal()}")}
        if self.service_tier:
            headers["OpenAI-Service-Tier"] = self.service_tier
        url = f"{self.base_url.rstrip('/')}/live/sessions"
        return SocketConfig(url=url, headers=headers, connect_timeout_s=self.connect_s)


class GptLiveAdapter:
    """See RealtimeAdapter. Sound must be sent at the pace of time, silence included: without it the
    model neither speaks nor takes what it is told."""

    provider = "openai-live"

    def __init__(self, config: GptLiveConfig) -> None:
        self._config = config
        sound = AudioFormat(config.rate)
        self._capabilities = Capabilities(
            turn_taking="full_duplex",
            inputs=frozenset({"audio", "text"}),
            outputs=frozenset({"audio"}),
            input_format=sound,
            output_format=sound,
            update_tools="live",
            update_instructions="append",
            transcripts="fragments",
            usage="duration",
            paced_input=True,
            max_session_s=SESSION_S,
            due_s=DUE_S,
        )

    @property
    def model(self) -> str:
        return self._config.model

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def connect(self, setup: Setup, emit: Emit, group: asyncio.TaskGroup) -> Connection:
        """As RealtimeAdapter says. `setup.resume_handle` and `manual_turns` mean nothing here: the
        provider keeps no conversation and has no turns."""
        config = self._config
        limits = DriverLimits(open_s=config.connect_s, finish_s=FINISH_S, due_s=DUE_S)
        codec = LiveCodec(config.options())
        return await open_connection(codec, config.socket(), setup, emit, group, limits)


def _check(field: str, holds: bool, remedy: str) -> None:
    if not holds:
        raise UsageError(f"GptLiveConfig.{field}: {remedy}")
