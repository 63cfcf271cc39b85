"""What every text model must do: subclass ModelSuite, give a rig, inherit the tests.

    @pytest.mark.real_loop
    class TestMyVendor(ModelSuite):
        rig = MyRig()        # see ModelRig

A rig opens a model on a local server that speaks the vendor's wire, strictly: it refuses what the
vendor would refuse, or the tests of valid requests prove nothing. tests/simulators/sse.py has the
server with all its faults; a vendor adds its checks, its frames and its words for errors. The rig
turns a `Said`, an answer in nobody's words, into the wire's (see the four rigs beside this file,
remote_rig.py the shortest).

A model without a server inherits AnswerCases; one that only hands on what another server's model
said inherits RemoteSuite. What a wire alone can show (caches, thinking, odd servers) belongs into a
file of its own. The suite needs pytest-asyncio and hypothesis; it judges what a model tells,
returns and sends, never how.
"""

from __future__ import annotations

from typing import ClassVar

from tests.adapters.model_cases_answers import AnswerCases, WholeCases
from tests.adapters.model_cases_failures import FailureCases, JudgingCases
from tests.adapters.model_cases_requests import RequestCases
from tests.adapters.model_cases_sharing import SharingCases, StoppingCases
from tests.adapters.model_rig import AnswerRig, Asked, ModelRig, Said

__all__ = [
    "AnswerCases",
    "AnswerRig",
    "Asked",
    "FailureCases",
    "JudgingCases",
    "ModelRig",
    "ModelSuite",
    "RemoteSuite",
    "RequestCases",
    "Said",
    "SharingCases",
    "StoppingCases",
    "WholeCases",
]


class RemoteSuite(AnswerCases, RequestCases, FailureCases, StoppingCases, SharingCases):
    """Promises of every model behind a server."""

    rig: ClassVar[ModelRig]


class ModelSuite(RemoteSuite, WholeCases, JudgingCases):
    """All promises of core.model, for a vendor's model that streams or answers whole."""

    rig: ClassVar[ModelRig]
