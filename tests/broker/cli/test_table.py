"""Tables for people."""

from broker.cli.table import table


def test_columns_are_as_wide_as_what_is_in_them() -> None:
    rows = [
        {"name": "b1", "reachable": True, "neighbours": ["b2", "b3"], "rate": 0.25},
        {"name": "broker-2", "reachable": False, "neighbours": []},
    ]
    assert table(rows, ("name", "reachable", "neighbours", "rate")).splitlines() == [
        "name      reachable  neighbours  rate",
        "b1        yes        b2, b3      0.25",
        "broker-2  no         -           -",
    ]
