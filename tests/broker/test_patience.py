"""Patterns that take long end by name at live brokers, and nothing of others does."""

import random
import time
from contextlib import suppress

import pytest
from secured import KEYS, broker, keys, make_keys, secured

from broker import Publisher, RuleManager, Subscriber
from matcher.model import EventType

JUNK = EventType.of("Junk", text="string", value="int")
SLOW = " or ".join(f'text matches "[ab]*a[abc]{{14}}{n}x"' for n in range(60))
QUICK = 'text matches "[0-9]x$"'
RULES = 'subscribe = ["*"]\ndefine = ["B*"]\ndeploy = ["b*"]\ncommands = ["*"]\n'
RIGHTS = KEYS.replace('"alice.key"\n', f'"alice.key"\npublish = ["*"]\n{RULES}').replace(
    '["bob.key"]\n', f'["bob.key"]\n{RULES}'
)
EVENTS = 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = make_keys(tmp_path_factory.mktemp("keys"))
    (made / "rights.toml").write_text(RIGHTS)
    return made


def texts(count):
    chosen = random.Random(64)
    return ["".join(chosen.choices("abc", k=9_900)) for _ in range(count)]


def values_of(sink):
    """What is there for a sink, until nothing comes for a while."""
    values = []
    with suppress(TimeoutError):
        while True:
            data = sink.receive(timeout_s=1).data
            values.append(data.get("value", data.get("v")))
    return values


def await_that(holds):
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture(autouse=True)
def _compiled_engine(monkeypatch):
    """The engine that measures: ``naive``, which is for tests, looks for patterns as long as it
    takes.
    """
    monkeypatch.setattr("secured.FAST", ("--engine", "cdp"))


def flags_of(folder):
    return "--name", "b1", *secured(folder, "b1", "rights.toml")


def test_filters_of_a_user_whose_patterns_take_long_are_paused_by_name(folder):
    alice, bob = keys(folder, "alice"), keys(folder, "bob")
    with (
        broker(*flags_of(folder)) as (_, endpoint),
        Publisher(endpoint, name="p", types=[JUNK], **alice) as source,
        Subscriber(endpoint, f"Junk(not ({SLOW}))", **bob) as slow,
        Subscriber(endpoint, f"Junk(not {QUICK})", **alice) as other,
    ):
        for value, text in enumerate(texts(EVENTS)):
            source.publish("Junk", text=text, value=value)
        found = [other.receive(timeout_s=60).data["value"] for _ in range(EVENTS)]
        assert found == [*range(EVENTS)]
        values = values_of(slow)
        assert values == [*range(len(values))]  # those of its burst, and no others
        assert len(values) < EVENTS
        assert "patterns (matches) of its user have taken more than" in slow.paused[1]
        assert not other.paused


def test_rules_of_a_user_whose_patterns_take_long_end_by_name(folder):
    alice, bob = keys(folder, "alice"), keys(folder, "bob")
    with (
        broker(*flags_of(folder)) as (_, endpoint),
        Publisher(endpoint, name="p", types=[JUNK], increasing=True, **alice) as source,
        RuleManager(endpoint, **bob) as manager,
        RuleManager(endpoint, **alice) as others,
    ):
        condition = f"not {QUICK}"  # which both have
        manager.add(
            f"rule bad: define Bad(v: int) from Junk({condition}, not ({SLOW})) as j "
            f"where v = j.value\n"
            f"rule busy: define Busy(v: int) from Junk({condition}) as j where v = j.value"
        )
        others.add(
            f"rule brief: define Brief(v: int) from Junk({condition}) as j where v = j.value"
        )
        with (
            Subscriber(endpoint, "Bad", **bob) as bad,
            Subscriber(endpoint, "Brief", **alice) as brief,
        ):
            for value, text in enumerate(texts(EVENTS)):
                source.publish("Junk", text=text, value=value)
            source.publish("Junk", text="", value=EVENTS)
            found = [brief.receive(timeout_s=60).data["v"] for _ in range(EVENTS)]
            assert found == [*range(EVENTS)]
            await_that(lambda: manager.status()["overruns"])
            overruns = manager.status()["overruns"]
            assert any(told.startswith("rule bad has ended at ") for told in overruns)
            for told in overruns:
                assert "patterns (matches) of its user have taken more than" in told
            await_that(lambda: "bad" not in {rule["name"] for rule in manager.list()})
            assert "brief" in {rule["name"] for rule in others.list()}
            values = values_of(bad)
            assert values == [*range(len(values))]  # up to where it has ended, and no others
            assert len(values) < EVENTS
