"""Rights of users at live brokers with keys, alone and in a network of two."""

import signal
import time
from contextlib import suppress

import numpy as np
import pytest
from pages import get
from secured import KEYS, broker, keys, make_keys, secured

from broker import Publisher, RuleManager, Subscriber
from broker.cli import main
from broker.errors import ConfigurationError, PublishBlocked, RefusedError
from broker.security.access import load_access
from matcher.model import Causes, EventBatch, EventIds, EventType, StringColumn
from matcher.rows import batch_of
from routing.messages import Act, Limits

TEMP = EventType.of("Temp", area="string", value="float")
SECRET = EventType.of("Secret", v="int")
FIRE = "rule fire: define Fire(area: string) from Temp(value > 45) as t where area = t.area"
ALICE, BOB = '[user.alice]\nkey = "alice.key"\n', '[user.bob]\nkey = ["bob.key"]\n'
RIGHTS = KEYS.replace(ALICE, f'{ALICE}publish = ["Temp"]\ngroups = ["makers"]\n').replace(
    BOB, f'{BOB}subscribe = [\'Temp(area = "a1")\', "Fire"]\n'
)
MAKERS = '[group.makers]\nsubscribe = ["Temp"]\ndefine = ["Fire"]\ndeploy = ["f*"]\n'
COMMANDS = 'remove = ["fire"]\ncommands = ["*"]\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = make_keys(tmp_path_factory.mktemp("keys"))
    (made / "rights.toml").write_text(RIGHTS + MAKERS + COMMANDS)
    return made


def await_that(holds):
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def rules_of(manager):
    return {one["name"]: one["owner"] for one in manager.list()}


def is_allowed(manager):
    """Whether the rule is taken: a broker reads its access file when it comes to it."""
    with suppress(RefusedError):
        manager.add(FIRE)
        return True
    return False


def test_pub_needs_the_rights_to_publish_alone(folder, tmp_path, capsys):
    """Not those to ask for the status: a type that others know is learnt when it is refused."""
    (folder / "alone.toml").write_text(RIGHTS + MAKERS)
    events = tmp_path / "g.jsonl"
    events.write_text('{"type": "Temp", "time": 1e9, "data": {"area": "a", "value": 1.5}}\n')
    flags = ("--name", "b1", *secured(folder, "b1", "alone.toml"))
    with broker(*flags) as (_, endpoint):
        of_alice = keys(folder, "alice")
        key, server = of_alice["key"], of_alice["server_key"]
        words = ["--broker", endpoint, "--key", str(key), "--server-key", str(server)]
        with (
            Publisher(endpoint, name="p", types=[TEMP], **of_alice),
            Subscriber(endpoint, "Temp()", **keys(folder, "bob")) as some,
        ):
            assert main(["pub", "Temp", "area=a1", "value=46", *words]) == 0
            assert some.receive(timeout_s=20).data == {"area": "a1", "value": 46.0}
            assert main(["pub", "--file", str(events), *words]) == 0
            assert main(["pub", "Smoke", "area=a1", *words]) == 1
    assert "user 'alice' may not publish 'Smoke'" in capsys.readouterr().err


def test_users_do_what_they_may_and_nothing_else(folder, capsys):
    token = folder / "token"
    token.write_text("x" * 40)
    token.chmod(0o600)
    pages = "--http", "127.0.0.1:0", "--http-token", str(token)
    flags = ("--name", "b1", *secured(folder, "b1", "rights.toml"), *pages)
    with broker(*flags) as (process, endpoint):
        url = process.stdout.readline().split()[-1]
        alice, bob = keys(folder, "alice"), keys(folder, "bob")
        with (
            Publisher(endpoint, name="p", types=[TEMP], increasing=True, **alice) as source,
            Subscriber(endpoint, "Temp()", **bob) as some,
            Subscriber(endpoint, "Fire()", **bob) as fires,
            RuleManager(endpoint, **alice) as manager,
        ):
            manager.add(FIRE)
            assert manager.show("fire")["owner"] == "alice"
            for area, value in (("a2", 46.0), ("a1", 47.0)):
                source.publish("Temp", area=area, value=value)
            assert some.receive(timeout_s=20).data == {"area": "a1", "value": 47.0}
            found = {fires.receive(timeout_s=20).data["area"] for _ in range(2)}
            assert found == {"a1", "a2"}  # which alice makes known
            words = ["--broker", endpoint, "--server-key", str(folder / "b1.key"), "--key"]
            assert main(["rule", "list", *words, str(folder / "alice.key_secret")]) == 0
            assert "alice" in capsys.readouterr().out
            assert main(["status", *words, str(folder / "bob.key_secret")]) == 1
            reason = "user 'bob' may not run 'status': rights.toml has no commands in [user.bob]"
            assert reason in capsys.readouterr().err
        with pytest.raises(RefusedError) as raised:
            Publisher(endpoint, name="q", types=[TEMP], **bob)
        assert raised.value.code == "not-allowed"
        assert (
            "rexmq_requests_not_allowed_total 2.0"
            in get(url, authorization=f"Bearer {'x' * 40}")[2]
        )


def test_changes_reach_those_who_are_connected(folder):
    access = folder / "changing.toml"
    access.write_text(RIGHTS + MAKERS + COMMANDS)
    alice, bob = keys(folder, "alice"), keys(folder, "bob")
    with (
        suppress(PublishBlocked),  # by the end: the last event may have been on its way
        broker("--name", "b1", *secured(folder, "b1", access)) as (process, endpoint),
        Publisher(endpoint, name="p", types=[TEMP], increasing=True, **alice) as source,
        Subscriber(endpoint, "Temp()", **bob) as some,
        Subscriber(endpoint, "Fire()", **bob) as fires,
        RuleManager(endpoint, **alice) as manager,
    ):
        manager.add(FIRE)
        text = access.read_text().replace('"a1"', '"a2"').replace(', "Fire"', "")
        access.write_text(f"{text}[user.bob]\n")  # a table twice: a bad file keeps the old one
        process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        source.publish("Temp", area="a1", value=44.0)
        assert some.receive(timeout_s=20).data["area"] == "a1"
        access.write_text(text)
        process.send_signal(signal.SIGHUP)
        await_that(lambda: manager.status()["totals"]["not_allowed"] == 1)
        for area in ("a1", "a2"):
            source.publish("Temp", area=area, value=44.0)
        assert some.receive(timeout_s=20).data["area"] == "a2"
        with pytest.raises(RefusedError, match="user 'bob' may not read 'Fire'"):
            fires.receive(timeout_s=20)
        access.write_text(text.replace('publish = ["Temp"]', "").replace('"Fire"', '"Smoke"'))
        process.send_signal(signal.SIGHUP)
        await_that(lambda: rules_of(manager) == {})
        with pytest.raises(RefusedError, match="user 'alice' may not publish 'Temp'") as raised:
            await_that(lambda: source.publish("Temp", area="a1", value=44.0))
        assert raised.value.code == "not-allowed"


def test_an_owner_is_known_when_the_broker_that_let_it_in_is_gone(folder):
    text = RIGHTS + MAKERS + COMMANDS
    first_access, second_access = folder / "first.toml", folder / "second.toml"
    first_access.write_text(text)
    flags = ("--name", "b1", *secured(folder, "b1", first_access), "--strategy", "centralized")
    with broker(*flags) as (first_process, first):
        text = text.replace('key = "b1.key"', f'key = "b1.key"\nendpoint = "{first}"')
        second_access.write_text(text)
        flags = ("--name", "b2", *secured(folder, "b2", second_access), "--link", first)
        with (
            broker(*flags) as (second_process, second),
            RuleManager(second, **keys(folder, "alice", "b2")) as at_second,
        ):
            await_that(lambda: len(at_second.status()["network"]["brokers"]) == 2)
            with (
                RuleManager(first, **keys(folder, "alice")) as at_first,
                Publisher(first, name="p", types=[TEMP], **keys(folder, "alice")),
            ):
                for deploying in (at_first, at_second):  # one of them is the root
                    deploying.add(FIRE)
                    await_that(lambda: rules_of(at_second) == {"fire": "alice"})
                    assert rules_of(at_first) == {"fire": "alice"}
                    deploying.remove("fire")
                for access, process, its_own in (
                    (first_access, first_process, at_first),
                    (second_access, second_process, at_second),
                ):
                    before = access.read_text()
                    await_that(lambda: not at_second.status()["rules"])
                    at_first.add(FIRE)
                    await_that(lambda: at_second.status()["rules"])  # b2 has heard of it
                    access.write_text(before.replace('"Fire"', '"Smoke"'))
                    process.send_signal(signal.SIGHUP)
                    await_that(lambda: rules_of(at_first) == {})
                    access.write_text(before)
                    process.send_signal(signal.SIGHUP)
                    await_that(lambda its_own=its_own: is_allowed(its_own))
                    await_that(lambda: at_second.status()["rules"])
                    its_own.remove("fire")
                with pytest.raises(RefusedError, match="may not deploy 'hot'"):
                    at_first.add(FIRE.replace("fire:", "hot:"))
                with pytest.raises(RefusedError, match="may not deploy 'hot'"):
                    at_second.add(FIRE.replace("fire:", "hot:"))
                await_that(lambda: not at_second.status()["rules"])
                at_first.add(FIRE)
                await_that(lambda: at_second.status()["rules"])  # b2 has heard of it
            first_process.kill()
            await_that(lambda: rules_of(at_second) == {"fire": "alice"})
            await_that(lambda: at_second.status()["rules"][0]["owner"] == "alice")


def test_a_sensor_is_itself_alone(folder):
    """By its name, and by the events that it may publish; another file binds the name anew."""
    access = folder / "sensors.toml"
    bound = f'{ALICE}sources = ["s7"]\npublish = [\'Temp(area = "a7")\']\n'
    access.write_text(KEYS.replace(ALICE, bound).replace(BOB, f'{BOB}publish = ["*"]\n'))
    alice, bob = keys(folder, "alice"), keys(folder, "bob")
    with broker("--name", "b1", *secured(folder, "b1", access)) as (process, endpoint):
        for name in ("s7", "s7#part-2"):
            with pytest.raises(RefusedError, match="user 'bob' may not publish as 's7'"):
                Publisher(endpoint, name=name, types=[TEMP], **bob)
        with pytest.raises(RefusedError, match=r"sources of \[user.alice\] \(line 1\) in"):
            Publisher(endpoint, name="s8", types=[TEMP], **alice)
        source = Publisher(endpoint, name="s7", types=[TEMP], increasing=True, **alice)
        for area in ("a7", "a8"):
            source.publish("Temp", area=area, value=1.0)
        with pytest.raises(RefusedError, match=r"alone .*: 1 Temp not") as raised:
            source.close()
        assert raised.value.code == "not-allowed"
        with Publisher(endpoint, name="hall", types=[TEMP], **bob) as source:
            source.publish("Temp", area="a8", value=2.0)
        access.write_text(access.read_text().replace('"s7"', '"s7", "hall"'))
        process.send_signal(signal.SIGHUP)
        await_that(lambda: publishes(endpoint, "hall", alice))
        with pytest.raises(RefusedError, match="may not publish as 'hall'"):
            Publisher(endpoint, name="hall", types=[TEMP], **bob)


def test_a_name_that_events_are_recorded_under_is_its_users_as_any_that_is_used(folder):
    """Else the numbers of the events are used up, and who comes to the name later loses its own."""
    access = folder / "recording.toml"
    access.write_text(KEYS)
    alice, bob = keys(folder, "alice"), keys(folder, "bob")
    with broker("--name", "b1", *secured(folder, "b1", access)) as (_, endpoint):
        with Publisher(endpoint, name="rec#part-0", types=[TEMP], live=False, **bob) as source:
            source.publish_batch(recorded_as("gate"))
        for name in ("gate", "gate#part-1"):
            with pytest.raises(RefusedError, match="user 'alice' may not publish as 'gate'"):
                Publisher(endpoint, name=name, types=[TEMP], **alice)
        Publisher(endpoint, name="gate", types=[TEMP], **bob).close()


def recorded_as(source):
    """A Temp that was recorded as the first event of a source."""
    of_source = EventIds(StringColumn.constant(source, 1), np.ones(1, np.int64))
    is_numbered = np.ones(1, np.bool_)
    causes = Causes(np.arange(2), of_source, is_numbered, ~is_numbered)
    own = EventIds(StringColumn.constant("", 1), np.ones(1, np.int64))
    columns = StringColumn.constant("a1", 1), np.ones(1)
    return EventBatch(TEMP, np.ones(1, np.int64), own, columns, causes)


def test_who_may_only_read_a_type_does_not_say_what_it_has(folder):
    """Its publisher, who came later, was refused for as long as the rule was there."""
    access = folder / "squat.toml"
    reads = f'{BOB}subscribe = ["Temp"]\ndefine = ["B"]\ndeploy = ["b"]\n'
    access.write_text(KEYS.replace(ALICE, f'{ALICE}publish = ["*"]\n').replace(BOB, reads))
    alice, bob = keys(folder, "alice"), keys(folder, "bob")
    rule = "rule b: define B(v: float) from Temp() as t where v = t.value\n"
    with broker("--name", "b1", *secured(folder, "b1", access)) as (_, endpoint):
        manager = RuleManager(endpoint, **bob)
        for text in ("event Temp(wrong: int)\n", f"event Temp(value: float)\n{rule}"):
            with pytest.raises(RefusedError, match="may not say what Temp has, which is not known"):
                manager.add(text)
        with Publisher(endpoint, name="s1", types=[TEMP], **alice):
            with pytest.raises(RefusedError, match="another schema for Temp"):
                manager.add(f"event Temp(value: float)\n{rule}")
            manager.add(f"event Temp(area: string, value: float)\n{rule}")


def publishes(endpoint, name, options):
    try:
        Publisher(endpoint, name=name, types=[TEMP], **options).close()
    except RefusedError:
        return False
    return True


# --- the file ---


def load(tmp_path, text):
    make_keys(tmp_path)
    file = tmp_path / "rights.toml"
    file.write_text(text)
    return load_access(file)


def test_a_user_has_the_rights_of_its_groups_and_of_its_own_table(tmp_path):
    rights = load(tmp_path, RIGHTS + MAKERS + COMMANDS).rights
    alice, bob = rights["alice"], rights["bob"]
    assert alice.may(Act.PUBLISH, "Temp")
    assert not alice.may(Act.PUBLISH, "Temper")
    assert alice.may(Act.DEPLOY, "fire")
    assert not alice.may(Act.DEPLOY, "hot")
    assert alice.filters("Temp") is None
    assert bob.filters("Temp") == ('Temp(area = "a1")',)
    assert bob.filters("Smoke") == ()
    lines = "line 3 (publish) of rights.toml does not name it"
    assert alice.why_not(Act.PUBLISH, "Smoke") == f"user 'alice' may not publish 'Smoke': {lines}"
    tables = "[user.alice] (line 1) or [group.makers] (line 12)"
    assert alice.why_not(Act.REPLACE, "x").endswith(f"rights.toml has no replace in {tables}")


def test_without_any_line_of_rights_everything_is_allowed(tmp_path):
    rights = load(tmp_path, KEYS).rights
    assert all(rights["bob"].may(act, "x") for act in Act)
    assert rights["bob"].filters("x") is None


def test_limits_are_those_of_the_user_its_groups_or_the_configuration(tmp_path):
    make_keys(tmp_path)
    file = tmp_path / "limits.toml"
    file.write_text(
        f'{ALICE}groups = ["few", "many"]\nrules_max = 3\n{BOB}'
        "[group.few]\nrules_max = 1\nconnections_max = 2\n[group.many]\nconnections_max = 9\n"
    )
    rights = load_access(file, Limits(rules_max=7, batch_events_max=5)).rights
    assert rights["alice"].limits == Limits(9, rules_max=3, batch_events_max=5)
    assert rights["bob"].limits == Limits(rules_max=7, batch_events_max=5)
    assert rights["bob"].may(Act.PUBLISH, "x")


def test_live_clients_are_held_to_their_limits(folder):
    access = folder / "limits.toml"
    access.write_text(KEYS.replace(ALICE, f"{ALICE}connections_max = 2\nbatch_events_max = 100\n"))
    flags = ("--name", "b1", *secured(folder, "b1", access), "--events-per-second-max", "200")
    alice = keys(folder, "alice")
    with (
        broker(*flags) as (process, endpoint),
        Publisher(endpoint, name="p", types=[TEMP], increasing=True, **alice) as source,
        RuleManager(endpoint, **alice) as manager,
    ):
        with pytest.raises(RefusedError, match="has 3 connections: more than 2"):
            RuleManager(endpoint, connect_timeout_s=1, **alice)
        begun = time.monotonic()
        for number in range(800):  # of which 200 go at once, and 200 more are under way
            source.publish("Temp", area="a", value=float(number))
        source.flush()
        await_that(lambda: manager.status()["totals"]["received"] == 800)
        assert time.monotonic() - begun >= (800 - 400) / 200
        access.write_text(KEYS.replace(ALICE, f"{ALICE}connections_max = 3\n"))
        process.send_signal(signal.SIGHUP)
        await_that(lambda: connects(endpoint, alice))


def test_a_durable_subscription_counts_while_nobody_is_there(folder, tmp_path):
    """Whoever asks for one that is there gets it, also as the last one allowed."""
    access = folder / "few.toml"
    access.write_text(KEYS.replace(ALICE, f"{ALICE}subscriptions_max = 1\n"))
    flags = ("--name", "b1", *secured(folder, "b1", access), "--data", str(tmp_path / "b1"))
    alice, bob = keys(folder, "alice"), keys(folder, "bob")

    def subscribes(name, user):
        Subscriber(endpoint, "Temp()", name=name, durable=bool(name), **user).close()

    with broker(*flags) as (_, endpoint):
        subscribes("audit", alice)
        subscribes("audit", alice)
        for name in ("billing", ""):
            with pytest.raises(RefusedError, match="has 2 subscriptions: more than 1"):
                subscribes(name, alice)
        subscribes("billing", bob)


def connects(endpoint, options):
    try:
        RuleManager(endpoint, connect_timeout_s=1, **options).close()
    except RefusedError:
        return False
    return True


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('publish = "Temp"', "line 3: [user.alice] publish: expected a list of names such as"),
        ("define = [3]", "line 3: [user.alice] define: expected a list of names such as"),
        ('define = ["Temp(v > 3)"]', "expected a name without conditions, found 'Temp(v > 3)'"),
        ('sources = "s7"', "line 3: [user.alice] sources: expected a list of names such as"),
        ('subscribe = ["Temp(v >"]', "[user.alice] subscribe: 'Temp(v >' is no filter: "),
        ('subscribe = ["Temp($x > 3)"]', "a subscription has no parameters"),
        ('commands = ["stop"]', "no command is 'stop'; expected 'status', 'rule list'"),
        ('groups = ["x"]', "there is no group 'x'; expected one of none: there is no [group.NAME]"),
        ("rules_max = 0", "rules_max: expected a whole number from 1 to 2147483647, found 0"),
        ("groups = 3", '[user.alice] groups: expected a list such as ["traders"]'),
        (
            '[group.x]\nkey = "x"',
            "line 4: [group.x] has no key 'key'; expected publish, ",
        ),
    ],
)
def test_bad_lines_are_told_by_their_number(tmp_path, line, problem, capsys):
    with pytest.raises(ConfigurationError) as raised:
        load(tmp_path, f"{ALICE}{line}\n")
    assert problem in str(raised.value)
    assert main(["broker", "--check", *secured(tmp_path, "b1", "rights.toml")]) == 1
    assert problem.partition(":")[0] in capsys.readouterr().err


def test_a_log_tells_of_no_types_that_its_reader_may_not_read(folder, tmp_path):
    (folder / "log.toml").write_text(
        KEYS.replace(BOB, f'{BOB}subscribe = ["Temp"]\n').replace(
            ALICE, f'{ALICE}publish = ["*"]\nsubscribe = ["*"]\n'
        )
    )
    data = "--data", str(tmp_path / "data")
    with (
        broker("--name", "b1", *secured(folder, "b1", "log.toml"), *data) as (_, endpoint),
        Publisher(endpoint, name="p", types=[TEMP, SECRET], **keys(folder, "alice")) as source,
        RuleManager(endpoint, **keys(folder, "bob")) as reader,
    ):
        secrets = batch_of(SECRET, [{"v": 1}, {"v": 2}], source="p", times=[1, 3])
        temp = batch_of(TEMP, [{"area": "a1", "value": 1.0}], source="p", times=[2])
        source.publish_batch([secrets, temp])  # in one message
        source.wait(20)
        for outlined in (False, True):
            part = reader.read_log(types=["Temp"], outlined=outlined)
            assert "Secret" not in repr(part)
            assert [(one.types, one.events) for one in part.entries] == [(("Temp",), 1)]
            assert {(one.first_time, one.last_time) for one in part.entries} == {(2, 2)}
            assert part.homes == (("b1", ("Temp",)),)
            assert [name for name, _ in part.marks] == ["Temp", "Timer"]
