"""OCM as published (thesis 4.4.2), kept as the baseline beside ``PcmMatcher(threads)``.

OpenMP's *parallel for* shares out the constraints of each selected row among the threads, which
increase the filters' counters by atomic operations. So here: the threads run through the same
events, each with its part of Count, of Interfaces and of every row, and wait for one another where
the counters have been reset, and where all constraints have been evaluated. OpenMP's threads wait
after each row, too, which nothing depends on.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from matcher.filters.encoded import EncodedEvents
from matcher.kernels.barrier import BARRIER
from matcher.kernels.ocm import WORD, ocm_match
from matcher.methods.pcm import PcmMatcher
from matcher.methods.tabled import Found


class OcmMatcher(PcmMatcher):
    """PCM, whose constraints ``threads`` threads share out."""

    def __init__(self, threads: int) -> None:
        super().__init__()
        self._threads = threads
        # One for each, or they would wait for one that waits for them.
        self._workers = ThreadPoolExecutor(threads, thread_name_prefix="ocm")

    def _run(self, events: EncodedEvents, begin: int, found: Found) -> tuple[int, int]:
        share = self.shares[0]
        always = np.array(sorted(share.always), np.int64)
        with share.lock:
            barrier, total = np.zeros(BARRIER, np.int64), np.zeros(1, np.int64)
            interfaces = np.zeros(found.bits.shape[1] * WORD, np.uint8)
            filters = share.filters.rows[: share.filters.size]

            def work(thread: int) -> tuple[int, int]:
                return ocm_match(  # type: ignore[no-any-return]
                    *(thread, self._threads, barrier, total),
                    *(events.offsets, events.cells, begin),
                    *(share.lists.rows, self.list_of_term, share.arena, filters, always),
                    *(events.texts, interfaces, *found),
                )

            result, *_ = self._workers.map(work, range(self._threads))
            return result
