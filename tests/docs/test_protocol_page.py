"""The bytes that the page of the protocol shows are those that are written."""

import re
from pathlib import Path

from matcher.model import Event, EventType
from routing.messages import Advertise, Code, FromClient, Hello, Publish
from routing.wire import encode
from tests.event_batches import batch_of_events

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text("utf-8")
TEMP = EventType.of("Temp", area="string", value="float")
READING = Event("Temp", 1_714_557_600_000_000, "station", "1", {"area": "a1", "value": 21.5}, 1)
SHOWN: list[FromClient] = [
    Hello(1, "station", 2.0, 7),
    Advertise(1, (TEMP,)),
    Publish((batch_of_events(TEMP, [READING]),)),
]


def test_page_shows_the_bytes_of_a_source() -> None:
    block = PAGE.split("first words of a source", 1)[1].split("```")[1]
    shown = [bytes.fromhex(line) for line in re.findall(r"^(?:[0-9a-f]{2} ?)+", block, re.M)]
    written = [frame for message in SHOWN for frame in encode(message)]
    assert b"".join(shown) == b"".join(written)


def test_page_lists_all_codes() -> None:
    (line,) = re.findall(r"^Codes: (.*)$", PAGE, re.M)
    assert sorted(re.findall(r"`([a-z-]+)`", line)) == sorted(code.value for code in Code)
