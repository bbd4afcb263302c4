"""Getting an engine's kernels ready before anybody waits for them.

The kernels are compiled when they are first used, and kept on disk; loading them takes the better
part of a second, and compiling them, once after an installation, much longer. A broker that did
that at its first event would be silent meanwhile, and its clients would take it for dead. So a
small detection that touches every operator runs before the broker serves anybody.
"""

from __future__ import annotations

import numpy as np

from matcher.compiling import is_kept
from matcher.kernels.building import build_group
from matcher.kernels.encoding import encode
from matcher.kernels.entering import index_insert_all
from matcher.kernels.index import index_match
from matcher.loading import load_kernels
from matcher.model import MICROSECONDS, TIME_MAX, EventBatch, EventIds, EventType, StringColumn
from rules import load
from rules.engine import make
from rules.engine.cdp import CdpEngine

READING = EventType.of("Reading", area="string", value="float", count="int")
RULES = f"""
event {READING}
define Simple(area: string) from Reading(value > 1) as r where area = r.area
define Each(n: int) from Reading(area = $a) as r and each Reading(area = $a) as s
    within 5 s from r and not Reading(value < 0) between r and s where n = s.count
define Last(v: float) from Reading(value = $v) as r
    and last Reading(value < $v) as s within 5 s from r where v = s.value
define Mean(m: float) from Reading(area = $a) as r
    and $m = Avg(Reading(area = $a).value within 5 s from r) and $m > 0
    and Count(Reading() within 5 s from r) > 0 where m = $m consuming r
define Again(n: int) from Each() as e and last Simple() as s within 5 s from e where n = e.n
"""


def warm_up(engine: str) -> None:
    """Run a small detection on an engine of this name, and throw it away.

    Rules change to automata and back meanwhile: whoever lets the engine choose would else wait for
    those kernels at its first choice.
    """
    detector = make(engine)
    if not isinstance(detector, CdpEngine):  # plain Python
        return
    detector.deploy(load(RULES, file="<warm-up>"))
    for start, incremental in ((0, True), (4, False)):
        detector.push(_readings(start))
        detector.advance((start + 4) * MICROSECONDS)
        detector.switch(dict.fromkeys(detector.marks, incremental))
    detector.advance(TIME_MAX)


def warm_up_matching() -> None:
    """The same for the kernels that match many subscriptions together.

    Where they are kept on disk they are left there: loading them takes a tenth of a second, which
    a broker of few subscriptions need not spend.
    """
    if not all(map(is_kept, (encode, index_insert_all, build_group, index_match))):
        load_kernels()


def _readings(start: int) -> EventBatch:
    numbers = np.arange(start, start + 4)
    areas = StringColumn((numbers % 2).astype(np.int32), ("a1", "a2"))
    ids = EventIds(StringColumn.constant("warm-up", 4), numbers)
    columns = (areas, numbers.astype(np.float64), numbers)
    return EventBatch(READING, numbers * MICROSECONDS, ids, columns)
