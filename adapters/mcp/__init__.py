"""The Model Context Protocol client, on the official SDK."""
