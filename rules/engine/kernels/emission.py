"""Composite events into the columns that leave the engine.

Every type that rules define has an *outlet*: columns of times, ids, attributes and causes, which
the host lends and takes back as they stand. What is written here is what an ``EventBatch`` holds;
only strings and sources are still numbers of the engine.

Law 1: an event is written whole or not at all; one that finds no room asks for it and changes
nothing. What lies behind an outlet's ``count`` means nothing.

Law 2: the events of one outlet stand in the order in which they were made, which is that of time
and then E4 (rules of one type run in the order of their places). The *runs* say how the events of
several outlets lie between one another.

Law 3: of a rule's matches at one instant the first YIELD_MAX, in the order of E4, make composite
events. If there is one more, the rule ends there: TOO_MANY.
"""

from __future__ import annotations

import numpy as np

from rules.engine.kernels import arrays
from rules.engine.kernels.arena import first_entry
from rules.engine.kernels.compiled import kernel, part
from rules.engine.kernels.expressions import run
from rules.engine.kernels.layout import (
    CAUSE_IS_DIGEST,
    CAUSE_IS_SEQUENCE,
    CAUSE_IS_TEXT,
    CONSUMED,
    DISORDER,
    DONE,
    ENTRY_WORDS,
    GROW_CONSUMED,
    GROW_OUT,
    ID_IS_DIGEST,
    ID_IS_SEQUENCE,
    OUT_CAUSES,
    OUT_NEED,
    OUT_TYPE,
    ROW_ID,
    ROW_KEY_HIGH,
    ROW_KEY_LOW,
    ROW_SEQUENCE,
    ROW_SOURCE,
    ROW_TIME,
    RUN,
    RUNS,
    SEARCHES_LEFT,
    TAKEN_DISORDER,
    TAKEN_EVENTS,
    TAKEN_FULL,
    TAKEN_OUTLETS,
    TAKEN_RUNS,
    TAKEN_TOP,
    TOO_MANY,
    TOUCHED,
    YIELD_MAX,
    YIELDED,
    YIELDED_AT,
    YIELDED_BY,
)
from rules.overrun import SEARCHES, SEARCHES_MIN

TAKEN_WORDS = 8
RUN_WORDS = RUN.itemsize // 8
"""Words of an outlet and of a run in what :func:`take` writes."""

# --- ids -----------------------------------------------------------------------------------------


@part
def rotate(number: np.uint64, bits: int) -> np.uint64:
    """Rotate a 64-bit word to the left."""
    return (number << np.uint64(bits)) | (number >> np.uint64(64 - bits))


@part
def finish(number: np.uint64) -> np.uint64:
    """The finalizer of MurmurHash3."""
    number = (number ^ (number >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    number = (number ^ (number >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return number ^ (number >> np.uint64(33))


@part
def absorb(heap, row: int, high, low):  # type: ignore[no-untyped-def]
    """Take the key of one more cause into a digest."""
    first, second = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
    word = np.uint64(heap[row + ROW_KEY_HIGH])
    high ^= rotate(word * first, 31) * second
    high = (rotate(high, 27) + low) * np.uint64(5) + np.uint64(0x52DCE729)
    word = np.uint64(heap[row + ROW_KEY_LOW])
    low ^= rotate(word * second, 33) * first
    low = (rotate(low, 31) + high) * np.uint64(5) + np.uint64(0x38495AB5)
    return high, low


@part
def conclude(high, low, events: int):  # type: ignore[no-untyped-def]
    """The digest once all causes are taken in."""
    length = np.uint64(16 * events)
    high, low = high ^ length, low ^ length
    high += low
    low += high
    high, low = finish(high), finish(low)
    high += low
    low += high
    return high, low


@kernel
def cause_place(cause: int, latest: int) -> int:
    """The frame place of a cause by its number: the terminator has place 1, and the others follow
    in the order of the text, in which ``latest`` come before the terminator (X1).
    """
    if cause == latest:
        return 1
    return cause + 2 if cause < latest else cause + 1


@kernel
def digest(heap, frame, events: int, latest: int, high, low):  # type: ignore[no-untyped-def]
    """The key of a composite event: the compiled twin of ``matcher.identity.composite_key``."""
    for cause in range(events):
        high, low = absorb(heap, frame[cause_place(cause, latest)], high, low)
    return conclude(high, low, events)


# --- events --------------------------------------------------------------------------------------


@kernel
def has_room(state: int, type_number: int, count: int, causes: int) -> bool:
    """Whether an outlet has room for so many events and causes; says what is needed if not."""
    outlet = arrays.outlets(state)[type_number]
    if outlet.count + count <= outlet.capacity and outlet.causes + causes <= outlet.cause_capacity:
        return True
    counters = arrays.counters(state)
    counters[OUT_TYPE] = type_number
    counters[OUT_NEED], counters[OUT_CAUSES] = count, causes
    return False


@part
def write_cause(outlet, place: int, heap, row: int) -> None:  # type: ignore[no-untyped-def]
    """Write how one cause is named."""
    kind = heap[row + ROW_ID]
    arrays.codes_at(outlet.cause_source, outlet.cause_capacity)[place] = heap[row + ROW_SOURCE]
    sequence = heap[row + ROW_SEQUENCE]
    how = CAUSE_IS_SEQUENCE
    if kind != ID_IS_SEQUENCE:
        name = arrays.words_at(outlet.cause_name, 2 * outlet.cause_capacity)
        if kind == ID_IS_DIGEST:
            how, sequence = CAUSE_IS_DIGEST, 0
            name[2 * place] = heap[row + ROW_KEY_HIGH]
            name[2 * place + 1] = heap[row + ROW_KEY_LOW]
        else:
            how = CAUSE_IS_TEXT
            name[2 * place] = 0
            name[2 * place + 1] = kind
        outlet.kinds |= 1 << how
    arrays.words_at(outlet.cause_sequence, outlet.cause_capacity)[place] = sequence
    arrays.bytes_at(outlet.cause_kind, outlet.cause_capacity)[place] = how


@kernel
def may_yield(state: int, source: int, time: int) -> int:
    """How many composite events a rule, whose source is given, may still yield at an instant."""
    counters = arrays.counters(state)
    if counters[YIELDED_BY] != source or counters[YIELDED_AT] != time:
        counters[YIELDED_BY], counters[YIELDED_AT] = source, time
        counters[YIELDED] = 0
        searches = SEARCHES * min(counters[YIELD_MAX], 1 << 56)
        counters[SEARCHES_LEFT] = max(np.int64(SEARCHES_MIN), searches)
    left: int = counters[YIELD_MAX] - counters[YIELDED]
    return left


@part
def search(state: int) -> bool:
    """Count an event that a rule looks at; whether it may. While a rule is evaluated SEARCHES_LEFT
    is the complement of what is left, so at last -1; else it is that, and nothing is counted.
    """
    counters = arrays.counters(state)
    left: int = counters[SEARCHES_LEFT]
    if left < -1:
        counters[SEARCHES_LEFT] = left + 1
    return left != -1


@kernel
def emit(state: int, rule_number: int, limit: int) -> int:
    """Write the composite event of the present match; an undefined value fails the match (S9).

    TOO_MANY once the outlet holds ``limit``.
    """
    rule = arrays.rules(state)[rule_number]
    events, repeated = rule.events, 0
    for number in range(rule.last_step - rule.runs, rule.last_step):
        repeated += arrays.slots(state)[arrays.steps(state)[number].slot]
    if not has_room(state, rule.type, 1, events + repeated):
        return GROW_OUT
    outlet = arrays.outlets(state)[rule.type]
    heap, frame = arrays.heap(state), arrays.frame(state)
    place = outlet.count
    words = arrays.words_at(outlet.words, rule.value_count * outlet.capacity)
    for number in range(rule.value_count):
        value = arrays.values(state)[rule.first_value + number]
        if value.event >= 0:
            word = heap[frame[value.event] + value.offset]
        elif run(state, value.program):
            word = arrays.stack(state)[0]
        else:
            return DONE
        words[number * outlet.capacity + place] = word
    if place == limit:
        return TOO_MANY
    if (rule.consumes or repeated) and not note_consumed(state, rule_number, repeated):
        return GROW_CONSUMED
    upper, lower = np.uint64(rule.key_high), np.uint64(rule.key_low)
    write_match(outlet, heap, frame, events, rule.latest, upper, lower, rule.source)
    return DONE


@part
def write_match(  # type: ignore[no-untyped-def]
    outlet, heap, frame, events: int, latest: int, upper, lower, source: int
) -> None:
    """Write all of a composite event but its attributes, which are there; there is room.

    ``upper`` and ``lower`` are its rule's key.
    """
    place, cause = outlet.count, outlet.causes
    high, low = digest(heap, frame, events, latest, upper, lower)
    ids = arrays.words_at(outlet.digest, 2 * outlet.capacity)
    ids[2 * place] = np.int64(high)
    ids[2 * place + 1] = np.int64(low)
    arrays.words_at(outlet.time, outlet.capacity)[place] = heap[frame[1] + ROW_TIME]
    arrays.codes_at(outlet.source, outlet.capacity)[place] = source
    for event in range(events):
        write_cause(outlet, cause + event, heap, frame[cause_place(event, latest)])
    offset = place + outlet.advances + 1
    arrays.words_at(outlet.offsets, offset + 1)[offset] = cause + events - outlet.first_cause
    outlet.count, outlet.causes = place + 1, cause + events


@kernel
def emit_each(  # type: ignore[no-untyped-def]
    state: int, rule, list_number: int, low: int, high: int, limit: int
) -> int:
    """Write a composite event for every entry, low to high, of a list, as the last event of the
    present match: what a final ``each`` without further conditions comes to. There is room.

    TOO_MANY once the outlet holds ``limit``.
    """
    events, values = rule.events, rule.value_count
    outlet = arrays.outlets(state)[rule.type]
    heap, frame = arrays.heap(state), arrays.frame(state)
    capacity = outlet.capacity
    times = arrays.words_at(outlet.time, capacity)
    ids = arrays.words_at(outlet.digest, 2 * capacity)
    sources = arrays.codes_at(outlet.source, capacity)
    words = arrays.words_at(outlet.words, values * capacity)
    cause_sources = arrays.codes_at(outlet.cause_source, outlet.cause_capacity)
    cause_sequences = arrays.words_at(outlet.cause_sequence, outlet.cause_capacity)
    cause_kinds = arrays.bytes_at(outlet.cause_kind, outlet.cause_capacity)
    place, cause = outlet.count, outlet.causes
    offsets = arrays.words_at(outlet.offsets + 8 * (outlet.advances + 1), capacity)
    first_cause, first_value, source = outlet.first_cause, rule.first_value, rule.source
    time = heap[frame[1] + ROW_TIME]
    upper, lower = np.uint64(rule.key_high), np.uint64(rule.key_low)
    simple, status = True, DONE
    for event in range(1, events):
        upper, lower = absorb(heap, frame[event], upper, lower)
        simple = simple and heap[frame[event] + ROW_ID] == ID_IS_SEQUENCE
    chosen, chosen_types = arrays.chosen(state), arrays.chosen_types(state)
    entries = arrays.lists(state)[list_number]
    type_number = arrays.columns(state)[arrays.accesses(state)[entries.access].column].type
    kind = arrays.types(state)[type_number]
    ring, mask, width = kind.offset, kind.capacity - 1, kind.width
    entry = first_entry(entries) + low * ENTRY_WORDS + 1
    for _ in range(low, high):
        row = heap[entry]
        entry += ENTRY_WORDS
        repeated = False
        for event in range(events - 1):
            repeated |= chosen[event] == row and chosen_types[event] == type_number
        if repeated:
            continue  # all events of one match are distinct (S1)
        if place == limit:
            status = TOO_MANY
            break
        start = ring + (row & mask) * width
        frame[events] = start
        one, other = absorb(heap, start, upper, lower)
        one, other = conclude(one, other, events)
        ids[2 * place] = np.int64(one)
        ids[2 * place + 1] = np.int64(other)
        times[place] = time
        sources[place] = source
        for number in range(values):
            value = arrays.values(state)[first_value + number]
            words[number * capacity + place] = heap[frame[value.event] + value.offset]
        if simple and heap[start + ROW_ID] == ID_IS_SEQUENCE:
            for event in range(1, events + 1):
                cause_sources[cause] = heap[frame[event] + ROW_SOURCE]
                cause_sequences[cause] = heap[frame[event] + ROW_SEQUENCE]
                cause_kinds[cause] = CAUSE_IS_SEQUENCE
                cause += 1
        else:
            for event in range(1, events + 1):
                write_cause(outlet, cause, heap, frame[event])
                cause += 1
        offsets[place] = cause - first_cause
        place += 1
    outlet.count, outlet.causes = place, cause
    return status


@kernel
def note_consumed(state: int, rule_number: int, repeated: int) -> bool:
    """Note which events the present match consumes (S11), but for those of runs; False when there
    is no room, for ``repeated`` events of runs too.
    """
    rule, counters = arrays.rules(state)[rule_number], arrays.counters(state)
    if counters[CONSUMED] + rule.events + repeated > len(arrays.consumed(state)):
        return False
    for event in range(rule.events):
        if rule.consumes >> event & 1:
            type_number = arrays.chosen_types(state)[event]
            note_gone(state, rule_number, type_number, arrays.chosen(state)[event])
    return True


@part
def note_gone(state: int, rule_number: int, type_number: int, row: int) -> None:
    """Note one event that a rule consumes; there is room."""
    counters = arrays.counters(state)
    gone = arrays.consumed(state)[counters[CONSUMED]]
    gone.rule, gone.type, gone.row = rule_number, type_number, row
    counters[CONSUMED] += 1


# --- runs ----------------------------------------------------------------------------------------


@kernel
def note_run(state: int, type_number: int, source: int, time: int, before: int) -> None:
    """Note what an evaluation has added to an outlet, which held ``before`` events.

    ``source`` is the number of the rule's, which ``may_yield`` was asked about last.
    """
    counters, outlet = arrays.counters(state), arrays.outlets(state)[type_number]
    if outlet.count == before:
        return
    counters[YIELDED] += outlet.count - before
    if before == outlet.first:
        arrays.touched(state)[counters[TOUCHED]] = type_number
        counters[TOUCHED] += 1
        start = outlet.first + outlet.advances
        arrays.words_at(outlet.offsets, start + 1)[start] = 0
    runs, count = arrays.runs(state), counters[RUNS]
    place = arrays.source_ranks(state)[source]
    if count > 0 and runs[count - 1].time == time and runs[count - 1].place > place:
        counters[DISORDER] = 1
    runs[count].time, runs[count].place = time, place
    runs[count].type = type_number
    runs[count].count = outlet.count - before
    counters[RUNS] = count + 1


@kernel
def take(state: int) -> bool:
    """Write into ``taken``, behind what earlier advances left, where what this one wrote stands:
    first the outlets, each in TAKEN_WORDS words, its type and what is no address of layout.OUTLET;
    then the runs. False, and no change, when there is no room.

    What comes now is another advance's.
    """
    counters, outlets, runs = arrays.counters(state), arrays.outlets(state), arrays.runs(state)
    words, touched, count = arrays.taken(state), counters[TOUCHED], counters[RUNS]
    place, events, is_full = counters[TAKEN_TOP], 0, False
    if place + touched * TAKEN_WORDS + count * RUN_WORDS > len(words):
        return False
    for one in range(touched):
        number = arrays.touched(state)[one]
        outlet = outlets[number]
        words[place], words[place + 1], words[place + 2] = number, outlet.first, outlet.count
        words[place + 3], words[place + 4] = outlet.capacity, outlet.first_cause
        words[place + 5], words[place + 6] = outlet.causes, outlet.advances
        words[place + 7] = outlet.kinds
        yielded = outlet.count - outlet.first
        is_full = is_full or 4 * (outlet.capacity - outlet.count) < 5 * yielded
        events += yielded
        outlet.first = outlet.count
        outlet.first_cause = outlet.causes
        outlet.advances += 1
        place += TAKEN_WORDS
    for one in range(count):
        run = runs[one]
        words[place], words[place + 1] = run.time, run.place
        words[place + 2], words[place + 3] = run.type, run.count
        place += RUN_WORDS
    counters[TAKEN_TOP] = place
    counters[TAKEN_OUTLETS], counters[TAKEN_RUNS] = touched, count
    counters[TAKEN_EVENTS], counters[TAKEN_FULL] = events, is_full
    counters[TAKEN_DISORDER] = counters[DISORDER]
    counters[TOUCHED] = counters[RUNS] = counters[DISORDER] = 0
    return True


@kernel
def spread_runs(runs, first, order) -> None:  # type: ignore[no-untyped-def]
    """Write the common order of the events of all outlets, int64[n].

    ``first`` int64 by type is the position of each outlet's next event among all of them.
    """
    place = 0
    for number in range(len(runs)):
        position = first[runs[number].type]
        for step in range(runs[number].count):
            order[place] = position + step
            place += 1
        first[runs[number].type] = position + runs[number].count


@kernel
def renumber(codes, places, used) -> int:  # type: ignore[no-untyped-def]
    """Replace codes int32[n] by places in a dictionary of just those in use; gives its length.

    ``used`` receives them, by first appearance. ``places`` int32 is -1 for every code, before
    and after.
    """
    count = 0
    for place in range(len(codes)):
        code = codes[place]
        if places[code] < 0:
            places[code] = count
            used[count] = code
            count += 1
        codes[place] = places[code]
    for place in range(count):
        places[used[place]] = -1
    return count
