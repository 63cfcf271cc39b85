"""What a user types or a model picks by name: hooks, skills, sub-agents (spec core 13)."""
