"""The experiments by their names, in the order of the papers.

To add some, write a module beside this one with ``EXPERIMENTS``, a tuple of
:class:`~studies.reproduction.experiment.Experiment`, and name it in MODULES.
"""

from __future__ import annotations

from studies.reproduction import (
    distribution,
    distribution_adaptive,
    distribution_long,
    engine,
    engine_curves,
    engine_joins,
    engine_threads,
    gpu,
    growth,
    hybrid,
    matching,
)
from studies.reproduction.experiment import Experiment

MODULES = (
    matching,
    engine,
    engine_curves,
    engine_joins,
    engine_threads,
    gpu,
    hybrid,
    growth,
    distribution,
    distribution_long,
    distribution_adaptive,
)
EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment for module in MODULES for experiment in module.EXPERIMENTS
}
PAGES: dict[str, str] = {
    module.PAGE: module.INTRODUCTION for module in MODULES if module.INTRODUCTION
} | {distribution.FULL_PAGE: distribution.FULL_INTRODUCTION}
"""What stands at the head of each page: said once, where several modules share one."""
