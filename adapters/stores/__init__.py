"""Stores outside the process: a database, another server."""
