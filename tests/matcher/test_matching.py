"""Names of matchers and places, and what they come to (matcher.matching)."""

import random
import subprocess
import sys
from collections.abc import Callable

import pytest
from conformance.test_matchers import NAMES, agree, history, random_filter

from broker import keys
from matcher import matching
from matcher.filters.encoded import EncodedEvents
from matcher.filters.mixed import MixedEvents
from matcher.gpu import device as device_module
from matcher.gpu.device import NoDevice
from matcher.matching import DEVICES, MATCHERS, ON_DEVICE, Matching
from matcher.methods.choose import AutoMatcher, make
from matcher.methods.counting import CountingMatcher
from matcher.methods.guarded import FAILED, GuardedMatcher, guarded
from matcher.methods.pcm import PcmMatcher
from matcher.methods.tabled import Found, TableMatcher
from matcher.model import Int64s


def test_the_command_line_has_the_names() -> None:
    assert (keys.MATCHERS, keys.DEVICES) == (MATCHERS, DEVICES)


@pytest.mark.parametrize(
    ("device", "ways"),
    [
        ("cpu", "auto pcm counting signature index naive ccm batched"),
        ("gpu", "batched ccm - - - - ccm batched"),
        ("auto", "placed pcm counting signature index naive ccm batched"),
    ],
)
def test_two_names_decide_one_way(device: str, ways: str) -> None:
    for name, way in zip(MATCHERS, ways.split(), strict=True):
        if way == "-":
            with pytest.raises(ValueError, match=f"the matcher {name} has no form for a GPU; auto"):
                Matching(name, device)
        else:
            made = Matching(name, device)
            assert made.way == way
            assert made.needs_device == (way in ON_DEVICE.values())


def test_other_names_are_refused() -> None:
    with pytest.raises(ValueError, match="matcher: expected one of auto, pcm"):
        Matching("magic")
    with pytest.raises(ValueError, match="device: expected one of cpu, gpu, auto, found 'tpu'"):
        Matching("auto", "tpu")


def test_without_a_device_auto_is_told_and_others_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing() -> None:
        raise NoDevice("CUDA finds no GPU on this machine")

    monkeypatch.setattr(device_module, "device", missing)
    told: list[str] = []
    settled = Matching("auto", "auto", lambda *words: told.append(": ".join(words))).settled()
    assert (settled, settled.way) == (Matching("auto", "cpu"), "auto")
    assert told == ["matching on the processor: CUDA finds no GPU on this machine"]
    for asked in (Matching("pcm", "auto"), Matching("naive")):
        assert asked.settled() == asked
    with pytest.raises(NoDevice, match=r"^device gpu: CUDA finds no GPU on this machine$"):
        Matching("auto", "gpu").settled()
    with pytest.raises(NoDevice, match=r"^matcher ccm: CUDA finds no GPU on this machine$"):
        Matching("ccm").settled()


def test_nothing_of_a_device_is_imported_before_it_is_asked_for() -> None:
    code = (
        "import sys; from matcher.matching import MATCHERS, Matching;"
        "assert 'numba' not in sys.modules;"
        "[Matching(name).settled().make() for name in MATCHERS[:6]];"
        "print([name for name in sys.modules if name in ('cupy', 'numba.cuda', 'matcher.gpu')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class Failing(CountingMatcher):
    """A matcher that fails at its so manieth call, and never works again, as devices do."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.calls = calls

    def _count(self) -> None:
        self.calls -= 1
        if self.calls < 0:
            raise RuntimeError("an illegal address\nwas encountered")

    def _insert(self, slots: Int64s) -> None:
        super()._insert(slots)
        self._count()

    def _delete(self, slot: int) -> None:
        self._count()
        super()._delete(slot)

    def _run(self, events: EncodedEvents, begin: int, found: Found) -> tuple[int, int]:
        done = super()._run(events, begin, found)
        found.bits[begin:] |= 1  # and leaves behind what is wrong
        self._count()
        return done


def failing(calls: int) -> Callable[[], TableMatcher]:
    return lambda: Failing(calls)


@pytest.mark.parametrize("seed", range(12))
def test_a_device_that_fails_changes_no_answer(seed: int) -> None:
    told: list[tuple[str, str]] = []
    rng = random.Random(seed)
    # Bits that are wrong must not be seen, so it fails at once or where filters come and go.
    matcher = guarded(failing(0), lambda *words: told.append(words))
    history(matcher, seed)
    assert told == [(FAILED, "RuntimeError: an illegal address")]
    assert matcher.figures["device failed"] == "RuntimeError: an illegal address"
    oracle, matcher = make("naive"), guarded(failing(rng.randrange(1, 20)), matching.nobody)
    for identifier in range(20):
        filter_ = random_filter(rng, NAMES)
        for one in (oracle, matcher):
            one.add(identifier, identifier % 3, filter_)
        if identifier % 3 == 2:
            for one in (oracle, matcher):
                one.remove(identifier - 1)
    while not matcher._failure:
        matcher._inner.calls = 0
        agree(oracle, matcher, rng, NAMES)
    agree(oracle, matcher, rng, NAMES)


def test_a_matcher_that_works_is_used_and_told_of() -> None:
    matcher = guarded(PcmMatcher, matching.nobody)
    assert isinstance(matcher, GuardedMatcher)
    for seed in range(4):
        history(guarded(PcmMatcher, matching.nobody), seed)
    assert "device failed" not in matcher.figures


def test_a_device_that_cannot_begin_is_done_without() -> None:
    told: list[str] = []

    def broken() -> TableMatcher:
        raise MemoryError("out of memory")

    assert isinstance(guarded(broken, lambda *words: told.append(words[1])), AutoMatcher)
    assert told == ["MemoryError: out of memory"]


def test_an_error_of_the_processor_is_none_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = guarded(failing(0), matching.nobody)
    monkeypatch.setattr(AutoMatcher, "_run", lambda *_: 1 / 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            matcher.match(MixedEvents.of([{}]))
