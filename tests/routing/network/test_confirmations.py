"""When what is wanted is in force everywhere (routing.network.agreement.confirmations)."""

from routing.network.agreement.confirmations import Client, Confirmations, Neighbour

CLIENT = Client(print)


def test_a_client_waits_for_every_neighbour() -> None:
    table = Confirmations()
    first, second = table.next_number("b"), table.next_number("c")
    table.add(CLIENT)
    assert table.take_done() == []
    assert table.confirm("b", first) == []
    assert table.confirm("c", second) == [CLIENT]
    table.add(CLIENT)
    assert table.take_done() == [CLIENT], "nothing new was to be told"


def test_a_neighbour_does_not_wait_for_itself() -> None:
    table = Confirmations()
    there, back = table.next_number("b"), table.next_number("a")
    asking = Neighbour("a", 7)
    table.add(asking)
    assert table.take_done() == []
    assert table.confirm("a", back) == []
    assert table.confirm("b", there) == [asking]


def test_an_older_confirmation_does_not_do() -> None:
    table = Confirmations()
    older = table.next_number("b")
    newer = table.next_number("b")
    table.add(CLIENT)
    table.take_done()
    assert table.confirm("b", older) == []
    assert table.confirm("b", newer) == [CLIENT]


def test_nobody_waits_for_a_neighbour_that_left() -> None:
    table = Confirmations()
    table.next_number("b")
    table.add(CLIENT)
    table.take_done()
    assert table.leave("b") == [CLIENT]


def test_in_another_tree_clients_wait_anew_and_neighbours_ask_anew() -> None:
    table = Confirmations()
    stale = table.next_number("b")
    table.add(CLIENT)
    table.add(Neighbour("a", 3))
    table.take_done()
    table.start_anew()
    number = table.next_number("b")
    assert table.take_done() == []
    assert table.confirm("b", stale) == [], "of the former tree"
    assert table.confirm("b", number) == [CLIENT]


def test_of_two_wants_of_a_neighbour_the_last_is_confirmed() -> None:
    table = Confirmations()
    number = table.next_number("b")
    table.add(Neighbour("a", 1))
    table.take_done()
    table.add(Neighbour("a", 2))
    assert table.take_done() == []
    assert not table.is_settled
    assert table.confirm("b", number) == [Neighbour("a", 2)]
    assert table.is_settled
