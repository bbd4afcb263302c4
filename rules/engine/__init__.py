"""The engines that detect composite events: one contract, several ways (see ``engine``).

``cdp`` is the engine that brokers use. From the bottom up, each folder importing what stands before
it: ``kernels`` are compiled; ``order`` says which rules run and when, ``oracle`` what they mean;
``linking`` makes tables of their plans, ``intake`` rows of events, ``results`` batches of composite
events; ``memory`` lets go of what is no longer needed, ``choice`` is that of ``auto``. Over ``cdp``
stand ``chains``, ``threads`` and ``gpu``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from matcher.matching import DEVICES, Told, nobody
from rules.engine.choice.costs import Costs
from rules.engine.engine import NOTHING, Detections, Detector, InPieces, Placement

__all__ = [
    "DEVICES",
    "ENGINES",
    "ENGINES_OF_RECORDINGS",
    "NOTHING",
    "Costs",
    "Detections",
    "Detector",
    "InPieces",
    "Placement",
    "make",
    "settled",
    "verify",
]

ENGINES = ("auto", "cdp", "aip", "aip-published", "naive")
"""The names that ``make`` takes. ``auto`` is the engine to use when in doubt."""
ENGINES_OF_RECORDINGS = ("hybrid",)
"""Names that it takes too, of engines for recorded events alone."""


def make(
    name: str = "auto",
    costs: Costs | None = None,
    *,
    device: str = "cpu",
    clock: Callable[[], float] | None = None,
    tell: Told = nobody,
    composites_max: int | None = None,
) -> Detector:
    """A new engine without rules.

    On ``device`` ``gpu`` the rules that a GPU takes are evaluated there, and with ``auto`` those
    of them that cost less there, if there is one. ``costs`` are those by which ``auto`` chooses,
    by default the ones that are shipped; ``clock`` gives seconds, by which it learns what the
    device really takes. ``tell`` is called with what the engine does otherwise from now on, and
    why: when a device fails. A rule that has more than ``composites_max`` composite events at one
    instant ends there (:mod:`rules.overrun`). Raises ValueError for names that there are
    not, or do not go together, and NoDevice for ``gpu`` where there is none.

    Engines are imported when they are made: the kernels of ``cdp`` bring numba with them.
    """
    verify(name, device)
    if name == "naive":
        from rules.engine.oracle.naive import NaiveEngine

        return NaiveEngine(composites_max)
    if name == "aip-published":
        from rules.engine.chains.published import AipPublished

        return AipPublished(composites_max=composites_max)
    if name == "hybrid":
        from rules.engine.chains.hybrid.engine import HybridEngine

        return HybridEngine(composites_max=composites_max)
    from rules.engine.cdp import CdpEngine
    from rules.engine.choice.chooser import Chooser

    chooser = Chooser(costs) if name == "auto" else None
    engine = CdpEngine(incremental=name == "aip", chooser=chooser, composites_max=composites_max)
    place = settled(device)
    if place == "cpu":
        return engine
    from rules.engine.gpu.engine import GpuEngine
    from rules.engine.gpu.placed import PlacedEngine
    from rules.engine.gpu.placing import Placer

    placer = Placer(costs, clock=clock, automata=name != "cdp") if place == "auto" else None
    on_device = partial(GpuEngine, composites_max=composites_max)
    return PlacedEngine(engine, on_device, placer, tell)


def verify(name: str, device: str = "cpu", threads: int = 1) -> None:
    """Raise ValueError for names that there are not, and for what does not go together."""
    if name not in (*ENGINES, *ENGINES_OF_RECORDINGS):
        raise ValueError(f"no engine is called {name!r}; there are {', '.join(ENGINES)}")
    if device not in DEVICES:
        raise ValueError(f"device: expected one of {', '.join(DEVICES)}, found {device!r}")
    if device == "gpu" and name in ("naive", "aip-published", "hybrid"):
        raise ValueError(
            f"device gpu: the engine {name} has no form for a GPU; auto, cdp, aip have"
        )
    if device == "gpu" and threads > 1:
        raise ValueError(
            f"device gpu: one thread detects beside a device, found threads {threads}; "
            f"leave them out, or say device cpu"
        )


def settled(device: str) -> str:
    """Where it is computed, ``cpu``, ``gpu`` or ``auto``, by what there is: without a device
    ``auto`` is ``cpu``, and NoDevice is raised for ``gpu``.
    """
    if device == "cpu":
        return device
    from matcher.gpu import device as devices

    if device == "auto":
        return device if devices.is_there() else "cpu"
    try:
        devices.device()
    except devices.NoDevice as error:
        raise devices.NoDevice(f"device gpu: {error}") from None
    return device
