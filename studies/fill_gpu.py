"""What has not been measured on a GPU yet, by one command, in ten minutes at most.

    python -m studies.fill_gpu [--total-s 600] [--rows FILE] [--output DIR]

runs the parts of ``studies.bench_gpu`` by which sentences of docs/reproduction/gpu.md that are "not
yet measured on a device" can be judged, those with the most such sentences first, adds their rows
to the kept ones (``studies/results/gpu.jsonl.xz``), and writes the page and that of the headlines
anew. Prints how many sentences were judged before and after. It needs a device, and the extras
``gpu`` and ``studies``; under numba's simulator of CUDA it runs the code at its smallest size.

Law: a part gets the share of the time that its unmeasured sentences are of all; what one does not
use is the next one's. What was measured before is kept: the last row of a name counts.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from studies import bench_gpu
from studies.bench_gpu import Part, Run
from studies.reproduction import gpu, headlines, provenance
from studies.reproduction.gpu_tables import NOT_YET, Kept
from studies.rows import add, text_of

TOTAL_S = 600.0
LEAST_S = 45.0
"""What a part takes that has little to measure: its kernels are compiled, too."""
PARTS_OF: Mapping[str, str] = {
    "gpu-6.5": "default",
    "gpu-kernels": "default",
    "gpu-targets": "targets",
    "gpu-matching": "matching",
    "gpu-chapter-4": "chapter4",
    "gpu-4.14": "chapter4",
    **{f"gpu-6.{number}": "detection" for number in (6, 7, 8, 9, 11, 12, 13)},
    **{f"gpu-{name}": "operators" for name in ("filter", "join", "mix", "long-join")},
    "gpu-operator-kernels": "operators",
}
"""The part of bench_gpu by which each section is measured."""


def unmeasured(kept: Kept) -> Counter[str]:
    """How many sentences each part could judge and has not, by the rows that are kept."""
    found: Counter[str] = Counter()
    for experiment, outcome in gpu.told(kept):
        ways = [way for claim in outcome.claims for way in (claim, claim.otherwise) if way]
        found[PARTS_OF[experiment.name]] += sum(way.measured == NOT_YET for way in ways)
        if not outcome.table.rows and not outcome.claims:
            found[PARTS_OF[experiment.name]] += 1
    return +found


def parts_of(missing: Counter[str], total_s: float) -> Iterator[Part]:
    """The parts to run, each with its share of the time (Law)."""
    known = {part.name: part for part in bench_gpu.PARTS}
    rest_s = max(total_s - LEAST_S * len(missing), 0.0)
    for name, count in missing.most_common():
        share = count / missing.total()
        yield replace(known[name], limit_s=LEAST_S + share * rest_s)


def kept_in(rows: Path) -> Kept:
    """The rows that are kept; none where there is no file."""
    return Kept.read(rows) if rows.is_file() else Kept((), ())


def fill(rows: Path, output: Path, total_s: float) -> tuple[int, int]:
    """Measure what is missing, and keep it; how many sentences were not measured before and after.

    Nothing is written of the page: ``main`` does that.
    """
    missing = unmeasured(kept_in(rows))
    run = Run(output, list(parts_of(missing, total_s)), total_s)
    output.mkdir(parents=True, exist_ok=True)
    for row in bench_gpu.measured(run):
        print(f"fill_gpu: {row.name}: {row.value} {row.unit}", file=sys.stderr)
    measured = output / bench_gpu.ROWS
    for line in text_of(measured).splitlines() if measured.is_file() else ():
        add(rows, json.loads(line))
    return missing.total(), unmeasured(kept_in(rows)).total()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, keep and write; 1 if nothing could be measured."""
    parser = argparse.ArgumentParser(prog="python -m studies.fill_gpu", description=__doc__)
    parser.add_argument("--rows", type=Path, default=gpu.ROWS, metavar="FILE")
    parser.add_argument("--output", type=Path, default=Path("build/gpu"), metavar="DIR")
    parser.add_argument("--total-s", type=float, default=TOTAL_S, metavar="SECONDS")
    options = parser.parse_args(arguments)
    begun = time.monotonic()
    missing = unmeasured(kept_in(options.rows))
    before, after = fill(options.rows, options.output, options.total_s)
    print(f"{before} sentences were not measured on a device, {after} are not now")
    if after == before:
        return 1
    if options.rows == gpu.ROWS:
        how = provenance.now("1", time.monotonic() - begun)
        how = replace(how, processor=" and ".join(kept_in(options.rows).devices))
        gpu.main(options.rows, {stem: how for stem, part in PARTS_OF.items() if part in missing})
        headlines.write(headlines.written())
    return 0


if __name__ == "__main__":
    sys.exit(main())
