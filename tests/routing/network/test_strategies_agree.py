"""Clients come and go, and get the same whatever the strategy: random stories, told to each.

Between its steps a story waits until nothing is under way, so what a client gets follows from the
steps alone: who subscribes late gets what comes after the marks that rules have by then.
"""

from dataclasses import dataclass, field
from random import Random

import pytest
from brokers import Network
from conversation import schema_of
from pairs import seeds

from routing.messages import Remove

SCHEMAS = {name: schema_of(f"{name}(p: int)") for name in "ABC"}
RULES = {
    "one": "define X(p: int) from A() as a and last B(p = a.p) within 5 s from a where p = a.p",
    "two": "define Y(p: int) from X() as x and last C() within 4 s from x where p = x.p",
    "three": "define X(p: int) from C() as c and each A(p = c.p) within 3 s from c where p = c.p",
    "four": "define Z(p: int) from B() as b and last A() as a within 6 s from b "
    "where p = a.p consuming a",
    "five": "define X(p: int) from B() as b and last A() as a within 6 s from b "
    "where p = a.p + 10 consuming a",
    "six": "define W(n: int) from C() as c and not A() within 2 s from c where n = Count(B() "
    "within 5 s from c)",
    "seven": "define V(p: int) from Z() as z and last X() within 9 s from z where p = z.p",
}
FILTERS = ("X()", "X(p > 1)", "Y()", "Z()", "W()", "V()", "X(p = 2)", "A(p = 1)", "B")


@dataclass
class Story:
    """The same steps for each strategy, from one seed."""

    seed: int
    network: Network
    random: Random = field(init=False)
    now: int = 1
    sinks: dict[str, dict[int, str]] = field(default_factory=dict)
    deployed: set[str] = field(default_factory=set)
    told: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = Random(f"agree {self.seed}")

    def broker(self) -> str:
        return self.random.choice(sorted(self.network.brokers))

    def run(self, steps: int) -> None:
        for name, schema in SCHEMAS.items():
            self.network.connect(name, self.broker()).advertise([schema])
        self.network.connect("m", self.broker())
        self.settle()
        for _ in range(steps):
            step = self.random.choice(
                [self.publish] * 6
                + [self.subscribe] * 2
                + [self.deploy] * 2
                + [self.unsubscribe, self.remove]
            )
            step()
            self.settle()
        self.publish()
        self.settle()

    def settle(self) -> None:
        self.network.run(0.6)
        for line in self.network.take_lines():
            name, _, text = line.partition(": ")
            if name.startswith("k"):
                self.told.setdefault(name, []).append(text)

    def publish(self) -> None:
        for _ in range(self.random.randint(2, 9)):
            name = self.random.choice("ABC")
            self.now += self.random.choice((0, 1, 1, 2))
            text = f"{name}@{self.now}({self.random.randint(1, 2)})"
            self.network.publish(name, text, schemas=SCHEMAS)
        for name in "ABC":
            self.network.clients[name].promise((self.now + 1) * 1_000_000)
        self.now += 1

    def subscribe(self) -> None:
        if not self.sinks or self.random.random() < 0.5:
            name = f"k{len(self.sinks)}"
            self.network.connect(name, self.broker())
            self.sinks[name] = {}
        name = self.random.choice(sorted(self.sinks))
        text = self.random.choice(FILTERS)
        _, number = self.network.clients[name].subscribe(text)
        self.sinks[name][number] = text

    def unsubscribe(self) -> None:
        name = self.random.choice(sorted(self.sinks)) if self.sinks else ""
        if name and self.sinks[name]:
            number = self.random.choice(sorted(self.sinks[name]))
            del self.sinks[name][number]
            self.network.clients[name].unsubscribe(number)

    def deploy(self) -> None:
        name = self.random.choice(sorted(RULES))
        if name not in self.deployed:
            self.deployed.add(name)
            declared = "".join(f"event {one}\n" for one in SCHEMAS.values())
            needed = {"two": "event X(p: int)\n", "seven": "event X(p: int)\nevent Z(p: int)\n"}
            self.network.clients["m"].deploy(
                declared + needed.get(name, "") + f"rule {name}: {RULES[name]}"
            )

    def remove(self) -> None:
        if self.deployed:
            name = self.random.choice(sorted(self.deployed))
            self.deployed.discard(name)
            self.network.clients["m"].ask(Remove, name)


def told(seed: int, strategy: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    monkeypatch.setattr(Network, "strategy", strategy)
    network = Network(2 + seed % 4)
    if len(network.brokers) > 3:
        network.link("b1", f"b{len(network.brokers)}")
        network.run(2)
    story = Story(seed, network)
    story.run(18)
    return story.told


FOUND = (341, 403)
"""Seeds that failed once: marks of the single tree that were not told because nothing had been sent
along it; a rule that had served others, and counted as never heard of once it was subscribed to."""


@pytest.mark.parametrize("seed", [*seeds(1, 10), *FOUND])
def test_a_story_has_one_end(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = told(seed, "centralized", monkeypatch)
    others = ("distributed-st", "distributed-mt", "push-pull-st", "push-pull-mt", "adaptive")
    for strategy in others:
        assert told(seed, strategy, monkeypatch) == expected, f"seed {seed}, {strategy}"
