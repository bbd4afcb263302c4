"""Filters that others cover are not told, those that one says alike as that one (Laws 1 and 2)."""

from random import Random

import pytest
from conversation import schema_of

from matcher.model import EventBatch
from matcher.rows import batch_of
from routing.network.tables.filter_cover import FEW, maximal
from routing.network.tables.filters import by_type
from rules.subscription import parse_subscription

TEMP = schema_of("Temp(room: string, value: float, n: int, ok: bool)")
SCHEMAS = {"Temp": TEMP}


@pytest.mark.parametrize(
    ("filters", "told"),
    [
        ([], ()),
        (["Temp(value > 1)", "Temp(value > 1)"], ("Temp(value > 1)",)),
        (["Temp(value > 1)", "Temp"], ("Temp",)),
        (["Temp(value > 1)", "Temp(value > 5)", "Temp(5 < value)"], ("Temp(value > 1)",)),
        (["Temp(value > 1)", "Temp(n > 5)"], ("Temp(n > 5)", "Temp(value > 1)")),
        (["Temp(value > 1)", "Temp(value > 5 and room = 'a')"], ("Temp(value > 1)",)),
        (["Temp(value > 1)", "Temp(value > 5 and n % 2 = 0)"], ("Temp(value > 1)",)),
        (
            ["Temp(value > 1 and n % 2 = 0)", "Temp(value > 5)"],
            ("Temp(value > 1 and n % 2 = 0)", "Temp(value > 5)"),
        ),
        (["Temp(room prefix 'a')", "Temp(room = 'ab')"], ("Temp(room prefix 'a')",)),
        (["Other(x > 1)", "Other"], ("Other", "Other(x > 1)")),
        (["Temp(depth > 1)", "Temp(value > 1)"], ("Temp(depth > 1)", "Temp(value > 1)")),
    ],
)
def test_what_is_covered_is_not_told(filters: list[str], told: tuple[str, ...]) -> None:
    assert maximal(by_type(filters), SCHEMAS) == told


@pytest.mark.parametrize(
    ("filters", "told"),
    [
        (["Temp(n >= 5 and n <= 7)", "Temp(n >= 8 and n <= 9)"], None),  # 7.5 lies between
        (
            ["Temp(n >= 5 and n <= 7)", "Temp(n >= 7 and n <= 9)", "Temp(n >= 9 and n <= 11)"],
            ("Temp(n >= 5 and n <= 11)",),
        ),
        (
            [
                "Temp(n > 5 and n <= 7 and room = 'a\\'')",
                "Temp(7 < n and n <= 9 and room = 'a\\'')",
            ],
            ('Temp(room = "a\'" and n >= 5.000000000000001 and n <= 9)',),
        ),
        (["Temp(n >= 5 and n <= 7 and ok)", "Temp(n >= 7 and n <= 9 and not ok)"], None),
        (["Temp(n <= 7)", "Temp(n >= 7)"], None),  # infinite numbers cannot be written
        (["Temp(n >= 5 and n <= 7 and n % 2 = 0)", "Temp(n >= 7 and n <= 9)"], None),
        (
            [
                "Temp(n >= 0 and n <= 1 and value >= 0 and value <= 1)",
                "Temp(n >= 1 and n <= 2 and value >= 0 and value <= 1)",
                "Temp(n >= 0 and n <= 2 and value >= 1 and value <= 2)",
            ],
            ("Temp(n >= 0 and n <= 2 and value >= 0 and value <= 2)",),
        ),
    ],
)
def test_filters_that_one_says_alike_are_told_as_that_one(
    filters: list[str], told: tuple[str, ...] | None
) -> None:
    assert maximal(by_type(filters), SCHEMAS) == (tuple(sorted(filters)) if told is None else told)


def test_very_many_filters_are_told_as_they_are() -> None:
    filters = [f"Temp(n >= {n} and n <= {n + 1})" for n in range(FEW + 1)]
    assert maximal(by_type(filters), SCHEMAS) == tuple(sorted(filters))
    assert maximal(by_type(filters[1:]), SCHEMAS) == (f"Temp(n >= 1 and n <= {FEW + 1})",)


def condition(random: Random) -> str:
    name = random.choice(["value", "n", "value", "n", "room", "ok"])
    if name == "ok":
        return random.choice(["ok", "not ok", "ok = true"])
    if name == "room":
        operator = random.choice(["=", "!=", "prefix", "suffix", "contains", "<", ">="])
        return f"room {operator} '{random.choice(['', 'a', 'ab', 'b'])}'"
    operator = random.choice(["=", "!=", "<", "<=", ">", ">="])
    number = random.choice(["0", "1", "2.5", "-1", "2"])
    return random.choice(
        [f"{name} {operator} {number}", f"{number} {operator} {name}", "n % 2 = 0"]
    )


def events() -> EventBatch:
    rows = [
        {"room": room, "value": value, "n": n, "ok": ok}
        for room in ("", "a", "ab", "b", "abc")
        for value in (-1.5, 0.0, 1.0, 2.0, 2.5, 3.0)
        for n in (-1, 0, 1, 2, 3)
        for ok in (False, True)
    ]
    return batch_of(TEMP, [{"time": 0, **row} for row in rows], source="s")


LEAKY = schema_of("Leaky(room: string?, n: int?, ok: bool?)")


@pytest.mark.parametrize(
    ("filters", "told"),
    [
        (["Leaky(n > 3)", "Leaky(n is not null)"], ("Leaky(n is not null)",)),
        (["Leaky(n > 3)", "Leaky(n is null)"], None),
        (["Leaky(n is null and ok)", "Leaky(n is null)"], ("Leaky(n is null)",)),
        (["Leaky(ok)", "Leaky(ok is not null)", "Leaky(not ok)"], ("Leaky(ok is not null)",)),
        (
            ["Leaky(n >= 5 and n <= 7)", "Leaky(n >= 7 and n <= 9)"],
            ("Leaky(n is not null and n >= 5 and n <= 9)",),
        ),
        (
            [
                "Leaky(n >= 5 and n <= 7 and room is null)",
                "Leaky(n >= 7 and n <= 9 and room is null)",
            ],
            ("Leaky(n is not null and room is null and n >= 5 and n <= 9)",),
        ),
    ],
)
def test_nulls_are_covered_by_what_asks_for_them(filters: list[str], told: tuple[str, ...]) -> None:
    assert maximal(by_type(filters), {"Leaky": LEAKY}) == (told or tuple(sorted(filters)))


@pytest.mark.parametrize("seed", range(60))
def test_of_nulls_too_all_is_told_that_was_asked_for(seed: int) -> None:
    random = Random(seed)
    rows = [
        {"time": 0, "room": room, "n": n, "ok": ok}
        for room in (None, "", "a")
        for n in (None, 0, 1, 2)
        for ok in (None, False, True)
    ]
    batch = batch_of(LEAKY, rows, source="s")
    conditions = (
        *("room is null", "room is not null", "room = ''", "n is null", "n is not null"),
        *("n >= 0 and n <= 1", "n >= 1 and n <= 2", "n = 0", "ok", "not ok", "ok is null"),
    )
    filters = [
        f"Leaky({' and '.join(random.sample(conditions, random.randint(0, 3)))})"
        for _ in range(random.randint(2, 8))
    ]

    def matched(texts: list[str]) -> list[bool]:
        masks = [parse_subscription(text, {"Leaky": LEAKY}).mask(batch) for text in texts]
        return [any(row) for row in zip(*masks, strict=True)]

    told = maximal(by_type(filters), {"Leaky": LEAKY})
    assert matched(list(told)) == matched(filters), f"seed {seed}: {filters} told as {told}"


@pytest.mark.parametrize("seed", range(60))
def test_what_is_told_asks_for_all_that_was_asked_for(seed: int) -> None:
    random = Random(seed)
    batch = events()
    filters = [
        f"Temp({' and '.join(condition(random) for _ in range(random.randint(0, 3)))})"
        for _ in range(random.randint(1, 8))
    ]
    for _ in range(random.randint(0, 6)):  # which often merge
        name, low = random.choice(["value", "n"]), random.choice([-1, 0, 1, 2])
        more = random.choice(["", " and ok", f" and {name} != {low}"])
        filters.append(f"Temp({name} >= {low} and {name} <= {low + random.randint(1, 2)}{more})")

    def matched(texts: list[str]) -> list[bool]:
        masks = [parse_subscription(text, SCHEMAS).mask(batch) for text in texts]
        return [any(row) for row in zip(*masks, strict=True)]

    told = maximal(by_type(filters), SCHEMAS)
    assert matched(list(told)) == matched(filters), f"seed {seed}: {filters} told as {told}"
    assert len(told) <= len(set(filters))
