"""PostgreSQL: notifications, and rows of an outbox, none of which is lost or comes twice."""

import asyncio
import json
import signal
import time

import psycopg
import pytest
from certificates import made, needs_openssl
from connectors import connected
from secured import broker
from servers import needs

from benchmarks import servers
from broker import Subscriber
from broker.connect.postgres import Settings, Source
from broker.connect.systems import SystemLost, persist
from broker.connect.templates import Template

pytestmark = needs("initdb", "postgresql")
FILE = """
[broker]
endpoint = "{endpoint}"

[[source]]
name = "plant"
topic = "temps"
events = ["Temp(area: string, value: float)"]
dead_letter = "plant.dead"
postgres = {{ url = "{url}", username = "plant"{more} }}
"""
TABLE = """
CREATE TABLE temps (id bigserial PRIMARY KEY, area text, body jsonb);
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN NOTIFY temps; RETURN NULL; END $$;
CREATE TRIGGER told AFTER INSERT ON temps FOR EACH STATEMENT EXECUTE FUNCTION tell();
"""


@pytest.fixture(scope="module")
def server():
    with servers.postgres() as started:
        yield started


@pytest.fixture
def url(server):
    own = f"postgresql://127.0.0.1:{server.port}/postgres"
    yield own
    execute(own, "DROP TABLE IF EXISTS temps; DROP FUNCTION IF EXISTS tell")


def link(url):
    """A connection, once the server has recovered."""
    until = time.monotonic() + 60
    while True:
        try:
            return psycopg.connect(url, user="plant", autocommit=True)
        except psycopg.OperationalError:
            assert time.monotonic() < until
            time.sleep(0.05)


def execute(url, text, rows=None):
    with link(url) as connection:
        if rows is not None:
            connection.cursor().executemany(text, rows)
            return None
        cursor = connection.execute(text)
        return cursor.fetchall() if cursor.description else None


def insert(url, numbers):
    rows = [("a1", json.dumps({"value": number})) for number in numbers]
    execute(url, "INSERT INTO temps (area, body) VALUES (%s, %s)", rows)


def test_rows_become_events_once_and_are_deleted(tmp_path, server, url):
    """The connector is killed, and the server."""
    execute(url, TABLE)
    numbers, had = [float(n) for n in range(400)], []
    file = tmp_path / "plant.toml"
    with broker("--data", str(tmp_path / "b1")) as (_, endpoint):
        file.write_text(FILE.format(endpoint=endpoint, url=url, more=', table = "temps"'))
        with Subscriber(endpoint, "Temp()") as sink:
            insert(url, numbers[:100])
            with connected(file):
                had += [sink.receive(timeout_s=60) for _ in range(50)]
            with connected(file) as process:
                insert(url, numbers[100:200])
                while len(had) < 150:  # the last by the second connector, which has found a server
                    had.append(sink.receive(timeout_s=60))
                server.kill(signal.SIGKILL)
                server.start()
                insert(url, numbers[200:])
                execute(url, "INSERT INTO temps (area, body) VALUES ('a1', '[]')")
                while len(had) < len(numbers):
                    had.append(sink.receive(timeout_s=60))
                until = time.monotonic() + 60
                while execute(url, "SELECT count(*) FROM temps") != [(0,)]:
                    assert time.monotonic() < until
                    time.sleep(0.05)
                process.terminate()
                said = process.communicate(timeout=60)[1]
    assert [event.data["value"] for event in had] == numbers, said
    assert {event.data["area"] for event in had} == {"a1"}
    (letter,) = (tmp_path / "plant.dead").read_text().splitlines()
    assert json.loads(letter)["reason"].startswith("expected an object of JSON")


def test_columns_are_texts_whatever_their_json(tmp_path, url):
    """JSON of 3,000 levels in a column that nobody asked for ended the connectors of a file."""
    more = "n integer DEFAULT 7, more jsonb DEFAULT '{\"a\": [1, true]}', deep jsonb, none text"
    execute(url, f"CREATE TABLE temps (id bigserial PRIMARY KEY, area text, body jsonb, {more})")
    insert(url, [1.5])
    execute(url, "UPDATE temps SET deep = (repeat('[', 3000) || repeat(']', 3000))::jsonb")

    async def had():
        settings = Settings(url=url, username="plant", table="temps")
        source = Source("in", settings, tmp_path, Template("temps"), 10)
        await persist(source.open)
        (message,) = await asyncio.wait_for(source.receive(), 30)
        await source.close()
        return message

    headers = dict(asyncio.run(had()).headers)
    assert headers.pop("deep") == "[" * 3000 + "]" * 3000
    assert headers == {"area": "a1", "n": "7", "more": '{"a": [1, true]}'}


def test_notifications_are_messages(tmp_path, url):
    async def had():
        source = Source("in", Settings(url=url, username="plant"), tmp_path, Template("temps"), 10)
        await persist(source.open)  # the server may still recover from the test before
        execute(url, "NOTIFY temps, '{\"value\": 1.5}'")
        messages = await asyncio.wait_for(source.receive(), 30)
        await source.close()
        return [(message.topic, message.body) for message in messages]

    assert asyncio.run(had()) == [("temps", b'{"value": 1.5}')]


@needs_openssl
def test_what_is_not_there_is_told_with_its_place(tmp_path, url):
    made(tmp_path)
    for said, reason in (
        ({"table": "nowhere"}, 'relation "nowhere" does not exist'),
        ({"ca_file": "ca.pem"}, "server does not support SSL"),
    ):
        settings = Settings(url=url, username="plant", **said)
        with pytest.raises(SystemLost, match=f"{url}: .*{reason}"):
            asyncio.run(Source("in", settings, tmp_path, Template("temps"), 10).open())
