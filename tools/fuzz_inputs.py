"""Inputs from outside, tried with coverage as the guide: every reader of tests/outside.py.

Prints how many inputs each target was tried with. An input for which a reader raised another error
than it documents, hung or ended the process is written to the folder, and the status is 1 then.
Inputs that led on are kept there, too, and another run begins with them. It needs atheris, which is
installed where there is a wheel of it.

::

    python tools/fuzz_inputs.py --inputs 1000000 --folder build/fuzz wire rules
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
GUIDING = (
    *("routing.wire", "routing.messages", "matcher.formats", "matcher.rows", "matcher.times"),
    *("rules.syntax", "rules.checking", "rules.language", "rules.subscription", "tomllib"),
    *("broker.configuration", "broker.documents", "broker.keys", "broker.security"),
)
"""Packages whose branches are looked at. Those with kernels in them are left alone: numba compiles
their functions from the very bytes that would be changed."""
LENGTH_MAX = 4_096
SECONDS_MAX = 10
"""An input that takes longer is told."""
TRIED = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


def main() -> int:
    """Try the targets, one process each, one after another."""
    options = _options()
    names = options.targets or _names()
    if options.alone:
        _run_here(names[0], options.inputs, options.seconds, options.folder)
    seconds = round(60 * options.minutes / len(names))
    return max([_run(name, options.inputs, seconds, options.folder) for name in names])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="*", help="all, where none is named")
    parser.add_argument("--inputs", type=int, default=100_000, help="of each target")
    parser.add_argument("--minutes", type=float, default=0, help="at most, for all together")
    parser.add_argument("--seconds", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "fuzz")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _names() -> list[str]:
    from outside import TARGETS

    return [target.name for target in TARGETS]


def _run(name: str, inputs: int, seconds: int, folder: Path) -> int:
    """One target in a process of its own, which libFuzzer ends."""
    words = [sys.executable, __file__, "--alone", name, "--inputs", str(inputs)]
    words += ["--seconds", str(seconds)]
    done = subprocess.run(
        [*words, "--folder", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    said = done.stdout.decode("utf-8", "replace")
    tried = TRIED.findall(said)
    print(f"{name}: {tried[-1] if tried else 'no'} inputs, {'failed' if done.returncode else 'ok'}")
    if done.returncode:
        print(said[-6_000:])
    sys.stdout.flush()
    return int(done.returncode != 0)


def _run_here(name: str, inputs: int, seconds: int, folder: Path) -> None:
    import atheris

    with atheris.instrument_imports(include=list(GUIDING)):
        from outside import BY_TARGET
    target, corpus = BY_TARGET[name], folder / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    atheris.Setup(
        [
            sys.argv[0],
            f"-runs={inputs}",
            f"-max_total_time={seconds}",
            f"-max_len={LENGTH_MAX}",
            f"-timeout={SECONDS_MAX}",
            f"-artifact_prefix={folder}/{name}-",
            "-print_final_stats=1",
            "-verbosity=0",
            str(corpus),
        ],
        target.tries,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
