"""The packages once more in a folder of its own, the protocols in them compiled to C by mypyc.

Law 1: it is the same code, and says the same, byte for byte; only time is saved. Nothing in the
source tree changes, and nothing needs the result: who has no C compiler runs the interpreted code.

Law 2: what is compiled is what every message passes through. Left out are modules that define
records of msgspec, which mypyc would strip of what msgspec reads in them, and those of ``REFUSED``.

Law 3: with ``--trained`` the C compiler takes its time. It compiles twice, and in between watches a
simulated networks run (profile-guided optimisation), so that it knows which branches are taken.
That takes some minutes, and gcc; it is for long simulations, which take 4 to 10 % less time by it.

::

    python tools/compiled.py build/compiled
    PYTHONPATH=build/compiled .venv/bin/rexmq --version
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("matcher", "rules", "routing", "broker", "simulator")
COMPILED = (
    "routing/conversation.py",
    "routing/node.py",
    "routing/order.py",
    "routing/session.py",
    "routing/silence.py",
    "routing/delivery/audience.py",
    "routing/delivery/holdback.py",
    "routing/delivery/selection.py",
    "routing/delivery/sinks.py",
    "routing/delivery/subscriptions.py",
    "routing/network/brokers/*.py",
    "routing/network/recovery/*.py",
    "routing/network/solitary.py",
    "routing/network/stations/*.py",
    "routing/network/tables/*.py",
    "routing/overlay/channel.py",
    "routing/overlay/floods.py",
    "routing/overlay/overlay.py",
    "routing/overlay/patience.py",
    "routing/overlay/wires.py",
    "routing/partition/arrangement.py",
    "routing/partition/asking.py",
    "routing/partition/assignments.py",
    "routing/partition/composites.py",
    "routing/partition/evaluation.py",
    "routing/partition/forwarder.py",
    "routing/partition/gate.py",
    "routing/partition/history.py",
    "routing/partition/marks.py",
    "routing/partition/meetings.py",
    "routing/partition/pulls.py",
    "routing/partition/sieve.py",
    "routing/partition/values.py",
    "routing/serving/*.py",
    "routing/wire/*.py",
    "rules/planning/rowwise.py",
    "rules/engine/catalogue.py",
    "rules/engine/cdp.py",
    "rules/engine/deferred.py",
    "rules/engine/groups.py",
    "rules/engine/interner.py",
    "rules/engine/outlets.py",
    "rules/engine/pending.py",
    "rules/engine/retention.py",
    "rules/engine/rows.py",
    "rules/engine/standings.py",
    "simulator/hosts.py",
    "simulator/lanes.py",
    "simulator/moments.py",
    "simulator/simulation.py",
)
REFUSED = {
    "routing/network/brokers/adaptive.py": "divides by a sum that mypyc takes for an int",
    # A base class is compiled only with all that derive from it.
    "routing/network/stations/overview.py": "narrows an attribute of its base",
    "routing/serving/status.py": "the base of that",
}

BOUND = ("-flto=auto", "-fno-semantic-interposition", "-fvisibility=hidden")
"""Calls between modules of one library are bound, and looked into, when it is made."""
SINK_TREES = ("--strategy", "distributed-mt", "--strategy", "push-pull-mt")
STUDY = ("broker", "reproduce", "thesis-7.9", "--size", "whole", "--runs", "2", *SINK_TREES)
TRAINING = (  # both of simulated networks, since these are what takes hours
    ("benchmarks.simulator", "--brokers", "20", "--events", "4000"),
    (*STUDY, "--out", "training"),
)


def chosen(root: Path) -> Iterator[str]:
    """The modules that are compiled, as paths relative to ``root``, in order (Law 2)."""
    for pattern in COMPILED:
        for path in sorted(root.glob(pattern)):
            name = path.relative_to(root).as_posix()
            if path.name != "__init__.py" and name not in REFUSED and not _has_records(path):
                yield name


def _has_records(path: Path) -> bool:
    tree = ast.parse(path.read_text())
    bases = (base for one in ast.walk(tree) if isinstance(one, ast.ClassDef) for base in one.bases)
    return any(ast.unparse(base).rpartition(".")[2] == "Struct" for base in bases)


def build(target: Path, jobs: int, *, trained: bool = False) -> None:
    """Make the folder anew. Raises SystemExit where there is no compiler."""
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        raise SystemExit(f"there is no C compiler ({compiler}); RexMQ runs interpreted")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for package in PACKAGES:  # with the kernels that numba has compiled
        shutil.copytree(ROOT / package, target / package)
    (target / "benchmarks").symlink_to(ROOT / "benchmarks")
    if trained:
        profile = target / "profile"
        # What is watched may run in threads, whose counts are then not lost.
        watch = (f"-fprofile-generate={profile}", "-fprofile-update=atomic")
        _compile(target, jobs, (*BOUND, *watch))
        _train(target)
        # What was never run has no profile.
        follow = (f"-fprofile-use={profile}", "-fprofile-correction", "-Wno-missing-profile")
        _compile(target, jobs, (*BOUND, *follow))
        for left in (profile, target / "training"):
            shutil.rmtree(left)
    else:
        _compile(target, jobs)
    shutil.rmtree(target / "build")  # which has to stay between the two
    print(f"{len(list(chosen(target)))} modules compiled in {target}")


def _train(target: Path) -> None:
    for command in TRAINING:
        subprocess.run(
            [sys.executable, "-P", "-m", *command],
            cwd=target,
            env={**os.environ, "PYTHONPATH": str(target)},
            stdout=subprocess.DEVNULL,
            check=True,
        )


def _compile(target: Path, jobs: int, flags: Sequence[str] = ()) -> None:
    """Compile what is chosen where it stands. ``flags``: for a compiler that takes its time."""
    from mypyc.build import mypycify
    from setuptools import setup

    os.chdir(target)
    modules = list(chosen(target))
    settings = ("--config-file", str(ROOT / "pyproject.toml"))
    # One C file a module, so that all cores have work; -O1 takes half the time of -O2.
    level = "2" if flags else "1"
    extensions = mypycify([*settings, *modules], opt_level=level, debug_level="0", multi_file=True)
    for extension in extensions:
        extension.extra_compile_args = [*extension.extra_compile_args, *flags]
        extension.extra_link_args = [*extension.extra_link_args, *flags]
    setup(
        name="rexmq-compiled",
        packages=[],
        ext_modules=extensions,
        script_args=["--quiet", "build_ext", "--force", "--inplace", f"--parallel={jobs}"],
    )


def main() -> None:
    """Build what the command line asks for."""
    parser = argparse.ArgumentParser(description=build.__doc__)
    parser.add_argument("target", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--trained", action="store_true", help="some minutes more (Law 3)")
    asked = parser.parse_args()
    build(asked.target.resolve(), asked.jobs, trained=asked.trained)


if __name__ == "__main__":
    main()
