"""Plans in tables: what is equal is shared, and what is given back is used again."""

import numpy as np

import rules
from matcher.model import TIME_MAX, TIME_MIN
from rules.engine.linking.interner import Interner
from rules.engine.linking.linker import Linker
from rules.engine.order.catalogue import Catalogue

SCHEMAS = "event A(k: int, s: string, v: float) event B(k: int) "


class Linked:
    """A linker that follows a catalogue, as the engine's does."""

    def __init__(self) -> None:
        self.catalogue, self.strings = Catalogue(), Interner()
        self.linker = Linker(self.strings)
        self.tables = self.linker.tables
        self.sources: dict[str, int] = {}
        self.order: list[int] = []

    def deploy(self, text: str, since: int = TIME_MIN) -> None:
        ruleset = rules.load(SCHEMAS + text)
        for one in self.catalogue.deploy(ruleset, since, 0):
            source = self.sources.setdefault(one.rule.name, len(self.sources))
            self.linker.link(one, source)
        self.refresh()

    def remove(self, name: str) -> tuple[int, ...]:
        removed = self.catalogue.remove(name)
        gone = self.linker.unlink(name)
        self.tables.forget_types([one.name for one in removed.types], self.catalogue.schemas)
        self.refresh()
        return gone

    def refresh(self) -> None:
        changed = self.catalogue.take_changed()
        found = self.linker.refresh(changed, self.catalogue.used, self.catalogue.groups)
        if found is None:
            self.order = [one for one in self.order if one in self._alive()]
        else:
            self.order = found.tolist()

    def _alive(self) -> list[int]:
        return [self.sources[name] for name in self.linker.linked]

    def record(self, name: str) -> np.void:
        return self.linker.rules.array[self.linker.linked[name][0].number]


def rule(name: str, conditions: str = "k = 1", window: str = "5 s", defines: str = "X") -> str:
    return (
        f"rule {name}: define {defines}() from B(k = $k) as b"
        f" and last A(k = $k, {conditions}) as a within {window} from b "
    )


def test_rules_that_ask_for_the_same_events_share_columns_and_accesses():
    linked = Linked()
    linked.deploy(rule("one", 's = "x"') + rule("two", 's = "x"', "9 s"))
    assert (len(linked.tables.columns), len(linked.tables.accesses)) == (2, 1)
    linked.deploy(rule("three", 's = "y"'))
    assert (len(linked.tables.columns), len(linked.tables.accesses)) == (3, 2)


def test_an_access_is_gone_with_its_last_rule():
    linked = Linked()
    linked.deploy(rule("one", 's = "x"') + rule("two", 's = "x"'))
    assert linked.remove("one") == ()
    assert len(linked.remove("two")) == 1
    assert linked.tables.type_numbers == {}
    assert linked.linker.constants() == set()


def test_thousands_of_rules_with_constants_of_their_own_leave_the_tables_as_they_were():
    linked = Linked()
    linked.deploy(rule("kept", 's = "kept"'))
    sizes = None
    for number in range(1500):
        linked.deploy(rule("passing", f's = "{number}", v > {number}.5', defines=f"X{number % 3}"))
        linked.remove("passing")
        linker, tables = linked.linker, linked.tables
        lookbacks = linker._lookbacks
        now = (
            *(len(table) for table in (tables.columns, tables.accesses, linker.rules)),
            *(len(table) for table in (tables.types, lookbacks._holds, lookbacks._places)),
            *(len(table.array) for table in (linker.steps, tables.code, linker._values)),
            len(tables._index._table),
        )
        sizes = sizes or now
        assert now == sizes, number


def test_rules_stand_in_the_order_of_rank_since_and_position():
    linked = Linked()
    linked.deploy("event X() rule upper: define Y() from X()")
    linked.deploy(rule("late"), since=7)
    linked.deploy(rule("early"))
    names = ("upper", "late", "early")
    priorities = {name: int(linked.record(name)["priority"]) for name in names}
    assert sorted(priorities, key=priorities.__getitem__) == ["early", "late", "upper"]
    # Their sources: since first, then position; ranks decide nothing there (E4, S15).
    assert linked.order == [linked.sources[name] for name in ("upper", "early", "late")]
    assert [bool(linked.record(name)["stores"]) for name in names] == [False, True, True]


def test_horizons_are_marks_less_reaches_and_never_before_a_rule_holds():
    linked = Linked()
    linked.deploy(rule("short", "k > 0", "2 s") + rule("long", "k > 0", "5 s", "Z"))
    linked.deploy(rule("later", "v > 0", "60 s"), since=90_000_000)
    linked.linker.groups["mark"] = 100_000_000
    horizons = linked.linker.horizons(TIME_MAX)
    assert sorted(horizons.accesses.tolist()) == [90_000_000, 95_000_000]
    types = linked.tables.type_numbers
    assert horizons.types[types["A"]] == 90_000_000
    assert horizons.types[types["B"]] == 100_000_000  # terminators: nothing looks back for them
    assert horizons.types[types["X"]] == TIME_MAX
    assert horizons.least == 90_000_000
    assert linked.linker.horizons(91_000_000).types[types["B"]] == 91_000_000


def test_the_horizon_of_a_rule_without_a_mark_does_not_overflow():
    linked = Linked()
    linked.deploy(rule("one"))
    assert linked.linker.horizons(TIME_MAX).least == TIME_MIN
