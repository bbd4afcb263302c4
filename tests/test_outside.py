"""Whatever bytes come from outside, readers take them or raise the error that they document.

A bounded part of what ``make fuzz-inputs`` does for as long as it is let.
"""

import pytest
from hypothesis import HealthCheck, given, settings, strategies as some
from outside import TARGETS, Target, frames_of, joined
from pairs import WHOLE

from routing import wire

EXAMPLES = 200 if WHOLE else 60
"""Inputs of each target."""
SPLICES = (b"", b"\0", b"\xff" * 8, b"\x80", b"[" * 3000, b"9" * 5000, b'"', b"\n", b"\xdc", b"=")
"""Bytes to be put in: ends of texts, deep nesting, numbers beyond all bounds, msgpack's marks."""


@some.composite
def changed(draw: some.DrawFn, seeds: list[bytes]) -> bytes:
    """One of the seeds with a few stretches replaced, or anything at all."""
    if draw(some.integers(0, 9)) == 0:
        return draw(some.binary(max_size=200))
    data = draw(some.sampled_from(seeds))
    for _ in range(draw(some.integers(1, 4))):
        start = draw(some.integers(0, len(data)))
        length = draw(some.sampled_from([0, 0, 1, 1, 2, 9, 100]))
        other = draw(some.sampled_from(seeds))
        splice = draw(
            some.sampled_from(SPLICES) | some.binary(max_size=9) | some.just(other[start:][:20])
        )
        data = data[:start] + splice + data[start + length :]
    return data


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_bytes_are_taken_or_refused_by_the_documented_error(target: Target) -> None:
    seeds = list(target.seeds())

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(changed(seeds))
    def holds(data: bytes) -> None:
        target.tries(data)

    holds()


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_most_seeds_are_taken(target: Target) -> None:
    """Changes of what is refused anyway would find little."""
    seeds = target.seeds()
    assert sum(map(target.tries, seeds)) * 2 >= len(seeds) or target.name == "setting"


def test_frames_are_told_apart_again() -> None:
    frames = [b"a", b"", b"c" * 300]
    assert frames_of(joined(frames)) == frames
    assert frames_of(b"") == []


def test_frames_of_messages_are_taken() -> None:
    (target,) = (one for one in TARGETS if one.name == "wire")
    assert all(map(target.tries, target.seeds()))
    assert len(target.seeds()) > len(wire.CODECS)
