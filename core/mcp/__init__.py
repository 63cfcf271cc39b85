"""Tools of Model Context Protocol servers, bridged to an agent (spec core 15)."""
