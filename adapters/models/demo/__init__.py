"""The `demo` model: a deterministic restaurant front desk, honest about being no LLM.

words, times, dates, parties, names, intents -> understand; state, absorb, plan, sides -> dialogue;
history and model join it to core's model port.
"""

from .model import DemoModel

__all__ = ["DemoModel"]
