"""Figures of a run (``--out``): how long events took to sinks, and what links carried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from matcher.formats.outputs import replaced
from matcher.model import Int64s
from simulator.experiment import Outcome

SINKS_MAX = 8
"""Sinks that have a line of their own: those that were delivered most."""
LINKS_MAX = 25
"""Links that have a bar: those that carried most."""


def write_figures(outcome: Outcome, folder: Path) -> bool:
    """``delays.png`` and ``traffic.png`` in ``folder``; False, and none, without matplotlib.
    Figures show what the tables beside them say (report), after the warm-up.
    """
    if find_spec("matplotlib") is None:
        return False
    _save(folder / "delays.png", _draw_delays, _delays_ms(outcome))
    _save(folder / "traffic.png", _draw_traffic, _kilobytes(outcome))
    return True


def _save(file: Path, drawn: Any, what: Any) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.5), layout="constrained")
    drawn(figure.subplots(), what)
    with replaced(file) as sink:
        figure.savefig(sink, format=file.suffix[1:], dpi=120)


def _delays_ms(outcome: Outcome) -> Mapping[str, Sequence[float]]:
    """Of all sinks together, and of some by name, in rising order."""
    since = outcome.experiment.measured_from
    found = {
        name: _sorted_ms(sink.moments.delays(since))
        for name, sink in outcome.experiment.sinks.items()
    }
    some = sorted((name for name in found if len(found[name])), key=lambda name: -len(found[name]))
    every = np.sort(np.concatenate([*found.values(), np.empty(0)]))
    named = {name: found[name] for name in some[:SINKS_MAX]} if len(some) > 1 else {}
    return {f"all sinks: {len(every):,} events": every, **named}


def _sorted_ms(delays_us: Int64s) -> Any:
    return np.sort(delays_us / 1e3)


def _draw_delays(axes: Any, delays: Mapping[str, Sequence[float]]) -> None:
    """The share of events that took at most so long."""
    for place, (name, found) in enumerate(delays.items()):
        shares = np.arange(1, len(found) + 1) / max(len(found), 1)
        axes.step(found, shares, where="post", linewidth=1.0 if place else 2.5, label=name)
    axes.set_xlabel("delay from the last primitive event to the sink [ms]")
    axes.set_ylabel("share of events")
    axes.set_ylim(0, 1.02)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, loc="lower right")


def _kilobytes(outcome: Outcome) -> Mapping[str, tuple[float, float]]:
    """Kilobytes that the links carried, the busiest first: one way, by which they are named, and
    the other.
    """
    found = {
        ends[0].name.replace(">", " \N{RIGHTWARDS ARROW} "): (
            ends[0].bytes / 1e3,
            ends[1].bytes / 1e3,
        )
        for ends in outcome.experiment.lanes.values()
    }
    return dict(sorted(found.items(), key=lambda one: -sum(one[1]))[:LINKS_MAX])


def _draw_traffic(axes: Any, links: Mapping[str, tuple[float, float]]) -> None:
    names = list(links)
    there, back = ([pair[way] for pair in links.values()] for way in (0, 1))
    axes.barh(names, there, label="as named")
    axes.barh(names, back, left=there, label="the other way")
    axes.invert_yaxis()
    axes.set_xlabel("traffic over the link [kB]")
    axes.tick_params(axis="y", labelsize=7)
    axes.grid(axis="x", alpha=0.3)
    axes.legend(fontsize=7, loc="lower right")
