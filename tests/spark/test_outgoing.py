"""Ids that follow from what rows hold: equal for equal rows, whatever stands beside them."""

from random import Random

import pyarrow as pa
import pytest

from broker.spark.options import ReadOptions, WriteOptions
from broker.spark.outgoing import PlainRows, content_ids
from matcher.errors import BadEvent
from matcher.model import EventType

TEMP = EventType.of("Temp", area="string", value="float")


def random_rows(random, count):
    return [
        (
            random.choice(["", "a", "b", None, "a\0", "é"]),
            random.choice([0, 1, -1, 2**62, None]),
            random.choice([0.0, 1.0, 0.5, None]),
            random.choice([True, False, None]),
        )
        for _ in range(count)
    ]


def ids_of(rows):
    kinds = (pa.string(), pa.int64(), pa.float64(), pa.bool_())
    return content_ids(
        [pa.array(list(c), k) for c, k in zip(zip(*rows, strict=True), kinds, strict=True)]
    )


def test_rows_have_one_id_exactly_when_they_hold_the_same():
    for seed in range(20):
        random = Random(seed)
        rows = random_rows(random, 200)
        of_row = dict(zip(rows, ids_of(rows), strict=True))
        assert len(set(of_row.values())) == len(of_row), f"seed {seed}"
        random.shuffle(rows)
        some = rows[: random.randint(1, 50)]
        assert ids_of(some) == [of_row[row] for row in some], f"seed {seed}"


def test_ids_stay_with_their_rows_when_others_are_left_out():
    batch = pa.record_batch(
        {"time": [1.0, None, 3.0], "area": ["a", "b", "c"], "value": [1.0, 2.0, 3.0]}
    )
    whole = content_ids([batch.column(name) for name in batch.schema.names])
    (events,) = PlainRows(TEMP, "time", (), skip_bad=True).read(batch)
    assert events.ids.printed() == [whole[0], whole[2]]
    (events,) = PlainRows(TEMP, "time", ("area",), skip_bad=True).read(batch)
    assert events.ids.printed() == ["a", "c"]
    with pytest.raises(BadEvent, match="row 2: no time"):
        PlainRows(TEMP, "time", (), skip_bad=False).read(batch)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "option type is missing"),
        ({"type": "A", "order": "size"}, "option order is held or time or none, not 'size'"),
        ({"type": "A", "batch": "0"}, "option batch is a number of events"),
        ({"type": "A", "timeout": "soon"}, "option timeout is a duration such as 30 s"),
        ({"type": "A", "tpye": "B"}, "no option is called 'tpye'"),
    ],
)
def test_an_option_that_makes_no_sense_is_named(options, said):
    with pytest.raises(ValueError, match=said):
        WriteOptions.of(options)


def test_options_are_read_whatever_their_case():
    read = ReadOptions.of({"Subscribe": "Fire(value > 45)", "FOR": "1.5 min", "broker": "a, b"})
    assert (read.type, read.duration_s, read.brokers) == ("Fire", 90.0, ("a", "b"))
