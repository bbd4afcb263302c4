"""What networks cost that do hardly anything is counted, and the same each time."""

from studies.scale import Size, row

MEASURED = ("MB a broker", "processor s")


def test_a_row_is_counted_and_a_function_of_code_and_seed() -> None:
    once, again = (dict(row(Size(4, 2))) for _ in range(2))
    for name in MEASURED:
        assert once.pop(name) > 0.0 or name == "MB a broker"
        again.pop(name)
    assert once == again
    assert once["ready messages"] > once["rule messages"] > 0
    assert once["cut bytes"] > 0
    assert 1 <= once["rule concerns"] <= 4
    assert 1.0 < once["rule ms"] <= once["rule ms with processing"] < 1_000.0
    assert 1_000.0 < once["silence ms"] < 10_000.0, "as long as signs of life are waited for"


def test_more_brokers_rules_and_subscriptions_take_more_to_get_ready() -> None:
    sizes = (Size(4, 2), Size(8, 2), Size(4, 40), Size(4, 40, 20), Size(4, 2, strategy="adaptive"))
    rows = [row(one, has_processing=False) for one in sizes]
    few, *others, adaptive = (one["ready bytes"] for one in rows)
    brokers, rules, subscriptions = others
    assert min(brokers, rules) > few
    assert subscriptions > rules
    assert adaptive >= few
    assert rows[0]["rule ms with processing"] is None
