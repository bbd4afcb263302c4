"""Patterns of docs/coming-from.md, beside plain Python over histories at random."""

import random
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pairs import seeds

import rexmq

PAGE = Path(__file__).parents[2] / "docs" / "coming-from.md"
HOUR = 3_600


def rules_of(heading, place=0):
    section = PAGE.read_text().partition(f". {heading}\n")[2]
    return re.findall(r"```tesla\n(.*?)```", section, re.DOTALL)[place]


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


@pytest.mark.parametrize("share", ["0.5", "0.25", "0.9"])
def test_percentiles_are_those_of_numpy(share):
    rng = random.Random(share)
    times = sorted(rng.sample(range(60_000), 600))
    temps = [{"time": time, "room": "a", "value": float(rng.randrange(30))} for time in times]
    stops = [{"time": time + 0.5, "line": 1} for time in rng.sample(times, 60)]
    expected = []
    for stop in sorted(one["time"] for one in stops):
        values = [one["value"] for one in temps if stop - 600 <= one["time"] <= stop]
        expected.append(np.quantile(values, float(share), method="inverted_cdf"))
    rules = rules_of("The median, and other percentiles").replace("0.5", share)
    frames = {"Temp": pd.DataFrame(temps), "Stop": pd.DataFrame(stops)}
    found = rexmq.detect(rules, frames)["Median"].events()
    assert [event.data["value"] for event in found] == expected


@pytest.mark.parametrize("seed", seeds(3, 20))
def test_no_reading_is_in_two_runs(seed):
    rng = random.Random(seed)
    temps = [
        {"time": 60 * place, "room": rng.choice("ab"), "value": rng.choice([40.0, 60.0, 70.0])}
        for place in range(150)
    ]
    expected = []
    for room in "ab":
        run = []
        for temp in (one for one in temps if one["room"] == room):
            run = [*run, temp["time"]] if temp["value"] > 50 else []
            if len(run) == 3:
                expected.append((room, run[0] * 10**6, run[2] * 10**6))
                run = []
    found = rexmq.detect(rules_of("Each event in one match", 1), {"Temp": pd.DataFrame(temps)})
    told = [tuple(event.data.values()) for event in found["Hot"].events()]
    assert sorted(told) == sorted(expected)
    assert len(told) > 8
