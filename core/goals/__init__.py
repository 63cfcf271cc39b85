"""Goals: what a conversation is to reach, kept with versions (spec core 13.7)."""
