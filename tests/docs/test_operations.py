"""The page on operations: each sign is a metric or a line of the log that there is."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from broker import configuration
from broker.keys import BY_NAME, PARTS
from tests.docs.test_monitoring import METRIC, shown

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text()
OPERATIONS = ROOT / "examples" / "operations"
QUOTED = re.compile(r"`([^`]+)`")


def rows(heading: str) -> list[list[str]]:
    """The rows of the table of a section, without its head."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def sources() -> str:
    folders = ("broker", "routing")
    return "\n".join(one.read_text() for name in folders for one in (ROOT / name).rglob("*.py"))


def test_every_sign_is_a_metric_or_a_line_of_the_log() -> None:
    known = sources()
    process = {"process_cpu_seconds_total"}
    for what, signs, _ in rows("What goes wrong, and its signs"):
        found = [sign for sign in QUOTED.findall(signs) if "=" not in sign]
        assert found, what
        for sign in found:
            name = METRIC.fullmatch(sign)
            is_known = sign in shown() | process if name else sign in known
            is_setting = sign in BY_NAME
            assert is_known or is_setting, (what, sign)


def test_metrics_and_settings_of_the_page_are_those_there_are() -> None:
    assert set(METRIC.findall(PAGE)) - {"rexmq_"} <= shown() | {"process_cpu_seconds_total"}
    assert [part.strip("`") for part, _ in rows("The log")] == ["routing", "broker", *PARTS[2:]]


def test_levels_as_the_page_writes_them_are_taken() -> None:
    for text in re.findall(r"`(log_level = [^`]+)`", PAGE):
        value = tomllib.loads(text)["log_level"]
        assert BY_NAME["log_level"].parse(value, "") == "info,routing=warning"
    assert configuration.load(None, {"REXMQ_LOG_LEVEL": "info,routing=warning"}, {})


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    unit = (OPERATIONS / "rexmq.service").read_text()
    here = tmp_path / "rexmq.service"
    here.write_text(unit.replace("/opt/rexmq/bin/rexmq", sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", str(here)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_container_starts_what_there_is() -> None:
    text = (OPERATIONS / "Containerfile").read_text()
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)
    assert entry.startswith('["rexmq", "broker"')
    (code,) = re.findall(r'^RUN python -c "(.*)"$', text, re.MULTILINE)
    imported = code.partition(";")[0]
    assert subprocess.run([sys.executable, "-c", imported], check=True).returncode == 0
