"""Every configured file may be a link to something that is none: a refusal in words at the start.

What is read at SIGHUP is in test_sighup.
"""

import os

import pytest
from paged import TOKEN
from secured import make_keys

from broker.cli import main

KINDS = {
    "nothing": "nowhere",
    "loop": "link",
    "pipe": "pipe",
    "device": "/dev/zero",
    "folder": ".",
    "kernel": "/proc/kmsg",
}
BROKER = """
name = "b1"
listen = ["tcp://127.0.0.1:*"]
http = "127.0.0.1:0"
http_token = "token"
"""
CONNECT = """
[[source]]
name = "plant"
topic = "t"
events = ["Temp(value: float)"]
dead_letter = "plant.dead"
mqtt = { url = "mqtts://127.0.0.1:1", username = "u", password_file = "password" }
[[sink]]
name = "out"
filters = ["Temp()"]
topic = ""
dead_letter = "out.dead"
webhook = { url = "http://127.0.0.1:1/", secret_file = "secret" }
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(make_keys(tmp_path))
    os.mkfifo("pipe")
    (tmp_path / "b1.toml").write_text(f"[broker]{BROKER}")
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    (tmp_path / "plant.toml").write_text(CONNECT)
    for name in ("password", "secret"):
        (tmp_path / name).write_text("x" * 40)
    return tmp_path


def checked(*words):
    try:
        return main([*words])
    except SystemExit as ended:
        return ended.code


def put(file, kind):
    file.unlink()
    file.symlink_to(file.name if kind == "loop" else KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("file", ["b1.toml", "token", "access.toml", "b1.key_secret", "alice.key"])
def test_of_a_broker(here, capsys, file, kind):
    words = ["broker", "--check", "--config", "b1.toml", "--secret-key", "b1.key_secret"]
    words += ["--access", "access.toml"]
    assert checked(*words) == 0, capsys.readouterr().err
    put(here / file, kind)
    assert checked(*words) in (1, 2)
    said = capsys.readouterr().err
    assert file in said
    assert "Traceback" not in said
    assert "Error" not in said


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("file", ["password", "ca", "secret"])
def test_of_connectors(here, capsys, file, kind):
    assert checked("connect", "--check", "plant.toml") == 0
    with_ca = CONNECT.replace('"password" }', '"password", ca_file = "ca" }')
    (here / "plant.toml").write_text(with_ca if file == "ca" else CONNECT)
    (here / file).unlink(missing_ok=True)
    (here / file).symlink_to(file if kind == "loop" else KINDS[kind])
    assert checked("connect", "--check", "plant.toml") == 1
    said = capsys.readouterr().err
    assert f"{file}_file: " in said
    assert "Traceback" not in said


def test_certificates_of_a_connector_are_those_of_its_file(here, capsys):
    text = CONNECT.replace('"password" }', '"password", ca_file = "ca" }')
    (here / "plant.toml").write_text(text)
    for text in ("", "none", "\N{SNOWMAN}"):
        (here / "ca").write_text(text)
        assert checked("connect", "--check", "plant.toml") == 1
        assert "expected certificates (PEM)" in capsys.readouterr().err


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_folder_of_rules_nothing_is_passed_over(here, capsys, kind):
    rules = here / "rules"
    rules.mkdir()
    (rules / "a.tesla").write_text("event T(x: int)\n")
    (rules / "b.tesla").symlink_to("b.tesla" if kind == "loop" else here / KINDS[kind])
    words = "rule", "apply", str(rules), "--prune", "--broker", "tcp://127.0.0.1:1"
    assert checked(*words) in (1, 2)
    said = capsys.readouterr().err
    assert "b.tesla" in said
    assert "Traceback" not in said
