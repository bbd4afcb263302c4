"""The demo: its data, what it finds in them, and that live and recorded runs find the same."""

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path

import command
import numpy as np
import pytest
from live_hosts import Hosts
from pairs import WHOLE, some_of

from broker.cli import main
from broker.demo import flights, live, pages
from broker.demo.account import Account, Handovers
from broker.demo.progress import progress_bar
from broker.demo.run import run
from matcher.model import MICROSECONDS, Event
from routing.network import strategy
from rules import load

ROOT = Path(__file__).parents[2]
MINUTE = 60 * MICROSECONDS


def at(*fields: int) -> int:
    return round(datetime(*fields, tzinfo=UTC).timestamp()) * MICROSECONDS


@pytest.fixture(scope="module")
def year() -> tuple[flights.Log, ...]:
    return flights.logs()


@pytest.fixture(scope="module")
def batches(year):
    return {batch.type.name: batch for log in year for batch in log.batches}


# --- the data ----------------------------------------------------------------------------------


def test_every_flight_and_reading_is_there_once(year, batches) -> None:
    assert {name: len(batch) for name, batch in batches.items()} == {
        "Departure": 336_776 - 8_255,
        "Cancellation": 8_255,
        "Arrival": 336_776 - 8_255 - 1_175,
        "Weather": 26_115 - 6,
    }
    assert [log.source for log in year] == ["departures", "arrivals", "weather"]


def test_each_source_counts_its_events_in_order_of_time(year) -> None:
    for log in year:
        time = np.concatenate([batch.time for batch in log.batches])
        sequence = np.concatenate([batch.ids.sequence for batch in log.batches])
        order = np.argsort(sequence)
        assert (sequence[order] == np.arange(1, len(log) + 1)).all()
        assert (np.diff(time[order]) >= 0).all()
        assert all((np.diff(batch.time) >= 0).all() for batch in log.batches)
        assert {batch.ids.source[0] for batch in log.batches} == {log.source}


def find(batch, **wanted) -> list[Event]:
    """The events of a batch with these attributes."""
    kept = np.ones(len(batch), np.bool_)
    for name, value in wanted.items():
        column = batch.column(name)
        kept &= np.array([one == value for one in column.tolist()])
    return list(batch.take(kept).events())


def test_times_are_utc_whatever_the_clocks_showed(batches) -> None:
    # 1 January: UA 1545 from Newark left at 05:17, landed in Houston at 08:30 its time.
    left, *_ = find(batches["Departure"], flight=1545, carrier="UA", aircraft="N14228")
    assert (left.time, left.data["destination"]) == (at(2013, 1, 1, 10, 17), "IAH")
    landed, *_ = find(batches["Arrival"], flight=1545, carrier="UA", aircraft="N14228")
    assert landed.time == at(2013, 1, 1, 14, 30)
    # 30 June: B6 915 left JFK at 23:36 and landed in San Francisco at 02:31, both in summer time.
    [night] = find(batches["Arrival"], flight=915, aircraft="N766JB", delay=152)
    assert night.time == at(2013, 7, 1, 9, 31)
    # 1 August: HA 51 landed in Honolulu, which has none, at 14:43.
    far = find(batches["Arrival"], flight=51, carrier="HA", aircraft="N380HA", delay=3)
    assert at(2013, 8, 2, 0, 43) in {one.time for one in far}


def test_an_arrival_follows_its_departure_by_hours_not_days(batches) -> None:
    def keys(batch):
        columns = (batch.column(name).tolist() for name in ("carrier", "flight", "aircraft"))
        return list(zip(*columns, batch.column("origin").tolist(), strict=True))

    departures: dict[tuple[str, ...], list[int]] = {}
    for key, time in zip(
        keys(batches["Departure"]), batches["Departure"].time.tolist(), strict=True
    ):
        departures.setdefault(key, []).append(time)
    arrivals = batches["Arrival"]
    chosen = np.random.default_rng(1).choice(len(arrivals), 20_000, replace=False)
    sample = arrivals.take(np.sort(chosen))
    for key, time in zip(keys(sample), sample.time.tolist(), strict=True):
        minutes = min((time - left) // MINUTE for left in departures[key] if left <= time)
        assert 20 <= minutes <= 14 * 60, key


def test_a_part_of_the_year_is_numbered_anew(batches) -> None:
    day = date(2013, 3, 10)  # the clocks go forward: a day of 23 hours
    logs = flights.logs(day, day)
    assert flights.midnight(date(2013, 3, 11)) - flights.midnight(day) == 23 * 60 * MINUTE
    for log in logs:
        times = np.concatenate([batch.time for batch in log.batches])
        assert times.min() >= flights.midnight(day)
        assert times.max() < flights.midnight(date(2013, 3, 11))
        assert min(batch.ids.sequence.min() for batch in log.batches if len(batch)) == 1
    whole = batches["Weather"].time
    assert len(logs[2]) == sum(flights.day_of(time) == day for time in whole.tolist())


# --- the rules ---------------------------------------------------------------------------------


def test_the_rules_of_the_distribution_are_the_example() -> None:
    assert live.RULES.samefile(ROOT / "examples" / "flights.tesla")


def test_every_type_has_a_sentence_and_declarations_are_what_is_published(batches) -> None:
    text = live.RULES.read_text()
    rules = load(text, file="flights.tesla")
    attributes = {rule.defines.name: rule.defines.names for rule in rules.rules}
    assert set(pages.SENTENCES) == set(attributes)
    for name, names in attributes.items():
        event = Event(name, 0, "", "", dict.fromkeys(names, 1))
        assert "{" not in pages.sentence(event)
    published = {name: batch.type for name, batch in batches.items()}
    assert {name: rules.schemas[name] for name in published} == published


# --- what it finds -----------------------------------------------------------------------------


def found_live(logs, engine: str = "auto") -> tuple[Account, bytes, list[str]]:
    lines, shown = io.BytesIO(), []
    network = live.processes(engine)
    account = run(
        logs, network, show=shown.append, watch=lambda published, moment: None, lines=lines
    )
    return account, lines.getvalue(), shown


def found_recorded(logs, folder: Path, engine: str, capfdbinary) -> bytes:
    files = flights.record(logs, folder)
    rules = str(ROOT / "examples" / "flights.tesla")
    status = main(["detect", "--rules", rules, "--engine", engine, "--events", *map(str, files)])
    out, err = capfdbinary.readouterr()
    assert (status, err) == (0, b"")
    return out


@pytest.fixture(scope="module")
def storm_lines():
    """What one broker finds on the worst two days."""
    logs = flights.logs(date(2013, 2, 8), date(2013, 2, 9))
    account, lines, _ = found_live(logs)
    assert account.published == sum(map(len, logs))
    assert account.detected == lines.count(b"\n") > 500
    events = [json.loads(line) for line in lines.splitlines()]
    ties = sum(one["time"] == two["time"] for one, two in pairwise(events))
    assert ties > 50, "these days have no ties to speak of"
    return lines


def test_the_oracle_agrees(tmp_path, capfdbinary, storm_lines) -> None:
    logs = flights.logs(date(2013, 2, 8), date(2013, 2, 9))
    assert storm_lines == found_recorded(logs, tmp_path, "naive", capfdbinary)


@pytest.mark.parametrize("name", strategy.names() if WHOLE else ["push-pull-mt", "adaptive"])
def test_five_brokers_find_what_one_finds_line_by_line(tmp_path, storm_lines, name: str) -> None:
    """A ring with a chord, sources and sink at different brokers."""
    logs, lines = flights.logs(date(2013, 2, 8), date(2013, 2, 9)), io.BytesIO()
    hosts = Hosts(tmp_path, live.ring(5), engine="auto", strategy=name)
    run(logs, hosts, show=lambda text: None, watch=lambda published, moment: None, lines=lines)
    assert lines.getvalue() == storm_lines


def test_the_command_with_three_brokers_prints_what_detect_does(tmp_path, storm_lines) -> None:
    """Brokers that are processes of their own, and a recording of the same two days; pages for
    people are plain lines.
    """
    demo = ["demo", "--from", "2013-02-08", "--days", "2"]
    out, records = tmp_path / "three.jsonl", tmp_path / "records"
    three = command.run(
        *demo, "--brokers", 3, "--strategy", "distributed-mt", "--secure", "--output", out
    )
    assert (three.returncode, three.stderr) == (0, "")
    assert "\x1b" not in three.stdout, "there is no terminal"
    assert "all three airports are down: LGA, EWR, then JFK" in three.stdout
    assert "The most affected days" in three.stdout
    assert command.run(*demo, "--record", records).returncode == 0
    files = [word for file in sorted(records.iterdir()) for word in ("--events", file)]
    recorded = command.run("detect", "--rules", ROOT / "examples" / "flights.tesla", *files)
    assert out.read_bytes() == recorded.stdout.encode() == storm_lines


def test_the_command_kills_a_broker_and_its_page_says_the_same(tmp_path, storm_lines) -> None:
    demo = ["demo", "--from", "2013-02-08", "--days", "2"]
    out, data = tmp_path / "killed.jsonl", tmp_path / "stores"
    killed = command.run(*demo, "--data", data, "--kill", "--output", out)
    assert (killed.returncode, killed.stderr) == (0, "")
    assert out.read_bytes() == storm_lines
    assert "(broker b1 was killed, by SIGKILL, and is back)\n" in killed.stdout
    whole = command.run(*demo)
    assert figures_of(killed.stdout) == figures_of(whole.stdout)
    assert len(figures_of(whole.stdout)) == 9 + 2, "types and days"
    listed = command.run("log", "list", "--data", data / "b1").stdout
    assert f" {2_528} events, " in listed.splitlines()[-1]
    again = command.run(*demo, "--data", data)
    assert (again.returncode, again.stderr) == (
        1,
        f"rexmq: {data / 'b1'} is there already: the demo begins with empty stores\n",
    )


def figures_of(page: str) -> list[str]:
    """The counts and the days of a summary."""
    return [
        line
        for line in page.splitlines()
        if re.fullmatch(r"  \w+ +[\d,]+|  [ \d]\d \w{3}  .* flights caught.*", line)
    ]


@pytest.fixture(scope="module")
def found(year):
    return found_live(year)


def test_it_finds_what_people_remember(found) -> None:
    account, lines, _ = found
    [first, *_] = account.worst_days(1)
    assert first[0] == date(2013, 2, 8)
    assert date(2013, 2, 9) in {day for day, _ in account.worst_days(3)}
    snow = {day for day, counts in account.days.items() if counts["Snow"]}
    assert {date(2013, 2, 8), date(2013, 2, 9), date(2013, 3, 8)} <= snow
    assert not any(4 <= day.month <= 11 for day in snow)
    down = {day for day, counts in account.days.items() if counts["CityDisrupted"]}
    thunderstorms = {date(2013, 6, day) for day in (24, 28, 30)} | {
        date(2013, 7, day) for day in (1, 7, 8, 9, 10, 22, 23)
    }
    assert thunderstorms <= down
    disruptions, recoveries = account.counts["Disruption"], account.counts["Recovery"]
    assert disruptions == recoveries, "each ends once: consumption"
    assert lines.count(b"\n") == account.detected


def test_the_year_is_shown_and_summed_up(found) -> None:
    account, _, shown = found
    types = [line[14:].split()[0] for line in shown]
    assert {name: types.count(name) for name in account.types} == dict.fromkeys(account.types, 3)
    page = pages.summary(account)
    assert page.startswith("690,231 events in ")
    assert f"  Caught             {account.counts['Caught']:>6,}\n" in page
    assert "\n   8 Feb  " in page
    for document in ("docs/tutorial.md", "examples/flights.tesla", "docs/tesla.md"):
        assert document in page
        assert (ROOT / document).is_file()
    assert 0 < account.latency_s(0.5) <= account.latency_s(0.99) < account.seconds


# --- the account -------------------------------------------------------------------------------


def test_a_latency_starts_with_the_last_publisher() -> None:
    handovers = Handovers.of(np.array([0, 10, 20]), 2)
    handovers.seconds[:] = [[1.0, 2.0], [3.0, 2.5]]
    account = Account(["Storm"])
    for time, taken_at in ((0, 3.25), (9, 4.0), (10, 3.0)):
        account.add(
            Event("Storm", time * MINUTE, "", "", {}), taken_at, handovers_in_minutes(handovers)
        )
    assert account.latencies_s == [0.25, 1.0, 0.5]
    assert account.latency_s(1.0) == 1.0
    assert Account([]).latency_s(0.5) == 0.0


def test_a_rule_does_not_wait_for_a_publisher_that_it_needs_nothing_of() -> None:
    handovers = Handovers.of(np.array([0, 10]), 2)
    handovers.seconds[0] = 1.0
    assert handovers.complete_at(5) == 1.0


def handovers_in_minutes(handovers: Handovers) -> Handovers:
    return Handovers(handovers.edges * MINUTE, handovers.seconds)


def test_calm_days_are_said_to_be_calm() -> None:
    page = pages.summary(Account(["Storm"], published=3, seconds=2.0))
    assert page.startswith("3 events in 2.0 s, 2 a second; 0 composite events:\n  Storm ")
    assert "calm days" in page
    assert "p50" not in page


# --- the command -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "2014-01-01"], "--from: expected a day of 2013 as YYYY-MM-DD"),
        (["--to", "July"], "--to: expected a day of 2013 as YYYY-MM-DD, found 'July'"),
        (["--from", "2013-05-02", "--to", "2013-05-01"], "2013-05-01 is before --from 2013-05-02"),
        (["--to", "2013-05-01", "--days", "3"], "--to or --days, not both"),
        (["--kill"], "--kill: needs --data, a folder for what survives"),
        (["--engine", "gpu"], "--engine: expected auto or cdp or aip or aip-published"),
    ],
)
def test_wrong_usage(capsys, arguments: list[str], message: str) -> None:
    assert main(["demo", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_without_its_data_it_says_what_to_install(capsys, monkeypatch) -> None:
    monkeypatch.setattr(flights, "PACKAGE", "no_such_package_of_flights")
    assert main(["demo"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "rexmq: the demo's data are in the package no_such_package_of_flights, which is not "
        "installed here: pip install rexmq[demo]\n"
    )


def test_recording_writes_the_files_and_says_so(tmp_path, capsys) -> None:
    folder = tmp_path / "new" / "files"
    assert main(["demo", "--from", "2013-12-31", "--days", "9", "--record", str(folder)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [Path(line.split()[-1]).name for line in printed] == [
        "departure.parquet",
        "cancellation.parquet",
        "arrival.parquet",
        "weather.parquet",
    ]
    assert all((folder / name).is_file() for name in os.listdir(folder))


def start(*arguments: str, stdout: int = subprocess.PIPE) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "broker", "demo", *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )


def test_a_terminal_gets_a_bar_with_rate_and_date() -> None:
    ours, theirs = pty.openpty()
    process = start("--from", "2013-02-08", "--days", "2", stdout=theirs)
    os.close(theirs)
    seen = b""
    try:
        while data := os.read(ours, 4096):
            seen += data
    except OSError:  # how Linux says that the other side has closed
        pass
    os.close(ours)
    assert (process.wait(100), process.stderr.read()) == (0, "")
    process.stderr.close()
    assert b"events/s" in seen
    assert b" Feb 2013" in seen
    with progress_bar(1, shown=False) as bar:
        assert bar.bar is None


@pytest.mark.parametrize("number", some_of([signal.SIGINT, signal.SIGTERM], 0))
def test_an_interrupted_demo_leaves_no_process_behind(number: signal.Signals) -> None:
    process = start("--engine", "naive")  # which would take a while
    assert process.stdout is not None
    assert process.stderr is not None
    for line in process.stdout:
        if "KnockOn" in line:
            break
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) == 1
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "Traceback" not in err
    assert not Path(f"/proc/{children[0]}").exists()
