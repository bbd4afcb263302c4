"""``rexmq match`` (docs/matching.md): files, results, errors with their places."""

import contextlib
import json
import re
from pathlib import Path

import pytest

from broker.cli import main
from matcher.gpu.device import NoDevice, device
from matcher.matching import MATCHERS, Matching
from matcher.methods import choose

FILTERS = """\
{"filter": 331, "interface": 1, "constraints": [["a4", "prefix", "fj"], ["a8", ">", 51]]}

{"filter": 2, "interface": 9, "type": "Temp"}
{"filter": -7, "interface": 1, "type": null, "constraints": [["a8", "!=", "x"], ["on", "=", true]]}
"""
EVENTS = """{"id": 1, "data": {"a4": "fjord", "a8": 51.5}}
{"id": "b", "type": "Temp", "time": 3, "data": {"a4": "fjord", "a8": "52", "on": true}}

{"data": {"a8": 52}}
"""
EXPECTED = [
    {"id": 1, "interfaces": [1], "filters": [331]},
    {"id": "b", "interfaces": [1, 9], "filters": [-7, 2]},
    {"id": 4, "interfaces": [], "filters": []},
]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    filters, events = tmp_path / "filters.jsonl", tmp_path / "events.jsonl"
    filters.write_text(FILTERS)
    events.write_text(EVENTS)
    return ["match", "--filters", str(filters), "--events", str(events)]


@pytest.mark.parametrize("name", choose.MATCHERS)
def test_each_event_is_answered_in_order(
    name: str, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*files, "--matcher", name]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == EXPECTED


def test_the_matchers_of_the_command_are_those_there_are() -> None:
    on_device = {name for name in MATCHERS if Matching(name).needs_device}
    assert {*choose.MATCHERS, *on_device} == {*MATCHERS}


def test_counts_name_every_interface(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*files, "--format", "count", "--stats"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "1\t2\n9\t1\ntotal\t3\n"
    assert "events\t3\n" in captured.err
    assert "filters\t3\n" in captured.err


def test_tables_of_events_are_matched_too(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "events.csv"
    table.write_text("type,time,a4,a8\nTemp,1,fjord,60\nTemp,2,x,60\n")
    assert main([*files[:4], str(table)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        {"id": 1, "interfaces": [1, 9], "filters": [2, 331]},
        {"id": 2, "interfaces": [9], "filters": [2]},
    ]


NULLS = """\
{"filter": 1, "interface": 1, "constraints": [["a8", "is", null]]}
{"filter": 2, "interface": 2, "constraints": [["a8", "is not", null], ["a4", "prefix", "f"]]}
{"filter": 3, "interface": 3, "constraints": [["none", "is", null]]}
"""


@pytest.mark.parametrize("name", choose.MATCHERS)
@pytest.mark.parametrize(
    ("file", "content"),
    [
        (
            "events.jsonl",
            '{"data": {"a4": "f", "a8": null}}\n{"data": {"a4": "f"}}\n'
            '{"data": {"a4": "f", "a8": 0}}\n',
        ),
        ("events.csv", "type,time,a4,a8\nT,1,f,\nT,2,f,\nT,3,f,0\n"),
    ],
)
def test_null_is_asked_for_and_so_is_the_absent(
    name: str,
    file: str,
    content: str,
    files: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path(files[2]).write_text(NULLS)
    (tmp_path / file).write_text(content)
    assert main([*files[:4], str(tmp_path / file), "--matcher", name]) == 0
    found = [json.loads(line)["filters"] for line in capsys.readouterr().out.splitlines()]
    assert found == [[1, 3], [1, 3], [2, 3]]


@pytest.mark.parametrize("name", choose.MATCHERS)
def test_types_with_and_without_an_attribute_are_asked_for_null(
    name: str, files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(files[2]).write_text(NULLS)
    table = tmp_path / "events.csv"
    table.write_text("time,type,a4,a8\n1,T,f,5\n2,T,g,6\n")  # no value lacks: not optional
    assert main([*files[:4], str(table), "--matcher", name]) == 0
    table.write_text("time,type,a4\n1,T,f\n")
    assert main([*files[:4], str(table), "--matcher", name]) == 0
    found = [json.loads(line)["filters"] for line in capsys.readouterr().out.splitlines()]
    assert found == [[2, 3], [3], [1, 3]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            '{"filter": 4, "interface": 1, "constraints": [["a", "=", null]]}',
            "a =: null stands behind is and is not alone",
        ),
        (
            '{"filter": 4, "interface": 1, "constraints": [["a", "is", 1]]}',
            "or is and is not before null",
        ),
        ("{", "not a filter"),
        ('{"filter": 1}', "missing required field `interface`"),
        ('{"filter": 1, "interface": 1, "x": 1}', "unknown field `x`"),
        (
            '{"filter": 1, "interface": 1, "constraints": [["a", "~", 1]]}',
            "a: expected an operator",
        ),
        ('{"filter": 1, "interface": 1, "constraints": [["a", "<", true]]}', "does not fit a bool"),
        ('{"filter": 1, "interface": 1, "constraints": [["a", "prefix", 1]]}', "a number"),
        ('{"filter": 1, "interface": 1, "constraints": [["a", "=", 9223372036854775808]]}', "64"),
        ('{"filter": 9223372036854775808, "interface": 1}', "filter: an int beyond 64 bits"),
        ('{"filter": 331, "interface": 1}', "filter 331 stands in line 1 already"),
    ],
)
def test_a_bad_filter_is_refused_with_its_line(
    line: str, message: str, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(files[2])
    path.write_text(FILTERS + line + "\n")
    assert main(files) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"rexmq: {path}:5: ")
    assert message in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "not an event"),
        ('{"data": {"a": 9223372036854775808}}', "64 bits"),
        ('{"data": {"a": -9223372036854775809}}', "64 bits"),
        ('{"data": {"a": [1]}}', "found a list"),
        ('{"data": {"a": {}}}', "attribute a: expected int, float, bool or string"),
        ('{"data": {"a": 1e999}}', "not an event"),
        ('{"data": {"a": "\\udc00"}}', "not an event"),
        ('{"id": null}', "not an event"),
    ],
)
def test_a_bad_event_is_refused_with_its_line(
    line: str, message: str, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(files[4])
    path.write_text(EVENTS + line + "\n")
    assert main(files) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"rexmq: {path}:5: ")
    assert message in captured.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--matcher", "magic"], "--matcher: expected auto or pcm"),
        (["--device", "tpu"], "--device: expected cpu or gpu or auto"),
        (["--format", "xml"], "--format: expected jsonl or count"),
    ],
)
def test_wrong_usage(
    words: list[str], message: str, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*files, *words]) == 2
    assert message in capsys.readouterr().err


def test_without_a_gpu_auto_says_so_and_gpu_is_refused(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with contextlib.suppress(NoDevice):
        pytest.skip(f"there is a device here: {device().name}")
    assert main([*files, "--device", "auto"]) == 0
    captured = capsys.readouterr()
    assert captured.err.count("rexmq: matching on the processor: ") == 1
    assert main(files) == 0
    assert capsys.readouterr().out == captured.out
    for words in (["--device", "gpu"], ["--matcher", "ccm"], ["--matcher", "batched"]):
        assert main([*files, *words]) == 2
        assert capsys.readouterr().err.startswith(f"rexmq: {' '.join(words)}: ")
    assert main([*files, "--device", "gpu", "--matcher", "index"]) == 2
    assert "--device gpu: the matcher index has no form for a GPU" in capsys.readouterr().err


def test_the_documentation_says_what_happens() -> None:
    text = (Path(__file__).parents[3] / "docs" / "matching.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(example, {})


def test_the_id_of_another_event_of_its_source_is_refused(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    events = Path(files[-1])
    same = '{"id": 1, "data": {"a8": 52}}\n' * 2
    events.write_text(same + '{"id": "1", "source": "s", "data": {"a8": 0}}\n')
    assert main([*files, "--format", "count"]) == 0
    events.write_text(same + '\n{"id": "1", "data": {"a8": 0}}\n')
    assert main(files) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"rexmq: {events}:4: id 1 is that of another event of its source, at ")
    assert f"at {events}:1, with other contents" in error


def test_a_table_too_ends_with_the_places_of_both(
    tmp_path: Path, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    events = tmp_path / "events.csv"
    events.write_text("time,type,sequence,id,a8\n1,T,50,x,1\n1,T,51,x,1\n1,T,52,x,2\n")
    assert main([*files[:-1], str(events)]) == 1
    assert f"{events}:row 3: id x is that of" in capsys.readouterr().err
