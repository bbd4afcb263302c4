"""The matchers of chapter 4, and ours, under the thesis's names; CCM and the batched matcher where
there is a GPU.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from matcher.gpu.device import NoDevice, device
from matcher.methods.choose import AutoMatcher
from matcher.methods.counting import CountingMatcher
from matcher.methods.ocm import OcmMatcher
from matcher.methods.pcm import PcmMatcher
from matcher.methods.tabled import TableMatcher

CORES = os.cpu_count() or 1
SFF, OCM_1, OCM, AUTO = "SFF", "OCM, 1 thread", f"OCM, {CORES} threads", "auto"
ATOMIC = f"OCM, {CORES} threads, atomic counts"
"""As published, where ``OCM`` shares out whole filters."""
CCM, MEMSET = "CCM", "CCM, reset by memset"
ORDERED, ONCE = "CCM, ordered constraints", "CCM, each constraint once"
BATCHED = "batched"
DISTINCT = "OCM, 1 thread, each constraint once"
Makers = dict[str, Callable[[], TableMatcher]]


def on_device() -> Makers:
    """Those of :func:`of_device`; none without a GPU."""
    try:
        return {} if device().simulated else of_device()
    except NoDevice:
        return {}


def of_device() -> Makers:
    """CCM, its variants in the thesis, and the batched matcher."""
    from matcher.gpu.batched import BatchedMatcher
    from matcher.gpu.ccm import CcmMatcher

    return {
        CCM: CcmMatcher,
        MEMSET: lambda: CcmMatcher(memset=True),
        ORDERED: lambda: CcmMatcher(ordered=True),
        ONCE: lambda: CcmMatcher(distinct=True),
        BATCHED: BatchedMatcher,
    }


def ccm_together(events: int) -> TableMatcher:
    """CCM that takes so many events by one kernel."""
    from matcher.gpu.ccm import CcmMatcher

    return CcmMatcher(together=events)


_ON_DEVICE = on_device()
METHODS: Makers = {
    SFF: CountingMatcher,
    OCM_1: PcmMatcher,
    OCM: lambda: PcmMatcher(threads=CORES),
    ATOMIC: lambda: OcmMatcher(threads=CORES),
    **{name: maker for name, maker in _ON_DEVICE.items() if name == CCM},
    AUTO: AutoMatcher,
}
"""Those of all figures."""
MAKERS: Makers = {**METHODS, **_ON_DEVICE, DISTINCT: lambda: CountingMatcher(plain=True)}
"""And those of one table or figure alone."""


def ms(method: str) -> str:
    """The name of a method's column."""
    return f"{method} [ms]"


def speedup(method: str) -> str:
    """The name of the column of a method's speed as a multiple of SFF's."""
    return f"{method} / SFF"


def made(method: str) -> TableMatcher:
    """A new matcher of that name; one of a device where that is simulated, too."""
    return (MAKERS.get(method) or of_device()[method])()
