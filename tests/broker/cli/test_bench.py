"""``rexmq bench`` on the project's own folder, at its smallest size."""

import json
import socket
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from pathlib import Path

import pytest

from benchmarks import campaign as campaigns, files, kill, network, overload, soak, spark
from benchmarks.apart import Outcome, outcome_of, sentence_of
from benchmarks.counted import Counted
from benchmarks.kill import Outcome as Killed, _given_up
from benchmarks.predicted import Prediction, predicted
from benchmarks.report import Row, table
from benchmarks.soak import Sample, growth
from broker.cli import bench, checkout, main


def test_each_benchmark_of_the_list_is_one_and_stands_in_the_readme() -> None:
    told = (checkout.ROOT / "benchmarks" / "README.md").read_text("utf-8")
    for name in bench.BENCHMARKS:
        assert signature(bench._benchmark(name).run).parameters["quick"], name
        assert f"| `{name}` |" in told, name


def test_figures_are_printed_and_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    figures = tmp_path / "figures.json"
    assert main(["bench", "files", "--quick", "--json", str(figures)]) == 0
    heading, _, *rows = capfd.readouterr().out.splitlines()
    assert heading.startswith("measurement ")
    written = json.loads(figures.read_text())
    assert written["machine"]["cores"] >= 1
    measured = written["benchmarks"]["files"]
    machine = written["benchmarks"]["machine before files"]
    assert all(row["value"] > 0 and row["unit"] == "ns" for row in machine)
    assert len(machine) + len(measured) == len(rows) > 5
    assert all(row["value"] > 0 and row["unit"] == "events/s" for row in measured)
    compared = [row for row in measured if row["baseline_value"]]
    assert compared
    assert all(
        row["ratio"] == pytest.approx(row["value"] / row["baseline_value"]) for row in compared
    )


def test_what_was_measured_is_kept_where_something_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def failing(_batch: object) -> Iterator[Row]:
        yield Row("one table", 2.0, "events/s")
        (*_, kept) = json.loads(figures.read_text())["benchmarks"]["files"]
        assert kept["value"] == 2.0  # what was measured is there, whatever follows
        raise ValueError("no more tables\nare to be had")

    figures = tmp_path / "figures.json"
    monkeypatch.setattr(files, "lines", lambda _batch: [Row("lines", 3.0, "events/s", "one", 1.5)])
    monkeypatch.setattr(files, "tables", failing)
    assert main(["bench", "files", "--quick", "--json", str(figures)]) == 1
    told = capfd.readouterr()
    *_, last = told.out.splitlines()
    assert last.split() == ["files", "failed", "ValueError:", "no", "more", "tables"]
    assert "Traceback" in told.err
    assert "\nlines: 3 events/s; one 1.5, ratio 2.00\none table: 2 events/s\n" in told.err
    rows = json.loads(figures.read_text())["benchmarks"]["files"]
    assert [row["value"] for row in rows] == [3.0, 2.0, None]
    assert rows[-1]["ratio"] is None


def test_a_process_that_fails_says_why_in_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    module = tmp_path / "measured_here.py"
    module.write_text("import sys\nprint('noise')\nprint('{\"speed\": 4.0}')\n")
    found = outcome_of("measured_here", [])
    assert found.row("fast", "speed", "m/s", "slow", 2.0) == Row("fast", 4.0, "m/s", "slow", 2.0)
    module.write_text("raise ValueError('it is too slow')\n")
    failed = outcome_of("measured_here", ["--cores", "1"])
    assert failed == Outcome({}, "ValueError: it is too slow")
    told = capfd.readouterr().err
    assert "rexmq: --cores 1 failed:" in told
    assert "Traceback" in told
    row = failed.row("fast", "speed", "m/s", "slow", 2.0)
    assert (row.value, row.ratio, row.note) == (None, None, "ValueError: it is too slow")
    assert "failed" in table([row])


def test_what_fails_with_spark_leaves_the_other_measures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    figures = {
        "bare": {"bare engine, s": 2.0},
        "growth": {"seconds": 3.0, "shuffled, bytes": 6e3, "workers, bytes": 2.0**20},
        "backtest": {"the flights rules over the year, s": 5.0, "events": 7.0},
        "stream": {"detect_stream, rows/s": 6.0},
        "delivery": dict.fromkeys(spark.DELIVERED, 7.0),
        "connector": dict.fromkeys(spark.CONNECTED, 1.6e6),
    }

    def measured(_module: str, arguments: Sequence[str]) -> Outcome:
        name = arguments[1]
        return Outcome(figures[name]) if name in figures else Outcome({}, "no memory is left")

    monkeypatch.setattr(spark, "outcome_of", measured)
    rows = {row.name: row for row in spark.rows_of(1_000, (100, 1_000))}
    assert rows["the bare engine"].value == 2.0
    for way in ("key", "time"):
        for cores in ("one core", "two cores"):
            row = rows.pop(f"detect by {way}, {cores}")
            assert (row.value, row.note) == (None, "no memory is left")
    assert all(row.value is not None for row in rows.values())
    grown = rows["detect by key, 1000 rows"]
    assert (grown.baseline_name, grown.ratio) == ("100 rows", 1.0)
    assert grown.note == "6 B/row shuffled, workers 1 MiB"
    assert rows["batch, ids from a column"].ratio == 2.0
    assert rows["the flights rules over the year"].note == "7 events"


def test_the_sentence_of_a_failed_process() -> None:
    trace = (
        "WARN noise\n"
        "Traceback (most recent call last):\n"
        "  File a.py, line 1\n"
        "    begin()\n"
        "ValueError: first line\nsecond line\n"
    )
    assert sentence_of(trace, 1) == "ValueError: first line"
    assert sentence_of("WARN noise\nno memory is left\n", 1) == "no memory is left"
    assert sentence_of("", 3) == "ended with status 3 and said nothing"
    assert sentence_of(trace, -9) == "ended by SIGKILL"


def test_an_unknown_name_is_wrong_usage(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "nothing"]) == 2
    assert "there is no 'nothing'; there are" in capfd.readouterr().err


def test_without_a_checkout_there_are_no_benchmarks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checkout, "ROOT", tmp_path)
    assert main(["bench"]) == 2
    assert "needs a source checkout" in capfd.readouterr().err


def test_each_campaign_has_options_and_stands_in_the_readme(
    capfd: pytest.CaptureFixture[str],
) -> None:
    told = (checkout.ROOT / "benchmarks" / "README.md").read_text("utf-8")
    for name in campaigns.CAMPAIGNS:
        with pytest.raises(SystemExit, match=r"^0$"):
            campaigns.main([name, "--help"])
        assert f"campaign {name} [" in capfd.readouterr().out
        assert f"({name}.py)" in told


def test_a_campaign_is_run_by_its_name_with_its_options(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def samples(seconds: float) -> list[Sample]:
        return [Sample(100.0, {"entries": round(seconds) * place}) for place in range(100)]

    monkeypatch.setattr(soak, "soak", samples)
    with pytest.raises(SystemExit, match=r"^0$"):
        campaigns.main(["soak", "--minutes", "0.1"])
    begun, outcome = capfd.readouterr().out.splitlines()
    assert outcome.startswith("0.1 minutes; as it should be; load ")
    assert not Path(begun.removeprefix("soak: files in ")).exists()
    with pytest.raises(SystemExit, match=r"^1$"):
        campaigns.main(["soak", "--minutes", "10"])
    begun, outcome = capfd.readouterr().out.splitlines()
    assert outcome.startswith("10 minutes; grows: entries: 36,600, then 59,400; load ")
    Path(begun.removeprefix("soak: files in ")).rmdir()


def test_one_fault_fails_a_campaign_and_keeps_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def campaign(folder: Path, runs: int) -> Iterator[campaigns.Outcome]:
        (folder / "log").write_text("why")
        yield campaigns.Outcome("one", campaigns.faults_of({"lost": 0, "twice": 2_000}))
        yield campaigns.Outcome(f"{runs} runs", None)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert campaigns.judged("some", campaign, runs=2) == 1
    _, failed, measured = capfd.readouterr().out.splitlines()
    assert failed.startswith("one; 2,000 twice; load ")
    assert measured.startswith("2 runs; load ")
    [log] = tmp_path.glob("some-*/log")
    assert log.read_text() == "why"


def test_a_run_with_a_kill_says_what_is_not_as_it_should_be(tmp_path: Path) -> None:
    wanted, received = Counter({"a": 1, "b": 2, "c": 1}), Counter({"a": 2, "b": 1, "c": 1, "d": 1})
    assert not list(Killed(9, 0, wanted, wanted, (5.0, 2.9), [], 1.0).faults())
    assert list(Killed(9, 4, wanted, received, (5.0, 3.1), ["b1 by b2"], 1.0).faults()) == [
        "4 events refused or not acknowledged",
        "1 lost",
        "1 twice",
        "1 wrong",
        "given up though alive: b1 by b2",
        "silent for more than 3 s once all were there",
    ]


def test_who_is_killed_is_missed_once_by_each_neighbour(tmp_path: Path) -> None:
    line = 'level=warning message="neighbour down" neighbour={} reason="the link broke"\n'
    (tmp_path / "b1.log").write_text(line.format("b2") + line.format("b3"))
    (tmp_path / "b2.log").write_text("")
    (tmp_path / "b3.log").write_text(line.format("b2") * 2)
    names = ("b1", "b2", "b3")
    assert list(_given_up(tmp_path, names, "b2")) == ["b3 by b1", "b2 by b3"]
    assert len(list(_given_up(tmp_path, names, None))) == 4


def test_brokers_that_do_not_settle_cost_their_own_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def tried(brokers: object, pace: float, seconds: float, size: int) -> network.Trial:
        if size > 1:
            raise TimeoutError("not settled in 60 s: 52,224 events unacknowledged")
        return network.Trial(9_000, 9_000.0, {"b1": 500.0, "b2": 200.0}, [0.001, 0.002, 0.003])

    @contextmanager
    def started(strategy: str, **options: object) -> Iterator[dict[str, object]]:
        yield {}

    def killed(case: kill.Case, logs: Path) -> Killed:
        return Killed(9_000, 0, Counter("a"), Counter("a"), (0.7, 0.4), (), 4.5)

    monkeypatch.setattr(network, "_trial", tried)
    monkeypatch.setattr(network, "network", started)
    told = Prediction(280.0, {"b1": 200.0}, 1.0, 2.0)
    monkeypatch.setattr(network, "saturation", lambda strategy, clients_us: 12_000.0)
    monkeypatch.setattr(network, "overloaded", lambda strategy: told)
    monkeypatch.setattr(network, "predicted", lambda *_: told)
    monkeypatch.setattr(kill, "run", killed)
    rows = {row.name: row for row in network._rows("adaptive", 4.0, 1.0, 1.0)}
    batches = rows.pop("adaptive: batches of 256")
    assert batches.value is None
    assert "52,224 events unacknowledged" in batches.note
    assert all(row.value is not None for row in rows.values())
    cpu = rows["adaptive: CPU an event, 300/s a source"]
    assert (cpu.value, cpu.note[:14]) == (700.0, "b1 500, b2 200")
    assert rows["adaptive: latency at half of that, p50"].value == 2.0
    assert rows["adaptive: bytes on links, an event"].baseline_value == 280.0
    assert rows["adaptive: silence after a kill, 500/s a source"].value == 0.7


def test_bytes_through_a_counted_link_are_those_of_both_ways() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        counted = Counted()
        relay = counted.before(f"tcp://127.0.0.1:{server.getsockname()[1]}")
        with socket.create_connection(("127.0.0.1", int(relay.rpartition(":")[2]))) as near:
            far, _ = server.accept()
            with far:
                near.sendall(b"there")
                assert far.recv(64) == b"there"
                far.sendall(b"and back")
                assert near.recv(64) == b"and back"
        counted.close()
    assert counted.bytes == 13


def test_five_brokers_are_predicted_by_the_simulator() -> None:
    found = predicted("centralized", 50.0, 0.5)
    assert 200 < found.link_bytes < 500
    assert found.cpu_us["b2"] > found.cpu_us["b4"]
    assert 0.1 < found.p50_ms <= found.p99_ms
    together = predicted("centralized", 5_000.0, 0.1, 40)
    assert together.total_us < found.total_us / 10


def test_an_overload_is_over_when_it_ends() -> None:
    calm = overload.Phase(network.Load(1_000, 0, 5.0, [0.004], [], 0.0), [900.0])
    flat = overload.Phase(
        network.Load(90_000, 0, 60.0, [0.5], [], 0.0), [1_000.0, 1_100.0, 1_090.0, 1_110.0]
    )
    assert overload.faults(calm, flat, calm) == []
    grown = overload.Phase(
        network.Load(90_000, 7, 60.0, [0.5], [], 0.0), [1_000.0, 1_100.0, 1_300.0, 1_500.0]
    )
    assert overload.faults(calm, grown, flat) == [
        "memory grew from 1100 to 1500 MiB",
        "7 events not acknowledged within 60 s",
        "p50 500.0 ms after it, 4.0 ms before",
    ]


def test_a_broker_killed_under_load_is_to_be_back_soon() -> None:
    calm = overload.Phase(network.Load(1_000, 0, 5.0, [0.004], [], 0.0), [900.0])
    came_at = [100.0, 101.0, 106.5, 107.0, 110.2]
    load = overload.Phase(network.Load(90_000, 0, 12.0, [0.5], came_at, 0.0), [1_000.0, 1_000.0])
    assert overload.faults(calm, load, calm) == []
    assert overload.faults(calm, load, calm, 105.0) == ["silent for 3.2 s once all were there"]
    assert overload.faults(calm, load, calm, 108.0) == []


def test_a_soak_finds_what_grows() -> None:
    flat = [Sample(100 + place % 3, {"entries": 90_000 + place % 7}) for place in range(20)]
    assert growth(flat) == []
    leaking = [Sample(100 + 2 * place, {"entries": 90_000}) for place in range(20)]
    assert growth(leaking) == ["the process: 118.0 MiB, then 138.0 MiB"]
    kept = [Sample(100, {"entries": 10_000 * place, "rows/A": 5}) for place in range(20)]
    assert growth(kept) == ["entries: 90,000, then 190,000"]
