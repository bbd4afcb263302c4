"""Operators at their bounds: what is refused, what grows, what is forgotten, what is shared out."""

import random
from dataclasses import replace

import numpy as np
import pytest
from operating import (
    A,
    B,
    check_aggregate,
    check_join,
    check_window,
    events,
    stream_of,
)

from matcher.gpu.device import NoDevice
from matcher.model import TIME_MAX, EventIds, StringColumn
from rules import load
from rules.engine import make
from rules.errors import RuleErrors
from studies.operators import (
    Aggregate,
    Batcher,
    Chain,
    Filter,
    Join,
    Length,
    Place,
    Stream,
    Time,
    Window,
    WindowFull,
    concatenated,
    operator,
    pairing,
    share_out,
    windows,
)
from studies.operators.naive import rows_of
from studies.operators.places import HOST, device_there

LEFT, RIGHT = Stream(A, "a", Length(3)), Stream(B, "b", Time(5))


def test_windows_grow_with_what_they_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "CAPACITY_MIN", 2)
    for seed in range(30):
        check_join(HOST, seed, ((2, 1), (9, 30), (50, 2), (1, 1)))
        check_window(HOST, seed, (1, 40, 2, 90))
        check_aggregate(HOST, seed, (1, 40, 2, 90))


def test_texts_are_forgotten_when_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator, "TEXTS_MAX", 1)
    for seed in range(33):
        check_join(HOST, seed, ((3, 4), (5, 5), (9, 2), (4, 8)))
        check_aggregate(HOST, seed, (3, 9, 8, 12))
    made = Filter(A, 's prefix "a"', device="cpu")
    for batch in stream_of(random.Random(1), A, (9, 9, 9)):
        found = made.push(batch)
        assert [row[1] for row in rows_of(found)] == [
            row[1] for row in rows_of(batch) if row[1].startswith("a")
        ]
    assert len(made._texts.values) <= 9


def test_groups_are_made_anew_when_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    from studies.operators import aggregates

    monkeypatch.setattr(aggregates, "GROUPS_MIN", 1)
    monkeypatch.setattr(windows, "CAPACITY_MIN", 1)
    for seed in range(30):
        check_aggregate(HOST, seed, (1, 3, 30, 2, 9))


def test_pairs_are_told_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairing, "ROOM_MAX", 3)
    for seed in (0, 11, 22, 33):
        check_join(HOST, seed, ((7, 9), (20, 25)))


def test_a_window_that_is_full_takes_nothing_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "WINDOW_MAX", 20)
    made = Window(A, Time(1000), device="cpu")
    first, second = stream_of(random.Random(3), A, (15, 9))
    made.push(first)
    with pytest.raises(WindowFull, match="more than 20 events"):
        made.push(second)
    assert len(made.push(second.take(slice(0, 5)))) == 5


def test_events_out_of_order_are_refused() -> None:
    batch = events(random.Random(1), A, [5, 4])
    for made in (Window(A, Length(2), device="cpu"), Aggregate(A, Length(2), {"n": "Count(A())"})):
        with pytest.raises(ValueError, match="not in order of time"):
            made.push(batch)
    join = Join(LEFT, RIGHT, "", {}, device="cpu")
    join.push((events(random.Random(1), A, [7]), None))
    with pytest.raises(ValueError, match="B are not in order of time"):
        join.push((None, events(random.Random(1), B, [6])))


def test_a_batch_of_another_type_is_refused() -> None:
    with pytest.raises(ValueError, match="a batch of B"):
        Filter(A, "x > 1", device="cpu").push(events(random.Random(1), B, [1]))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Filter(A, "x > 1", device="tpu"), "it is cpu, gpu or auto"),
        (lambda: Join(LEFT, RIGHT, "", {}, trigger="up"), "it is left, right or both"),
        (lambda: Join(LEFT, RIGHT, "a.s prefix b.s", {}), "prefix of two attributes"),
        (lambda: Aggregate(A, Length(2), {"n": "StdDev(A().x)"}), "has Count, Sum, Avg"),
        (lambda: Aggregate(A, Length(2), {"n": "Max(A().s)"}), "no Max of strings"),
        (lambda: Aggregate(A, Length(2), {"n": "Sum(A(x = it.x).v)"}), "group by an attribute"),
        (lambda: Aggregate(A, Length(2), {"n": "Count(A())"}, by=("o",)), "makes no group"),
        (lambda: Length(0), "from 1 to"),
        (lambda: Time(-1), "from 0 on"),
        (lambda: Batcher(3, 2, 0), "at least 1, and in that order"),
        (lambda: Chain(), "no operators"),
        (lambda: Filter(A, "1+(" * 30 + "x" + ")" * 30 + " > 1", device="cpu"), "nested more than"),
    ],
)
def test_what_is_refused(make, said: str) -> None:
    with pytest.raises((ValueError, RuleErrors), match=said):
        make()


def test_what_is_wrong_in_a_condition_is_told_as_of_a_rule() -> None:
    with pytest.raises(RuleErrors, match="A has no attribute vv"):
        Filter(A, "vv > 1", device="cpu")
    with pytest.raises(RuleErrors, match="unknown event c"):
        Join(LEFT, RIGHT, "a.x = c.y", {}, device="cpu")


def test_a_batcher_lets_go_by_number_or_time() -> None:
    batcher = Batcher(4, 6, 100)
    some = stream_of(random.Random(2), A, (3, 1, 2, 13, 1))
    assert batcher.add(some[0], 10) == []
    assert (len(batcher), batcher.due) == (3, 110)
    (whole,) = batcher.add(some[1], 20)
    assert rows_of(whole) == rows_of(some[0]) + rows_of(some[1])
    assert (len(batcher), batcher.due) == (0, None)
    assert batcher.add(some[2], 30) == []
    assert batcher.tick(129) == []
    (whole,) = batcher.tick(130)
    assert rows_of(whole) == rows_of(some[2])
    assert list(map(len, batcher.add(some[3], 200))) == [6, 6, 1]
    assert batcher.add(some[4], 300) == []
    # Another type does not stand in one batch with it.
    assert batcher.add(events(random.Random(1), B, [900]), 310)[0].type == A
    assert batcher.flush()[0].type == B
    assert batcher.flush() == []


def test_operators_are_shared_out_by_their_weights() -> None:
    devices = [Place(), Place(), Place()]
    chosen = share_out([1, 5, 3, 3, 2], devices)
    assert [devices.index(one) for one in chosen] == [2, 0, 1, 2, 1]
    made = [Filter(A, "x > 1", device=place) for place in chosen]
    batch = stream_of(random.Random(4), A, (20,))[0]
    assert len({tuple(one.places(batch).tolist()) for one in made}) == 1


def test_auto_is_the_processor_where_there_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise NoDevice("CUDA finds no GPU on this machine")

    monkeypatch.setattr("matcher.gpu.device.device", none)
    assert device_there() is None
    assert Join(LEFT, Stream(B, "b", Length(4)), "", {}).device == "cpu"
    assert Filter(A, "x > 1").device == "cpu"
    with pytest.raises(NoDevice, match="no GPU on this machine"):
        Filter(A, "x > 1", device="gpu")


def test_the_published_join_tells_what_it_loses() -> None:
    rng, right = random.Random(8), Stream(B, "b", Length(4))
    exact = Join(LEFT, right, "a.x > b.y", {"x": "a.x"}, device="cpu")
    published = Join(LEFT, right, "a.x > b.y", {"x": "a.x"}, exact=False, device="cpu")
    found = [0, 0]
    now = 0
    for _ in range(20):
        ours = sorted(now + rng.randrange(12) for _ in range(9))
        theirs = sorted(now + rng.randrange(12) for _ in range(9))
        now = max(*ours, *theirs)
        batch = (events(rng, A, ours), events(rng, B, theirs))
        found[0] += len(exact.push(batch))
        found[1] += len(published.push(batch))
    loss = published.loss
    assert (loss.exact, loss.exact - loss.lost + loss.spurious) == tuple(found)
    assert loss.lost > 0 < loss.spurious
    assert exact.loss.exact == found[0]
    assert (exact.loss.lost, exact.loss.spurious) == (0, 0)
    # An event at a time there is nothing to lose.
    single = Join(LEFT, right, "a.x > b.y", {"x": "a.x"}, exact=False, device="cpu")
    for at in range(30):
        single.push((None, events(rng, B, [at])))
        single.push((events(rng, A, [at]), None))
    assert (single.loss.lost, single.loss.spurious) == (0, 0)


def test_sums_of_floats_are_exact_whatever_has_left() -> None:
    made = Aggregate(A, Length(2), {"s": "Sum(A().v)"}, device="cpu")
    batch = events(random.Random(1), A, list(range(6)))
    values = np.array([1e300, 1.0, 1e-9, -1.0, 1e-9, 1e300])
    columns = list(batch.columns)
    columns[A.index("v")] = values
    found = made.push(type(batch)(A, batch.time, batch.ids, tuple(columns)))
    sums = [row[1] for row in rows_of(found)]
    assert sums == [1e300, 1e300, 1.0 + 1e-9, -1.0 + 1e-9, -1.0 + 1e-9, 1e300]


def test_composite_events_stand_in_one_batch_with_their_causes() -> None:
    engine = make("cdp")
    rule = "define C(x) from A() as a and last B() as b within 90 us from a where x = a.x"
    engine.deploy(load(rule, known={"A": A, "B": B}))
    rng = random.Random(5)
    engine.push(events(rng, A, [30, 31, 50, 51]))
    engine.push(events(rng, B, [10, 40]))
    found = engine.advance(TIME_MAX)
    (batch,) = found.batches
    parts = [batch.take(slice(0, 1)), batch.take(slice(1, 3)), batch.take(slice(3, 4))]
    assert list(concatenated(parts).events()) == list(batch.events())
    kept = Window(batch.type, Length(2), device="cpu").push(batch)
    assert [len(one.cause) for one in kept.events.events()] == [2] * len(kept)


def test_a_window_refuses_ids_of_another_form() -> None:
    made = Window(A, Length(2), device="cpu")
    first = events(random.Random(1), A, [1, 2])
    made.push(first)
    named = EventIds(first.ids.source, first.ids.sequence, StringColumn.from_strings(["p", "q"]))
    with pytest.raises(ValueError, match="ids are of another form"):
        made.push(replace(first, time=first.time + 5, ids=named))
