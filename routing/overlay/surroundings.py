"""One broker's view of the network around it, and its conclusions: its part, and its trees.

Law 1: everything is told by link states (:mod:`routing.overlay.floods`): who is linked to whom, who
is the root of a tree, and which trees have lost a link. Whoever has the same link states draws the
same conclusions; ``settle_s`` after the first news they are drawn, all at once.

Law 2: the centre of the own part of the network is the root of the single tree. Only a root starts
an epoch: when it has no tree yet, or when some broker says that this epoch's tree has lost a link.
While two brokers take themselves for the centre, as their link states still differ, the first by
name counts.

Law 3: an epoch is numbered by the version of the link state in which its root first told of it.
So a broker knows whether what a root says is older than a tree that it heard of. A tree is
forgotten when its root says later that it has none. A root that is out of reach leaves orphans;
its tree is reported broken, since it may be that only this broker thought so.

Law 4: a broker that has been out of reach for ``forget_s`` is forgotten, and its tree with it; it
may do the same with this one (floods, Law 4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from routing.messages import CreateTree, LinkState, LinkStates, TreeNack
from routing.overlay.config import OverlayConfig
from routing.overlay.floods import Floods
from routing.overlay.graph import Component, components_of
from routing.overlay.trees import LocalTree, Told, TreeMessage, Trees

NAMESAKE_AFTER = 4
"""So many times a broker goes above what is told of it before it takes that for a namesake's."""
BROKEN_MAX = 1_024
"""Broken trees that one broker reports at a time; the others follow when these have healed."""

Tell = Callable[[str, TreeMessage | LinkStates], None]
"""Sends a message to a neighbour; nothing is sent to one that is not there."""


class Surroundings:
    """Link states and trees. ``neighbours``: by the names of those whose links are up, the delays
    of these in microseconds; ``tell`` sends. ``now`` is in seconds and never goes back.
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
        self.floods = Floods(config)
        """The link states."""
        self._revision = -1
        self._roots: list[str] = []
        """The brokers that take themselves for the centre, as of that revision."""
        self.trees = Trees(config.name)
        """The trees that this broker is in."""
        self._broken: dict[str, int] = {}
        self.flood_at: float | None = None
        """When news is told on."""
        self.settle_at: float | None = now
        """When conclusions are drawn: at once, where there is no link to wait for."""
        self.forget_at: float | None = None
        """When they are drawn again without news, since somebody is to be forgotten (Law 4)."""
        self.part: Component = components_of(self.floods)[config.name]
        """The connected part of the network that this broker is in, as last concluded."""

    @property
    def states(self) -> tuple[LinkState, ...]:
        """The known link states, by name."""
        return tuple(sorted(self.floods))

    @property
    def single_tree(self) -> LocalTree | None:
        """The tree of the centre (Law 2)."""
        if self._revision != self.floods.revision:
            self._revision = self.floods.revision
            self._roots = sorted(one.origin for one in self.floods if one.epoch)
        trees = (self.trees.find(root) for root in self._roots)
        return next((tree for tree in trees if tree is not None and not tree.orphan), None)

    @property
    def is_settled(self) -> bool:
        """Whether everything heard so far has been told on, and conclusions were drawn."""
        return self.flood_at is None and self.settle_at is None

    # --- what has changed ---

    def join(self, neighbour: str, now: float) -> None:
        """A link is up."""
        self.floods.join(neighbour)
        self._flood_soon(now)
        self._tell_all(self.trees.join(neighbour))
        self._say(now)

    def leave(self, neighbour: str, now: float) -> None:
        """A link is down."""
        self.floods.leave(neighbour)
        for root, epoch in self.trees.leave(neighbour):
            self._broken[root] = epoch
        self._say(now)

    def hear(self, neighbour: str, message: LinkStates, now: float) -> bool:
        """A neighbour tells link states; gives whether some of them must be those of a broker that
        bears this one's name.
        """
        floods = self.floods
        version, surpasses = floods.own.version, floods.surpasses
        news = floods.take(neighbour, message.states)
        if news or floods.own.version != version:
            self._settle_soon(now)
        if floods.has_news:
            self._flood_soon(now)
        return surpasses < NAMESAKE_AFTER <= floods.surpasses

    def hear_of_tree(self, neighbour: str, message: TreeMessage) -> None:
        """A neighbour says something of a tree."""
        full = len(self.trees) >= self._config.nodes_max and not self.trees.find(message.root)
        past = self._is_past(message.root, message.epoch)
        if isinstance(message, CreateTree) and (past or full):
            self._tell(neighbour, TreeNack(message.root, message.epoch))
        else:
            self._tell_all(self.trees.receive(neighbour, message, self._neighbours().keys()))

    def _tell_all(self, told: Iterable[Told]) -> None:
        for neighbour, message in told:
            self._tell(neighbour, message)

    # --- link states ---

    def be_away(self, now: float) -> None:
        """Resume after this broker was kept from its work for so long that all may have forgotten
        it, and the tree of which it is the root. It leaves all trees, and concludes nothing before
        neighbours that have lost it have had the time to greet it, lest it take itself for alone.
        """
        self.floods.be_away()
        self.trees.drop(self._name)
        for tree in self.trees:
            if not tree.orphan:
                self._broken[tree.root] = tree.epoch
                self.trees.cut(tree)
        self._flood_soon(now)
        self.settle_at = now + self._config.settle_s + 2 * self._config.greeting_s

    def _say(self, now: float) -> None:
        """Say of this broker what is true now, if it is news."""
        own = self.trees.find(self._name)
        state = LinkState(
            self._name,
            0,
            tuple(sorted(self._neighbours().items())),
            0 if own is None else own.epoch,
            tuple(sorted(self._broken.items())[:BROKEN_MAX]),
        )
        if self.floods.say(state):
            self._flood_soon(now)
            self._settle_soon(now)

    def flood(self) -> None:
        """Tell on what is news."""
        self.flood_at = None
        for neighbour, states in list(self.floods.take_news()):
            self._tell(neighbour, LinkStates(states))

    def _flood_soon(self, now: float) -> None:
        if self.flood_at is None:
            self.flood_at = now + self._config.flood_s

    def _settle_soon(self, now: float) -> None:
        if self.settle_at is None:
            self.settle_at = now + self._config.settle_s

    # --- conclusions ---

    def conclude(self, now: float) -> None:
        """Law 1: look at the link states, and do what follows."""
        self.settle_at = None
        self.part = components_of(self.floods)[self._name]
        for name in self.floods.forget(self.part.nodes, now):
            tree = self.trees.find(name)
            if tree is not None and tree.orphan:  # else it is anew, and was faster than its words
                self.trees.drop(name)
            self._broken.pop(name, None)
        self.forget_at = self.floods.forgets_at
        if self.floods.has_news:
            self._flood_soon(now)
        for tree in list(self.trees):
            if tree.root != self._name:
                self._look_at(tree)
        # A break is healed once the root has another tree; one not heard of yet will hear of it.
        self._broken = {
            root: epoch for root, epoch in self._broken.items() if not self._is_past(root, epoch)
        }
        self._keep_own_tree()
        self._say(now)

    def _look_at(self, tree: LocalTree) -> None:
        """Law 3. A root that is not heard of yet will be: its tree was faster than its words."""
        state = self.floods.find(tree.root)
        if state is None:
            return
        if tree.root not in self.part.nodes and not tree.orphan:
            self._broken[tree.root] = tree.epoch
            self.trees.cut(tree)
        elif state.epoch == 0 and self._is_past(tree.root, tree.epoch):
            self.trees.drop(tree.root)

    def _is_past(self, root: str, epoch: int) -> bool:
        """Whether a root has said since that it has another tree, or none."""
        state = self.floods.find(root)
        return state is not None and state.version >= epoch != state.epoch

    def _keep_own_tree(self) -> None:
        """Law 2."""
        own = self.trees.find(self._name)
        if self.part.centre != self._name:
            self.trees.drop(self._name)
        elif own is None or self._lost_a_link(own):
            self._broken.pop(self._name, None)
            epoch = self.floods.own.version + 1  # as which it is about to be told
            self._tell_all(self.trees.start(epoch, self._neighbours()))

    def _lost_a_link(self, own: LocalTree) -> bool:
        told = (own.root, own.epoch)
        if self._broken.get(own.root) == own.epoch or own.epoch <= self.floods.surpassed:
            return True
        return any(told in state.broken for state in self.floods)
