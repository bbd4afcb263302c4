"""Without sequence numbers, ``detect`` finds what it finds in a file whose lines are in its order.

That order (docs/spark.md): time, source, type, then the values of attributes in the order of their
names; so it depends neither on partitions nor on which other types the rules use.
"""

import os
import warnings
from random import Random

import pytest
from cut_cases import Cut, cut_case, found_in_whole
from msgspec import structs
from rule_texts import SCHEMAS
from spark_frames import events_of

from broker.spark import detect, detection
from matcher.model import MICROSECONDS, Kind

CASES, FIRST = int(os.environ.get("REXMQ_CASES", "2")), int(os.environ.get("REXMQ_SEED", "0"))
SPARK = {Kind.INT: "long", Kind.FLOAT: "double", Kind.BOOL: "boolean", Kind.STRING: "string"}


def by_contents(event):
    values = [event.data[name] for name in sorted(event.data)]
    texts = [one.encode() if isinstance(one, str) else one for one in values]
    return event.time, event.source.encode(), event.type.encode(), texts


def dense(seed: int) -> Cut:
    """A random case whose events share few instants and sources."""
    random, cut = Random(seed), cut_case(seed)
    chosen = [
        structs.replace(
            one, time=one.time // (4 * MICROSECONDS) * 4 * MICROSECONDS, source=random.choice("st")
        )
        for one in cut.events
    ]
    lines = enumerate(sorted(chosen, key=by_contents), 1)
    events = tuple(structs.replace(one, sequence=number, id=str(number)) for number, one in lines)
    return Cut(cut.rules, events, cut.ways, cut.parts)


def frames_of(spark, cut, random):
    frames = {}
    used = {one.name for rule in cut.ruleset.rules for one in rule.used_types}
    for name in sorted(used.intersection(SCHEMAS) | {one.type for one in cut.events}):
        schema, own = SCHEMAS[name], [one for one in cut.events if one.type == name]
        columns = list(schema.attributes)
        random.shuffle(columns)
        rows = [(e.time / 1e6, e.source, *(e.data[one.name] for one in columns)) for e in own]
        random.shuffle(rows)
        kinds = [f"{one.name} {SPARK[one.kind]}" for one in columns]
        told = ", ".join(["time double", "source string", *kinds])
        frames[name] = spark.createDataFrame(rows, told).coalesce(random.randint(1, 2))
    return frames


def known(events):
    """All but ids, which follow from numbers there and from what rows hold here."""
    return sorted((e.time, e.type, len(e.cause_full), repr([*e.data.items()])) for e in events)


@pytest.mark.timeout(3600)
def test_rows_without_numbers_are_those_of_a_file_in_the_order_of_what_they_hold(
    spark, monkeypatch
):
    monkeypatch.setattr(detection, "ROWS_MIN", 2)
    fired = shared = 0
    for seed in range(FIRST, FIRST + CASES):
        cut, random = dense(seed), Random(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = detect(
                frames_of(spark, cut, random),
                cut.text,
                ways=cut.ways,
                cells=cut.parts,
                full_cause=True,
            )
        whole = found_in_whole(cut)
        fired += len(whole) > 0
        places = [(one.time, one.source, one.type) for one in cut.events]
        shared += len(places) - len(set(places))
        assert known(events_of(found)) == known(whole), (
            f"seed {seed}, {cut.ways}, {cut.parts} cells\n{cut.text}"
        )
    assert fired > CASES // 4
    assert shared > CASES


def test_a_row_is_named_and_placed_the_same_whatever_other_types_rules_use(spark):
    """Attributes of another type neither enter a row's name nor its place, in whatever form."""
    rows = [(1.0, "A", b, a, c) for a in (1, 2) for b in (1, 2) for c in (7, None)]
    rows.append((3.0, "Z", None, None, None))  # timers tick up to here
    frame = spark.createDataFrame(rows, "time double, type string, b long, a long, c long")
    last = "rule one: define One(a: int, b: int) from Timer(S = 2) as Now and last A() as Last "
    last += "within 5 s from Now where a = Last.a, b = Last.b"
    first = last.replace("one", "two").replace("One", "Two").replace("last A()", "first A()")
    declared = "event A(b: int, a: int)\n"
    both = (
        f"{declared}event B(c: int, a: int)\n{last}\n{first}\nrule other: define Other() from B()"
    )
    found = []
    for text in (f"{declared}{last}\n{first}", both):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole = detect(frame, text, cells=1, full_cause=True)
        found.append(sorted((e.type, e.cause_full, *e.data.values()) for e in events_of(whole)))
    assert found[0] == found[1]
    assert [one[2:] for one in found[0]] == [(2, 2), (1, 1)]
