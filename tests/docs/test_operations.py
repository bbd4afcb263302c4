"""The page on operations: each sign is a metric or a line of the log that there is."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from command import run as command_run
from others import shared_folder

from broker import Publisher, configuration
from broker.client.address import address_of
from broker.keys import BY_NAME, PARTS
from broker.security.keys import create
from matcher.model import EventType
from rules.engine.kernels.instants import process
from runtime.compiling.compiled import folder_of
from tests.docs.confined import USER, confined, reason_not_to
from tests.docs.test_monitoring import METRIC, shown

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text()
OPERATIONS = ROOT / "examples" / "operations"
UNIT = (OPERATIONS / "rexmq.service").read_text()
CONTAINER = (OPERATIONS / "Containerfile").read_text()
TEMP = EventType.of("Temp", n="int")
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
    here = tmp_path / "rexmq.service"
    here.write_text(UNIT.replace("/opt/rexmq/bin/rexmq", sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", str(here)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_container_starts_what_there_is() -> None:
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", CONTAINER, re.MULTILINE)
    assert entry.startswith('["rexmq", "broker"')
    (code,) = re.findall(r'^RUN python -c "(.*)"$', CONTAINER, re.MULTILINE)
    imported = code.partition(";")[0]
    assert subprocess.run([sys.executable, "-c", imported], check=True).returncode == 0


# --- the examples, as far as a machine without systemd and containers can execute them ---

NOT_CONFINED = reason_not_to()
confining = pytest.mark.skipif(NOT_CONFINED is not None, reason=str(NOT_CONFINED))
KEPT = {"NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", "")}
CONFIGURATION = """
[broker]
name = "b1"
listen = ["tcp://127.0.0.1:*"]
engine = "naive"

[security]
access = "ETC/access.toml"
"""


@pytest.fixture
def machine() -> Iterator[dict[str, Path]]:
    """The folders of a machine by their usual names: configuration, state, cache, credentials."""
    with shared_folder() as top:
        folders = {name: top / name for name in ("etc", "state", "cache", "credentials")}
        for folder in folders.values():
            folder.mkdir(mode=0o755)
        etc = folders["etc"]
        create("b1", etc)
        user_key = create("u", etc)
        user_key.chmod(0o600)
        (etc / "access.toml").write_text('[user.u]\nkey = "u.key"\n')
        (etc / "broker.toml").write_text(CONFIGURATION.replace("ETC", str(etc)))
        yield folders


def run_confined(
    machine: dict[str, Path], command: Sequence[str], environment: dict[str, str]
) -> str:
    """Start a broker, publish to it, stop it; gives its log. It uses the kernels that are kept on
    this machine: a folder of its own for them would take it a minute to fill.
    """
    etc, writable = machine["etc"], [machine["state"], machine["cache"]]
    broker = confined(command, writable, {**environment, **KEPT})
    try:
        assert broker.stdout is not None
        line = broker.stdout.readline().strip()
        assert line.startswith("listening on "), broker.communicate()[1]
        address = address_of(line.split()[-1], etc / "u.key_secret", etc / "b1.key")
        with Publisher(address, name="p", types=[TEMP]) as publisher:
            publisher.publish("Temp", n=1)
    finally:
        broker.send_signal(signal.SIGTERM)
    _, log = broker.communicate(timeout=30)
    assert broker.returncode == 0, log
    found = command_run("log", "list", "--data", machine["state"])
    assert "1 entries, 1 events" in found.stdout
    return log


def as_here(value: str, machine: dict[str, Path]) -> str:
    """The value of a unit's variable with this machine's folders."""
    for short, folder in (("%d", "credentials"), ("%S/rexmq", "state"), ("%C/rexmq", "cache")):
        value = value.replace(short, str(machine[folder]))
    return value


def modes(folder: Path) -> set[str]:
    return {oct(stat.S_IMODE(file.stat().st_mode)) for file in folder.iterdir()}


@confining
def test_the_unit_starts_a_broker_that_keeps_its_store(machine: dict[str, Path]) -> None:
    """By the unit's own command and variables, with a credential as systemd 257 gives it: root's,
    and readable by the group that an access list shows.
    """
    lines = [line.partition("=") for line in UNIT.splitlines() if line[:1].isalpha()]
    (command,) = [value for name, _, value in lines if name == "ExecStart"]
    (credential,) = [value for name, _, value in lines if name == "LoadCredential"]
    variables = [value.split("=", 1) for name, _, value in lines if name == "Environment"]
    given = machine["credentials"] / credential.partition(":")[0]
    given.write_bytes((machine["etc"] / "b1.key_secret").read_bytes())
    os.chown(given, 0, USER)
    given.chmod(0o440)
    known = {
        "%d": machine["credentials"],
        "%S/rexmq": machine["state"],
        "%C/rexmq": machine["cache"],
    }
    environment = dict(variables)
    for name, value in environment.items():
        for short, folder in known.items():
            value = value.replace(short, str(folder))
        environment[name] = value
    words = command.replace("/etc/rexmq", str(machine["etc"])).split()
    run_confined(machine, [sys.executable, "-m", "broker", *words[1:]], environment)
    assert modes(machine["state"]) == {"0o600"}
    names = {name for name, _, _ in lines}
    assert {"StateDirectory", "CacheDirectory"} <= names


@confining
def test_the_container_runs_by_a_user_on_a_disk_for_reading_alone(
    machine: dict[str, Path],
) -> None:
    key = machine["etc"] / "b1.key_secret"
    os.chown(key, USER, USER)
    settings = CONFIGURATION + 'secret_key = "ETC/b1.key_secret"\n'
    (machine["etc"] / "broker.toml").write_text(settings.replace("ETC", str(machine["etc"])))
    (variables,) = re.findall(r"^ENV (.*)$", CONTAINER, re.MULTILINE)
    environment = dict(one.split("=") for one in variables.split())
    assert environment["REXMQ_DATA"] in re.findall(r"^VOLUME (.*)$", CONTAINER, re.MULTILINE)
    for name, folder in (("REXMQ_DATA", "state"), ("NUMBA_CACHE_DIR", "cache")):
        assert environment[name] in CONTAINER.partition("install -d")[2]
        environment[name] = str(machine[folder])
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", CONTAINER, re.MULTILINE)
    words = [word.replace("/etc/rexmq", str(machine["etc"])) for word in json.loads(entry)]
    run_confined(machine, [sys.executable, "-m", "broker", *words[1:]], environment)
    assert re.findall(r"^USER (.*)$", CONTAINER, re.MULTILINE) == [f"{USER}:{USER}"]


@confining
@pytest.mark.skipif(folder_of(process) is None, reason="no kernels are kept here")
def test_kernels_that_are_kept_where_nothing_can_be_written_are_used(tmp_path: Path) -> None:
    code = "from broker.warmup import place, is_kept, process; print(place(), is_kept(process))"
    with confined([sys.executable, "-P", "-c", code], [], KEPT) as child:
        output, errors = child.communicate(timeout=60)
    assert output.split() == [folder_of(process), "True"], errors


def test_the_containers_kernels_are_compiled_for_the_package_that_runs() -> None:
    """Where a checkout is, ``python -c`` would take that for the package."""
    steps = re.findall(r"^(WORKDIR|COPY|USER|RUN) (.*)$", CONTAINER, re.MULTILINE)
    at = next(n for n, step in enumerate(steps) if step[1].startswith("python -c"))
    places = [place for kind, place in steps[:at] if kind == "WORKDIR"]
    assert places[-1] == "/" != places[0]
    assert [kind for kind, _ in steps[:at]].index("USER") > steps.index(("COPY", ". ."))
