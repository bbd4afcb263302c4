"""Detection on several threads: the kernels let go of the interpreter's lock.

Rules are parted by :mod:`rules.engine.threads.parts`, which says why nothing else changes by it;
with ``hybrid`` every rule has all threads (:mod:`rules.engine.chains.hybrid`). The thread that asks
takes a share itself, and wakes others for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from time import perf_counter
from typing import Protocol, TypeVar

from matcher.matching import Told, nobody
from rules.engine import Costs, Detector, make, settled, verify
from rules.engine.cdp import CdpEngine
from rules.pattern import RuleSet

Part = TypeVar("Part")
Result = TypeVar("Result")


def engine_of(
    name: str,
    threads: int,
    costs: Costs | None = None,
    device: str = "cpu",
    tell: Told = nobody,
    composites_max: int | None = None,
) -> Detector:
    """An engine on so many threads; ``naive`` takes one, whatever is asked for.

    ``device``, ``tell`` and ``composites_max``: see :func:`rules.engine.make`. Beside a device
    there is one thread: with more ``gpu`` is refused by ValueError, and ``auto`` is the processor.
    """
    verify(name, device, threads)
    if name == "hybrid":
        from rules.engine.chains.hybrid.engine import HybridEngine
        from rules.engine.chains.hybrid.pipeline import Crew

        return HybridEngine(Crew(threads, at_once=workers(threads)), composites_max=composites_max)
    if threads == 1:
        return make(
            name,
            costs,
            device=device,
            clock=perf_counter,
            tell=tell,
            composites_max=composites_max,
        )
    from rules.engine.threads.parts import PartedEngine  # not needed by one engine

    engines = [make(name, costs, composites_max=composites_max) for _ in range(threads)]
    compiled = [engine for engine in engines if isinstance(engine, CdpEngine)]
    if not compiled:
        return engines[0]
    return PartedEngine(compiled, workers(threads))


class AtOnce(Protocol):
    """A way to do work for several parts at the same time."""

    def __call__(
        self, work: Callable[[Part], Result], parts: Sequence[Part], /
    ) -> Iterable[Result]:
        """The results, in the order of the parts; the first error once all have ended."""
        ...


def workers(threads: int) -> AtOnce:
    """A way to have the calling thread, and others beside it, do work at once."""
    pool = ThreadPoolExecutor(max(1, threads - 1), thread_name_prefix="detection")

    def at_once(work: Callable[[Part], Result], parts: Sequence[Part]) -> Iterable[Result]:
        others = [pool.submit(work, part) for part in parts[1:]]
        try:
            mine = [work(part) for part in parts[:1]]
        finally:
            wait(others)
        return mine + [other.result() for other in others]

    return at_once


def deployed(
    name: str,
    rules: RuleSet,
    threads: int,
    costs: Costs | None = None,
    device: str = "cpu",
    tell: Told = nobody,
) -> Detector:
    """An engine on so many threads, with rules; ``auto`` on the processor may evaluate those of
    them that are chains by hybrid parallelism, with all threads for each.
    """
    may_be_hybrid = name == "auto" and device != "gpu" and settled(device) == "cpu"
    engine = beside_hybrid(rules, threads, costs) if may_be_hybrid else None
    if engine is None:
        engine = engine_of(name, threads, costs, device, tell)
    engine.deploy(rules)
    return engine


def beside_hybrid(rules: RuleSet, threads: int, costs: Costs | None = None) -> Detector | None:
    """The engine ``auto`` with one of hybrid parallelism beside it; None where no rule is a chain.

    It is for recorded events, which come many at a time: a slice of few is not worth the threads.
    """
    from rules.engine.chains.hybrid.chains import reason_against

    if all(reason_against(rule, ()) for rule in rules.rules):
        return None
    from rules.engine.chains.hybrid.engine import HybridEngine
    from rules.engine.chains.hybrid.pipeline import Crew
    from rules.engine.chains.hybrid.trials import Trials
    from rules.engine.choice.chooser import Chooser
    from rules.engine.threads.parts import PartedEngine

    trials = Trials(costs, threads)
    at_once: AtOnce = workers(threads) if threads > 1 else map
    heavy = HybridEngine(Crew(threads, at_once=at_once), trials)
    plain = [CdpEngine(chooser=Chooser(costs, trials)) for _ in range(threads)]
    return PartedEngine(plain, at_once, heavy)
