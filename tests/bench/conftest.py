"""`bench` lies beside the package and is installed nowhere: found from the checkout, and last, so
that it hides nothing."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = str(Path(__file__).parents[2])
if ROOT not in sys.path:
    sys.path.append(ROOT)
