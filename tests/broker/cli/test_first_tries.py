"""Files as people first give them to ``detect``: read, or refused for the right reason."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker.cli import main

RULE = "define X(v) from A(v > 1) where v = A.v"
DECLARED = f"event A(v: int) {RULE}"


def detected(
    folder: Path,
    capfd: pytest.CaptureFixture[str],
    rules: str,
    events: str,
    *options: str,
    name: str = "e.jsonl",
) -> tuple[list[str], list[str]]:
    """The lines of ``detect --format count`` on standard output, and on standard error."""
    (folder / "r.tesla").write_text(rules)
    (folder / name).write_text(events)
    files = ["--rules", str(folder / "r.tesla"), "--events", str(folder / name)]
    main(["detect", *files, "--engine", "naive", "--format", "count", *options])
    out, err = (text.replace(f"{folder}/", "").splitlines() for text in capfd.readouterr())
    return [line.replace("\t", " ") for line in out if not line.startswith("total")], err


def test_a_nested_attribute_is_named_where_a_rule_needs_its_type(tmp_path: Path, capfd) -> None:
    """The type was said to be unknown, though every line is of it."""
    events = '{"type": "A", "time": 1, "data": {"v": 2, "user": {"id": 7}}}\n'
    _, err = detected(tmp_path, capfd, RULE, events)
    assert err == [
        "rexmq: e.jsonl:1: attribute user: expected int, float, bool or string, found an object "
        "(declare event A, without it)"
    ]
    assert detected(tmp_path, capfd, DECLARED, events)[0] == ["X 1"]


def test_bad_events_of_types_that_no_rule_uses_are_passed_over(tmp_path: Path, capfd) -> None:
    events = (
        '{"type": "A", "time": 1, "data": {"v": 2}}\n'
        '{"type": "B", "time": 2, "data": {"tags": ["x"]}}\n'
        '{"type": "C", "time": 2, "data": {"v": 1}}\n'
        '{"type": "C", "time": 3, "data": {"v": "one"}}\n'
    )
    out, err = detected(tmp_path, capfd, DECLARED, events)
    assert (out, err) == (["X 1"], [])
    used = f"{DECLARED} define Y(v) from C() where v = C.v"
    _, err = detected(tmp_path, capfd, used, events)
    assert err[0].startswith("rexmq: e.jsonl:4: attribute v: expected int, found string")


@pytest.mark.parametrize(("row", "fields"), [("5,A", 2), ("6,A,6,7", 4)])
def test_a_row_of_another_length_is_told_by_its_length(
    tmp_path: Path, capfd, row: str, fields: int
) -> None:
    """It was said to have no type."""
    events = f"time,type,v\n1,A,1\n{row}\n"
    _, err = detected(tmp_path, capfd, DECLARED, events, name="e.csv")
    assert err == [f"rexmq: e.csv:row 2: {fields} fields, where the heading has 3"]


@pytest.mark.parametrize("text", ["7", '"7"'])
def test_numbers_in_quotes_are_numbers_where_the_type_has_numbers(
    tmp_path: Path, capfd, text: str
) -> None:
    rules = 'event A(v: int, w: float?, s: string) define X(n) from A(v = 7, s = "7") where n = A.w'
    rules = rules.replace("X(n)", "X(n: float?)")
    events = f'{{"type": "A", "time": 1, "data": {{"v": {text}, "w": "-1.5e3", "s": "7"}}}}\n'
    assert detected(tmp_path, capfd, rules, events)[0] == ["X 1"]


@pytest.mark.parametrize("wrong", ["", "1.5", "seven", "1e3", "0x1", " 7"])
def test_other_texts_are_no_ints(tmp_path: Path, capfd, wrong: str) -> None:
    events = f'{{"type": "A", "time": 1, "data": {{"v": "{wrong}"}}}}\n'
    _, err = detected(tmp_path, capfd, DECLARED, events)
    assert err[0].startswith("rexmq: e.jsonl:1: attribute v: expected int, found ")


@pytest.mark.parametrize("heading", ["", "sep=;\n"])
@pytest.mark.parametrize("sign", [";", "|", "\t"])
def test_columns_may_have_other_signs_between_them(
    tmp_path: Path, capfd, sign: str, heading: str
) -> None:
    rows = ["time;type;v;s", "1;A;2;a,b", "2;A;3;c"]
    text = (heading + "\n".join(rows) + "\n").replace(";", sign)
    rules = 'event A(v: int, s: string) define X(v) from A(s in ("a,b", "c")) where v = A.v'
    assert detected(tmp_path, capfd, rules, text, name="e.csv")[0] == ["X 2"]


def test_times_that_may_be_of_either_hour_are_counted(tmp_path: Path, capfd) -> None:
    """They were all put into the first one, and nothing was said."""
    rows = "2024-10-27 01:30,1\n2024-10-27 02:00,2\n2024-10-27 02:30,4\n2024-10-27 03:00,8\n"
    said = ("--type", "A", "--time-zone", "Europe/Berlin")
    _, err = detected(tmp_path, capfd, DECLARED, f"time,v\n{rows}", *said, name="e.csv")
    assert err == [
        "rexmq: e.csv: 2 times that clocks of Europe/Berlin show twice taken for the first: the "
        "order of rows does not tell which is meant, offsets would"
    ]


def test_the_order_of_rows_tells_which_hour_is_meant(tmp_path: Path, capfd) -> None:
    """A step back of the clock is the second hour: all stood in the first."""
    rules = """
    define Hour(h) from Timer(M = 0, zone = "Europe/Berlin") as t and
      Sum(A(time > t.time - 1 h).v within 1 h from t) = 4 where h = t.H"""
    clocks = ["01:20", "02:00", "02:40", "02:10", "02:50", "03:00"]
    rows = "".join(f"2024-10-27 {clock},{2**n}\n" for n, clock in enumerate(clocks))
    said = ("--type", "A", "--time-zone", "Europe/Berlin")
    given, err = detected(tmp_path, capfd, DECLARED + rules, f"time,v\n{rows}", *said, name="e.csv")
    assert err == []
    assert "Hour 1" in given


def test_an_event_on_several_lines_is_told_so(tmp_path: Path, capfd) -> None:
    events = '{\n  "type": "A",\n  "time": 1,\n  "data": {"v": 2}\n}\n'
    _, err = detected(tmp_path, capfd, DECLARED, events)
    assert err == [
        "rexmq: e.jsonl:1: not an event: Input data was truncated (an event stands on one line; "
        "jq -c . puts it there, and of one document --records says where its events are)"
    ]


def test_a_column_of_texts_that_a_rule_compares_with_numbers_is_told(tmp_path: Path, capfd) -> None:
    """The rule was blamed alone, where its file has decimal commas."""
    events = "time;type;v\n1;A;1,5\n2;A;2,5\n"
    _, err = detected(tmp_path, capfd, RULE, events, name="e.csv")
    assert err[0] == "rexmq: r.tesla:1:20: a string against an int"
    assert err[-1] == (
        "  hint: the events say A(v: string); declare it otherwise to be told which value does "
        "not fit"
    )
    declared = f"event A(v: float) {RULE}"
    _, err = detected(tmp_path, capfd, declared, events, name="e.csv")
    assert err == [
        "rexmq: e.csv:row 1: attribute v: expected float, found '1,5' (--decimal , reads it)"
    ]
    out, _ = detected(tmp_path, capfd, RULE, events, "--decimal", ",", name="e.csv")
    assert out == ["X 2"]


def test_events_of_unused_types_need_no_time_and_no_schema(tmp_path: Path, capfd) -> None:
    """The time of each event was asked for, and a table of lists ended the command."""
    events = (
        '{"type": "A", "time": 1, "data": {"v": 2}}\n'
        '{"type": "B"}\n{"type": "B", "time": "soon"}\n'
        '{"type": "A", "time": 3, "data": {"v": 3}}\n'
    )
    assert detected(tmp_path, capfd, DECLARED, events) == (["X 2"], [])
    _, err = detected(tmp_path, capfd, DECLARED, events.replace('"B"', '"A"'))
    assert err[0].startswith("rexmq: e.jsonl:2: no time: no member 'time'")
    lists = tmp_path / "lists.parquet"
    pq.write_table(pa.table({"time": [1, 2], "tags": [["a"], []]}), lists)
    both = ("--events", f"B={lists}")
    good = '{"type": "A", "time": 1, "data": {"v": 2}}\n'
    assert detected(tmp_path, capfd, DECLARED, good, *both) == (["X 1"], [])
    used = "define Y(n) from B() as b where n = 1"
    _, err = detected(tmp_path, capfd, used, good, *both)
    assert err[0].startswith("rexmq: lists.parquet: column tags of event B is of type list<")
