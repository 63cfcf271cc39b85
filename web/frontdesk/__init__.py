"""The demo's restaurant front desk: bookings in SQLite, tools over them, and the agent.

bookings <- desk <- factory. It knows no transport: what touches the line comes in as LineTools.
"""

from .bookings import Bookings, House
from .desk import FrontDesk, LineTools, SpeakingRate
from .factory import SYSTEM_PROMPT, frontdesk_agent, frontdesk_factory

__all__ = [
    "SYSTEM_PROMPT",
    "Bookings",
    "FrontDesk",
    "House",
    "LineTools",
    "SpeakingRate",
    "frontdesk_agent",
    "frontdesk_factory",
]
