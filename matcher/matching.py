"""The choice of a matcher and of the place where it computes, as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from matcher.methods.matcher import Matcher
    from matcher.methods.tabled import TableMatcher

MATCHERS = ("auto", "pcm", "counting", "signature", "index", "naive", "ccm", "batched")
DEVICES = ("cpu", "gpu", "auto")
ON_DEVICE = {"auto": "batched", "pcm": "ccm", "ccm": "ccm", "batched": "batched"}
"""The ways on a device of the matchers that have one."""
PLACED = "placed"
"""The way of ``auto`` that chooses between the processor and the device, too."""

Told: TypeAlias = Callable[[str, str], None]
"""A function that is told of a change in how events are matched, and of the reason."""


def nobody(_what: str, _why: str) -> None:
    """Tell nobody, as a library does."""


@dataclass(frozen=True, slots=True)
class Matching:
    """The names of a matcher and of its place; ``tell`` is called when it must do without a device.

    Raises ValueError for a name that there is not, and for a matcher without a form for devices
    on ``gpu``.
    """

    matcher: str = "auto"
    device: str = "cpu"
    tell: Told = field(default=nobody, compare=False, repr=False)

    def __post_init__(self) -> None:
        for what, name, names in (
            ("matcher", self.matcher, MATCHERS),
            ("device", self.device, DEVICES),
        ):
            if name not in names:
                raise ValueError(f"{what}: expected one of {', '.join(names)}, found {name!r}")
        if self.device == "gpu" and self.matcher not in ON_DEVICE:
            have = ", ".join(ON_DEVICE)
            raise ValueError(
                f"device gpu: the matcher {self.matcher} has no form for a GPU; {have} have"
            )

    @property
    def way(self) -> str:
        """The way of matching: a matcher's name, or PLACED. Two names decide it, by the table of
        docs/matching.md ("On a GPU"); every way gives the same answers.
        """
        if self.needs_device:
            return ON_DEVICE[self.matcher]
        return PLACED if self.matcher == self.device == "auto" else self.matcher

    @property
    def needs_device(self) -> bool:
        """Whether it cannot be without a device: two matchers are for devices alone."""
        return self.device == "gpu" or ON_DEVICE.get(self.matcher) == self.matcher

    def settled(self) -> Matching:
        """The same where there is a device or none is asked for. Without one ``auto`` means the
        processor, and that is told; raises NoDevice where it needs one.
        """
        if not self.needs_device and self.way != PLACED:
            return self
        from matcher.gpu.device import NoDevice, device

        try:
            device()
        except NoDevice as error:
            if self.needs_device:
                asked = "device gpu" if self.device == "gpu" else f"matcher {self.matcher}"
                raise NoDevice(f"{asked}: {error}") from None
            self.tell("matching on the processor", str(error))
            return replace(self, device="cpu")
        return self

    def make(self) -> Matcher:
        """A new matcher. One that computes on a device goes on without, should that fail, now or
        later, and this is told.
        """
        from matcher.methods.choose import make

        if not self.needs_device and self.way != PLACED:
            return make(self.matcher)
        from matcher.methods.guarded import guarded

        return guarded(self._on_device, self.tell)

    def facts(self, matcher: Matcher) -> dict[str, Any]:
        """The present state of a matcher that this made, as the status of a broker has it."""
        figures = matcher.figures
        return {
            "filters": len(matcher),
            "method": figures.get("method", self.way),
            "device": figures.get("device"),
            "device_from_events": figures.get("device from events"),
            "device_failed": figures.get("device failed"),
        }

    def _on_device(self) -> TableMatcher:
        from matcher.gpu.batched import BatchedMatcher
        from matcher.gpu.ccm import CcmMatcher
        from matcher.gpu.choice import PlacedMatcher

        kinds: dict[str, Callable[[], TableMatcher]] = {
            "batched": BatchedMatcher,
            "ccm": CcmMatcher,
            PLACED: PlacedMatcher,
        }
        return kinds[self.way]()


ON_PROCESSOR = Matching()
"""The default: ``auto`` on the processor."""
