"""Forms: structured answers gathered over a conversation (spec core 13.8)."""
