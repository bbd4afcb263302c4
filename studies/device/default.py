"""The default scenario of the thesis's section 6.4 by all engines: a part of its own, beside which
all else is read. And where the time of CDP on the device goes: kernel by kernel in ours, by copies,
kernels and the host as published.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

from benchmarks.report import Row, attempted
from matcher.gpu.device import device
from rules import load
from studies.device.bandwidth import bytes_a_second, share
from studies.device.detection import BOTH, SIMULATED_WINDOW, SWEEPS, figures
from studies.device.streams import PUBLISHED, Stream, take, ways
from studies.reproduction.engine_workloads import Joined

ENTRY = 16
"""Bytes of an event in a column that a kernel reads at least: its time, and what is compared."""


def run(quick: bool) -> Iterator[Row]:
    """Figure 6.5, and copies apart from kernels."""
    yield from figures(SWEEPS[:1], quick)
    for policy in BOTH:
        yield from attempted(f"default/{policy} {PUBLISHED}", partial(_apart, policy))


def _apart(policy: str) -> Iterator[Row]:
    """The time of copies, kernels and the host for a terminator, each waited for."""
    from studies.cdp_on_cuda import PublishedCdp

    small = {"window": SIMULATED_WINDOW} if device().simulated else {}
    scenario = Joined(policy=policy, **small)
    stream = Stream.joined(scenario)
    detector = PublishedCdp(capacity=stream.capacity, clock=time.perf_counter)
    detector.deploy(load(stream.rules))
    stream.fill(detector)
    turns = stream.turns(1, stream.filling, ways()[1])
    take(detector, turns[0])
    before = detector.profile()
    for turn in turns[1:]:
        take(detector, turn)
    after, count = detector.profile(), len(turns) - 1
    spent = {name: (after[name] - before[name]) / count for name in after}
    label, unit = f"default/{policy} {PUBLISHED}, each step waited for", "us a terminator"
    brought = f"{spent['bytes']:.3g} bytes"
    yield Row(f"{label}, copies", spent["copies"] * 1e6, unit, note=brought)
    read = ENTRY * scenario.window / scenario.states
    told = share(read, spent["kernels"], bytes_a_second(device()))
    yield Row(f"{label}, kernels", spent["kernels"] * 1e6, unit, note=told)
    yield Row(f"{label}, host", spent["host"] * 1e6, unit)
    yield Row(f"{label}, launches", spent["launches"], "a terminator")
