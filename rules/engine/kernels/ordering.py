"""Events that wait for the marks of their types, and how they leave in the order of (time, E4).

What waits is in two parts: first, in order of time, what an earlier call has left; then what came
since, as it came.

Law: a look at the first part ends where no type's events can have become due. A source that lags
behind costs nothing while the others go on.
"""

from __future__ import annotations

from rules.engine.kernels import arrays
from rules.engine.kernels.compiled import kernel, part
from rules.engine.kernels.layout import (
    ARRIVAL,
    ARRIVALS,
    DONE,
    ENTERED,
    FLOOR,
    GROW_ARRIVALS,
    LOOKED,
    UNTIL,
    WAITING_FIRST,
    WAITING_LATE,
    WAITING_TOP,
)
from rules.engine.kernels.memory import is_earlier

TIME_LEAST, TIME_GREATEST = -(2**63), 2**63 - 1


@kernel
def order(state: int) -> int:
    """Move all that has become due to ``arrivals``: DONE, or what must grow first."""
    counters = arrays.counters(state)
    waiting = counters[WAITING_TOP] - counters[WAITING_FIRST]
    counters[ARRIVAL] = 0
    counters[ARRIVALS] = 0
    counters[LOOKED] = 0
    if waiting == 0:
        return DONE
    if min(len(arrays.arrivals(state)), len(arrays.merging(state))) < waiting:
        return GROW_ARRIVALS
    take_early(state)
    take_late(state)
    sort(state, arrays.arrivals(state), 0, counters[ARRIVALS])
    counters[ENTERED] += counters[ARRIVALS]
    if counters[WAITING_TOP] == counters[WAITING_FIRST]:
        if counters[WAITING_LATE] > 0:
            least = arrays.type_least(state)
            for number in range(len(least)):
                least[number] = TIME_GREATEST
        counters[WAITING_FIRST] = 0
        counters[WAITING_TOP] = 0
    counters[WAITING_LATE] = counters[WAITING_TOP]
    return DONE


@part
def end_of(state: int, type_number: int) -> int:
    """Before when events of a type are due; TIME_GREATEST if all are."""
    counters = arrays.counters(state)
    mark = max(counters[FLOOR], arrays.type_marks(state)[type_number])
    return min(mark, counters[UNTIL])


@part
def is_due(time: int, end: int) -> bool:
    """Whether an event is, ``end`` being that of its type."""
    return time < end or end == TIME_GREATEST


@part
def move(source, place: int, target, to: int) -> None:  # type: ignore[no-untyped-def]
    """Copy a record."""
    target[to].time = source[place].time
    target[to].type = source[place].type
    target[to].offset = source[place].offset


@kernel
def take_early(state: int) -> None:
    """Move what is due of the part that is in order; what is not closes up to the rest."""
    counters, least = arrays.counters(state), arrays.type_least(state)
    waiting, arrivals = arrays.waiting(state), arrays.arrivals(state)
    first, late = counters[WAITING_FIRST], counters[WAITING_LATE]
    if first == late:
        return
    bound = TIME_LEAST
    for number in range(len(least)):
        if least[number] != TIME_GREATEST:
            end = end_of(state, number)
            if is_due(least[number], end):
                bound = max(bound, end)
                least[number] = end
    place, count = first, counters[ARRIVALS]
    while place < late and is_due(waiting[place].time, bound):
        if is_due(waiting[place].time, end_of(state, waiting[place].type)):
            move(waiting, place, arrivals, count)
            count += 1
        place += 1
    counters[ARRIVALS] = count
    kept = place
    while place > first:
        place -= 1
        if not is_due(waiting[place].time, end_of(state, waiting[place].type)):
            kept -= 1
            move(waiting, place, waiting, kept)
    counters[WAITING_FIRST] = kept


@kernel
def take_late(state: int) -> None:
    """Move what is due of what came since, and put the rest into the part that is in order."""
    counters, least = arrays.counters(state), arrays.type_least(state)
    waiting, arrivals = arrays.waiting(state), arrays.arrivals(state)
    first, late, count = counters[WAITING_FIRST], counters[WAITING_LATE], counters[ARRIVALS]
    kept = late
    for place in range(late, counters[WAITING_TOP]):
        type_number = waiting[place].type
        if is_due(waiting[place].time, end_of(state, type_number)):
            move(waiting, place, arrivals, count)
            count += 1
        else:
            least[type_number] = min(least[type_number], waiting[place].time)
            move(waiting, place, waiting, kept)
            kept += 1
    counters[ARRIVALS] = count
    counters[WAITING_TOP] = kept
    if kept > late:
        sort(state, waiting, late, kept)
        if first < late and is_after(state, waiting[late - 1], waiting[late]):
            merge(state, waiting, first, late, kept)


# --- sorting -------------------------------------------------------------------------------------


@part
def is_after(state: int, one, other) -> bool:  # type: ignore[no-untyped-def]
    """Whether an event comes after another one."""
    if one.time != other.time:
        return one.time > other.time
    return is_after_in_instant(state, one, other)


@kernel
def is_after_in_instant(state: int, one, other) -> bool:  # type: ignore[no-untyped-def]
    """Whether an event comes after another one of the same instant (E4)."""
    types = arrays.types(state)
    if types[one.type].ticks != types[other.type].ticks:
        return types[other.type].ticks != 0
    return is_earlier(state, arrays.inbox(state), other.offset, one.offset)


@kernel
def sort(state: int, records, first: int, end: int) -> None:  # type: ignore[no-untyped-def]
    """Put events into their order, stably: runs that are in order already are merged, two by two,
    for batches are such runs.
    """
    is_sorted = False
    while not is_sorted:
        start, is_sorted = first, True
        while start < end:
            middle = end_of_run(state, records, start, end)
            if middle == end:
                break
            stop = end_of_run(state, records, middle, end)
            merge(state, records, start, middle, stop)
            is_sorted = start == first and stop == end
            start = stop


@kernel
def end_of_run(state: int, records, start: int, end: int) -> int:  # type: ignore[no-untyped-def]
    """Where the events that are in order from ``start`` on end."""
    place = start + 1
    while place < end and not is_after(state, records[place - 1], records[place]):
        place += 1
    return min(place, end)


@kernel
def merge(state: int, records, start: int, middle: int, end: int) -> None:  # type: ignore[no-untyped-def]
    """Merge two runs that follow one another; the first waits in scratch meanwhile."""
    scratch = arrays.merging(state)
    length = middle - start
    for place in range(length):
        move(records, start + place, scratch, place)
    left, right, target = 0, middle, start
    while left < length and right < end:
        if is_after(state, scratch[left], records[right]):
            move(records, right, records, target)
            right += 1
        else:
            move(scratch, left, records, target)
            left += 1
        target += 1
    while left < length:
        move(scratch, left, records, target)
        left += 1
        target += 1
