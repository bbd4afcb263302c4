"""Blocks of packed rows, and tasks that run over them, without Spark: what they find together."""

import os
from random import Random

import pyarrow as pa
from agreement import row
from cut_cases import Cut, cut_case, found_in_whole, identity
from spark_frames import composite_events, form_of, wide_rows

from broker.spark.blocks import BUCKET, EVENTS, FIRST, LAST, Packing, Portion
from broker.spark.cells import CELL, Cell, cells_of, slices
from broker.spark.columns import in_order
from broker.spark.frames import Form
from broker.spark.look import QUANTILES, Share
from broker.spark.portions import columns_of, portions_of
from broker.spark.task import Task, Work
from matcher.model import Event
from rules.cutting.splitting import split

CASES, SEED = int(os.environ.get("REXMQ_CASES", "30")), int(os.environ.get("REXMQ_SEED", "0"))


def packed(cut: Cut, form: Form, portions: tuple[Portion, ...], random: Random) -> list[dict]:
    """The blocks and tallies of the events, in random frames, partitions and record batches."""
    events, found = [*cut.events], []
    random.shuffle(events)
    types = [None] if random.random() < 0.5 else sorted({event.type for event in events})
    for name in types:
        own = [event for event in events if name in (None, event.type)]
        parts = random.randint(1, 3)
        for part in range(parts):
            rows = wide_rows(own[part::parts], form).select(columns_of(form, portions, name))
            size = random.choice((4, 20, 100))
            batches = [rows.slice(start, size) for start in range(0, rows.num_rows, size)]
            packing = Packing(portions, name, form.has_sequence, random.choice((1, 3, 1_000)))
            found += [one for batch in packing(iter(batches)) for one in batch.to_pylist()]
    return found


def shares(blocks: list[dict], portion: Portion) -> list[Share]:
    """What a look at the blocks of a portion tells."""
    found = []
    for number in range(portion.first, portion.first + portion.buckets):
        own = [one for one in blocks if one[BUCKET] == number]
        firsts = sorted(one[FIRST] for one in own)
        places = [round(place * (len(firsts) - 1) / QUANTILES) for place in range(QUANTILES)]
        times = [firsts[place] for place in places] + [max(one[LAST] for one in own)] if own else []
        found.append(Share(sum(one["rows"] for one in own), tuple(times)))
    return found


def found_by_cells(cut: Cut, random: Random, *, has_sequence: bool) -> tuple[list[Event], int]:
    """What the tasks find, and how many cells there were."""
    form = form_of(has_sequence=has_sequence)
    passes = split(cut.ruleset, cut.ways).passes
    portions = portions_of(passes, form, cut.parts)
    blocks = packed(cut, form, portions, random)
    tallies = [one for one in blocks if one[BUCKET] is None]
    least, greatest = min(one[FIRST] for one in tallies), max(one[LAST] for one in tallies)
    assert sum(one["rows"] for one in tallies) == len(cut.events)
    wanted = tuple({rule.defines.name: rule.defines for rule in cut.ruleset.rules}.values())
    tasks, inputs = [], list[list[dict]]()
    for part, portion in zip(passes, portions, strict=True):
        bounds = slices(part, shares(blocks, portion), cut.parts, exactly=random.random() < 0.7)
        reach, cells = part.reach or 0, list[Cell]()
        for bucket, own in enumerate(bounds, portion.first):
            for place, cell in enumerate(cells_of(own)):
                cells.append(cell)
                inputs.append(
                    [
                        one
                        for one in blocks
                        if one[BUCKET] == bucket
                        and sum(bound <= one[FIRST] for bound in own) <= place
                        and place <= sum(bound <= one[LAST] + reach for bound in own)
                    ]
                )
        tasks.append(Task(part, form, tuple(cells), reach, least, greatest, wanted, True))
    work, found = Work.of(tasks), list[pa.RecordBatch]()
    for number, own in enumerate(inputs):
        ordered = [None, *(one[EVENTS] for one in sorted(own, key=lambda one: one[FIRST]))]
        numbers = pa.array([number] * len(ordered), pa.int32())
        given = pa.record_batch({CELL: numbers, EVENTS: pa.array(ordered, pa.binary())})
        found += work(iter([given]))
    return composite_events(found), len(inputs)


def test_cells_find_what_the_whole_finds():
    fired = many = 0
    for seed in range(SEED, SEED + CASES):
        cut, random = cut_case(seed), Random(seed)
        if not split(cut.ruleset, cut.ways).passes:
            continue
        found, cells = found_by_cells(cut, random, has_sequence=True)
        ours, whole = sorted(found, key=identity), sorted(found_in_whole(cut), key=identity)
        assert [*map(row, ours)] == [*map(row, whole)], (
            f"seed {seed}, {cut.ways}, {cells} cells\n{cut.text}\n"
            f"{[*map(row, ours)]}\nagainst\n{[*map(row, whole)]}"
        )
        fired += len(whole) > 0
        many += len(whole) > 0 and cells > 1
    assert fired > CASES // 3
    assert many > CASES // 5


def test_rows_are_put_in_order_with_those_without_an_id_first_and_may_be_again():
    table = pa.table({"time": [2, 1, 1], "id": ["a", "b", None]})
    (once,) = in_order([table.slice(0, 1), table.slice(1)], ("time", "id"))
    (again,) = in_order([pa.Table.from_batches([once])], ("time", "id"))
    assert once.to_pydict() == {"time": [1, 1, 2], "id": [None, "b", "a"]}
    assert again.equals(once)
