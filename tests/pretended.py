"""The engine of a device where there is no device: the same calls, answered by the processor."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from matcher.model import EventBatch
from rules.engine.cdp import CdpEngine
from rules.engine.engine import Detections, kept_by_all
from rules.engine.gpu.engine import DeviceFailed, GpuEngine
from rules.engine.gpu.ordering import merged
from rules.engine.gpu.placed import PlacedEngine
from rules.engine.order.catalogue import Catalogue
from rules.overrun import Overrun
from rules.pattern import RuleSet


class Pretended:
    """Stands for a GpuEngine, and refuses what that refuses: an engine for each rule."""

    def __init__(self, composites_max: int | None = None) -> None:
        self._composites_max = composites_max
        self._engines: dict[str, CdpEngine] = {}
        self._catalogue = Catalogue()
        self._marks: int | Mapping[str, int] = {}

    def trust_ids(self) -> None:
        """It does not: events come again when rules do, and then are repeats."""

    def follow(self, others: Catalogue) -> None:
        self._catalogue.follow(others)

    def take_over(self, rules: RuleSet, since: int, version: int, marks: Mapping[str, int]) -> None:
        assert GpuEngine.refuse([*(one.rule for one in self._catalogue.rules), *rules.rules]) == []
        self._catalogue.deploy(rules, since, version, marks)
        for rule in rules.rules:
            engine = CdpEngine(composites_max=self._composites_max)
            self._engines[rule.name] = engine
            engine._catalogue.follow(self._catalogue)
            engine._deploy(replace(rules, rules=(rule,)), since, version, marks)

    def remove(self, name: str) -> None:
        self._catalogue.remove(name)
        del self._engines[name]

    def refill(self, name: str, batches: Iterable[EventBatch]) -> None:
        for batch in batches:
            assert batch.type.name == name
            self.push(batch)

    def push(self, batch: EventBatch) -> None:
        for engine in self._engines.values():
            engine.push(batch)

    def begin(self, marks: int | Mapping[str, int]) -> None:
        self._marks = marks

    def finish(self) -> Detections:
        self._catalogue.advance_groups(self._marks)
        deployed = sorted(self._catalogue.rules, key=lambda one: one.place)
        names = [one.rule.name for one in deployed]
        found = [self._engines[name].advance(self._marks) for name in names]
        places = {name: place for place, name in enumerate(names)}
        return merged([one for one in found if len(one)], places)

    def forget_marks(self) -> None:
        self._catalogue.forget_named()
        for engine in self._engines.values():
            engine.forget_marks()

    def take_overruns(self) -> Sequence[Overrun]:
        overruns = [one for engine in self._engines.values() for one in engine.take_overruns()]
        for one in overruns:
            self._catalogue.end(one.rule)
        return overruns

    def memory(self) -> Mapping[str, int]:
        return kept_by_all(one.memory() for one in self._engines.values())

    def costs(self) -> Mapping[str, int]:
        return {}

    def footprints(self) -> Mapping[str, int]:
        return kept_by_all(one.footprints() for one in self._engines.values())


class Failing(Pretended):
    """Fails at the call of that number, whatever it is."""

    at = 5

    def __init__(self, error: Exception | None = None, composites_max: int | None = None) -> None:
        super().__init__(composites_max)
        self._error = error or DeviceFailed("it is out of order\nand hot")
        self._calls = 0

    def _count(self) -> None:
        self._calls += 1
        if self._calls == self.at:
            raise self._error

    def take_over(self, rules: RuleSet, since: int, version: int, marks: Mapping[str, int]) -> None:
        self._count()
        super().take_over(rules, since, version, marks)

    def remove(self, name: str) -> None:
        self._count()
        super().remove(name)

    def begin(self, marks: int | Mapping[str, int]) -> None:
        self._count()
        super().begin(marks)

    def finish(self) -> Detections:
        self._count()
        return super().finish()


class Restless(PlacedEngine):
    """Moves rules to and fro."""

    def __init__(
        self, gpu: Callable[[], Any] = Pretended, tell: Callable[[str, str], None] = print
    ) -> None:
        super().__init__(CdpEngine(), gpu, tell=tell)
        self._random = Random(5)

    def advance(self, marks: int | Mapping[str, int]) -> Detections:
        for name in self.marks:
            if self._random.random() < 0.5:
                self.move([name], to_gpu=self.placement(name).device == "cpu")
        return super().advance(marks)
