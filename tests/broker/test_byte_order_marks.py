"""Text files that an editor has begun with a byte order mark are read as if it were not there."""

from pathlib import Path

import command

from broker import configuration
from broker.monitoring.entry import load_token
from broker.security.access import load_access
from broker.security.keys import create, load_pair, public_key
from simulator import processing

FILTER = '{"filter": 1, "interface": 2, "type": "Temp", "constraints": [["value", ">", 1]]}\n'
EVENT = '{"type": "Temp", "time": "2026-11-29T09:00:00Z", "data": {"value": 2}}\n'
RULE = "rule hot: define Hot(v: int) from Temp(value > 1) as t where v = t.value\n"


def marked(file: Path) -> Path:
    """The file with the mark before all else."""
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    return file


def written(file: Path, text: str) -> Path:
    file.write_text(text)
    return marked(file)


def test_configuration_access_keys_and_tokens(tmp_path: Path) -> None:
    file = written(tmp_path / "b1.toml", '[broker]\nname = "b7"\n')
    assert configuration.load(file, {}, {}).values["name"] == "b7"
    pair = load_pair(create("al", tmp_path))
    public = tmp_path / "al.key"
    public.write_text(f'public-key = "{pair.public}"\n')
    assert public_key(str(marked(public)), "al") == pair.public
    secret = tmp_path / "al.key_secret"
    secret.write_text(f'secret-key = "{pair.secret}"\n')
    assert load_pair(marked(secret)) == pair
    access = load_access(written(tmp_path / "access.toml", '[user.al]\nkey = "al.key"\n'))
    assert list(access.owners) == [pair.public]
    token = written(tmp_path / "token", f"{'x' * 32}\n")
    token.chmod(0o600)
    assert load_token(token) == "x" * 32


def test_filters_events_and_rules(tmp_path: Path) -> None:
    filters = written(tmp_path / "filters.jsonl", FILTER)
    events = written(tmp_path / "events.jsonl", EVENT)
    rules = written(tmp_path / "hot.tesla", RULE)
    more = written(tmp_path / "more.tesla", RULE.replace("hot", "warm").replace("Hot", "Warm"))
    done = command.run("match", "--filters", filters, "--events", events)
    assert (done.returncode, done.stderr) == (0, "")
    done = command.run("detect", "--rules", rules, "--rules", more, "--events", events)
    assert (done.returncode, done.stdout.count('"Hot"'), done.stdout.count('"Warm"')) == (0, 1, 1)


def test_tables_of_costs(tmp_path: Path) -> None:
    file = tmp_path / "table.toml"
    file.write_text(processing.MEASURED.read_text())
    assert processing.read(marked(file)) == processing.read(processing.MEASURED)
