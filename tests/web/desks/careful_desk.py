"""The demo's front desk as somebody's own agent: it books nothing before a person allowed it on the
page. Served as `careful_desk:factory`; the book is the file that `BOOK` names."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime

from voxglove.adapters.models.demo.model import DemoModel
from voxglove.core.agent import Agent
from voxglove.core.builder import Glove
from voxglove.core.factory import CallInfo
from voxglove.web.frontdesk.bookings import Bookings
from voxglove.web.frontdesk.desk import FrontDesk

BOOK = Bookings(os.environ["BOOK"])


def factory(info: CallInfo) -> Agent:
    """The agent of one call."""
    builder = Glove(model=DemoModel(clock=datetime.now))
    for tool in FrontDesk(BOOK, clock=datetime.now).tools():
        builder.fold(replace(tool, requires_permission=tool.name == "book_table"))
    return builder.build()
