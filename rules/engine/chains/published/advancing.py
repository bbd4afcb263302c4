"""Sequences move from state to state as events come (thesis 5.3.2).

An event that reaches a state duplicates every sequence that waits for it, moves the copies on, and
leaves the others where they are. Of a whole instant the negations come first, and then the states,
the earliest of a sequence first: its events may stand in any order (tesla.md S4).

Law 1: an automaton is a function of the events that its rule can still see. Whatever comes to an
instant that has been taken in (an event that is late, or of a cycle of rules) makes it forget all
its sequences; they are made again from the stored events when it is needed next.

Law 2: where memory is lacking the automaton forgets its sequences too, and the host calls again
once there is room.
"""

from __future__ import annotations

from rules.engine.chains.published import pools
from rules.engine.chains.published.compiled import kernel
from rules.engine.chains.published.layout import (
    DURATIONS_AT,
    EVENTS,
    FIRST_POOL,
    GUARD_ACCESS,
    GUARD_EARLIER,
    GUARD_PLAN_STEP,
    GUARD_SPOTS,
    GUARD_STEP,
    GUARD_TYPE,
    GUARDS,
    GUARDS_AT,
    MODEL_LENGTH,
    MODEL_PATH,
    MODEL_POOL,
    MODELS,
    MODELS_AT,
    NODE_ACCESS,
    NODE_BANS_AT,
    NODE_CHOICES_AT,
    NODE_EVENT,
    NODE_LIKE_AT,
    NODE_PARTS_AT,
    NODE_STEP,
    NODE_TYPE,
    NODES,
    NODES_AT,
    POOLS,
    ROWS,
    RULE,
    TYPES_AT,
)
from rules.engine.kernels import arrays
from rules.engine.kernels.arena import first_entry
from rules.engine.kernels.detection import is_absent, select
from rules.engine.kernels.expressions import run
from rules.engine.kernels.layout import DONE, ENTRY_WORDS, GROW_HEAP, ROW_TIME
from rules.engine.kernels.memory import find_time, row_offset
from rules.engine.kernels.spans import back_from

TIME_LEAST, TIME_GREATEST = -(2**63), 2**63 - 1


# --- places ------------------------------------------------------------------------------------


@kernel
def listed_at(state: int, base: int, begin: int, number: int) -> int:
    """Where the words of one of several stand, of which a word says where their places are."""
    words = arrays.published(state)
    found: int = base + words[base + words[base + begin] + number]
    return found


@kernel
def model_at(state: int, base: int, number: int) -> int:
    """Where the words of a model stand."""
    return listed_at(state, base, MODELS_AT, number)


@kernel
def node_at(state: int, base: int, number: int) -> int:
    """Where those of a node stand."""
    return listed_at(state, base, NODES_AT, number)


@kernel
def guard_at(state: int, base: int, number: int) -> int:
    """Where those of a negation stand that deletes sequences."""
    return listed_at(state, base, GUARDS_AT, number)


# --- instants ----------------------------------------------------------------------------------


@kernel
def take_in(state: int, number: int, until: int) -> int:
    """Let an automaton take in every instant up to one, included."""
    words, record = arrays.published(state), arrays.automata(state)[number]
    base = record.first_state
    time = max(record.taken_in, arrays.rules(state)[words[base + RULE]].since)
    while time <= until:
        time = next_instant(state, base, time)
        if time > until:
            break
        if not take_instant(state, base, time):
            forget(state, number)
            return GROW_HEAP
        time += 1
    if record.taken_in <= until:
        record.taken_in = until + 1
        for place in range(words[base + NODES]):
            note(state, words[node_at(state, base, place) + NODE_TYPE], until)
        for place in range(words[base + GUARDS]):
            note(state, words[guard_at(state, base, place) + GUARD_TYPE], until)
    return DONE


@kernel
def note(state: int, type_number: int, until: int) -> None:
    """Remember that an automaton has taken in events of a type up to an instant."""
    kind = arrays.types(state)[type_number]
    kind.taken_in = max(kind.taken_in, until + 1)


@kernel
def next_instant(state: int, base: int, time: int) -> int:
    """The first instant, from ``time`` on, of which an event is stored; TIME_GREATEST if none."""
    words, found = arrays.published(state), TIME_GREATEST
    for place in range(words[base + NODES]):
        node = node_at(state, base, place)
        found = min(found, first_from(state, words[node + NODE_ACCESS], time))
    for place in range(words[base + GUARDS]):
        guard = guard_at(state, base, place)
        found = min(found, first_from(state, words[guard + GUARD_ACCESS], time))
    return found


@kernel
def first_from(state: int, access: int, time: int) -> int:
    """The time of an access's first event from ``time`` on that is of use."""
    record = arrays.accesses(state)[access]
    if record.list < 0:
        return TIME_GREATEST
    events = arrays.lists(state)[record.list]
    if events.length == 0 or events.last_time < time:
        return TIME_GREATEST
    place = find_time(state, record.list, max(time, record.horizon))
    if place == events.length:
        return TIME_GREATEST
    found: int = arrays.heap(state)[first_entry(events) + place * ENTRY_WORDS]
    return found


@kernel
def take_instant(state: int, base: int, time: int) -> bool:
    """Take in the events of one instant; False when memory is lacking."""
    words = arrays.published(state)
    for place in range(words[base + GUARDS]):
        guard = guard_at(state, base, place)
        number = arrays.accesses(state)[words[guard + GUARD_ACCESS]].list
        entry = begin_of(state, number, time)
        row = row_at(state, number, entry, time)
        while row >= 0:
            delete_between(state, base, guard, time, row)
            entry += 1
            row = row_at(state, number, entry, time)
    for place in range(words[base + NODES]):
        node = node_at(state, base, place)
        number = arrays.accesses(state)[words[node + NODE_ACCESS]].list
        entry = begin_of(state, number, time)
        row = row_at(state, number, entry, time)
        while row >= 0:
            if not arrive(state, base, node, time, row):
                return False
            entry += 1
            row = row_at(state, number, entry, time)
    return True


@kernel
def begin_of(state: int, number: int, time: int) -> int:
    """The place in a list, if there is one, of its first event from ``time`` on."""
    return find_time(state, number, time) if number >= 0 else 0


@kernel
def row_at(state: int, number: int, entry: int, time: int) -> int:
    """The row of a list's entry if it is of an instant; else -1."""
    if number < 0:
        return -1
    events = arrays.lists(state)[number]
    if entry >= events.length:
        return -1
    word = first_entry(events) + entry * ENTRY_WORDS
    heap, row = arrays.heap(state), -1
    if heap[word] == time:
        row = heap[word + 1]
    return row


# --- events ------------------------------------------------------------------------------------


@kernel
def bind(state: int, base: int, model: int, length: int, place: int) -> None:
    """Let programs see the events of a sequence that stands at a place of the heap."""
    words, heap, frame = arrays.published(state), arrays.heap(state), arrays.frame(state)
    types = base + words[base + TYPES_AT]
    for number in range(length):
        event = words[model + MODEL_PATH + number]
        row = heap[place + ROWS + number]
        frame[event + 1] = row_offset(state, words[types + event], row)


@kernel
def arrive(state: int, base: int, node: int, time: int, row: int) -> bool:
    """Move sequences to the state that an event reaches; False when memory is lacking."""
    words = arrays.published(state)
    event, type_number = words[node + NODE_EVENT], words[node + NODE_TYPE]
    for number in range(words[base + EVENTS]):
        arrays.chosen(state)[number] = -1
    arrays.frame(state)[event + 1] = row_offset(state, type_number, row)
    arrays.chosen(state)[event] = row
    arrays.chosen_types(state)[event] = type_number
    supersede(state, base, node)
    if not may_advance(state, base, node):
        return True
    parts = base + words[node + NODE_PARTS_AT]
    for part in range(words[parts]):
        made = advance(state, base, node, parts + 1 + 3 * part, time, row)
        if made < 0:
            return False
        if made == 0:  # no sequence of this model: those of the others can be joined with none
            for other in range(part):
                undo(state, base, parts + 1 + 3 * other, time, row)
            break
    return True


@kernel
def supersede(state: int, base: int, node: int) -> None:
    """Delete the sequences whose last event can never be chosen beside the one that came."""
    words, heap = arrays.published(state), arrays.heap(state)
    like = base + words[node + NODE_LIKE_AT]
    if words[like] < 0 or arrays.steps(state)[words[node + NODE_STEP]].strict:
        return
    type_number = words[node + NODE_TYPE]
    start = arrays.frame(state)[words[node + NODE_EVENT] + 1]
    parts = base + words[node + NODE_PARTS_AT]
    for part in range(words[parts]):
        place = words[parts + 2 + 3 * part]
        pool = words[model_at(state, base, words[parts + 1 + 3 * part]) + MODEL_POOL] + place
        kept = 0
        for number in range(arrays.pools(state)[pool].count):
            row = heap[pools.place_of(state, pool, number) + ROWS + place]
            old, is_like = row_offset(state, type_number, row), True
            for word in range(like + 1, like + 1 + words[like]):
                is_like = is_like and heap[old + words[word]] == heap[start + words[word]]
            if not is_like:
                kept = pools.keep(state, pool, number, kept)
        arrays.pools(state)[pool].count = kept


@kernel
def may_advance(state: int, base: int, node: int) -> bool:
    """Look at the negations that end at the event that came, and choose the events before it."""
    words = arrays.published(state)
    rule = arrays.rules(state)[words[base + RULE]]
    bans = base + words[node + NODE_BANS_AT]
    for ban in range(words[bans]):
        if arrays.steps(state)[words[bans + 2 + 2 * ban]].strict:
            continue
        step = arrays.steps(state)[words[bans + 1 + 2 * ban]]
        if not is_absent(state, step, rule.since, words[base + EVENTS]):
            return False
    choices = base + words[node + NODE_CHOICES_AT]
    for choice in range(words[choices]):
        if is_strict(state, base):
            break
        if not select(state, words[choices + 2 + 2 * choice], rule.since):
            return False
    return True


@kernel
def is_strict(state: int, base: int) -> bool:
    """Whether the rule is part of a cycle: then nothing is chosen before the terminator (S12)."""
    words = arrays.published(state)
    for place in range(words[base + NODES]):
        node = node_at(state, base, place)
        if arrays.steps(state)[words[node + NODE_STEP]].strict:
            return True
    return False


@kernel
def advance(state: int, base: int, node: int, part: int, time: int, row: int) -> int:
    """Duplicate the sequences of one model that an event moves on: how many, or -1 when memory is
    lacking.
    """
    words = arrays.published(state)
    event, type_number = words[node + NODE_EVENT], words[node + NODE_TYPE]
    model, place = model_at(state, base, words[part]), words[part + 1]
    test = arrays.steps(state)[words[part + 2]].residue
    pool = words[model + MODEL_POOL] + place
    durations = base + words[base + DURATIONS_AT]
    pools.discard(state, pool, back_from(time, words[durations + event]))
    if place == 0:
        if test >= 0 and not run(state, test):
            return 0
        return 1 if append(state, pool, time, row, 0, 0) else -1
    before = words[model + MODEL_PATH + place - 1]
    choices, chosen = base + words[node + NODE_CHOICES_AT], -1
    for choice in range(words[choices]):
        if words[choices + 1 + 2 * choice] == before:
            chosen = arrays.chosen(state)[before]
    pools.discard(state, pool - 1, back_from(time, words[durations + before]))
    made = 0
    for number in range(arrays.pools(state)[pool - 1].count):
        source = pools.place_of(state, pool - 1, number)
        if chosen >= 0 and arrays.heap(state)[source + ROWS + place - 1] != chosen:
            continue
        if holds(state, base, model, place, source, type_number, row):
            continue  # all events of one match are distinct (S1)
        if test >= 0:
            bind(state, base, model, place, source)
            if not run(state, test):
                continue
        if not append(state, pool, time, row, source, place):
            return -1
        made += 1
    return made


@kernel
def holds(state: int, base: int, model: int, length: int, place: int, kind: int, row: int) -> bool:
    """Whether a sequence of ``length`` events, at a place of the heap, has an event among them."""
    words = arrays.published(state)
    types = base + words[base + TYPES_AT]
    for number in range(length):
        is_same = arrays.heap(state)[place + ROWS + number] == row
        if is_same and words[types + words[model + MODEL_PATH + number]] == kind:
            return True
    return False


@kernel
def append(state: int, pool: int, time: int, row: int, source: int, length: int) -> bool:
    """Put a copy of a sequence of ``length`` events, and one more, into a pool; False when memory
    is lacking.
    """
    place = pools.next_place(state, pool)
    if place < 0:
        return False
    heap = arrays.heap(state)
    heap[place] = time
    for word in range(length):
        heap[place + ROWS + word] = heap[source + ROWS + word]
    heap[place + ROWS + length] = row
    arrays.pools(state)[pool].count += 1
    return True


@kernel
def undo(state: int, base: int, part: int, time: int, row: int) -> None:
    """Delete the sequences that an event has just made in a model."""
    words, heap = arrays.published(state), arrays.heap(state)
    place = words[part + 1]
    pool = words[model_at(state, base, words[part]) + MODEL_POOL] + place
    record = arrays.pools(state)[pool]
    while record.count > 0:
        last = pools.place_of(state, pool, record.count - 1)
        if heap[last] != time or heap[last + ROWS + place] != row:
            break
        record.count -= 1


# --- deletion ----------------------------------------------------------------------------------


@kernel
def delete_between(state: int, base: int, guard: int, time: int, row: int) -> None:
    """Delete the sequences that wait at a negation's later end, for an event of it has come."""
    words, heap, frame = arrays.published(state), arrays.heap(state), arrays.frame(state)
    if arrays.steps(state)[words[guard + GUARD_PLAN_STEP]].strict:
        return
    test = arrays.steps(state)[words[guard + GUARD_STEP]].residue
    event = words[guard + GUARD_EARLIER]
    type_number = words[base + words[base + TYPES_AT] + event]
    for spot in range(words[guard + GUARD_SPOTS]):
        at = guard + GUARD_SPOTS + 1 + 3 * spot
        first = words[at + 1]
        for place in range(first, words[at + 2]):
            pool = words[model_at(state, base, words[at]) + MODEL_POOL] + place
            kept = 0
            for number in range(arrays.pools(state)[pool].count):
                earlier = heap[pools.place_of(state, pool, number) + ROWS + first]
                start = row_offset(state, type_number, earlier)
                frame[event + 1] = start
                frame[0] = row_offset(state, words[guard + GUARD_TYPE], row)
                is_after = heap[start + ROW_TIME] < time  # the earlier event's instant is out (S6)
                if not is_after or (test >= 0 and not run(state, test)):
                    kept = pools.keep(state, pool, number, kept)
            arrays.pools(state)[pool].count = kept


@kernel
def delete_with(state: int, automaton: int, start: int) -> None:
    """Delete the sequences that have the event, consumed now, whose row starts there (S11)."""
    words, heap = arrays.published(state), arrays.heap(state)
    base = arrays.automata(state)[automaton].first_state
    types = base + words[base + TYPES_AT]
    for one in range(words[base + MODELS]):
        model = model_at(state, base, one)
        for length in range(1, words[model + MODEL_LENGTH] + 1):
            pool = words[model + MODEL_POOL] + length - 1
            kept = 0
            for number in range(arrays.pools(state)[pool].count):
                place, is_free = pools.place_of(state, pool, number), True
                for event in range(length):
                    type_number = words[types + words[model + MODEL_PATH + event]]
                    row = heap[place + ROWS + event]
                    is_free = is_free and row_offset(state, type_number, row) != start
                if is_free:
                    kept = pools.keep(state, pool, number, kept)
            arrays.pools(state)[pool].count = kept


@kernel
def forget(state: int, automaton: int) -> None:
    """Delete all sequences of an automaton: it has taken in nothing (Law 1)."""
    words, record = arrays.published(state), arrays.automata(state)[automaton]
    base = record.first_state
    for pool in range(words[base + POOLS]):
        pools.forget(state, words[base + FIRST_POOL] + pool)
    record.taken_in = TIME_LEAST


@kernel
def begin_anew(state: int, type_number: int, time: int) -> None:
    """An event of a type has come to an instant that automata have taken in (Law 1)."""
    automata = arrays.automata(state)
    for number in range(len(automata)):
        record = automata[number]
        is_there = record.last_state > record.first_state and record.taken_in > time
        if is_there and takes_in(state, record.first_state, type_number):
            forget(state, number)


@kernel
def takes_in(state: int, base: int, type_number: int) -> bool:
    """Whether events of a type move sequences of an automaton, or delete them."""
    words = arrays.published(state)
    for place in range(words[base + NODES]):
        node = node_at(state, base, place)
        if words[node + NODE_TYPE] == type_number:
            return True
    for place in range(words[base + GUARDS]):
        guard = guard_at(state, base, place)
        if words[guard + GUARD_TYPE] == type_number:
            return True
    return False
