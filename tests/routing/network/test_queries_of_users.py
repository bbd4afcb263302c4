"""Queries that all brokers answer are work at brokers where their asker has no turns of its own."""

from brokers import Network

from routing.messages import Code, Confirmed, Refused, Rights, ShowNetwork
from routing.overlay.queries import OF_USER_MAX


def answers(network: Network, client: str, broker: str, count: int) -> list[Confirmed | Refused]:
    """Ask so often at once, and give the answers."""
    session = network.connect(client, broker)
    for _ in range(count):
        session.ask(ShowNetwork)
    found = list[Confirmed | Refused]()
    network.mesh.after = lambda name: found.extend(
        one for one in session.take_results() if isinstance(one, Confirmed | Refused)
    )
    network.run(1)
    return found


def test_a_user_has_few_queries_of_all_brokers_at_a_time() -> None:
    network = Network(2)
    for name, user in (("b1", "ann"), ("b2", "ben")):
        network.brokers[name].node.rights_of = lambda peer, user=user: Rights(user)
    for client in ("k", "again"):
        found = answers(network, client, "b1", OF_USER_MAX + 2)
        refused = [one for one in found if isinstance(one, Refused)]
        assert [one.code for one in refused] == [Code.LIMIT] * 2
        assert len(found) == OF_USER_MAX + 2, "the others are answered, and their places free"
    assert all(isinstance(one, Confirmed) for one in answers(network, "l", "b2", OF_USER_MAX))


def test_without_keys_nobody_is_a_user_of_whom_there_could_be_too_much() -> None:
    found = answers(Network(2), "k", "b1", 4 * OF_USER_MAX)
    assert [type(one) for one in found] == [Confirmed] * 4 * OF_USER_MAX
