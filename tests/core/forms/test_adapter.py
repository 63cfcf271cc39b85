"""MemoryFormAdapter keeps the promises of the port."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tests.core.forms.conformance import FormAdapterSuite, instance
from voxglove.core.forms import FormAdapter, MemoryFormAdapter, decode_instance, encode_instance


class TestMemoryFormAdapter(FormAdapterSuite):
    @pytest.fixture
    def adapter(self) -> FormAdapter:
        return MemoryFormAdapter()


def test_an_instance_survives_the_trip_through_json() -> None:
    made = instance("s")
    assert decode_instance(encode_instance(made)) == made


def test_foreign_json_is_refused() -> None:
    with pytest.raises(ValidationError):
        decode_instance('{"id": 3}')
