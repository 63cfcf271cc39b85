"""Agents that talk to each other (spec core 14)."""
