"""The wheel as a stranger gets it: built, installed outside the checkout, and used.

For each Python there is (3.11 to 3.13) a fresh environment gets the wheel from a folder of its own,
and runs there what the README promises: ``detect`` over a file, a broker with a publisher and a
subscriber, and a rule on Spark where there is Java. What cannot be tried is named, with the
reason; what fails ends it.

::

    python tools/wheel.py build/wheel
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
SUBSCRIBED_S, ENDED_S = 5.0, 60.0
"""What a subscriber may take to be known to the broker, and to get what is published."""
RULES = """event Temp(area: string, value: float)
rule hot: define Hot(area: string) from Temp(value > 40) as T where area = T.area
"""
EVENTS = [
    {"type": "Temp", "time": second, "source": "s", "id": str(second), "data": data}
    for second, data in enumerate(({"area": "a1", "value": 20.5}, {"area": "a2", "value": 46.5}))
]
ON_SPARK = """
from broker.spark import detect, local_session, of_type

spark = local_session(cores=1)
rows = [(1.0, "a1", 20.5), (2.0, "a2", 46.5)]
events = spark.createDataFrame(rows, "time double, area string, value double")
found = of_type(detect({"Temp": events}, rules=open("hot.tesla").read()), "Hot").collect()
assert [row.area for row in found] == ["a2"], found
"""


def python(version: str) -> str | None:
    """An interpreter of this version that runs, if there is one."""
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    for candidate in (shutil.which(f"python{version}"), *map(str, kept)):
        if candidate and subprocess.run([candidate, "-c", ""], capture_output=True).returncode == 0:
            return candidate
    return None


def run(*command: str | Path, folder: Path) -> str:
    """What a command prints; SystemExit with what it said when it fails."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    told = subprocess.run(
        list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True
    )
    if told.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{told.stdout}{told.stderr}")
    return told.stdout


def try_detect(bin_: Path, folder: Path) -> None:
    """A rule over a file."""
    (folder / "hot.tesla").write_text(RULES)
    (folder / "temps.jsonl").write_text("".join(json.dumps(one) + "\n" for one in EVENTS))
    told = run(
        bin_ / "rexmq", "detect", "--rules", "hot.tesla", "--events", "temps.jsonl", folder=folder
    )
    assert [json.loads(line)["data"] for line in told.splitlines()] == [{"area": "a2"}], told


def try_broker(bin_: Path, folder: Path) -> None:
    """A broker, a subscriber and a publisher, each a process."""
    broker = subprocess.Popen(
        [bin_ / "rexmq", "broker", "--listen", "tcp://127.0.0.1:*"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert broker.stdout is not None
        at = ("--broker", broker.stdout.readline().split()[-1])
        run(bin_ / "rexmq", "rule", "add", "hot.tesla", *at, folder=folder)
        sink = subprocess.Popen(
            [bin_ / "rexmq", "sub", "Hot", "--count", "1", *at],
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            time.sleep(SUBSCRIBED_S)
            run(bin_ / "rexmq", "pub", "--file", "temps.jsonl", *at, folder=folder)
            told, _ = sink.communicate(timeout=ENDED_S)
            assert json.loads(told)["data"] == {"area": "a2"}, told
        finally:
            sink.kill()
    finally:
        broker.terminate()
        broker.wait()


def main() -> None:
    """Build the wheel and use it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path)
    target = parser.parse_args().target.resolve()
    for old in (target, ROOT / "build" / "lib"):  # where modules that are gone would still be
        shutil.rmtree(old, ignore_errors=True)
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", target, ROOT, folder=ROOT)
    (wheel,) = target.glob("*.whl")
    print(f"built {wheel.name}")
    has_java = shutil.which("java") is not None
    tried = sum(use(wheel, version, with_spark=has_java) for version in PYTHONS)
    if not tried:
        raise SystemExit("no Python to try it on")


def use(wheel: Path, version: str, *, with_spark: bool) -> bool:
    """Install the wheel for a version of Python and use it; whether there is that version."""
    interpreter = python(version)
    if interpreter is None:
        print(f"{version}: not tried: no python{version} is installed that runs")
        return False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(interpreter, "-m", "venv", folder / "venv", folder=folder)
        bin_, extra = folder / "venv" / "bin", "[spark]" if with_spark else ""
        limits = ("-c", ROOT / "constraints.txt")
        pip = (bin_ / "python", "-m", "pip", "install", "--quiet", "--no-compile")
        run(*pip, *limits, f"{wheel}{extra}", folder=folder)
        try_detect(bin_, folder)
        print(f"{version}: detect")
        try_broker(bin_, folder)
        print(f"{version}: a broker with clients")
        if with_spark:
            (folder / "on_spark.py").write_text(ON_SPARK)
            run(bin_ / "python", "on_spark.py", folder=folder)
            print(f"{version}: Spark")
        else:
            print(f"{version}: Spark not tried: there is no java")
    return True


if __name__ == "__main__":
    main()
