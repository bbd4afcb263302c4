"""Openings: traffic over the links for the trees of brokers with sinks (thesis 7.3.2).

A father tells its children that a tree is open, under a mark that what they say of the tree has to
bear (processing_tree, Law 2). Events that go over a link for several trees at one moment cross it
once (tables.sharing), and so does what is asked along them and the single one (7.3.7).
"""

from __future__ import annotations

from collections.abc import Mapping

from routing.messages import Awakening, Opened, Shared
from routing.network.brokers.context import BrokerContext
from routing.network.evaluation.processing_tree import Generation, ProcessingTree
from routing.network.tables.sharing import ForTree, messages_of, share
from routing.partition.asking import AskedSpans


class Openings:
    """Both directions of each link, for all trees together."""

    def __init__(self, context: BrokerContext) -> None:
        self._context = context
        self._tree_table = context.detection.tree_table
        self.fathers: tuple[str, ...] = ()
        """The neighbours that events of local sources are sent to, to be evaluated."""
        self._openings: dict[tuple[str, str], tuple[Generation, int]] = {}
        """The generations that neighbours have opened last, by neighbour and root."""
        self._last_mark = 0

    def forget(self, neighbour: str) -> None:
        """The link is lost, or back."""
        for key in [key for key in self._openings if key[0] == neighbour]:
            del self._openings[key]

    # --- opening ---

    def open(self, before: Mapping[str, ProcessingTree]) -> None:
        """The trees stand instead of those: tell children what may come along the new ones, and
        see what fathers have said.
        """
        trees = self._tree_table.trees
        fathers = [one.father for one in trees.values() if one.father is not None]
        self.fathers = tuple(dict.fromkeys(fathers))
        self._last_mark += 1
        children: dict[str, list[ProcessingTree]] = {}
        for root, tree in trees.items():
            if before.get(root) is tree:
                continue
            tree.mark = self._last_mark
            for child in sorted(tree.children):
                children.setdefault(child, []).append(tree)
            if tree.father is not None:
                self._look_whether_open(tree)
        for child, own in sorted(children.items()):
            generation = own[0].generation
            roots = tuple((tree.root, tree.generation.number) for tree in own)
            opened = Opened(generation.centre, generation.epoch, roots, self._last_mark)
            self._context.send(child, opened)

    def hear_opened(self, neighbour: str, opened: Opened) -> None:
        """A neighbour has opened trees."""
        for root, number in opened.trees:
            generation = Generation(opened.centre, opened.epoch, number)
            self._openings[neighbour, root] = generation, opened.mark
            tree = self._tree_table.trees.get(root)
            if tree is not None and tree.father == neighbour:
                self._look_whether_open(tree)

    def _look_whether_open(self, tree: ProcessingTree) -> None:
        generation, mark = self._openings.get((tree.father or "", tree.root), (None, 0))
        if generation == tree.generation:
            tree.opened = mark
            self._tree_table.touch(tree.root)

    # --- what comes ---

    def hear_shared(self, neighbour: str, shared: Shared) -> None:
        """A child has sent what is for the trees in which it is one."""
        context = self._context
        context.check_schemas(shared.batches)
        now = context.moment.now
        for root, mark, message in messages_of(shared):
            tree = self._tree_table.trees.get(root)
            if tree is not None and neighbour in tree.children and mark == tree.mark:
                self._tree_table.touch(root)
                tree.take(neighbour, message, now)

    def hear_awakening(self, neighbour: str, message: Awakening) -> None:
        """A father asks for what waits here."""
        detection, router = self._context.detection, self._context.router
        is_partner = neighbour == router.father and neighbour in router.partners
        if message.asked and is_partner and detection.is_at_work:
            detection.evaluator.awake(message.asked)
        for root, mark, asked in message.trees:
            tree = self._tree_table.trees.get(root)
            if tree is not None and tree.father == neighbour and tree.opened == mark:
                self._tree_table.touch(root)
                tree.evaluator.awake(asked)

    # --- what goes ---

    def settle(self) -> None:
        """Send up what is for fathers that have opened their trees."""
        up: dict[str, list[ForTree]] = {}
        for tree in self._tree_table.news:
            if tree.father is not None and tree.opened is not None and tree.has_messages:
                to_father = up.setdefault(tree.father, [])
                for message in tree.take_messages():
                    to_father.append((tree.root, tree.opened, message))
        self._tree_table.settle()
        overlay, now = self._context.overlay, self._context.moment.now
        for father in self.fathers:
            for shared in share(up.get(father, ())):
                overlay.send(father, shared, now)

    def ask_below(self) -> None:
        """Ask for what waits below, in all trees; who is out of reach sends it when all is anew."""
        evaluator, branches = self._context.detection.evaluator, self._context.router.branches
        found = evaluator.take_asked() if evaluator.is_pulling else {}
        single = {child: of for child, of in found.items() if child in branches} if found else {}
        others: dict[str, list[tuple[str, int, AskedSpans]]] = {}
        for tree in self._tree_table.news:
            for child, asked in tree.take_asked().items() if tree.evaluator.is_pulling else ():
                others.setdefault(child, []).append((tree.root, tree.mark, asked))
        for child in sorted({*single, *others}) if single or others else ():
            message = Awakening(single.get(child, ()), tuple(others.get(child, ())))
            self._context.send(child, message)
