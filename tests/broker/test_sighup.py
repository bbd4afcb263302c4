"""SIGHUP with any file leaves a broker running, and what it went by before in force."""

import os
import signal
import time

import pytest
from secured import KEYS, broker, keys, make_keys, secured

from broker import RuleManager, Subscriber
from broker.errors import RefusedError

GOOD = KEYS.replace("[broker.b1]", 'subscribe = ["Temp"]\n[broker.b1]').replace(
    "[user.bob]", 'subscribe = ["Temp"]\ncommands = ["status"]\n[user.bob]'
)
BAD = {
    "a long number": f"[user.alice]\nrules_max = {'9' * 5_000}\n",
    "a long name": f'[user.{"a" * 300}]\nkey = "alice.key"\n',
    "a name that hides": '[user."\\u001b[2J"]\nkey = "alice.key"\n',
    "many lines": f'[user.alice]\nkey = "alice.key"\npublish = {["T"] * 10_001}\n',
    "a long grant": f'[user.alice]\nkey = "alice.key"\npublish = ["{"T" * 300}"]\n',
    "nested": f"a = {'[' * 5_000}",
    "a key of many parts": f"[{'a.' * 50_000}a]\n",
    "too long": "#" * (5 * 2**20),
    "a key that is a pipe": '[user.alice]\nkey = "pipe"\n',
    "a key without end": '[user.alice]\nkey = "/dev/zero"\n',
    "a key that is a folder": '[user.alice]\nkey = "."\n',
    "no text": b"\xff\xfe\0",
    "nothing": "",
}


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = make_keys(tmp_path_factory.mktemp("keys"))
    (folder / "access.toml").write_text(GOOD)
    (folder / "b1.toml").write_text("")
    os.mkfifo(folder / "pipe")
    with open(folder / "log", "wb") as log:
        flags = "--name", "b1", *secured(folder, "b1"), "--config", str(folder / "b1.toml")
        with broker(*flags, log=log.fileno()) as (process, endpoint):
            yield process, endpoint, folder


def refused(folder):
    return (folder / "log").read_text().count("configuration refused; the old one stays in force")


def reload(running, file, put):
    """Put something in the place of a file, send SIGHUP, and put the old one back."""
    process, endpoint, folder = running
    before, count = (folder / file).read_bytes(), refused(folder)
    (folder / file).unlink()
    put(folder / file)
    try:
        process.send_signal(signal.SIGHUP)
        until = time.monotonic() + 20
        while refused(folder) == count:
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.02)
    finally:
        if (folder / file).is_dir():
            (folder / file).rmdir()
        else:
            (folder / file).unlink(missing_ok=True)
        (folder / file).write_bytes(before)
    with RuleManager(endpoint, **keys(folder, "alice")) as manager:
        assert manager.status()["broker"] == "b1"


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_an_access_file(running, text):
    content = text if isinstance(text, bytes) else text.encode()
    reload(running, "access.toml", lambda path: path.write_bytes(content))


@pytest.mark.parametrize("file", ["access.toml", "b1.toml", "alice.key"])
@pytest.mark.parametrize("kind", ["nothing there", "pipe", "device", "folder", "kernel"])
def test_what_is_no_file(running, file, kind):
    def put(path):
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "device":
            path.symlink_to("/dev/zero")
        elif kind == "kernel":
            path.symlink_to("/proc/kmsg")
        elif kind == "folder":
            path.mkdir()

    reload(running, file, put)


@pytest.mark.parametrize("text", [f"[limits]\nclients_max = {'9' * 5_000}", f"a = {'[' * 5_000}"])
def test_a_configuration(running, text):
    reload(running, "b1.toml", lambda path: path.write_text(text))


def may_read(endpoint, type_name, options):
    try:
        Subscriber(endpoint, f"{type_name}()", **options).close()
    except RefusedError:
        return False
    return True


def test_names_with_many_stars_are_compared_at_once(running):
    """A pattern could be tried in more ways than there is time for."""
    process, endpoint, folder = running
    text = GOOD.replace('subscribe = ["Temp"]\n[broker', f'subscribe = ["*{"a*" * 60}a"]\n[broker')
    (folder / "access.toml").write_text(text)
    process.send_signal(signal.SIGHUP)
    until = time.monotonic() + 20
    while may_read(endpoint, "b" * 200, keys(folder, "bob")):
        assert time.monotonic() < until
    assert not may_read(endpoint, f"{'a' * 200}b", keys(folder, "bob"))
    assert may_read(endpoint, "a" * 200, keys(folder, "bob"))
    (folder / "access.toml").write_text(GOOD)
    process.send_signal(signal.SIGHUP)


def test_while_megabytes_are_read_clients_are_answered(running):
    process, endpoint, folder = running
    filters = ", ".join(f'"Temp(value > {number})"' for number in range(9_000))
    text = GOOD + f'[user.carol]\nkey = "stranger.key"\nsubscribe = [{filters}]\n'
    with RuleManager(endpoint, **keys(folder, "alice")) as manager:
        access, before, answered = folder / "access.toml", reloaded(folder), 0
        old, until = access.read_bytes(), time.monotonic() + 90
        access.write_text(text)
        process.send_signal(signal.SIGHUP)
        while reloaded(folder) == before:
            manager.status()
            answered += 1
            assert time.monotonic() < until
        access.write_bytes(old)
        process.send_signal(signal.SIGHUP)
        while reloaded(folder) < before + 2:
            assert time.monotonic() < until
            time.sleep(0.1)
        assert answered > 3


def reloaded(folder):
    return (folder / "log").read_text().count("configuration reloaded")
