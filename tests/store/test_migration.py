"""Stores of older versions, as the releases that had them wrote them.

In ``testdata/version-1.db.gz`` is the store of a broker b1 of a release whose stores had version 1
and whose durable queues were records of one kind. A source published Temps of the values 1 to 6, of
which the rule hot found Hots of 4 to 6. billing, ``Temp()``, had been given 1 to 4, and had
acknowledged 1 and 2; audit/2, ``Temp(value > 4)`` and ``Hot()``, nothing.
"""

import gzip
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from live_hosts import Hosts, await_acknowledged

from broker import Publisher, RuleManager, Subscriber
from broker.errors import StoreDamaged
from broker.network import Member
from broker.store import Store
from broker.store.damage import check, repair
from broker.store.schema import VERSION
from matcher import EventType

TEMP = EventType.of("Temp", room="string", value="float")
WAIT_S = 60.0
STORE = Path(__file__).parent / "testdata" / "version-1.db.gz"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with the store of version 1."""
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / "broker.db").write_bytes(gzip.decompress(STORE.read_bytes()))
    return folder


@contextmanager
def broker_of(data: Path) -> Iterator[str]:
    options = {"strategy": "centralized", "engine": "naive", "data": str(data)}
    with Hosts(data.parent, (Member("b1", ()),), **options) as hosts:
        yield hosts.address("b1")


def statement(data: Path, text: str, *arguments: object) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(data / "broker.db", isolation_level=None)) as file:
        return file.execute(text, arguments).fetchall()


def durable(endpoint: str, name: str, *filters: str, **options: object) -> Subscriber:
    return Subscriber(endpoint, *filters, name=name, durable=True, acks="explicit", **options)


def test_durable_subscriptions_go_on_where_they_were(data: Path) -> None:
    assert statement(data, "PRAGMA user_version") == [(1,)]
    with broker_of(data) as endpoint:
        with RuleManager(endpoint) as manager:
            told = {one["name"]: one for one in manager.durables()}
        assert (told["billing"]["queued"], told["billing"]["acknowledged"]) == (4, 2)
        assert told["audit/2"]["queued"] == 5
        with durable(endpoint, "billing", "Temp()") as billing:
            delivery = billing.receive_delivery(WAIT_S)
            assert (delivery.number - len(delivery), delivery.again) == (2, True)
            values = [event.data["value"] for one in delivery.batches for event in one.events()]
            while len(values) < 4:
                values.append(billing.receive(WAIT_S).data["value"])
            assert values == [3, 4, 5, 6]
            billing.acknowledge(5)
        await_acknowledged(endpoint, "billing", 5)
    assert statement(data, "PRAGMA user_version") == [(VERSION,)]
    with broker_of(data) as endpoint:
        with (
            durable(endpoint, "billing", "Temp()") as billing,
            Publisher(endpoint, name="s", types=[TEMP], replay=True, increasing=True) as source,
        ):
            source.publish("Temp", at=1_700_000_007_000_000, room="hall", value=7.0)
            source.wait(WAIT_S)
            assert [billing.receive(WAIT_S).data["value"] for _ in range(2)] == [6, 7]
            assert billing.position == 7
        bounds = {"when_full": "drop-oldest", "queue": 100}
        with durable(endpoint, "audit/2", "Temp(value > 4)", "Hot()", **bounds) as audit:
            found = [audit.receive(WAIT_S) for _ in range(7)]
        assert sorted((one.type, one.data["value"]) for one in found) == [
            *(("Hot", value) for value in (4, 5, 6, 7)),
            *(("Temp", value) for value in (5, 6, 7)),
        ]


def test_a_value_that_is_not_what_was_written_is_refused_and_repaired(data: Path) -> None:
    damage = "UPDATE state SET value = zeroblob(8) WHERE key = 'billing/00000000000000000004'"
    statement(data, damage)
    with pytest.raises(StoreDamaged, match="'billing/00000000000000000004' is not what was writ"):
        Store.open(data)
    assert statement(data, "PRAGMA user_version") == [(1,)], "nothing has changed"
    repair(data)
    assert check(data).is_sound
    with broker_of(data) as endpoint, durable(endpoint, "billing", "Temp()") as billing:
        assert [billing.receive(WAIT_S).data["value"] for _ in range(2)] == [3, 6]
