"""A log that is replayed as a broker does gives every engine all events, and these the same."""

from pathlib import Path

import numpy as np

from benchmarks.hybrid import detected
from benchmarks.hybrid_workloads import distant
from broker.parallel import engine_of
from broker.store.store import Store
from rules import load
from studies.reproduction.hybrid_replay import (
    COLUMNS,
    MESSAGE,
    kept,
    measured,
    messages,
    replayed,
)


def test_messages_have_all_events_in_the_order_of_time() -> None:
    stream = distant(1_000, 60)
    times = [np.sort(np.concatenate([b.time for b in one.batches])) for one in messages(stream)]
    assert sum(map(len, times)) == stream.events
    assert max(map(len, times)) == MESSAGE
    assert (np.diff(np.concatenate(times)) > 0).all()


def test_a_log_replayed_gives_what_the_stream_gives(tmp_path: Path) -> None:
    stream = distant(6_000, 60, more=2.0)
    rules = load(stream.rule)
    expected = detected(engine_of("aip", 1), rules, stream.chunks)
    assert expected > 50
    types = {batch.type.name: batch.type for batch in stream.chunks[0]}
    with Store.open(tmp_path) as store:
        log = kept(stream, store)
        for name, threads in (("auto", 1), ("hybrid", 2)):
            engine = engine_of(name, threads)
            engine.deploy(rules)
            assert replayed(log, types, engine) == expected
        assert replayed(log, types, None) == 0


def test_a_row_has_a_figure_for_each_column() -> None:
    found, rates = measured(distant(500, 60, more=1.0), 1)
    assert found > 0
    assert len(rates) == len(COLUMNS) - 2
    assert min(rates) > 0
