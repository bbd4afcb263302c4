"""What workers have loaded is frozen once for each kind of task, and nothing elsewhere."""

import gc

import pyarrow as pa

from broker.spark.settling import settle


def frozen_in_turn(batches):
    """How much is frozen at first and after some tasks' ends."""
    for _ in batches:
        counts = [gc.get_freeze_count()]
        for kind in ("one", "one", "another"):
            ring = [object()]
            ring.append(ring)
            settle(kind)
            counts.append(gc.get_freeze_count())
        yield pa.record_batch({"frozen": pa.array(counts)})


def test_a_worker_freezes_once_for_each_kind_of_task(spark):
    rows = spark.range(1).repartition(1).mapInArrow(frozen_in_turn, "frozen long").collect()
    before, first, again, another = (row["frozen"] for row in rows)
    assert before < first == again <= another


def test_nothing_is_frozen_outside_of_workers():
    before = gc.get_freeze_count()
    settle("here")
    assert gc.get_freeze_count() == before
