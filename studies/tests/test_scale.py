"""What networks cost that do hardly anything is counted, and the same each time."""

from studies.scale import row


def test_a_row_is_counted_and_a_function_of_code_and_seed() -> None:
    once, again = row(4, 2), row(4, 2)
    assert once == again
    assert once["ready messages"] > once["rule messages"] > 0
    assert once["cut bytes"] > 0
    assert 1.0 < once["rule ms"] < 1_000.0
    assert row(8, 2)["ready bytes"] > once["ready bytes"]
