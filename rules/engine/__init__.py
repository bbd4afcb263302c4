"""The engines that detect composite events: one contract, several ways (see ``engine``)."""

from __future__ import annotations

from rules.engine.costs import Costs
from rules.engine.engine import NOTHING, Detections, Detector

__all__ = ["ENGINES", "NOTHING", "Costs", "Detections", "Detector", "make"]

ENGINES = ("auto", "cdp", "aip", "naive")
"""The names that ``make`` takes. ``auto`` is the engine to use when in doubt."""


def make(name: str = "auto", costs: Costs | None = None) -> Detector:
    """A new engine without rules; ValueError for a name that is not one of ENGINES.

    ``costs`` are those by which ``auto`` chooses, by default the ones that are shipped.
    Engines are imported when they are made: the kernels of ``cdp`` bring numba with them.
    """
    if name == "naive":
        from rules.engine.naive import NaiveEngine

        return NaiveEngine()
    if name in ("auto", "cdp", "aip"):
        from rules.engine.cdp import CdpEngine
        from rules.engine.chooser import Chooser

        chooser = Chooser(costs) if name == "auto" else None
        return CdpEngine(incremental=name == "aip", chooser=chooser)
    raise ValueError(f"no engine is called {name!r}; there are {', '.join(ENGINES)}")
