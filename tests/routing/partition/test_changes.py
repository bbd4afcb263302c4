"""Sources that come and go while a tree is at work: fragments take the place of others, and the
composite events stay those of one engine.

A source joins a type with a first promise beyond what is known of the type anywhere, as it does at
a broker. Cases in which a rule would have to move to another node are left out.
"""

import os
from collections import deque

import pytest
from pairs import WHOLE
from processing_tree import ProcessingTree, Source
from tree_cases import TreeCase, rows

COUNT = int(os.environ.get("REXMQ_TREES", "100")) // 2
FIRST = int(os.environ.get("REXMQ_SEED", "0" if WHOLE else "20"))
"""The first seeds have cases that take seconds."""
PARTS = 3


class ChangingTree(ProcessingTree):
    """A processing tree whose sources come and go."""

    def __init__(self, *arguments, **options) -> None:
        super().__init__(*arguments, **options)
        self.changed = 0
        self.closing: dict[str, int] = {}  # by node, beyond the last event published there

    def _moves(self):
        moves = super()._moves()
        if moves and self.random.random() < 0.2:
            moves += [self._join, self._leave] * len(moves)
        return moves

    def _join(self) -> None:
        """Another node publishes some of the events that are left of a type."""
        old = self.random.choice(self.sources)
        types = sorted({event.type for event in old.events})
        if not types:
            return
        name = self.random.choice(types)
        floor = max(
            mark
            for one in self.nodes.values()
            for mark in one.marks.get(name, {"": old.marks.get(name, self.least)}).values()
        )
        floor = max([floor, *(message.marks.get(name, floor) for message in self._in_flight())])
        moving = [
            event
            for event in old.events
            if event.type == name and event.time >= floor and self.random.random() < 0.6
        ]
        joined = Source(old.node, frozenset({name}), deque(moving), {name: floor})
        self.sources.append(joined)
        for node in self.random.sample(sorted(self.nodes), len(self.nodes)):
            joined.node = node
            if self._deploy():
                break
        else:
            self.sources.pop()
            return
        old.events = deque(event for event in old.events if event not in moving)
        self.nodes[node].marks.setdefault(name, {})[f"source {len(self.sources) - 1}"] = floor
        self._expect(floor)

    def _leave(self) -> None:
        """A source that has no more to say withdraws, once all that it said has gone up."""
        place = self.random.randrange(len(self.sources))
        source = self.sources[place]
        if source.events or any(self.links.values()) or not self._has_gone_up(source):
            return
        others = [one for one in self.sources if one is not source]
        if not source.types <= frozenset().union(*(one.types for one in others)):
            return
        types, source.types = source.types, frozenset()
        if not self._deploy():
            source.types = types
            return
        for name in types:
            del self.nodes[source.node].marks[name][f"source {place}"]
        self._expect(self.end)

    def _has_gone_up(self, source: Source) -> bool:
        """Whether every node above has promised as much as the source knows."""
        sent = [self.promised.get(name, {}) for name in self.tree.path(source.node)[:-1]]
        closing = self.closing.get(source.node, self.end)
        return all(marks.get(name, self.end) >= closing for marks in sent for name in source.types)

    def _publish(self, number: int) -> None:
        source = self.sources[number]
        last = max((event.time for event in source.events), default=0) + 1
        self.closing[source.node] = max(last, self.closing.get(source.node, 0))
        super()._publish(number)

    def _in_flight(self):
        return (message for link in self.links.values() for message in link)

    @property
    def least(self) -> int:
        return -(10**9)

    def _deploy(self) -> bool:
        """Divide the rules anew; whether that moves none of them, and so was done."""
        divided = self.divided()
        if divided.places != self.partition.places or divided == self.partition:
            return False
        self.changed += self._follow(divided)
        return True

    def _expect(self, floor: int) -> None:
        """Nodes that forward a type since now have promised as much as its new source; those that
        forward it no more promise nothing."""
        for child, father in self.tree.fathers.items():
            fragments = self.partition.fragments.get(child, {}).values()
            forwarded = frozenset().union(*(fragment.forwards for fragment in fragments))
            for name in forwarded:
                self.nodes[father].marks.setdefault(name, {}).setdefault(child, floor)
            for name, given in self.nodes[father].marks.items():
                if name not in forwarded:
                    given.pop(child, None)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(3600)
def test_what_is_detected_does_not_depend_on_where_sources_come_and_go(part: int):
    changed = 0
    for seed in range(FIRST + part * COUNT // PARTS, FIRST + (part + 1) * COUNT // PARTS):
        case = TreeCase(seed)
        network = case.distributed(kind=ChangingTree)
        assert isinstance(network, ChangingTree)
        got, expected = rows(network.run()), rows(case.centralised())
        assert got == expected, f"seed {seed}\n{case}\n{network.partition}"
        changed += network.changed
    assert changed > COUNT // PARTS // 2, "too little changed"
