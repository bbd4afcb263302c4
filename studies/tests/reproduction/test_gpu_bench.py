"""``studies.bench_gpu``: parts in processes of their own, and what becomes of those that fail."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from zipfile import ZipFile

import pytest

from benchmarks.processes import fields_of
from benchmarks.report import Row
from studies import bench_gpu as gpu
from studies.bench_gpu import PARTS, Part, Run, chosen, kept, measured, summary
from studies.device.tests import row_of

CRASHING = """
import os, signal
from benchmarks.report import Row
def run(quick):
    yield Row("before", 2.0, "us", note="target: at most 3")
    os.kill(os.getpid(), signal.SIGKILL)
"""
SLOW = """
import time
from benchmarks.report import Row
def run(quick):
    yield Row("fast", 1.0 + quick, "us")
    time.sleep(60)
"""
FAILING = """
from benchmarks.report import Row
def run(quick):
    yield Row("first", 3.0, "us")
    raise RuntimeError("an illegal address")
"""


def test_a_part_that_fails_or_takes_too_long_costs_its_own_figures_alone(tmp_path: Path) -> None:
    modules = {"crashing": CRASHING, "slow": SLOW, "failing": FAILING}
    for name, text in modules.items():
        (tmp_path / f"part_{name}.py").write_text(text)
    environment = {
        **os.environ,
        "NUMBA_ENABLE_CUDASIM": "1",
        "PYTHONPATH": os.pathsep.join(map(str, (gpu.ROOT, tmp_path))),
    }
    parts = [Part(name, f"part_{name}", 3.0) for name in modules]
    late = Part("late", "part_slow", 0.5)
    rows = list(measured(Run(tmp_path, [*parts, late], 60.0, True, environment)))
    assert [(row.name, row.value) for row in rows if not row.name.endswith(gpu.WHOLE)] == [
        ("before", 2.0),
        ("crashing", None),
        ("fast", 2.0),
        ("slow", None),
        ("first", 3.0),
        ("failing", None),
        ("late", None),
    ]
    notes = [row.note for row in rows if row.value is None]
    reasons = ["ended with status -9", "cut after 3 s", "RuntimeError: an illegal address"]
    assert notes == [*reasons, "no time was left for it"]
    assert [row for _, row in kept(tmp_path / gpu.ROWS)] == rows
    page = (tmp_path / gpu.PAGE).read_text()
    assert page.startswith("# On simulator\n")
    assert all(row.name in page for row in rows[:-1])
    assert "an illegal address" in (tmp_path / gpu.LOG).read_text()
    told = summary(rows)
    assert "before: 2 us (target: at most 3)" in told
    assert "failed: slow: cut after 3 s" in told
    assert "fast" not in told


def test_without_a_device_it_says_so_and_measures_nothing(tmp_path: Path) -> None:
    try:
        from matcher.gpu.device import NoDevice, device

        device()
    except NoDevice:
        pass
    else:
        pytest.skip("there is a device")
    command = [sys.executable, "-m", "studies.bench_gpu", "--output", str(tmp_path)]
    done = subprocess.run(command, cwd=gpu.ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert re.match(r"benchmarks: nothing to measure: (CuPy|CUDA|numba) .+\n$", done.stderr)


STARTING = """
import subprocess, sys, time
from benchmarks.report import Row
def run(quick):
    yield Row("before", 2.0, "us")
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield Row("child", child.pid, "")
    time.sleep(60)
"""
BY_ITSELF = """
import sys
from studies import bench_gpu as gpu
gpu.ASK = "print('a pretended GPU')"
gpu.PARTS = [gpu.Part("starting", "part_starting", 50.0)]
sys.exit(gpu.main(["--output", sys.argv[1], "--parts", "starting"]))
"""


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL])
def test_one_that_is_ended_leaves_its_rows_and_no_process(tmp_path: Path, by: int) -> None:
    (tmp_path / "part_starting.py").write_text(STARTING)
    path = os.pathsep.join(map(str, (gpu.ROOT, tmp_path)))
    command = [sys.executable, "-c", BY_ITSELF, str(tmp_path)]
    with subprocess.Popen(
        command, cwd=gpu.ROOT, env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.DEVNULL
    ) as process:
        rows = until(lambda: [row for _, row in kept(tmp_path / gpu.ROWS)], lambda told: told[1:])
        process.send_signal(by)
    assert [row.name for row in rows] == ["before", "child"]
    until(lambda: runs(int(rows[1].value)), lambda is_running: not is_running)
    if by == signal.SIGTERM:
        assert "before" in (tmp_path / gpu.PAGE).read_text()


def runs(pid: int) -> bool:
    """Whether a process is there that has not ended; who has, may wait to be asked for its end."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return fields_of(pid)[0] not in "ZX"
    return False


Found = TypeVar("Found")


def until(look: Callable[[], Found], is_so: Callable[[Found], object]) -> Found:
    """What is found once it is so; half a minute at most."""
    for _ in range(600):
        found = look()
        if is_so(found):
            return found
        time.sleep(0.05)
    raise AssertionError(found)


FAKE = """
from benchmarks.report import Row
def run(quick):
    yield Row("fake/target", 2.0 if quick else 1.0, "us", note="target: at most 3")
"""


def wheel_of(folder: Path, name: str, text: str) -> None:
    """A wheel of one module."""
    about = f"{name}-1.dist-info"
    files = {
        f"{name}.py": text,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": "",
    }
    with ZipFile(folder / f"{name}-1-py3-none-any.whl", "w") as wheel:
        for place, content in files.items():
            wheel.writestr(place, content)


def test_all_of_it_with_a_device_and_parts_that_are_pretended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Parts come in their order, from wheels that are carried, within the time there is."""
    wheel_of(tmp_path, "part_fake", FAKE)
    parts = [Part("first", "part_fake", 20.0), Part("second", "part_fake", 20.0)]
    monkeypatch.setattr(gpu, "PARTS", parts)
    monkeypatch.setattr(gpu, "ASK", "print('a pretended GPU')")
    output = tmp_path / "out"
    options = ["--wheels", str(tmp_path), "--output", str(output), "--quick", "--total-s", "60"]
    assert gpu.main([*options, "--parts", "second,first"]) == 0
    rows = kept(output / gpu.ROWS)
    assert [part for part, _ in rows] == ["first", "first", "second", "second"]
    assert {row.value for _, row in rows if row.name == "fake/target"} == {2.0}
    assert (output / gpu.PAGE).read_text().startswith("# On a pretended GPU\n")
    assert "fake/target: 2 us (target: at most 3)" in capsys.readouterr().out


def test_wheels_that_cannot_be_installed_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        gpu.main(["--wheels", str(tmp_path), "--output", str(tmp_path / "out")])
    assert f"the wheels in {tmp_path} cannot be installed" in capsys.readouterr().err


def test_a_package_that_is_missing_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu, "ASK", "import nothing_of_the_kind")
    assert gpu.main(["--output", str(tmp_path)]) == 1
    said = "ModuleNotFoundError: No module named 'nothing_of_the_kind'"
    assert f"failed: a device: {said}; wheels can be carried" in capsys.readouterr().out


def test_help_tells_the_parts_and_what_to_carry(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        gpu.main(["--help"])
    told = capsys.readouterr().out
    assert "detection (130 s), chapter4 (70 s)" in told
    assert "msgspec pyzmq simpy 'numpy==2.4.*'" in told


def test_parts_have_the_time_that_there_is() -> None:
    assert sum(part.limit_s for part in PARTS) <= gpu.TOTAL_S - gpu.END_S
    assert gpu.TOTAL_S <= 480


def test_parts_are_chosen_by_name_and_run_in_their_order() -> None:
    assert [part.name for part in chosen("tests, bandwidth")] == ["bandwidth", "tests"]
    with pytest.raises(ValueError, match="there is no part 'nothing'; there are bandwidth, tests"):
        chosen("tests,nothing")
    assert sum(part.limit_s > 0 for part in PARTS) == len(PARTS)


@pytest.mark.parametrize(
    ("text", "status", "was_cut", "row"),
    [
        ("= 3 passed in 2.00s =", 0, False, Row("tests/t.py", 3, "passed", note="2 s")),
        ("= 1 skipped in 2.00s =", 5, False, Row("tests/t.py", 0, "passed", note="2 s, 1 skipped")),
        (
            "= no tests ran =",
            5,
            False,
            Row("tests/t.py", None, "", note="0 passed, in 2 s; not: status 5"),
        ),
        (
            "FAILED tests/device/t.py::test_a[x] - Error\n= 1 failed, 2 passed in 2.00s =",
            1,
            False,
            Row("tests/t.py", None, "", note="2 passed, in 2 s; not: test_a[x]"),
        ),
        (
            "t.py::test_a PASSED [ 50%]\nt.py::test_b ",
            -9,
            True,
            Row("tests/t.py", None, "", note="1 passed, cut after 2 s; not: status -9"),
        ),
    ],
)
def test_tests_on_the_device_are_counted(text: str, status: int, was_cut: bool, row: Row) -> None:
    assert row_of("t.py", text, status, was_cut, 2.0) == row
