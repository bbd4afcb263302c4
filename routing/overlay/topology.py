"""One broker's view of the network around it, and its conclusions: its part, and its trees.

The centre of the own part of the network is the root of the single tree. It gives everybody a
father on the shortest way (graph), and says so in its link state. Whoever has the same link states
draws the same conclusions; ``settle_s`` after the first news they are drawn, all at once. Who is
whose father is told on at once, so whoever hears something along a tree from a neighbour has heard
of the tree before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from routing.messages import LinkState, LinkStates
from routing.overlay.config import OverlayConfig
from routing.overlay.graph import Component, components_of, fathers_of
from routing.overlay.link_states import LinkStateDatabase
from routing.overlay.trees import LocalTree, Trees

NAMESAKE_AFTER = 4
"""So many times a broker goes above what is told of it before it takes that for a namesake's."""
BROKEN_MAX = 1_024
"""Broken trees that one broker reports at a time; the others follow when these have healed."""

Tell = Callable[[str, LinkStates], None]
"""Sends a message to a neighbour; nothing is sent to one that is not there."""
Fathers = tuple[tuple[str, str], ...]
"""The father of every broker in a tree but its root."""


class Topology:
    """Link states and trees. ``neighbours``: by the names of those whose links are up and measured,
    the delays of these in microseconds; ``tell`` sends. ``now`` is in seconds and never goes back.
    """

    def __init__(
        self,
        config: OverlayConfig,
        now: float,
        neighbours: Callable[[], Mapping[str, int]],
        tell: Tell,
    ) -> None:
        self._config = config
        self._name = config.name
        self._neighbours = neighbours
        self._tell = tell
        self.database = LinkStateDatabase(config)
        """The link states."""
        self.trees = Trees(config.name)
        """The trees that this broker is in."""
        self._broken: dict[str, int] = {}
        self._durables: tuple[str, ...] = ()
        self.flood_at: float | None = None
        """When news is told on."""
        self.settle_at: float | None = now
        """When conclusions are drawn: at once, where there is no link to wait for."""
        self.forget_at: float | None = None
        """When they are drawn again without news, since somebody is to be forgotten."""
        self.part: Component = components_of(self.database)[config.name]
        """The connected part of the network that this broker is in, as last concluded."""

    @property
    def states(self) -> tuple[LinkState, ...]:
        """The known link states, by name."""
        return tuple(sorted(self.database))

    @property
    def single_tree(self) -> LocalTree | None:
        """The tree of the centre. While two brokers take themselves for the centre, as their link
        states still differ, the later epoch counts: its root knows more, and all whom it knows are
        in its tree.
        """
        trees = [tree for tree in self.trees if not tree.orphan]
        return max(trees, key=lambda tree: (tree.epoch, tree.root), default=None)

    @property
    def is_settled(self) -> bool:
        """Whether everything heard so far has been told on, and conclusions were drawn."""
        return self.flood_at is None and self.settle_at is None

    # --- what has changed ---

    def join(self, neighbour: str, now: float) -> None:
        """A link is up."""
        self.database.join(neighbour)
        self._flood_soon(now)
        self.say(now)

    def leave(self, neighbour: str, now: float) -> None:
        """A link is down."""
        self.database.leave(neighbour)
        for root, epoch in self.trees.leave(neighbour):
            self._broken[root] = epoch
        self.say(now)

    def hear(self, neighbour: str, message: LinkStates, now: float) -> bool:
        """A neighbour tells link states; gives whether some of them must be those of a broker that
        bears this one's name.
        """
        database = self.database
        version, surpasses = database.own.version, database.surpasses
        before = {one.origin: database.find(one.origin) for one in message.states}
        news = database.take(neighbour, message.states)
        if news or database.own.version != version:
            self._settle_soon(now)
        told = [one for one in news if _tells_of_tree(one, before[one.origin])]
        for state in told:
            if self.trees.hear(state, self._neighbours()):
                self._broken[state.origin] = state.epoch
        if told:
            self.say(now)
            self.flood()
        elif database.has_news:
            self._flood_soon(now)
        return surpasses < NAMESAKE_AFTER <= database.surpasses

    # --- link states ---

    def be_away(self, now: float) -> None:
        """Resume after this broker was kept from its work for so long that all may have forgotten
        it, and the tree of which it is the root. It leaves all trees, and concludes nothing before
        neighbours that have lost it have had the time to greet it, lest it take itself for alone.
        """
        self.database.be_away()
        self.trees.drop(self._name)
        for tree in self.trees:
            if not tree.orphan:
                self._broken[tree.root] = tree.epoch
                self.trees.cut(tree)
        self._flood_soon(now)
        self.settle_at = now + self._config.settle_s + 2 * self._config.greeting_s

    def say_durables(self, names: tuple[str, ...], now: float) -> None:
        """Say that these durable sinks are at this broker."""
        self._durables = names
        self.say(now)

    def say(self, now: float) -> None:
        """Say of this broker what is true now, if it is news."""
        own = self.trees.find(self._name)
        self._say(now, *((0, ()) if own is None else (own.epoch, own.fathers)))

    def _say(self, now: float, epoch: int, fathers: Fathers) -> None:
        """Say it with this tree of its own."""
        neighbours = tuple(sorted(self._neighbours().items()))
        broken = tuple(sorted(self._broken.items())[:BROKEN_MAX])
        said = neighbours, epoch, broken, fathers, self._durables
        if self.database.say(LinkState(self._name, 0, *said)):
            self._flood_soon(now)
            self._settle_soon(now)

    def flood(self) -> None:
        """Tell on what is news."""
        self.flood_at = None
        for neighbour, states in list(self.database.take_news()):
            self._tell(neighbour, LinkStates(states))

    def _flood_soon(self, now: float) -> None:
        if self.flood_at is None:
            self.flood_at = now + self._config.flood_s

    def _settle_soon(self, now: float) -> None:
        if self.settle_at is None:
            self.settle_at = now + self._config.settle_s

    # --- conclusions ---

    def conclude(self, now: float) -> None:
        """Look at the link states, and do what follows. A broker that has been out of reach for
        ``forget_s`` is forgotten, and its tree with it; it may do the same with this one.
        """
        self.settle_at = None
        self.part = components_of(self.database)[self._name]
        for name in self.database.forget(self.part.nodes, now):
            self.trees.drop(name)
        self.forget_at = self.database.forgets_at
        if self.database.has_news:
            self._flood_soon(now)
        for tree in self.trees:
            if tree.root not in self.part.nodes and not tree.orphan:  # an orphan is left
                self._broken[tree.root] = tree.epoch
                self.trees.cut(tree)
        self._broken = {  # a break is healed once the root has another tree, or none
            root: epoch
            for root, epoch in self._broken.items()
            if (state := self.database.find(root)) is not None and state.epoch == epoch
        }
        self._keep_own_tree(now)

    def _keep_own_tree(self, now: float) -> None:
        """Only a root starts an epoch: when it has no tree yet, when some broker says that this
        epoch's tree has lost a link, or when link states say that a link of it is gone. An epoch is
        greater than all that its root has heard of. Brokers that join are added to the tree that
        stands: b1, b2 and b3 are linked to one another, and b1 says that b1 is the father of both;
        b4 joins at b3: b1 says in the same epoch that b3 is the father of b4.
        """
        part, own = self.part, self.trees.find(self._name)
        if part.centre != self._name:
            self.trees.drop(self._name)
            self.say(now)
            return
        epoch, kept = 0, Fathers()
        if own is not None and not self._lost_a_link(own):
            epoch, kept = own.epoch, own.fathers
        fathers = fathers_of(self._name, part.nodes, part.edges, kept)
        if not epoch or fathers.keys() != part.nodes - {self._name} or set(kept) - fathers.items():
            self._broken.pop(self._name, None)
            epoch = self.database.next_epoch()
            fathers = fathers_of(self._name, part.nodes, part.edges)
        told = tuple(sorted(fathers.items()))
        self._say(now, epoch, told)
        if own is None or (own.epoch, own.fathers) != (epoch, told):
            self.trees.hear(self.database.own, self._neighbours())
            self.flood()

    def _lost_a_link(self, own: LocalTree) -> bool:
        told = (own.root, own.epoch)
        if self._broken.get(own.root) == own.epoch or own.epoch <= self.database.surpassed:
            return True
        return any(told in state.broken for state in self.database)


def _tells_of_tree(state: LinkState, before: LinkState | None) -> bool:
    """Whether the tree of a root is another than it said before."""
    if before is None:
        return state.epoch != 0
    return (state.epoch, state.fathers) != (before.epoch, before.fathers)
