"""Transactions of Kafka, at the cluster that librdkafka plays."""

import asyncio

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException
from connectors import confirmed

from benchmarks import systems
from broker.connect.kafka import Settings, Sink
from broker.connect.systems import Outgoing, Pending, SystemLost
from broker.errors import BrokerError
from matcher.errors import BadEvent


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = systems.Kafka(tmp_path_factory.mktemp("kafka"))
    made.prepare()
    return made


def sink(cluster, folder):
    return Sink("alerts", Settings(servers=cluster.url, transactions=True), folder, 100)


def outgoing(number, body=b"{}"):
    return Outgoing("alerts", body, f"p#{number}", "application/json")


def ids_of(cluster, count):
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.url,
            "group.id": "all",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe(["alerts"])
    found = []
    while len(found) < count and (record := consumer.poll(20)) is not None:
        if record.error() is None:
            found.append(dict(record.headers())["id"].decode())
    consumer.close()
    return found


def test_what_leaves_together_is_committed_together_and_a_bad_message_alone_is_refused(
    cluster, tmp_path
):
    async def run():
        own, told = sink(cluster, tmp_path), []
        await own.open()
        bodies = [b"{}", b" " * 2_000_000, b"{}"]
        lot = [
            Pending(outgoing(number, body), number, lambda *said: told.append(said))
            for number, body in enumerate(bodies)
        ]
        await own.send(lot)
        errors = {pending.position: error for pending, error in told}
        assert errors[0] is errors[2] is None
        assert isinstance(errors[1], BadEvent)
        await confirmed(own, outgoing(3))
        await own.close()

    asyncio.run(run())
    assert sorted(ids_of(cluster, 3)) == ["p#0", "p#2", "p#3"]


class Failing:
    """A producer each of whose steps ends as it is told, the first first, or else well."""

    def __init__(self, **ends):
        self.ends = {step: [*errors] for step, errors in ends.items()}
        self.steps = []

    def __getattr__(self, step):
        return lambda *_, **__: self._take(step)

    def _take(self, step):
        self.steps.append(step.removesuffix("_transaction"))
        if self.ends.get(step):
            raise KafkaException(self.ends[step].pop(0))


AGAIN = KafkaError(KafkaError._TIMED_OUT, "slow", retriable=True)
ABORT = KafkaError(KafkaError._TIMED_OUT, "lost", txn_requires_abort=True)
FATAL = KafkaError(KafkaError._FENCED, "fenced", fatal=True)


@pytest.mark.parametrize(
    ("ends", "expected", "steps"),
    [
        ({"commit_transaction": [AGAIN]}, None, ["begin", "produce", "commit", "commit"]),
        ({"commit_transaction": [ABORT]}, SystemLost, ["begin", "produce", "commit", "abort"]),
        ({"begin_transaction": [FATAL]}, BrokerError, ["begin"]),
        ({"commit_transaction": [FATAL]}, BrokerError, ["begin", "produce", "commit"]),
    ],
)
def test_a_transaction_that_fails(cluster, tmp_path, ends, expected, steps):
    """It is committed once more, or all of it is sent anew; a connector that Kafka has fenced off,
    since another one bears its name, ends.
    """
    own, told = sink(cluster, tmp_path), []
    own._producer = Failing(**ends)
    lot = [Pending(outgoing(4), 4, lambda *said: told.append(said))]
    if expected is None:
        asyncio.run(own.send(lot))
    else:
        with pytest.raises(expected, match="lost" if expected is SystemLost else "another"):
            asyncio.run(own.send(lot))
    assert own._producer.steps == steps
    assert len(told) == (expected is None)
