"""The tests of FOLDERS on the device, each file in a process of its own, some at once:
an error of CUDA spoils all that its process does later.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.report import Row

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (ROOT / "tests" / "device", ROOT / "studies" / "tests" / "device")
LIMIT_S = 80.0
"""All of them together, less than the part has; what still runs is ended then, and told."""
TEST_S = 70
"""One test: it may be the first that needs kernels of the processor."""
AT_ONCE = 6
COUNTS = re.compile(r"(\d+) (passed|failed|error|errors|skipped)\b")
NOTHING_RUN = 5
"""The status of pytest where no test was run, if all were skipped, say."""
FAILED = re.compile(r"^(?:FAILED|ERROR) \S*?::(\S+)", re.MULTILINE)


def run(quick: bool, folders: Sequence[Path] = FOLDERS) -> Iterator[Row]:
    """How many tests of each file pass; a file with one that does not has failed."""
    deadline = time.monotonic() + LIMIT_S
    files = (file for folder in folders for file in folder.glob("test_*.py"))
    waiting = sorted(files, key=lambda file: -file.stat().st_size)
    running: list[_Running] = []
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            running.append(_Running(waiting.pop(0)))
        is_late = time.monotonic() > deadline
        for one in [one for one in running if is_late or one.process.poll() is not None]:
            running.remove(one)
            yield one.row()
        if is_late:
            waiting.clear()
        time.sleep(0.1)


class _Running:
    """One file under way."""

    def __init__(self, file: Path) -> None:
        self._file, self._said = file, tempfile.TemporaryFile()  # noqa: SIM115
        command = [sys.executable, "-m", "pytest", "-v", "-rfE", "--tb=short", "--color=no"]
        command += ["-p", "no:cacheprovider", "--durations=5", "-o", f"timeout={TEST_S}", str(file)]
        self._begun = time.monotonic()
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=self._said, stderr=subprocess.STDOUT
        )

    def row(self) -> Row:
        """The outcome; a file that is not through is ended."""
        was_cut = self.process.poll() is None
        if was_cut:
            self.process.send_signal(signal.SIGKILL)
        status = self.process.wait()
        self._said.seek(0)
        text = self._said.read().decode(errors="replace")
        self._said.close()
        print(text, flush=True)
        return row_of(self._file.name, text, status, was_cut, time.monotonic() - self._begun)


def row_of(name: str, text: str, status: int, was_cut: bool, spent: float) -> Row:
    """The row of a file, from what pytest printed of it."""
    counts = {kind.rstrip("s"): int(count) for count, kind in COUNTS.findall(text)}
    passed = counts.get("passed", text.count(" PASSED"))
    note = f"{spent:.0f} s"
    if not was_cut and (status == 0 or (status == NOTHING_RUN and "skipped" in counts)):
        skipped = f", {counts['skipped']} skipped" if "skipped" in counts else ""
        return Row(f"tests/{name}", passed, "passed", note=note + skipped)
    failed = ", ".join(dict.fromkeys(FAILED.findall(text))) or f"status {status}"
    said = f"cut after {note}" if was_cut else f"in {note}"
    return Row(f"tests/{name}", None, "", note=f"{passed} passed, {said}; not: {failed}")
