"""One built agent on a realtime model. Import the public names from here; what an adapter of a
provider is made of stands in `port`, `events`, `commands` and `conformance`.
"""

from .brain import RealtimeBrain, RealtimeParts
from .config import BeforeTurn, LiveCompaction, SessionConfig
from .factory import (
    KEY_VARIABLES,
    PROVIDERS,
    RealtimeModel,
    create_realtime_adapter,
    realtime_model,
)
from .link import Reconnected
from .listeners import EventName, Transcript
from .playback import EstimatedPlayback, OutputCut, Playback, Played
from .port import Capabilities, Connection, RealtimeAdapter, Setup
from .scripted import ScriptedAdapter
from .session import RealtimeSession
from .session_events import (
    AnswerHeard,
    OutputStopped,
    SessionEvent,
    SessionProblem,
    StateChanged,
    TurnStored,
)

__all__ = [
    "KEY_VARIABLES",
    "PROVIDERS",
    "AnswerHeard",
    "BeforeTurn",
    "Capabilities",
    "Connection",
    "EstimatedPlayback",
    "EventName",
    "LiveCompaction",
    "OutputCut",
    "OutputStopped",
    "Playback",
    "Played",
    "RealtimeAdapter",
    "RealtimeBrain",
    "RealtimeModel",
    "RealtimeParts",
    "RealtimeSession",
    "Reconnected",
    "ScriptedAdapter",
    "SessionConfig",
    "SessionEvent",
    "SessionProblem",
    "Setup",
    "StateChanged",
    "Transcript",
    "TurnStored",
    "create_realtime_adapter",
    "realtime_model",
]
