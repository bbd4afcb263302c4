"""Over which links a rule that is pulled is better pushed (7.3.7, by link).

What is asked of a broker over a link costs asking and answering, however little lies behind; where
its types go over the link for other rules anyway, or are rare beside the rule's master, sending
them unasked is cheaper. What is sent unasked over a link has to come there unasked (placement,
Law 4), so along each tree there is a *frontier* for each rule: below it the rule is pushed, above
it pulled.

Law: rules are looked at in turn, each given what goes up the trees for the others and the frontiers
found before. Of a tree's subtrees those are pushed that save most, by what their links save
together. What this goes by is near to the weights (weighing), not the same; who takes a frontier
weighs it first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from routing.messages import Ways
from routing.network.ways.repeating import Repeating
from routing.network.ways.sizes import ASKING, MESSAGE, answer_bytes
from routing.network.ways.terrain import Along
from routing.partition.placement import Tree
from routing.partition.pulling import Pull

Pushed = tuple[str, str, str]
"""As in Ways: a rule, the root of a tree, and a broker."""
_OnLinks = dict[tuple[str, str, str], set[str]]
"""By source, and the brokers below and above a link, what goes over it unasked for any tree."""


class Frontiers(Repeating):
    """What is saved where rules are pushed over some links of a network."""

    def frontiers(self, ways: Ways) -> Iterator[tuple[Pushed, ...]]:
        """For each tree along which rules are pulled, where they had better be pushed."""
        routed, roots = self._split(ways)
        single = self._along_single(ways, routed)
        own = [self._along_own(ways, root, wanted) for root, wanted in roots.items()]
        for trees in ([single], own):
            on_links = self._on_links(trees)
            for along in trees:
                yield self._frontier(along, on_links)

    def _on_links(self, trees: Iterable[Along]) -> _OnLinks:
        """What goes unasked along each of these trees."""
        found: _OnLinks = defaultdict(set)
        for along in trees:
            for (source, node), types in self._carried(along).items():
                found[source, node, along.tree.fathers[node]] |= types
        return found

    def _frontier(self, along: Along, on_links: _OnLinks) -> tuple[Pushed, ...]:
        """The frontiers of one tree. ``on_links``: what goes unasked below them is added."""
        tree, found = along.tree, list[Pushed]()
        for rule, pull in sorted(along.pulls.items()):
            asked: dict[str, dict[str, set[str]]] = defaultdict(dict)
            for (source, node), types in self._asked(along, rule).items():
                asked[node][source] = types
            saved = {
                node: self._saved(rule, pull, (node, tree.fathers[node]), of, on_links)
                for node, of in asked.items()
            }
            tops = _tops(tree, saved)
            for node in tree.within(tops) & asked.keys():
                for source, types in asked[node].items():
                    on_links[source, node, tree.fathers[node]] |= types
            found += ((rule, tree.root, top) for top in tops)
        return tuple(found)

    def _saved(
        self,
        rule: str,
        pull: Pull,
        link: tuple[str, str],
        asked: Mapping[str, set[str]],
        on_links: _OnLinks,
    ) -> float:
        """The bytes a second that pushing a rule over one link saves there."""
        master, forecast = pull.master.type.name, self._forecast
        saved = forecast.rate(master) * ASKING
        for source, types in sorted(asked.items()):
            often, unasked = self._often[source], on_links.get((source, *link), set())
            awake = forecast.awake(master, pull.after(types))
            saved += awake * often * answer_bytes(rule, self.facts.time)
            if not unasked:  # all messages are for what is pulled
                saved -= (1 - awake) * often * MESSAGE
            new = types - unasked
            saved -= often * self._marks(new)
            for around in pull.around:
                if around.type in new:
                    share = forecast.awake(master, around.before + around.after)
                    saved -= (1 - share) * self._events((around.type,))
        return saved


def _tops(tree: Tree, saved: Mapping[str, float]) -> Sequence[str]:
    """The brokers whose subtrees save most, each of them whole. ``saved``: over the link above each
    broker over which there is something to save.
    """
    best: dict[str, tuple[float, tuple[str, ...]]] = {}
    whole: dict[str, float] = {}
    for node in sorted(saved, key=lambda one: (-tree.depths[one], one)):
        below = [child for child in tree.children.get(node, ()) if child in saved]
        whole[node] = saved[node] + sum(whole[child] for child in below)
        apart = sum(best[child][0] for child in below)
        if whole[node] > 0 and whole[node] >= apart:
            best[node] = whole[node], (node,)
        else:
            best[node] = apart, tuple(top for child in below for top in best[child][1])
    fathers = tree.fathers
    return [top for node in saved if fathers[node] not in saved for top in best[node][1]]
