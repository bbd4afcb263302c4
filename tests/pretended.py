"""The engine of a device where there is no device: the same calls, answered by the processor."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any

from matcher.model import EventBatch
from rules.engine.catalogue import Catalogue
from rules.engine.cdp import CdpEngine
from rules.engine.engine import Detections
from rules.engine.gpu.engine import DeviceFailed, GpuEngine
from rules.engine.gpu.placed import PlacedEngine
from rules.pattern import Rule, RuleSet


class Pretended:
    """Stands for a GpuEngine, and refuses what that refuses."""

    def __init__(self) -> None:
        self._inner = CdpEngine()
        self._marks: int | Mapping[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def trust_ids(self) -> None:
        """It does not: events come again when rules do, and then are repeats."""

    def follow(self, others: Catalogue) -> None:
        self._inner._catalogue.follow(others)

    def take_over(
        self, rules: RuleSet, since: int | None, version: int, marks: Mapping[str, int]
    ) -> None:
        deployed: Sequence[Rule] = [one.rule for one in self._inner._catalogue.rules]
        assert GpuEngine.refuse([*deployed, *rules.rules]) == []
        self._inner._deploy(rules, since, version, marks)

    def refill(self, name: str, batches: Iterable[EventBatch]) -> None:
        for batch in batches:
            assert batch.type.name == name
            self._inner.push(batch)

    def begin(self, marks: int | Mapping[str, int]) -> None:
        self._marks = marks

    def finish(self) -> Detections:
        return self._inner.advance(self._marks)


class Failing(Pretended):
    """Fails at the call of that number, whatever it is."""

    at = 5

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self._error = error or DeviceFailed("it is out of order\nand hot")
        self._calls = 0

    def _count(self) -> None:
        self._calls += 1
        if self._calls == self.at:
            raise self._error

    def take_over(
        self, rules: RuleSet, since: int | None, version: int, marks: Mapping[str, int]
    ) -> None:
        self._count()
        super().take_over(rules, since, version, marks)

    def remove(self, name: str) -> None:
        self._count()
        self._inner.remove(name)

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
