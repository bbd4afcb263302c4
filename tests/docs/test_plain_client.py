"""docs/protocol.md is enough to write a client: one of the standard library alone, and a broker.

What it gets is what ``rexmq detect`` finds, byte for byte.
"""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from broker.process import BrokerProcess

LIMIT_S = 300  # kernels may have to be compiled first
pytestmark = pytest.mark.timeout(3 * LIMIT_S)
EXAMPLE = Path(__file__).parents[2] / "examples" / "plain" / "client.py"
RULES = """
event Door(room: string, open: bool)
event Temp(room: string, value: float, battery: int)
event Smoke(room: string)

rule fire:
define Fire(room, value, battery, open)
from   Smoke(room = $r) and each Temp(room = $r and value > 30.5) within 20 s from Smoke
       and last Door(room = $r) within 1 min from Smoke
where  room = $r, value = Temp.value, battery = Temp.battery, open = Door.open

rule alarm:
define Alarm(room, many)
from   Fire(room = $r) and not Door(room = $r and open = true) within 3 s from Fire
       and $n = Count(Temp(room = $r)) within 30 s from Fire and $n > 2
where  room = $r, many = $n
"""
DRAWN = {
    "Door": lambda chance: {"open": chance.random() < 0.5},
    "Temp": lambda chance: {
        "value": chance.choice([-1e300, 30.5, 46.5, round(chance.uniform(20, 60), 2)]),
        "battery": chance.randint(-(2**62), 2**62),
    },
    "Smoke": lambda chance: {},
}


def recording(count: int) -> str:
    chance = random.Random(7)
    lines = []
    for number in range(count):
        name = chance.choice(["Temp", "Temp", "Door", "Smoke"])
        data = {"room": chance.choice(["küche", "hall", "attic \U0001f525"]), **DRAWN[name](chance)}
        time = f"2024-05-01T10:{number // 60:02}:{number % 60:02}Z"
        lines.append(json.dumps({"type": name, "time": time, "id": f"e{number}", "data": data}))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    (folder / "rules.tesla").write_text(RULES)
    (folder / "events.jsonl").write_text(recording(600))
    return folder


def printed(folder: Path, *command: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_client_in_the_standard_library_gets_what_detect_finds(recorded):
    files = ("rules.tesla", "events.jsonl")
    found = printed(recorded, "-m", "broker", "detect", "--rules", files[0], "--events", files[1])
    with BrokerProcess("--engine", "naive") as broker:
        address = broker.endpoint.removeprefix("tcp://")
        alone = ("-E", "-S", str(EXAMPLE))  # no package that is installed can be imported
        delivered = printed(recorded, *alone, address, *files, "Fire", "Alarm(many > 2)")
    assert delivered == found
    assert {json.loads(line)["type"] for line in found} == {"Fire", "Alarm"}
    assert len(found) > 100
