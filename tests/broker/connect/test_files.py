"""Files and folders that grow: nothing is lost, nothing comes twice, whatever is done to them."""

import json
import os
import random
import subprocess
import time
from pathlib import Path

import pytest
from connectors import connected
from secured import broker

from broker import Subscriber
from broker.connect import following
from broker.connect.following import Following
from broker.connect.systems import SystemLost
from broker.connect.templates import Template

FILE = """
[broker]
endpoint = "{endpoint}"

[[source]]
name = "plant"
topic = "{topic}"
events = ["Temp(area: string, value: float)"]
dead_letter = "plant.dead"
{more}
files = {{}}
"""


def written(folder, endpoint, topic="logs/{area}.log", more=""):
    file = folder / "plant.toml"
    file.write_text(FILE.format(endpoint=endpoint, topic=topic, more=more))
    (folder / "logs").mkdir(exist_ok=True)
    return file


def add(file, text):
    with Path(file).open("a") as opened:
        opened.write(text)


STARTED = []


class Reader:
    """What is read of files, as the connector does; it can be killed, and forgets then."""

    def __init__(self, folder, topic="{area}.log", has_heading=False):
        self.words = folder, Template(topic), folder / "positions", has_heading
        self.ids = set()
        self.again()

    def again(self):
        self.following = Following(*self.words)
        STARTED.append(self.following)
        self.following.begin()

    def lines(self, most=1_000, keeps=True):
        """All lines that are there, without those whose ids came before."""
        had, quiet = [], 0
        while quiet < 3:  # one by one files are found to be read, cut or followed by others
            self.following._look_at = 0
            lines = self.following.lines(most)
            quiet = 0 if lines else quiet + 1
            if lines and keeps:
                self.following.acknowledge(lines)
            for line in lines:
                own_id = line.file.read.token, line.end
                had += [] if own_id in self.ids else [line.raw.decode()]
                self.ids.add(own_id)
        return had


@pytest.fixture(autouse=True)
def closing():
    """Close the files of readers, also of those that were killed: paho takes none beyond 1,023."""
    yield
    while STARTED:
        STARTED.pop().close()


@pytest.fixture
def reader(tmp_path):
    return Reader(tmp_path)


def test_a_half_written_line_waits(tmp_path, reader):
    add(tmp_path / "a.log", "one\n\ntw")
    assert reader.lines() == ["one\n"]
    assert reader.lines() == []
    add(tmp_path / "a.log", "o\n")
    assert reader.lines() == ["two\n"]


def test_a_line_that_is_too_long_comes_in_pieces(tmp_path, reader, monkeypatch):
    monkeypatch.setattr(following, "LINE_MAX", 4)
    add(tmp_path / "a.log", "abcdefg\n")
    assert reader.lines() == ["abcd", "efg\n"]


def test_a_renamed_file_is_read_to_its_end_before_its_successor(tmp_path, reader):
    file = tmp_path / "a.log"
    add(file, "1\n")
    assert reader.lines() == ["1\n"]
    add(file, "2\n")
    file.rename(tmp_path / "a.log.1")
    add(file, "4\n")
    assert reader.lines() == ["2\n", "4\n"]
    add(tmp_path / "a.log.1", "3\n")  # who writes it has not heard yet
    assert reader.lines() == ["3\n"]


def test_a_file_that_is_removed_is_read_to_its_end(tmp_path, reader):
    file = tmp_path / "a.log"
    add(file, "1\n")
    reader.lines()
    add(file, "2\nrest")
    file.unlink()
    assert reader.lines() == ["2\n"]


def test_what_was_renamed_or_copied_while_nobody_read_is_found(tmp_path, reader):
    file, other = tmp_path / "a.log", tmp_path / "b.log"
    for one in (file, other):
        add(one, f"{one.name} 1\n")
    reader.lines()
    for one in (file, other):
        add(one, f"{one.name} 2\n")
    file.rename(tmp_path / "a.log.1")
    (tmp_path / "b.log.1").write_bytes(other.read_bytes())
    other.write_text("b.log 3\n")
    add(file, "a.log 3\n")
    reader.again()
    assert sorted(reader.lines()) == ["a.log 2\n", "a.log 3\n", "b.log 2\n", "b.log 3\n"]


def test_a_file_that_was_written_anew_at_its_length_begins_again(tmp_path, reader):
    file = tmp_path / "a.log"
    file.write_text("one\n")
    assert reader.lines() == ["one\n"]
    file.write_text("two\n")
    assert reader.lines() == ["two\n"]


def test_a_file_that_is_gone_is_forgotten_with_its_last_line(tmp_path, reader, monkeypatch):
    add(tmp_path / "a.log", "one\ntw")
    reader.lines()
    (tmp_path / "a.log").unlink()
    monkeypatch.setattr(following, "SETTLE_S", 0.0)
    assert reader.lines() == ["tw"]
    assert json.loads((tmp_path / "positions").read_text()) == []


def test_more_files_than_may_be_open(tmp_path, reader, monkeypatch):
    monkeypatch.setattr(following, "OPEN_MAX", 2)
    for part in range(2):
        for number in range(6):
            add(tmp_path / f"{number}.log", f"{number} {part}\n")
        assert sorted(reader.lines()) == [f"{number} {part}\n" for number in range(6)]
    assert sum(file.handle is not None for file in reader.following._files) == 2


def test_a_name_that_is_no_text_is_passed_over(tmp_path, reader, caplog):
    """Positions are UTF-8: a file of this name ended all connectors, at every start."""
    add(tmp_path / os.fsdecode(b"\xff\xfe.log"), "lost\n")
    add(tmp_path / "a.log", "one\n")
    assert reader.lines() == ["one\n"]
    reader.again()
    add(tmp_path / "a.log", "two\n")
    assert reader.lines() == ["two\n"]
    assert caplog.messages == ["file passed over: its name is no UTF-8"] * 2


def test_positions_that_are_none_are_refused_by_their_place(tmp_path, reader):
    (tmp_path / "positions").write_text("{")
    with pytest.raises(SystemLost, match="positions: "):
        reader.again()


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_done_to_files_each_line_comes_once(tmp_path, seed):
    """Files are written in pieces, renamed, and cut behind a copy; the reader is killed with lines
    that it has not acknowledged.
    """
    chance, reader, had, written = random.Random(seed), Reader(tmp_path), [], []
    names = ["a.log", "b.log"]
    for number in range(60):
        file, line = tmp_path / chance.choice(names), f"line {number} {'x' * chance.randrange(9)}\n"
        cut = chance.randrange(len(line))
        add(file, line[:cut])
        had += reader.lines(chance.randrange(1, 4)) if chance.random() < 0.5 else []
        add(file, line[cut:])
        written.append(line)
        kind = chance.randrange(8)
        for keeps in (True, chance.random() < 0.5) if kind in (1, 2) else ():
            had += reader.lines(keeps=keeps)  # a file of which nobody knows is not looked for
            add(file, line := f"line {number}, {keeps}\n")
            written.append(line)
        old = f"{file}.{number}"
        if kind == 1:
            file.rename(old)
        elif kind == 2:
            Path(old).write_bytes(file.read_bytes())
            file.write_text("")
        if kind in (0, 1, 2) and chance.random() < 0.5:
            reader.again()
    had += reader.lines()
    assert sorted(had) == sorted(written)


def test_killed_it_loses_and_repeats_nothing(tmp_path):
    numbers, had = [float(n) for n in range(200)], []
    with broker("--data", str(tmp_path / "b1")) as (_, endpoint):
        file, log = written(tmp_path, endpoint), tmp_path / "logs" / "a1.log"
        with Subscriber(endpoint, "Temp()") as sink:
            for part in range(2):
                for number in numbers[part * 100 : (part + 1) * 100]:
                    add(log, json.dumps({"value": number}) + "\n")
                add(log, "hot\n" if part == 0 else "")
                with connected(file):
                    had += [sink.receive(timeout_s=60) for _ in range(70)]
                log.rename(f"{log}.{part}")
            with connected(file) as process:
                while len(had) < len(numbers):
                    had.append(sink.receive(timeout_s=60))
                process.terminate()
                process.communicate(timeout=60)
            assert [event.data["value"] for event in had] == numbers
    assert {event.data["area"] for event in had} == {"a1"}
    (letter,) = {*(tmp_path / "plant.dead").read_text().splitlines()}
    assert json.loads(letter)["body"] == "hot"


def test_rows_of_csv_have_the_columns_of_their_heading(tmp_path):
    more = 'body = "csv"\ntime_column = "at"\ncolumns = { value = "deg C" }'
    with broker("--data", str(tmp_path / "b1")) as (_, endpoint):
        file, log = written(tmp_path, endpoint, more=more), tmp_path / "logs" / "a1.log"
        add(log, '\ufeffat;deg C\n1.5;46.5\n2;"47"\n')
        with Subscriber(endpoint, "Temp()") as sink:
            with connected(file):
                had = [sink.receive(timeout_s=60) for _ in range(2)]
            add(log, f"3\n4;\n{int(time.time()) + 60};48\n")
            with connected(file) as process:  # it reads the heading again
                had.append(sink.receive(timeout_s=60))
                process.terminate()
                process.communicate(timeout=60)
    assert [one.time for one in had[:2]] == [1_500_000, 2_000_000]
    assert [one.data["value"] for one in had] == [46.5, 47.0, 48.0]
    letters = [json.loads(line) for line in (tmp_path / "plant.dead").read_text().splitlines()]
    assert [(one["body"], one["reason"]) for one in letters] == [
        ("3", "expected 2 fields, found 1"),
        ("4;", "attribute value is missing"),
    ]


def test_what_has_waited_for_the_connector_is_not_late(tmp_path):
    """Lines of an hour are read in lots, one of which is late for the others. The log tells of a
    file that is gone.
    """
    more = 'time_column = "at"\nwindow = 50'
    with broker("--data", str(tmp_path / "b1")) as (_, endpoint):
        file, log = written(tmp_path, endpoint, more=more), tmp_path / "logs" / "a1.log"
        begun, numbers = time.time() - 3_600, range(500)
        lines = [json.dumps({"at": begun + 7 * n, "value": n}) for n in numbers]
        gone = {"path": "logs/gone.log", "token": "t", "device": 1, "inode": 1, "offset": 7}
        (tmp_path / "plant.positions").write_text(json.dumps([gone]))
        lines.insert(-1, json.dumps({"at": begun, "value": -1}))
        log.write_text("\n".join([*lines, ""]))
        with Subscriber(endpoint, "Temp()") as sink, connected(file) as process:
            had = [sink.receive(timeout_s=60).data["value"] for _ in numbers]
            process.terminate()
            said = process.communicate(timeout=60)[1]
    assert had == [*numbers]
    assert said.splitlines()[-1] == "source plant: 500 messages, 1 dead letters"
    assert 'message="file cannot be read, or is gone" path=logs/gone.log read_to=7' in said


@pytest.mark.parametrize("is_piped", [True, False])
def test_standard_input_is_read_to_its_end(tmp_path, is_piped):
    more = 'body = "text"\npattern = "(?P<area>\\\\w+) (?P<value>\\\\S+)"'
    with broker("--data", str(tmp_path / "b1")) as (_, endpoint):
        file = written(tmp_path, endpoint, "-", more)
        words = ["cat", "input"] if is_piped else ["true"]
        (tmp_path / "input").write_text("a1 46.5\r\na2 47\n\nhot")
        with (
            subprocess.Popen(words, stdout=subprocess.PIPE, cwd=tmp_path) as cat,
            (tmp_path / "input").open() as opened,
            Subscriber(endpoint, "Temp()") as sink,
            connected(file, stdin=cat.stdout if is_piped else opened) as process,
        ):
            had = [sink.receive(timeout_s=60).data for _ in range(2)]
            said = process.communicate(timeout=60)[1]
    assert had == [{"area": "a1", "value": 46.5}, {"area": "a2", "value": 47.0}]
    assert said.splitlines()[-1] == "source plant: 2 messages, 1 dead letters"
    assert process.returncode == 0
