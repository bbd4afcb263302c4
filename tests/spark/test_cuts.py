"""When tasks read files themselves, and which row groups each of them is given."""

from dataclasses import replace

import pytest

import rules
from broker.spark import cuts
from broker.spark.blocks import Portion
from broker.spark.cuts import HELD_MAX, Own, Span, cut, held, may_be_cut
from broker.spark.look import Share
from matcher.model import TIME_MAX, TIME_MIN
from rules.cutting.splitting import Pass, split

MINUTE = 60 * 10**6
HOUR = 60 * MINUTE
PAIR = (
    "event T(k: int)\nrule pair: define P() from T(k = $k) as N and last T(k = $k) as L "
    "within 1 min from N"
)
TILED = tuple((n * HOUR, (n + 1) * HOUR - 1) for n in range(8))


def spans_of(*times: tuple[int, int], rows: int = 1 << 20, counts=((),)) -> list[Span]:
    """Row groups in order, each of so many events evenly from one time to another."""
    return [
        Span(number, rows, True, tuple(quantiles(first, last, cuts.TIMES)), counts)
        for number, (first, last) in enumerate(times)
    ]


def quantiles(first: int, last: int, count: int) -> list[int]:
    return [first + (last - first) * place // count for place in range(count + 1)]


def pass_of(way: str, *, consumes: bool = False) -> Pass:
    """A pass by ``way``; what consumes has no reach."""
    text = f"{PAIR} consuming L" if consumes else PAIR
    (part,) = split(rules.load(text), (way,)).passes
    return part


def portion_of(buckets: int) -> Portion:
    return Portion(frozenset({"T"}), (), {"T": "v0"}, 0, buckets, 4)


def cut_of(part: Pass, spans: list[Span], buckets: int = 1, count: int = 4) -> list[Own] | None:
    first, last = spans[0].times[0], max(span.times[-1] for span in spans)
    whole = Share(sum(span.rows for span in spans), tuple(quantiles(first, last, 64)))
    return cut(part, 0, portion_of(buckets), whole, spans, count, exactly=False)


def test_slices_read_the_row_groups_that_they_overlap_and_a_little_of_the_next():
    cells = cut_of(pass_of("time"), spans_of(*TILED))
    assert [one.cell.start for one in cells] == [
        TIME_MIN,
        *(2 * n * HOUR + MINUTE for n in (1, 2, 3)),
    ]
    assert [one.cell.end for one in cells][-1] == TIME_MAX
    assert [[number for number, _, _ in one.spans] for one in cells] == [
        [0, 1, 2],
        [2, 3, 4],
        [4, 5, 6],
        [6, 7],
    ]
    assert sum(one.rows for one in cells) < 1.1 * 8 * (1 << 20)


def test_slices_begin_where_events_are_even_if_no_row_group_begins_near():
    cells = cut_of(pass_of("time"), spans_of((0, 8 * HOUR)))
    assert [one.cell.start for one in cells[1:]] == [2 * HOUR, 4 * HOUR, 6 * HOUR]


def test_slices_may_not_read_rows_too_often():
    everywhere = spans_of(*[(0, 8 * HOUR)] * 8)
    by_time = pass_of("time")
    assert cut_of(by_time, everywhere, count=2 * cuts.READS_MAX - 2) is not None
    assert cut_of(by_time, everywhere, count=2 * cuts.READS_MAX) is None
    unordered = [replace(span, in_order=False) for span in everywhere]
    assert cut_of(by_time, unordered, count=cuts.READS_MAX) is not None
    assert cut_of(by_time, unordered, count=cuts.READS_MAX + 1) is None


def test_rules_bound_to_a_key_for_ever_are_cut_into_few_buckets_that_are_about_as_full():
    by_key = pass_of("key", consumes=True)
    assert by_key.reach is None
    cells = cut_of(by_key, spans_of(*TILED, counts=((50, 52),)), 2)
    assert [one.bucket for one in cells] == [0, 1]
    assert [len(one.spans) for one in cells] == [8, 8]
    assert cut_of(by_key, spans_of(*TILED, counts=((100, 2),)), 2) is None
    many = cuts.READS_MAX + 1
    assert may_be_cut(by_key, portion_of(many - 1))
    assert not may_be_cut(by_key, portion_of(many))
    assert cut_of(by_key, spans_of(*TILED, counts=((1,) * many,)), many) is None


@pytest.mark.parametrize("buckets", [2, 16])
def test_rules_bound_to_a_key_are_cut_by_time_where_that_reads_fewer_rows(buckets):
    by_key = pass_of("key")
    spans = spans_of(*TILED, counts=((1,) * buckets,))
    assert may_be_cut(by_key, portion_of(buckets))
    cells = cut_of(by_key, spans, buckets, 16)
    assert {one.bucket for one in cells} == {None}
    assert len(cells) == 16


def test_rules_bound_to_a_key_are_cut_by_key_where_slices_are_few_or_read_more():
    by_key = pass_of("key")
    counts = ((50, 52),)
    minutes = spans_of((0, MINUTE), (MINUTE + 1, 2 * MINUTE - 1), counts=counts)
    assert [one.bucket for one in cut_of(by_key, minutes, 2)] == [0, 1]
    everywhere = [replace(one, in_order=False) for one in spans_of(*[(0, HOUR)] * 2, counts=counts)]
    assert [one.bucket for one in cut_of(by_key, everywhere, 2)] == [0, 1]
    assert [one.bucket for one in cut_of(by_key, spans_of(*TILED), 1)] == [0]


def test_row_groups_are_held_whole_where_they_are_in_no_order():
    everywhere = spans_of(*[(0, HOUR)] * 8)
    assert held(everywhere) == 8 * cuts.READ_TOGETHER <= HELD_MAX
    assert held([replace(span, in_order=False) for span in everywhere]) == 8 * (1 << 20) > HELD_MAX
    assert held(spans_of(*TILED)) == cuts.READ_TOGETHER
