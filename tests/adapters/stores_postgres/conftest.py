"""One server for every module of this folder, and a schema for each test that wants one."""

from tests.support.postgres import postgres, schema

__all__ = ["postgres", "schema"]
