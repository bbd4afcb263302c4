"""Hybrid parallelism within one rule: many threads, by state and by data (see ``engine``)."""

from rules.engine.hybrid.engine import HybridEngine
from rules.engine.hybrid.pipeline import Crew
from rules.engine.hybrid.trials import Trials

__all__ = ["Crew", "HybridEngine", "Trials"]
