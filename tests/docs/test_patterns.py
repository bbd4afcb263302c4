"""The greatest k of docs/coming-from.md, beside plain Python over histories at random."""

import random
import re
from collections import defaultdict
from pathlib import Path

import pandas as pd
import pytest
from pairs import seeds

import rexmq

PAGE = Path(__file__).parents[2] / "docs" / "coming-from.md"
HOUR = 3_600


def rules_of(heading):
    section = PAGE.read_text().partition(f". {heading}\n")[2]
    return re.search(r"```tesla\n(.*?)```", section, re.DOTALL)[1]


@pytest.mark.parametrize("seed", seeds(4, 40))
def test_the_greatest_two_of_each_hour(seed):
    rng = random.Random(seed)
    temps = [
        {"time": time, "room": rng.choice("abcde"), "value": float(rng.randrange(15, 22))}
        for time in sorted(rng.sample(range(1, 10 * HOUR), 80))
    ]
    peaks = defaultdict(dict)
    for temp in temps:
        rooms = peaks[-(-temp["time"] // HOUR) * HOUR]
        rooms[temp["room"]] = max(temp["value"], rooms.get(temp["room"], 0))
    expected = []
    for end, rooms in peaks.items():
        for room, value in rooms.items():
            place = 1 + sum(other > value for other in rooms.values())
            if place <= 2 and end <= temps[-1]["time"]:
                expected.append((end, room, value, place))
    found = rexmq.detect(rules_of("The greatest k"), {"Temp": pd.DataFrame(temps)})
    events = found["Hottest"].events()
    told = [(event.time // 10**6, *event.data.values()) for event in events]
    assert sorted(told) == sorted(expected)
    assert len(told) > 10
