"""Keys of events whose ids are texts: the compiled ones are those of the definition."""

import random

import pytest

from matcher.identity import event_key
from matcher.model import StringColumn
from rules.engine.intake.naming import FEW, keys_of

NUMBERS = ["0", "1", "-1", "9223372036854775807", "-9223372036854775808"]
NO_NUMBERS = ["", "-", "-0", "--3", "+3", "007", " 3", "3 ", "1_0", "\u0661\u0662"]
TOO_LARGE = ["9223372036854775808", "-9223372036854775809", "9" * 19, "9" * 20, "1" * 40]
DIGEST = "0123456789abcdef" * 2
SOURCES = ["gate", "", "\u00fc" * 80, "s" * 110, "rexmq/rule"]


def check(sources: list[str], ids: list[str]) -> None:
    found = keys_of(StringColumn.from_strings(sources), StringColumn.from_strings(ids))
    expected = list(map(event_key, sources, ids))
    assert list(map(tuple, found.tolist())) == expected


@pytest.mark.parametrize("source", SOURCES)
def test_ids_that_are_numbers_and_ids_that_nearly_are(source: str):
    ids = NUMBERS + NO_NUMBERS + TOO_LARGE
    check([source] * len(ids), ids)


def test_few_events_have_the_keys_that_many_have():
    for count in range(1, 2 * FEW):
        check(["gate"] * count, [f"x{number}" for number in range(count)])


def test_ids_of_all_lengths_around_the_blocks_that_are_hashed():
    ids = ["x" * length for length in range(400)]
    check(["gate"] * len(ids), ids)


def test_random_ids_of_several_sources():
    random_ = random.Random(7)
    texts = ["".join(random_.choices("ab/0-9\u00e9\U0001f600", k=k % 200)) for k in range(600)]
    texts += [str(random_.randrange(-(2**66), 2**66) >> random_.randrange(66)) for _ in range(400)]
    check(random_.choices(SOURCES, k=len(texts)), texts)


def test_sources_of_rules_name_composite_events_by_digests():
    check(["rexmq/rule/r", "gate", "rexmq/rule/r"] * FEW, [DIGEST, DIGEST, "17"] * FEW)


def test_no_events_have_no_keys():
    assert keys_of(StringColumn.from_strings([]), StringColumn.from_strings([])).shape == (0, 2)
