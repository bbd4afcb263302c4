"""Processors that take time by a table: which row, which queue, and that results stay the same."""

import itertools
import tomllib
from collections.abc import Sequence
from datetime import date
from functools import partial
from pathlib import Path
from random import Random

import pytest
from simulator_text import SMALL, events

from benchmarks.processing_costs import measured_here, written as as_text
from routing import wire
from routing.config import TOGETHER_BYTES_MAX, TOGETHER_MAX, TOGETHER_S_MAX
from routing.messages import Acknowledged, Delivery, Flow, Packet, Promise
from simulator import processing, scenario, sweep
from simulator.checkers import check
from simulator.experiment import Experiment, Outcome
from simulator.hosts import FREE, Costs, Processor, rules_evaluated
from simulator.lanes import Frames
from simulator.processing import MEASURED, what_comes, what_goes
from simulator.scenario import ScenarioError
from simulator.simulation import Simulation

ZERO = MEASURED.read_text("utf-8")
for _row in ("waking_us", *tomllib.loads(ZERO)["received"]["published"]):
    ZERO = "\n".join(f"{_row} = 0.0" if one.startswith(_row) else one for one in ZERO.splitlines())
"""The table with all figures 0."""

STRATEGIES = ("centralized", "distributed-st", "distributed-mt", "push-pull-st", "push-pull-mt")
GENERATED = """
seed = 5
strategy = "{strategy}"
[topology]
kind = "ring"
brokers = 4
[workload]
types = 8
rates = [0.2, {greatest}]
rules = 6
window_s = 3.0
values = 2
subscriptions = 2
horizon_s = 12.0
[protocol]
processing = "{table}"
"""


def table(**figures: float) -> str:
    """A table that is 0 but for these: ``published__message_us = 5.0``."""
    text = ZERO
    for name, figure in figures.items():
        row, _, cost = name.partition("__")
        before, head, after = text.partition(f"received.{row}]" if row != "deliveries" else row)
        assert head, row
        text = before + head + after.replace(f"{cost} = 0.0", f"{cost} = {figure}", 1)
    return text


def run(path: Path) -> Outcome:
    return Experiment(scenario.read(path)).run()


def delivered(outcome: Outcome) -> list[tuple[float, str]]:
    """When and what: simulated seconds, rounded to the nanosecond, and the type."""
    (sink,) = outcome.experiment.sinks.values()
    return [
        (round(one.moment, 9), event.type)
        for one in sink.arrivals
        for batch in one.delivery.batches
        for event in batch.events()
    ]


# --- which row a message belongs to --------------------------------------------------------------


def test_a_message_is_known_by_its_frames(written, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the decoded message is, and what its frames are taken for, agree in a whole run."""
    seen: set[tuple[str, bool, str]] = set()
    receive = processing.Step.of

    def watched(self: processing.Step, frames: Frames, rules: int) -> float:
        message = wire.decode(frames)
        inner = message.message if isinstance(message, Packet) else message
        seen.add((type(inner).__name__, bool(getattr(inner, "batches", ())), what_comes(frames)))
        return receive(self, frames, rules)

    monkeypatch.setattr(processing.Step, "of", watched)
    for strategy in STRATEGIES:
        run(written(GENERATED.format(strategy=strategy, greatest=3.0, table="measured")))
    rows = {
        "Publish": "published",
        "Promise": "marks",
        "Awakening": "awakenings",
        **dict.fromkeys(("LinkAck", "Credit", "Heartbeat", "Acknowledged", "DealtWith"), "signs"),
    }
    events = {"Flow", "Forward", "Shared"}
    for name, bears, row in seen:
        expected = rows.get(name, "others")
        assert row == (("events" if bears else "marks") if name in events else expected), name
    assert {row for _, _, row in seen} == set(processing.Received.__struct_fields__)


def test_deliveries_are_told_from_all_else_that_goes() -> None:
    assert what_goes(wire.encode(Delivery((), ()))) == "deliveries"
    assert what_goes(wire.encode(Acknowledged(1))) == "others"
    assert what_goes(wire.encode(Packet(1, 1, 0, Flow()))) == "others"


def test_a_message_costs_what_its_row_says(tmp_path: Path) -> None:
    file = tmp_path / "costs.toml"
    file.write_text(
        table(
            marks__message_us=100.0, marks__byte_ns=10.0, marks__evaluating_us=7.0, marks__rule_us=3
        )
    )
    read, frames = processing.read(file), wire.encode(Promise(5))
    size = sum(map(len, frames))
    assert read.step().of(frames, 0) == pytest.approx(100e-6 + size * 10e-9)
    assert read.step().of(frames, 4) == pytest.approx(119e-6 + size * 10e-9)
    assert read.step().of(wire.encode(Acknowledged(1)), 4) == read.step().sent(frames) == 0
    assert read.beside(Costs(1.0)).step().of(frames, 0) == pytest.approx(1.0001 + size * 10e-9)


def test_a_further_message_of_a_row_costs_what_its_row_says_of_it(tmp_path: Path) -> None:
    file = tmp_path / "costs.toml"
    figures = {"message_us": 100.0, "byte_ns": 10.0, "evaluating_us": 7.0, "further_us": 30.0}
    text = table(**{f"marks__{name}": figure for name, figure in figures.items()})
    file.write_text(text)
    frames, other = wire.encode(Promise(5)), wire.encode(Acknowledged(1))
    size = sum(map(len, frames))
    step = processing.read(file).step()
    spent = [step.of(one, 4) for one in (frames, other, frames, frames)]
    bytes_s = size * 10e-9
    assert spent == pytest.approx([107e-6 + bytes_s, 0, 30e-6 + bytes_s, 30e-6 + bytes_s])
    assert processing.read(file).step().of(frames, 4) == pytest.approx(spent[0])
    file.write_text("\n".join(line for line in text.splitlines() if "further_us" not in line))
    step = processing.read(file).step()
    assert step.of(frames, 4) == step.of(frames, 4) == pytest.approx(spent[0])


# --- the queue -----------------------------------------------------------------------------------


def three(written, costs: str, protocol: str = "") -> Path:
    """Three events within a tenth of a second at the broker of their sink."""
    text = f'{SMALL}\n[protocol]\nprocessing = "costs.toml"\n{protocol}'
    files = {"costs.toml": costs, "s1.jsonl": events("Temp", 10, 10.05, 10.1, 60)}
    return written(text.replace('"Fire(temp > 45)", ', ""), **files)


def test_events_wait_for_those_before_them(written) -> None:
    costs = table(published__message_us=100_000.0)
    assert delivered(run(three(written, costs))) == [
        (10.1, "Temp"),
        (10.2, "Temp"),
        (10.3, "Temp"),
        (60.1, "Temp"),
    ]


def test_what_is_sent_is_paid_for_before_the_next_message(written) -> None:
    costs = table(published__message_us=100_000.0, deliveries__message_us=20_000.0)
    assert delivered(run(three(written, costs)))[:3] == [
        (10.1, "Temp"),
        (10.22, "Temp"),
        (10.34, "Temp"),
    ]


def test_rules_cost_where_they_are_evaluated(written) -> None:
    costs = table(published__evaluating_us=100_000.0, published__rule_us=50_000.0)
    outcome = run(three(written, costs))
    assert [moment for moment, _ in delivered(outcome)] == [10.15, 10.3, 10.45, 60.15]
    costs_of_rules = [rules_evaluated(host.broker) for host in outcome.experiment.brokers.values()]
    assert sorted(costs_of_rules) == [0, 1]


def test_constants_are_added_and_slow_brokers_are_slow_by_the_table_too(written) -> None:
    slow = '[[fault]]\nkind = "slow"\nat_s = 30.0\nvalue = 3.0\n'
    costs = table(published__message_us=100_000.0)
    path = three(written, costs, f"message_cost_us = 10_000.0\nheartbeat_s = 600.0\n{slow}")
    assert [moment for moment, _ in delivered(run(path))] == [10.11, 10.22, 10.33, 60.33]


@pytest.mark.parametrize("load", [0.3, 0.6, 0.85])
def test_a_processor_takes_in_together_what_has_come_while_it_was_busy(load: float) -> None:
    """Each message at a moment at which a queue with one server would be done with it, or with a
    later one: work is neither lost nor done twice.
    """
    simulation, random, count, cost_s = Simulation(1), Random("queue"), 10_000, 0.001
    gaps = (random.expovariate(load / cost_s) for _ in range(count))
    arrivals, taken = list(itertools.accumulate(gaps)), []
    processor = Processor(
        simulation,
        Costs(cost_s),
        lambda messages: taken.append((simulation.now, [int(peer) for peer, _ in messages])),
        lambda: 0,
    )
    frames = wire.encode(Promise(5))
    for number, moment in enumerate(arrivals):
        simulation.at(moment, partial(processor.arrive, str(number).encode(), frames))
    simulation.run(arrivals[-1] + 10)
    assert [number for _, numbers in taken for number in numbers] == list(range(count))
    done, one_by_one = 0.0, []
    for moment in arrivals:
        done = max(done, moment) + cost_s
        one_by_one.append(done)
    assert max(len(numbers) for _, numbers in taken) <= TOGETHER_S_MAX / cost_s + 1
    for moment, numbers in taken:
        assert moment == pytest.approx(one_by_one[numbers[-1]], abs=1e-6)
        begun = moment - len(numbers) * cost_s
        assert all(arrivals[number] <= begun + 1e-6 for number in numbers)
    assert len(taken) < count * (1 - load / 10)


@pytest.mark.parametrize(
    ("cost_s", "size", "together"),
    [(1e-6, 10, TOGETHER_MAX), (1e-6, TOGETHER_BYTES_MAX // 4, 5), (TOGETHER_S_MAX / 2, 10, 3)],
)
def test_a_step_has_the_bounds_of_the_live_host(cost_s: float, size: int, together: int) -> None:
    simulation, taken = Simulation(1), []
    processor = Processor(
        simulation, Costs(cost_s), lambda messages: taken.append(len(messages)), lambda: 0
    )
    for _ in range(1 + 2 * TOGETHER_MAX):
        processor.arrive(b"s", [bytes(size)])
    simulation.run(60)
    assert taken[:3] == [1, together, together]
    assert sum(taken) == 1 + 2 * TOGETHER_MAX


def test_a_processor_is_woken_for_a_step_only_where_it_sleeps(tmp_path: Path) -> None:
    """Two messages that come while it is busy, and what a step sends, wake nobody; what a timer
    sends does.
    """
    file = tmp_path / "costs.toml"
    figures = {"marks__message_us": 1_000.0, "deliveries__message_us": 10.0}
    file.write_text(table(**figures).replace("waking_us = 0.0", "waking_us = 100.0"))
    simulation, done = Simulation(1), []
    delivery = wire.encode(Delivery((), ()))

    def take(messages: Sequence[tuple[bytes, Frames]]) -> None:
        done.append((round(simulation.now * 1e6), len(messages)))
        processor.pay(delivery)

    processor = Processor(simulation, processing.read(file), take, lambda: 0)
    frames = wire.encode(Promise(5))
    for moment in (0.0, 0.0005, 0.0006):
        simulation.at(moment, partial(processor.arrive, b"s", frames))
    simulation.at(1.0, lambda: processor.pay(delivery))
    simulation.at(2.0, lambda: processor.arrive(b"s", frames))
    simulation.run(3)
    assert done == [(1_100, 1), (2_110, 2), (2_001_100, 1)]
    assert processor.spent_s == pytest.approx(3 * 1e-3 + 4 * 10e-6 + 3 * 100e-6)


def test_what_a_crash_cut_short_is_not_taken_in_by_the_next_life() -> None:
    """The moment at which a message of the former life would have been done changes nothing."""
    simulation, done = Simulation(1), []
    processor = Processor(
        simulation, Costs(1.0), lambda messages: done.append(simulation.now), lambda: 0
    )
    frames = wire.encode(Promise(5))
    simulation.at(0.0, lambda: processor.arrive(b"s", frames))
    simulation.at(0.5, processor.clear)
    for moment in (0.6, 0.7):
        simulation.at(moment, lambda: processor.arrive(b"s", frames))
    simulation.run(10)
    assert done == [1.6, 2.6]


# --- whole networks ------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", [*STRATEGIES, "adaptive"])
def test_results_are_those_of_the_oracle_and_of_the_seed(written, strategy: str) -> None:
    path = written(GENERATED.format(strategy=strategy, greatest=3.0, table="measured"))
    one, same = run(path), run(path)
    assert one.settled
    assert check(one) == []
    assert one.digest == same.digest
    path.write_text(path.read_text().replace('processing = "measured"', ""))
    assert run(path).digest != one.digest


def test_delays_rise_faster_than_costs_since_messages_queue(written) -> None:
    """Some fifty events a second, so that at 20 ms each the centre is busy nearly all the time."""

    def mean_delay_s(cost_us: float) -> float:
        text = GENERATED.format(strategy="centralized", greatest=24.0, table="costs.toml")
        costs = table(published__message_us=cost_us, events__message_us=cost_us)
        outcome = run(written(text, **{"costs.toml": costs}))
        assert check(outcome) == []
        delays = [
            one.moment - event.time / 1e6
            for sink in outcome.experiment.sinks.values()
            for one in sink.arrivals
            for batch in one.delivery.batches
            for event in batch.events()
        ]
        assert len(delays) > 20
        return sum(delays) / len(delays)

    free, cheap, dear = map(mean_delay_s, (0.0, 1_000.0, 20_000.0))
    assert free < cheap < dear
    assert dear - free > 1.5 * 20 * (cheap - free)


# --- the table -----------------------------------------------------------------------------------


def test_the_table_that_is_shipped_says_where_it_is_from() -> None:
    read = processing.read(MEASURED)
    assert "cores" in read.machine
    assert read.date.year >= 2026
    assert read.others is FREE
    assert read.incoming.events.message_us + read.incoming.events.evaluating_us > 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("message_us = 0.0", "message_us = -1.0", "message_us: expected 0 or more, found -1.0"),
        ("message_us = 0.0", "message_us = nan", "message_us: expected 0 or more, found nan"),
        ("message_us = 0.0", 'message_us = "x"', "`float`, got `str` - at `$.received.published."),
        ("message_us = 0.0", "", "missing required field `message_us` - at `$.received.published`"),
        (
            "message_us = 0.0",
            "message = 0.0",
            "unknown field `message` - at `$.received",
        ),
        ("waking_us = 0.0", "waking_us = -1.0", "waking_us: expected 0 or more, found -1.0"),
        ("[sent.others]", "[sent.more]", "unknown field `more` - at `$.sent`"),
        ("machine = ", "machine", "costs.toml: "),
    ],
)
def test_a_bad_table_is_refused_with_its_place(written, old: str, new: str, message: str) -> None:
    assert old in ZERO
    path = three(written, ZERO.replace(old, new, 1))
    with pytest.raises(ScenarioError) as caught:
        scenario.read(path)
    assert str(caught.value).startswith(f"{path}: protocol.processing: {path.parent}/costs.toml: ")
    assert message in str(caught.value)


def test_a_table_that_is_not_there_is_refused(written) -> None:
    path = written(f'{SMALL}\n[protocol]\nprocessing = "thesis"\n')
    with pytest.raises(ScenarioError, match=r'processing: expected "measured" or the file of a ta'):
        scenario.read(path)
    path = written(f"{SMALL}\n[protocol]\nprocessing = 3\n")
    with pytest.raises(ScenarioError, match=r"protocol\.processing: expected `str"):
        scenario.read(path)


def test_the_measuring_gives_a_table_that_can_be_read(tmp_path: Path) -> None:
    fit = measured_here(quick=True)
    file = tmp_path / "costs.toml"
    file.write_text(as_text(fit, date(2026, 1, 2)))
    read = processing.read(file)
    assert read.date == date(2026, 1, 2)
    assert fit.explained > 0.2
    events_us = read.incoming.events.message_us + read.incoming.events.evaluating_us
    assert 0 < events_us < 10_000


def test_the_hash_of_a_run_is_of_its_table_too(written) -> None:
    path = three(written, ZERO)
    document = scenario.parse(path)

    def hashed() -> str:
        return sweep.Run(path, document, {}).hash

    before = hashed()
    (path.parent / "costs.toml").write_text(table(marks__rule_us=1.0))
    assert hashed() != before
