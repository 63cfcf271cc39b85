"""Ready-made tools that ask or show something on the display (seed: tool registry)."""
