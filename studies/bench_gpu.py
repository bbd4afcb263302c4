"""Measurements on a GPU, all by one command, on a machine that need have nothing else.

    python3 -m studies.bench_gpu --output DIR [--wheels DIR] [--parts A,B] [--total-s 480] [--quick]

from the root of a checkout. Packages that the machine lacks are carried as wheels in a folder (of
this project's needs msgspec, pyzmq and simpy are rarely there, and a numpy that its numba takes;
numba-cuda, CuPy, pyarrow and pytest with pytest-timeout are needed, too) and installed from it for
this run alone::

    pip download --only-binary=:all: --no-deps --python-version 3.12 \\
        --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 -d .whl \\
        msgspec pyzmq simpy 'numpy==2.4.*'
    python3 -m studies.bench_gpu --wheels .whl --output out --quick --parts tests,targets --total-s
    170 python3 -m studies.bench_gpu --wheels .whl --output out

It reads nothing outside the checkout and needs no network. Without a device it says so and measures
nothing; under numba's simulator of CUDA it runs the code with tiny sizes, for no figures.

Law 1: each part runs in a process of its own, with a time limit, in the order of PARTS. What goes
wrong on a device may end a process, or spoil all that it does later: it costs that part alone.

Law 2: a row is in ``DIR/gpu.jsonl`` as soon as it is measured, with the device's name. What all
processes say is in ``gpu.log``, the tables of all rows so far are in ``gpu.md``: who is cut off has
what there is. Example: ended by a signal in its fourth part, it leaves the rows of three and of
what the fourth had measured, and no process that goes on.

The kernels of the processor are compiled by other processes meanwhile (a minute or two where none
are kept), and waited for before the first part whose figures they could disturb.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Thread
from typing import IO

from benchmarks.report import Row, figure, table
from studies.rows import add, text_of

ROOT = Path(__file__).resolve().parents[1]
ROWS, LOG, PAGE = "gpu.jsonl", "gpu.log", "gpu.md"
TOTAL_S = 480.0
END_S = 5.0
"""Kept back of the time, for the tables."""
TARGET = "target: "
"""The beginning of the note of a row that has a target."""
ASK = "from matcher.gpu.device import device; d = device(); print(d.name)"
WHOLE = ", all of it"
"""The end of the name of a part's own row."""
TOLD_MAX, FAILED_MAX = 300, 16
"""Characters of what is said of a failure in the summary, and failures that are told there."""
KERNELS: Mapping[str, str] = {
    "detection": "from broker.warmup import warm_up; warm_up('aip')",
    "matching": "from matcher.methods.loading import load_kernels; load_kernels()",
}
"""The processor's kernels, and how each group of them is compiled."""


@dataclass(frozen=True, slots=True)
class Part:
    """A module with ``run(quick) -> Iterator[Row]``, the seconds that it may take, and the kernels
    of the processor that it measures beside the device.
    """

    name: str
    module: str
    limit_s: float
    kernels: tuple[str, ...] = ()


PARTS = (
    Part("bandwidth", "studies.device.bandwidth", 20),
    Part("tests", "studies.device.tests", 90),
    Part("detection", "studies.device.detection", 130, ("detection",)),
    Part("chapter4", "studies.device.chapter4", 70, ("matching",)),
    Part("targets", "studies.device.targets", 70, ("detection",)),
    Part("operators", "studies.bench_operators", 40, ("detection",)),
    Part("matching", "studies.device.matching", 30, ("matching",)),
    Part("default", "studies.device.default", 25, ("detection",)),
)
"""What has not been measured yet first; together no more than TOTAL_S."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of some parts: where its files go, when it must end, and with what packages."""

    output: Path
    parts: Sequence[Part]
    total_s: float = TOTAL_S
    quick: bool = False
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    begun: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float:
        """Seconds until it must end."""
        return self.begun + self.total_s - END_S - time.monotonic()

    def write(self, part: str, device: str, row: Row) -> None:
        """Keep a row (Law 2)."""
        keep(self.output / ROWS, part, device, row, quick=self.quick)


def keep(file: Path, part: str, device: str, row: Row, *, quick: bool) -> None:
    """Add a row of a part to a file of rows."""
    whose = {"part": part, "device": device, "cores": os.cpu_count(), "quick": quick}
    add(file, {**whose, **asdict(row)})


def kept(file: Path) -> list[tuple[str, Row]]:
    """The rows of a file, each with its part; of one that was being written when all ended,
    nothing.
    """
    found = []
    for line in text_of(file).splitlines() if file.is_file() else ():
        try:
            told = json.loads(line)
        except ValueError:
            continue
        part = told.pop("part")
        found.append((part, Row(**{name: told[name] for name in Row.__dataclass_fields__})))
    return found


def run(quick: bool) -> Iterator[Row]:
    """All parts, as one of ``rexmq bench``."""
    with tempfile.TemporaryDirectory() as folder:
        yield from measured(Run(Path(folder), PARTS, quick=quick))


def measured(one: Run) -> Iterator[Row]:
    """The rows of all parts as each part ends; none without a device."""
    asked = subprocess.run(
        [sys.executable, "-c", ASK],
        cwd=ROOT,
        env=one.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode:
        last = (asked.stderr.strip().splitlines() or ["no reason"])[-1]
        _, is_none, said = last.rpartition("NoDevice: ")
        print(f"benchmarks: nothing to measure: {said}", file=sys.stderr)
        if not is_none:  # it could not be asked
            missing = Row("a device", None, "", note=f"{said}; wheels can be carried, see --help")
            one.write("device", "none", missing)
            write_tables(one, "no device")
            yield missing
        return
    device = asked.stdout.splitlines()[-1]
    print(f"benchmarks: on {device}", file=sys.stderr, flush=True)
    needed = dict.fromkeys(group for part in one.parts for group in part.kernels)
    compiling = {group: _compile(one, group) for group in needed}
    try:
        for part in one.parts:
            for group in part.kernels:
                if group in compiling:
                    _wait(compiling.pop(group), one.left_s)
            yield from _part(one, part, device)
            write_tables(one, device)
    except BaseException:
        write_tables(one, device)
        raise
    finally:
        for process in compiling.values():
            _end(process)


def _compile(one: Run, group: str) -> subprocess.Popen[bytes]:
    """A process that compiles kernels of the processor."""
    with (one.output / LOG).open("ab") as log:
        command = [sys.executable, "-c", KERNELS[group]]
        return subprocess.Popen(
            command, cwd=ROOT, env=one.environment, stdout=log, stderr=log, start_new_session=True
        )


def _wait(process: subprocess.Popen[bytes], limit_s: float) -> None:
    """Wait for a process; end it when it takes too long."""
    try:
        process.wait(max(limit_s, 0.0))
    except subprocess.TimeoutExpired:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and those that it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _part(one: Run, part: Part, device: str) -> Iterator[Row]:
    """Run a part; its rows, and one that says so where it failed or was cut (Law 1)."""
    limit_s, rows = min(part.limit_s, one.left_s), one.output / ROWS
    if limit_s <= 1.0:
        missing = Row(part.name, None, "", note="no time was left for it")
        one.write(part.name, device, missing)
        yield missing
        return
    before, begun = len(kept(rows)), time.monotonic()
    print(f"benchmarks: {part.name}, {limit_s:.0f} s at most", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "studies.device.part", part.name, part.module]
    command += ["--rows", str(rows), "--device", device, *(["--quick"] if one.quick else [])]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**one.environment, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.PIPE,  # it ends when nobody holds the other end (studies.device.part)
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    telling = Thread(target=_tell, args=(process.stdout, one.output / LOG), daemon=True)
    telling.start()
    try:
        process.wait(limit_s)
        cut = f"ended with status {process.returncode}" if process.returncode else ""
    except subprocess.TimeoutExpired:
        cut = f"cut after {limit_s:.0f} s"
    finally:
        _end(process)
    telling.join(1.0)
    spent = time.monotonic() - begun
    one.write(part.name, device, Row(part.name + WHOLE, spent, "s", note=cut))
    if cut:
        one.write(part.name, device, Row(part.name, None, "", note=cut))
    yield from (row for _, row in kept(rows)[before:])


def _tell(said: IO[bytes], log: Path) -> None:
    """Pass on what a process says, and keep it."""
    with log.open("ab") as output:
        for line in said:
            output.write(line)
            output.flush()
            sys.stderr.write(line.decode(errors="replace"))
            sys.stderr.flush()


def write_tables(one: Run, device: str) -> None:
    """Write the tables of what there is by now."""
    by_part: dict[str, list[Row]] = {}
    for part, row in kept(one.output / ROWS):
        by_part.setdefault(part, []).append(row)
    lines = [f"# On {device}", f"{os.cpu_count()} cores beside it.{' Quick.' * one.quick}"]
    for part, rows in by_part.items():
        lines += [f"## {part}", f"```\n{table(rows)}\n```"]
    (one.output / PAGE).write_text("\n\n".join(lines) + "\n", encoding="utf-8")


def summary(rows: Iterable[Row]) -> str:
    """The rows that have a target, what failed, and how long each part took."""
    shown, failed = [], []
    for row in rows:
        if row.value is None:
            failed.append(f"failed: {row.name}: {row.note}"[:TOLD_MAX])
        elif row.note.startswith(TARGET) or row.name.endswith(WHOLE):
            told = f"{row.name}: {figure(row.value)} {row.unit}"
            ratio = "" if row.ratio is None else f", {row.ratio:.2f} times {row.baseline_name}"
            shown.append(f"{told}{ratio}{f' ({row.note})' if row.note else ''}")
    if len(failed) > FAILED_MAX:
        failed[FAILED_MAX:] = [f"and {len(failed) - FAILED_MAX} more failed"]
    return "\n".join([*failed, *shown])


def installed(folder: Path, target: Path) -> Mapping[str, str]:
    """The environment with the wheels of a folder installed into another."""
    wheels = sorted(map(str, folder.glob("*.whl")))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    command += ["--no-compile", "--no-cache-dir", "--target", str(target), *wheels]
    subprocess.run(command, check=True)
    path = [str(target), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


def chosen(names: str) -> list[Part]:
    """Parts by their names, in the order of PARTS; ValueError for one that is none."""
    wanted = [name.strip() for name in names.split(",")]
    known = [part.name for part in PARTS]
    for name in wanted:
        if name not in known:
            raise ValueError(f"there is no part {name!r}; there are {', '.join(known)}")
    return [part for part in PARTS if part.name in wanted]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run parts; 1 where something could not be measured."""
    limits = ", ".join(f"{part.name} ({part.limit_s:.0f} s)" for part in PARTS)
    first, _, rest = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python3 -m studies.bench_gpu",
        description=f"{first}\n\nParts, in their order: {limits}.\n\n{rest}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--output", type=Path, default=Path("build/gpu"), metavar="DIR")
    parser.add_argument("--wheels", type=Path, metavar="DIR", help="installed for this run alone")
    parser.add_argument("--parts", default=",".join(part.name for part in PARTS), metavar="A,B")
    parser.add_argument("--total-s", type=float, default=TOTAL_S, metavar="SECONDS")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller workloads")
    options = parser.parse_args(arguments)
    try:
        parts = chosen(options.parts)
    except ValueError as error:
        parser.error(str(error))
    begun = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    options.output.mkdir(parents=True, exist_ok=True)
    for name in (ROWS, LOG, PAGE):
        (options.output / name).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as target:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each process compiles all modules
        environment: Mapping[str, str] = dict(os.environ)
        if options.wheels is not None:
            try:
                environment = installed(options.wheels, Path(target))
            except subprocess.CalledProcessError:  # pip has said why
                parser.error(f"the wheels in {options.wheels} cannot be installed")
        one = Run(options.output, parts, options.total_s, options.quick, environment, begun)
        rows = list(measured(one))
    if rows:
        print(f"\n{summary(rows)}\n\nall of it: {options.output / PAGE}")
    return 1 if any(row.value is None for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
