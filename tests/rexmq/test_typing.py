"""The packages are typed: mypy finds the mistakes of a program that uses them installed."""

import subprocess
import sys
import sysconfig
from pathlib import Path

from broker.packages import PACKAGES

ROOT = Path(__file__).parents[2]
PROGRAM = """\
import rexmq

engine = rexmq.Engine("event Tick(n: int) define Tock(n: int) from Tick() where n = Tick.n")
engine.publish("Tick", tiem=1.0, n=1)  # call-arg
print(engine.finish()[0].data.valeus())  # attr-defined
with rexmq.Publisher(name=7) as publisher:  # arg-type
    number: str = publisher.publish("Tick", n=2).number  # assignment
found = rexmq.detect("event Tick(n: int)", [], treads=2)  # call-arg
print(found["Tock"].to_arow())  # attr-defined
layout = rexmq.Layout(time=5)  # arg-type
for event in rexmq.Subscriber(None, "Tock"):
    print(event.data["n"], event.time + 1)
"""


def test_a_checker_finds_the_mistakes_of_a_program(tmp_path):
    # An environment without pip, to which the packages belong as installed ones do.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    (site,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    installed = sysconfig.get_path("purelib")
    (site / "installed.pth").write_text(f"{ROOT}\n{installed}\n")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM + "".join(f"import {name}\n" for name in PACKAGES))
    (tmp_path / "mypy.ini").write_text("[mypy]\n")
    checked = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--config-file", tmp_path / "mypy.ini"),
            *("--python-executable", tmp_path / "env" / "bin" / "python"),
            *("--cache-dir", ROOT / ".mypy_cache" / "programs", "--hide-error-context", program),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in checked.stdout.splitlines() if " error: " in line]
    told = [(int(line.split(":")[1]), line.rpartition("[")[2].rstrip("]")) for line in errors]
    lines = enumerate(PROGRAM.splitlines(), start=1)
    assert told == [(place, line.partition("  # ")[2]) for place, line in lines if "  # " in line]
