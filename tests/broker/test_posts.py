"""Publishers of posted events: whose gives way to whose."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from secured import broker, keys, make_keys, secured

from broker import RefusedError
from broker.client.address import address_of
from broker.cloudevents import events_of
from broker.monitoring import posts
from broker.monitoring.posts import Posts
from matcher import EventType

TEMP = EventType.of("Temp", value="float")
ACCESS = """
[user.alice]
key = "alice.key"
publish = ["*"]
[user.bob]
key = "bob.key"
publish = ["Other"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("keys"))


@contextmanager
def living(folder: Path, access: str) -> Iterator[str]:
    """A broker with keys."""
    (folder / "access.toml").write_text(access)
    with broker("--name", "b1", *secured(folder, "b1")) as (_, endpoint):
        yield endpoint


async def post(posting: Posts, folder: Path, endpoint: str, user: str, source: str) -> None:
    """Post one Temp of a source as a user."""
    body = {"specversion": "1.0", "type": "Temp", "source": source, "id": "1"}
    text = json.dumps({**body, "data": {"value": 1.0}}).encode()
    events = events_of({"content-type": "application/cloudevents+json"}, text)
    address = address_of(endpoint, **keys(folder, user))
    await posting.publish(address, user, events, {"Temp": TEMP}, None)


def test_who_may_not_publish_closes_nobodys_source(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posts, "SOURCES_MAX", 4)

    async def run(endpoint: str) -> None:
        posting = Posts()
        for n in range(4):
            await post(posting, folder, endpoint, "alice", f"fridge/{n}")
        former = dict(posting._writers)
        for n in range(6):
            with pytest.raises(RefusedError, match="may not publish"):
                await post(posting, folder, endpoint, "bob", f"x/{n}")
        left = [name for name, writer in former.items() if posting._writers.get(name) is writer]
        assert left == [("alice", f"fridge/{n}") for n in range(4)]
        assert posting._writers == former
        await posting.close()

    with living(folder, ACCESS) as endpoint:
        asyncio.run(run(endpoint))


def test_the_user_with_most_sources_gives_way(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posts, "SOURCES_MAX", 4)

    async def run(endpoint: str) -> None:
        posting = Posts()
        await post(posting, folder, endpoint, "alice", "fridge/7")
        alice = posting._writers["alice", "fridge/7"]
        for n in range(6):
            await post(posting, folder, endpoint, "bob", f"x/{n}")
        assert posting._writers["alice", "fridge/7"] is alice
        assert [source for user, source in posting._writers if user == "bob"] == [
            "x/3",
            "x/4",
            "x/5",
        ]
        await post(posting, folder, endpoint, "alice", "fridge/8")
        assert sorted(posting._writers) == [
            ("alice", "fridge/7"),
            ("alice", "fridge/8"),
            ("bob", "x/4"),
            ("bob", "x/5"),
        ]
        await posting.close()

    with living(folder, ACCESS.replace('"Other"', '"*"')) as endpoint:
        asyncio.run(run(endpoint))
