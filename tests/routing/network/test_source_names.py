"""Names of sources belong to users: in the whole network, over restarts, and as the file binds."""

from itertools import permutations

import pytest
from brokers import SCHEMAS
from kept_networks import Kept

from matcher.identity import RULE_SOURCE
from routing.conversation import State
from routing.errors import Refusal
from routing.messages import Rights, Stay
from routing.serving.accounts import Accounts, put_together
from routing.serving.source_names import SourceNames

TEMP = SCHEMAS["Temp"]
USERS = {name: Rights(name) for name in ("ann", "ben")}


def furnished() -> Kept:
    """Three brokers with stores; clients are users by the beginnings of what tests call them."""
    network = Kept(3, "b1 b2 b3")
    for broker in network.brokers.values():
        let_in(broker)
    return network


def let_in(broker) -> None:
    broker.node.rights_of = lambda peer: USERS[peer.decode().split()[1][:3]]


def is_let_in(network: Kept, party: str, name: str, broker: str) -> bool:
    session = network.connect(name, broker, party=party)
    if session.state is State.READY:
        session.advertise([TEMP])
        network.run(0.5)
    lines = network.take_lines()
    is_refused = any(party in line and "not-allowed" in line for line in lines)
    return session.state is State.READY and not is_refused


def test_a_name_is_its_users_at_every_broker_and_after_its_broker_was_killed() -> None:
    network = furnished()
    assert is_let_in(network, "ann-1", "well", "b1")
    network.publish("ann-1", 'Temp@1("w", 1)', 1)
    network.clients.pop("ann-1").close(network.mesh.now)
    network.run(0.5)
    for broker in ("b1", "b3"):
        for name in ("well", "well#part-0"):
            assert not is_let_in(network, f"ben-{broker}{name[-1]}", name, broker)
    network.kill("b3")
    let_in(network.brokers["b3"])
    network.run(5)
    assert not is_let_in(network, "ben-again", "well", "b3")
    assert is_let_in(network, "ann-2", "well", "b3")


@pytest.mark.parametrize(("first", "later"), [("ann", "ben"), ("ben", "ann")])
def test_the_first_user_of_a_name_keeps_it_though_a_broker_has_not_heard_of_it(
    first: str, later: str
) -> None:
    network = furnished()
    network.run(5)
    cut(network, is_cut=True)
    network.run(30)
    assert is_let_in(network, f"{first}-1", "well", "b1")
    network.publish(f"{first}-1", 'Temp@1("w", 1)', 1)
    network.run(5)
    assert is_let_in(network, f"{later}-1", "well", "b3")
    network.publish(f"{later}-1", 'Temp@1("v", 1) Temp@2("v", 1)', 2)
    cut(network, is_cut=False)
    network.run(60)
    assert network.clients[f"{later}-1"].state is State.OFF
    assert not is_let_in(network, f"{later}-2", "well", "b3")
    assert network.clients[f"{first}-1"].state is State.READY


def cut(network: Kept, *, is_cut: bool) -> None:
    for wire in network.both_ways("b2", "b3"):
        wire.cut = is_cut


def test_a_part_makes_the_whole_its_users() -> None:
    network = furnished()
    assert is_let_in(network, "ann-1", "tide#part-4", "b2")
    assert not is_let_in(network, "ben-1", "tide", "b1")
    assert not is_let_in(network, "ben-2", "tide#part-5", "b3")
    assert is_let_in(network, "ann-2", "tide#part-5", "b3")


def names(**bound: str) -> SourceNames:
    """Names of which ann owns well; ``bound``: a pattern by user."""
    accounts = Accounts(100)
    accounts.begin("well", "b1", (), 0.0, "ann")
    made = SourceNames(accounts)
    rights = [Rights(user, sources=(name,)) for user, name in bound.items()]
    made.is_bound = lambda name: any(one.names(name) for one in rights)
    return made


@pytest.mark.parametrize(
    ("user", "sources", "name", "is_allowed"),
    [
        ("ann", None, "well", True),
        ("ben", None, "well", False),
        ("ben", None, "spring", True),
        ("", None, "well", True),
        ("ben", None, "pump-3", False),
        ("cy", ("pump-*",), "pump-3", True),
        ("cy", ("pump-*",), "pump-3#part-1", True),
        ("cy", ("pump-*",), "spring", False),
        ("cy", (), "spring", False),
        ("ben", ("well",), "well", True),
    ],
)
def test_the_file_binds_names_before_their_use_does(user, sources, name, is_allowed) -> None:
    rights = Rights(user, sources=sources, file="a.toml", tables=(f"[user.{user}]",))
    found = names(cy="pump-*")
    if is_allowed:
        found.check(rights, name)
    else:
        with pytest.raises(Refusal, match="may not publish as"):
            found.check(rights, name)


def test_accounts_are_put_together_in_any_order() -> None:
    stays = [
        Stay(1, "b1", False, "s", owner="ann", since=7),
        Stay(1, "b1", True, "s", taken=4, owner="ann", since=7),
        Stay(2, "b2", False, "s", owner="ann", since=7),
        Stay(3, "b1", False, "s", taken=9, owner="ben", since=8),
    ]
    found = {put_together(order) for order in permutations(stays)}
    assert found == {(Stay(2, "b2", False, "s", taken=4, owner="ann", since=7),)}


def test_a_name_that_the_file_binds_to_another_user_is_no_longer_the_first_ones() -> None:
    accounts, behind = Accounts(100), Accounts(100)
    for each in (accounts, behind):
        each.begin("well#part-1", "b1", (), 1.0, "ann")
    accounts.begin("well", "b1", (), 2.0, "cy")
    behind.learn(accounts)
    assert {each.owner("well#part-2") for each in (accounts, behind)} == {"cy"}


def test_a_user_with_many_names_makes_none_of_others_free() -> None:
    accounts = Accounts(20)
    accounts.begin("old", "b1", (), 0.0, "ann")
    accounts.end("old", "b1", 1)
    for number in range(100):
        accounts.begin(f"n{number}", "b1", (), 1.0 + number, "ben")
        accounts.end(f"n{number}", "b1", 1)
    assert accounts.owner("old") == "ann"
    assert accounts.owner("n0") == ""
    assert accounts.owner(RULE_SOURCE) == ""


@pytest.mark.parametrize("name", ["page/ann", "page/ann/17", "page/ann#part-2"])
def test_what_somebody_publishes_on_the_page_nobody_else_publishes(name: str) -> None:
    names = SourceNames(Accounts(100))
    names.check(USERS["ann"], name)
    names.check(Rights(""), name)
    with pytest.raises(Refusal, match="another user's name"):
        names.check(USERS["ben"], name)
    names.check(Rights("ben", sources=("page/*",)), name)  # as the access file says
    names.check(USERS["ben"], "page", "page-17", "pages/ann")
