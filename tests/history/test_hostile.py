"""Readers of a broker's log that ask for what there is not, or more than they take."""

import pytest

from broker import Publisher, RefusedError, RuleManager
from matcher import EventType

TYPES = [EventType.of("Temp", room="string", value="float")]
WAIT_S = 60.0


def publish(endpoint: str, values: range) -> None:
    with Publisher(endpoint, name="s", types=TYPES, increasing=True) as source:
        for value in values:
            source.publish("Temp", room="hall", value=float(value))
            source.wait(WAIT_S)


def test_the_broker_goes_on_whatever_is_asked(alone: str) -> None:
    publish(alone, range(3))
    end = 2**63 - 1
    with RuleManager(alone) as manager:
        for asked, expected in (
            ({"after": end}, []),
            ({"after": end, "outlined": True}, []),
            ({"at": [0, 99, end]}, []),
            ({"at": [3, 1, 1, 3]}, [1, 3]),
            ({"since": end}, []),
            ({"since": -end}, [1, 2, 3]),
            ({"types": ["Nothing", "Timer", "*"]}, []),
            ({"after": 1, "outlined": True}, [2, 3]),
        ):
            part = manager.read_log(**asked)
            assert [one.position for one in part.entries] == expected, asked
            assert (part.read, part.last) == (3, 3), asked
        with pytest.raises(RefusedError, match="'nowhere' is out of reach"):
            manager.read_log("nowhere")
