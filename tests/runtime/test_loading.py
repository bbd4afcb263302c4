"""Nothing waits for a kernel once those of an index are loaded (matcher.methods.loading)."""

import subprocess
import sys

HISTORY = """
from matcher.methods.choose import AutoMatcher
from runtime.compiling.cache import KernelCache
from matcher.filters.constraint import Filter
from matcher.methods.indexed import GATHERED_MIN
from matcher.filters.mixed import FilterBatch, MixedEvents

matcher, late = AutoMatcher(), []
load = KernelCache.load_overload
KernelCache.load_overload = lambda self, *of: late.append(self._py_func) or load(self, *of)
events = MixedEvents.of([{"a": 1, "b": "x"}] * 4, ["T", "U", "U", "T"])
count = 2 * GATHERED_MIN
for number in range(count):
    matcher.add(number, number, Filter.of(("a", ">", number), ("b", "<", f"t{number % 9}")))
    matcher.add(-1 - number, 5, Filter.of(("b", "prefix", f"t{number}"), (f"n{number}", "=", 0.5)))
many = [(count + n, 1, Filter.of(("a", "<", n), type="TU"[n % 2])) for n in range(count)]
matcher.add_all(FilterBatch.of(many))
matcher.match(events, filters=True)
assert matcher.figures["groups"] > 2
for number in range(-count, 2 * count):
    matcher.remove(number)
matcher.match(events)
assert not late, late
"""


def test_filters_of_all_kinds_come_and_go_without_a_kernel_being_loaded() -> None:
    # In a process of its own, where no other test has loaded any.
    done = subprocess.run(
        [sys.executable, "-c", HISTORY], capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stderr
