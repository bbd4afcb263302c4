"""Keys between brokers and clients: real processes, real sockets, and strangers among them."""

import asyncio
import contextlib
import os
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest
import zmq
from forked import started
from others import NOBODY, as_another, shared_folder
from pages import get
from secured import FAST, broker, keys, make_keys, secured

from broker import AsyncRuleManager, Publisher, RuleManager, Subscriber
from broker.cli import main
from broker.client.address import Address, address_of
from broker.errors import BrokerUnreachable, ConfigurationError
from broker.security.access import Peer, load_access
from broker.security.gate import Gate, objection
from broker.security.keys import Curve, create, load_pair, new_pair, public_key
from matcher.model import EventType
from routing import wire
from routing.messages import (
    LINK_VERSION,
    VERSION,
    Code,
    Confirmed,
    Goodbye,
    Hello,
    LinkHello,
    StatusRequest,
    Welcome,
)

TEMP = EventType.of("Temp", area="string", value="float")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_keys(tmp_path_factory.mktemp("keys"))


def pages(folder):
    """The words that give a broker pages, which ask for a token."""
    file = folder / "b1.token"
    file.touch(0o600)
    file.write_text("a token that is long".replace(" ", "-"))
    return "--http", "127.0.0.1:0", "--http-token", str(file)


@pytest.fixture(scope="module")
def endpoint(folder):
    with broker("--name", "b1", *secured(folder, "b1"), *pages(folder)) as (_, found):
        yield found


# --- who comes in ---


def test_users_publish_and_subscribe(folder, endpoint):
    with (
        Subscriber(endpoint, "Temp()", **keys(folder, "bob")) as sink,
        Publisher(endpoint, name="p", types=[TEMP], **keys(folder, "alice")) as source,
    ):
        source.publish("Temp", area="a", value=1.0)
        assert sink.receive(timeout_s=20).data == {"area": "a", "value": 1.0}


def test_asyncio_too(folder, endpoint):
    async def name():
        async with AsyncRuleManager(endpoint, **keys(folder, "alice")) as manager:
            return (await manager.status())["broker"]

    assert asyncio.run(name()) == "b1"


@pytest.mark.parametrize(
    ("who", "problem"),
    [
        ("stranger", "it does not take this key"),
        (None, "it asks for keys (key, server_key)"),
        ("wrong server", "it has another key than the one expected, or none"),
    ],
)
def test_strangers_are_told_what_is_wrong(folder, endpoint, who, problem):
    given = {
        "stranger": keys(folder, "stranger"),
        "wrong server": keys(folder, "alice", "b2"),
        None: {},
    }[who]
    with pytest.raises(BrokerUnreachable) as raised:
        RuleManager(endpoint, connect_timeout_s=2, **given)
    assert str(raised.value) == f"{endpoint} does not let this client in: {problem}"


def test_a_client_with_keys_at_a_broker_without(folder):
    with (
        broker() as (_, open_endpoint),
        pytest.raises(BrokerUnreachable, match="another key than the one expected, or none"),
    ):
        RuleManager(open_endpoint, connect_timeout_s=2, **keys(folder, "alice"))


def test_nothing_of_a_stranger_is_read(folder, endpoint):
    """A stranger who connects many times costs a user nothing but time."""
    context = zmq.Context()
    try:
        with RuleManager(endpoint, **keys(folder, "alice")) as manager:
            for _ in range(50):
                stranger = context.socket(zmq.DEALER)
                stranger.linger = 0
                stranger.connect(endpoint)
                stranger.send(b"\0" * 10_000)
                stranger.close()
            assert manager.status()["totals"]["malformed"] == 0
    finally:
        context.term()


@pytest.mark.parametrize("what", ["status", "rule list"])
def test_commands_take_keys_as_options_and_from_the_environment(
    folder, endpoint, monkeypatch, capsys, what
):
    words = [*what.split(), "--broker", endpoint]
    own = ["--key", str(folder / "alice.key_secret"), "--server-key", str(folder / "b1.key")]
    assert main([*words, *own]) == 0
    monkeypatch.setenv("REXMQ_KEY", str(folder / "alice.key_secret"))
    monkeypatch.setenv("REXMQ_SERVER_KEY", public_key(str(folder / "b1.key"), "b1"))
    assert main(words) == 0
    capsys.readouterr()
    monkeypatch.delenv("REXMQ_SERVER_KEY")
    assert main(words) == 1
    assert "key is given, and no server_key: expected both, or none" in capsys.readouterr().err


def test_pages_have_a_key_of_their_own(folder):
    with broker("--name", "b1", *secured(folder, "b1"), *pages(folder)) as (process, _):
        url = process.stdout.readline().split()[-1]
        assert get(url)[0] == 401
        shown = get(url, Authorization="Bearer a-token-that-is-long")[2]
        assert 'rexmq_broker_info{broker="b1"' in shown


# --- links ---


def linked(folder, first, key="b2", name="b2"):
    text = (folder / "access.toml").read_text()
    text = text.replace('key = "b1.key"', f'key = "b1.key"\nendpoint = "{first}"')
    (folder / "b2-access.toml").write_text(text)
    return "--name", name, *secured(folder, key, "b2-access.toml"), "--link", first


def test_brokers_link_by_their_keys(folder):
    first_flags = ("--name", "b1", *secured(folder, "b1"), "--strategy", "centralized")
    with (
        broker(*first_flags) as (_, first),
        broker(*linked(folder, first)) as (_, second),
        RuleManager(second, **keys(folder, "alice", "b2")) as manager,
    ):
        await_brokers(manager, 2)


def test_a_user_or_another_broker_cannot_link_as_b2(folder):
    read, write = os.pipe()
    first_flags = ("--name", "b1", *secured(folder, "b1"), "--strategy", "centralized")
    with broker(*first_flags, log=write) as (_, first), os.fdopen(read) as log:
        os.close(write)
        for key, name, reason in (
            ("alice", "b2", "user 'alice' may not link as another broker"),
            ("b2", "b3", "broker 'b2' may not link as another broker"),
        ):
            with broker(*linked(folder, first, key, name)):
                assert any(reason in line for line in log)
        with RuleManager(first, **keys(folder, "alice")) as manager:
            await_brokers(manager, 1)


def test_who_is_linked_to_cannot_call_itself_another_broker(folder):
    """The holder of b1's key says that it is b3; b2, who links to b1, does not take it for b3."""
    read, write = os.pipe()
    first_flags = ("--name", "b3", *secured(folder, "b1"), "--strategy", "centralized")
    with (
        broker(*first_flags) as (_, first),
        os.fdopen(read) as log,
        broker(*linked(folder, first), log=write) as (_, second),
    ):
        os.close(write)
        reason = "broker 'b1' may not link as another broker"
        assert any(reason in line and f"link={first}" in line for line in log)
        with RuleManager(second, **keys(folder, "alice", "b2")) as manager:
            await_brokers(manager, 1)


def test_a_link_to_an_endpoint_that_is_nobodys(folder):
    flags = ("--name", "b2", *secured(folder, "b2"), "--link", "tcp://127.0.0.1:9")
    status, text = refused(*flags)
    assert status == 1
    assert "link tcp://127.0.0.1:9: whose is it?" in text


def await_brokers(manager, count):
    deadline = time.monotonic() + 30
    while len(manager.status()["network"]["brokers"]) != count:
        assert time.monotonic() < deadline
        time.sleep(0.1)


# --- changes ---


def test_who_has_no_key_any_more_is_sent_away(folder):
    access = folder / "changing.toml"
    access.write_text((folder / "access.toml").read_text())
    with broker("--name", "b1", *secured(folder, "b1", "changing.toml")) as (process, endpoint):
        watching = RuleManager(endpoint, **keys(folder, "bob"))
        with watching, Publisher(endpoint, name="p", types=[TEMP], **keys(folder, "alice")):
            await_clients(watching, {"", "p"})
            access.write_text("[user.alice]\nkey = 3\n")
            process.send_signal(signal.SIGHUP)
            time.sleep(0.5)
            await_clients(watching, {"", "p"})  # a bad file keeps the old one
            access.write_text('[user.bob]\nkey = "bob.key"\n')
            process.send_signal(signal.SIGHUP)
            await_clients(watching, {""})
        with pytest.raises(BrokerUnreachable, match="does not take this key"):
            RuleManager(endpoint, connect_timeout_s=2, **keys(folder, "alice"))


def test_who_has_no_key_any_more_and_says_nothing_is_sent_away_too(folder):
    """A client that announces a heartbeat of an hour could else go on reading for an hour."""
    access = folder / "silent.toml"
    access.write_text((folder / "access.toml").read_text())
    context = zmq.Context()
    try:
        with (
            broker("--name", "b1", *secured(folder, "b1", "silent.toml")) as (process, endpoint),
            RuleManager(endpoint, **keys(folder, "bob")) as watching,
            context.socket(zmq.DEALER) as silent,
        ):
            silent.linger = 0
            Curve(
                load_pair(folder / "alice.key_secret"), public_key(str(folder / "b1.key"), "b1")
            ).apply(silent)
            silent.reconnect_ivl = -1
            monitor = silent.get_monitor_socket(zmq.EVENT_DISCONNECTED)
            silent.connect(endpoint)
            silent.send_multipart(wire.encode(Hello(1, "silent", 3600.0)))
            await_clients(watching, {"", "silent"})
            assert not monitor.poll(0)
            access.write_text('[user.bob]\nkey = "bob.key"\n')
            process.send_signal(signal.SIGHUP)
            await_clients(watching, {""})
            assert monitor.poll(10_000)  # its connection is hung up on, and bob's stands
            assert watching.status()
            silent.disable_monitor()
            monitor.close()
    finally:
        context.term()


def await_clients(manager, names):
    deadline = time.monotonic() + 30
    while {one["name"] for one in manager.status()["clients"]} != names:
        assert time.monotonic() < deadline
        time.sleep(0.1)


# --- without keys ---


def test_without_keys_other_machines_are_kept_out():
    status, text = refused("--listen", "tcp://0.0.0.0:*")
    assert status == 1
    assert "other machines can reach this, and there are no keys" in text
    assert "--insecure true" in text
    assert "--secret-key b1.key_secret --access access.toml" in text


def test_a_key_without_an_access_file(folder):
    status, text = refused("--secret-key", str(folder / "b1.key_secret"))
    assert status == 1
    assert "secret_key is given alone: expected secret_key and access, or neither" in text


@pytest.mark.parametrize("listen", ["tcp://0.0.0.0:7461", "tcp://*:7461", "tcp://[::]:7461"])
def test_check_tells_of_an_address_that_others_reach(capsys, listen):
    assert main(["broker", "--check", "--listen", listen]) == 1
    assert f"{listen}: other machines can reach this" in capsys.readouterr().err
    assert main(["broker", "--check", "--listen", listen, "--insecure", "true"]) == 0


def test_check_reads_the_files_of_keys(folder, tmp_path, capsys):
    assert main(["broker", "--check", *secured(folder, "b1")]) == 0
    link = "tcp://127.0.0.1:9"
    assert main(["broker", "--check", *secured(folder, "b1"), "--link", link]) == 1
    assert f"link {link}: whose is it?" in capsys.readouterr().err
    bad = tmp_path / "bad.toml"
    bad.write_text("[user.alice]\nkey = 3\n")
    assert main(["broker", "--check", *secured(folder, "b1", bad)]) == 1
    assert "[user.alice] key: expected a text" in capsys.readouterr().err


def refused(*flags):
    """The exit status of a broker that does not start, and what it says."""
    pipe = subprocess.PIPE
    with started("broker", *FAST, *flags, stdout=pipe, stderr=pipe) as process:
        _, text = process.communicate(timeout=60)
    return process.returncode, text


# --- files ---


def test_key_files(tmp_path, capsys):
    assert main(["keys", "new", "b1", "--dir", str(tmp_path / "new")]) == 0
    public = capsys.readouterr().out.split()[0]
    secret_file = tmp_path / "new" / "b1.key_secret"
    assert stat.S_IMODE(secret_file.stat().st_mode) == 0o600
    assert zmq.curve_public(load_pair(secret_file).secret.encode()).decode() == public
    assert main(["keys", "show", str(secret_file), str(tmp_path / "new" / "b1.key")]) == 0
    shown = capsys.readouterr().out
    assert [line.split()[0] for line in shown.splitlines()] == [public, public]
    assert load_pair(secret_file).secret not in shown
    assert main(["keys", "new", "b1", "--dir", str(tmp_path / "new")]) == 1
    assert "there already; a key is not written over" in capsys.readouterr().err


def test_the_path_of_a_file_may_be_as_long_as_a_key(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = Path("keys-of-plant-north/in/use-1-2")
    create("ann-1", folder)
    (folder / "access.toml").write_text('[user.ann]\nkey = "ann-1.key"\n')
    assert len(str(folder / "ann-1.key")) == 40
    public = load_pair(folder / "ann-1.key_secret").public
    assert public_key(str(folder / "ann-1.key"), "ann") == public
    assert load_access(folder / "access.toml").owners.keys() == {public}
    assert public_key(public, "ann") == public


def test_files_of_pyzmq_are_read(tmp_path):
    import zmq.auth

    public_file, secret_file = map(Path, zmq.auth.create_certificates(tmp_path, "carol"))
    secret_file.chmod(0o600)
    assert load_pair(secret_file).public == public_key(str(public_file), "carol")


@pytest.mark.parametrize(
    ("name", "problem"), [("", "expected letters"), ("../x", "expected"), ("a b", "expected")]
)
def test_names_that_are_none(tmp_path, name, problem):
    with pytest.raises(ConfigurationError, match=problem):
        create(name, tmp_path)


def test_a_secret_that_others_may_read_is_refused(tmp_path):
    secret_file = create("b1", tmp_path)
    secret_file.chmod(0o640)
    with pytest.raises(ConfigurationError, match=r"others may read this secret: chmod 600"):
        load_pair(secret_file)


def test_a_secret_that_root_has_given_to_a_group_is_taken():
    """As systemd gives a service its credentials, and Kubernetes a pod its secrets."""
    with shared_folder() as folder:
        secret_file = create("b1", folder)
        os.chown(secret_file, 0, NOBODY)
        secret_file.chmod(0o440)
        given = as_another(lambda: load_pair(secret_file))
        secret_file.chmod(0o444)
        refused = as_another(lambda: load_pair(secret_file))
        assert "others may read this secret" in str(refused)
        secret_file.chmod(0o400)
        assert given == load_pair(secret_file)


@pytest.mark.parametrize(
    "text",
    [
        "",
        'public-key = "x"\n',
        "secret-key = 3\n",
        f'secret-key = "{"x" * 39}"\n',
        f'secret-key = "{"~" * 40}"\n',
    ],
)
def test_what_is_no_secret_key(tmp_path, text):
    file = tmp_path / "x.key_secret"
    file.write_text(text)  # which others may read, as they may the file of a public key
    with pytest.raises(ConfigurationError, match="expected a secret key"):
        load_pair(file)


def test_two_halves_that_do_not_belong_together(tmp_path):
    file = create("b1", tmp_path)
    file.write_text(f'public-key = "{new_pair().public}"\nsecret-key = "{new_pair().secret}"\n')
    with pytest.raises(ConfigurationError, match="its public key is not that of its secret key"):
        load_pair(file)


@pytest.mark.parametrize("text", ["x", "x" * 5000, "x\0", "#" * 40, '"' * 40, "é" * 40])
def test_what_is_no_public_key(text):
    with pytest.raises(ConfigurationError, match=r"^there: expected a public key of 40"):
        public_key(text, "there")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[", "access.toml: "),
        ("", "expected at least one [user.NAME] or [broker.NAME]"),
        ("x = 1", "unknown table or key 'x'; expected [user.NAME], [group.NAME] or [broker.NAME]"),
        ("[user]\nalice = 1", "[user.alice]: expected a table"),
        ("[user.alice]", "[user.alice] key: expected a text"),
        ("[user.alice]\nkey = []", "[user.alice] key: expected at least one"),
        ('[user.alice]\nkey = "x"', "[user.alice] key: expected a public key of 40"),
        (f'[user.alice]\nkey = "{"x" * 5000}"', "[user.alice] key: expected a public key of 40"),
        ('[user.alice]\nendpoint = "x"', "[user.alice] has no key 'endpoint'; expected key"),
        ('[user.""]\nkey = "b1.key"', "a user's name that is empty or cannot be printed: ''"),
        (
            '[broker.b1]\nkey = "b1.key"\nendpoint = "http://x"',
            "[broker.b1] endpoint: expected an endpoint such as tcp://first.example:7461, found",
        ),
        ("x = {" + '\'a,\'."b\\"" . ' * 16 + "a = 1}", "line 1: a key of more than 16 parts"),
        (
            '[user.alice]\nkey = "b1.key"\n[broker.b1]\nkey = "b1.key"',
            "[broker.b1] key: user 'alice' has this key, too",
        ),
    ],
)
def test_bad_access_files_name_the_place(tmp_path, text, problem):
    create("b1", tmp_path)
    file = tmp_path / "access.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as raised:
        load_access(file)
    assert str(raised.value).startswith(str(file))
    assert problem in str(raised.value)


def test_a_link_whose_key_is_not_known_is_refused(folder):
    access = load_access(folder / "access.toml")
    with pytest.raises(ConfigurationError, match=r"link tcp://h:1: whose is it\? expected a"):
        Gate(new_pair(), access, ["tcp://h:1"])


def test_an_address_without_keys(monkeypatch):
    monkeypatch.delenv("REXMQ_BROKER", raising=False)
    assert address_of(None) == Address("tcp://127.0.0.1:7461")


# --- the gate ---


def link_hello(name):
    return wire.encode(LinkHello(LINK_VERSION, name, 1, 0, 0, 0, 1.0, "t", 1))


@pytest.mark.parametrize(
    ("owner", "frames", "reason"),
    [
        (None, [b"x"], "its key is nobody's any more"),
        (Peer("a"), [b""], None),
        (Peer("a"), wire.encode(Hello(1, "a", 1.0)), None),
        (Peer("b", True), wire.encode(Hello(1, "a", 1.0)), "broker 'b' is no user"),
        (Peer("b", True), link_hello("b"), None),
        (Peer("b", True), link_hello("c"), "broker 'b' may not link as another broker"),
        (Peer("a"), link_hello("a"), "user 'a' is no broker"),
        (Peer("a"), link_hello("b")[:1][:3], "user 'a' may not link as another broker"),
    ],
)
def test_what_an_owner_may_say(owner, frames, reason):
    assert objection(owner, frames) == reason


# --- one key for a conversation ---


def test_another_key_does_not_go_on_in_a_conversation(folder, endpoint):
    """Whoever has gone may not be noticed yet: it shows when something is sent."""
    for turn in range(3):
        identity = b"\0any%d" % turn  # one such as libzmq gives
        said = [wire.encode(Hello(VERSION, "", 60.0)), wire.encode(StatusRequest(1))]
        with dealer(folder, endpoint, "alice", identity) as alice:
            for message in said:
                alice.send_multipart(message)
            answers = [answer(alice), answer(alice)]
            assert [type(one) for one in answers] == [Welcome, Confirmed]
        take_over(folder, endpoint, identity, said)


def take_over(folder, endpoint, identity, said):
    """Bob is let in by the identity once ZeroMQ has noticed that alice has gone."""
    deadline = time.monotonic() + 20
    heard = None
    while heard is None:
        assert time.monotonic() < deadline
        with dealer(folder, endpoint, "bob", identity) as bob:
            bob.send_multipart(said[1])
            heard = answer(bob, 500)
            if heard is not None:
                assert isinstance(heard, Goodbye)
                assert heard.code is Code.UNKNOWN


@contextlib.contextmanager
def dealer(folder, endpoint, name, identity):
    """A socket of a client that has chosen its ZeroMQ identity."""
    server = public_key(str(folder / "b1.key"), "b1")
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.linger = 0
        socket.setsockopt(zmq.IDENTITY, identity)
        Curve(load_pair(folder / f"{name}.key_secret"), server).apply(socket)
        socket.connect(endpoint)
        yield socket


def answer(socket, timeout_ms=10_000):
    return wire.decode(socket.recv_multipart()) if socket.poll(timeout_ms) else None
