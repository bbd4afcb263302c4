"""What the pipeline has made, to read: the quality of the tables, what was found, and when.

It reads what the other steps have written, without Spark, and writes ``report.md``, ``months.csv``
and, where matplotlib is installed, a plot of the events and one of the composite events.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

Days: TypeAlias = "npt.NDArray[np.datetime64]"
WEEK = np.timedelta64(7, "D")


def make_report(out: Path) -> Path:
    """Write the report to ``out``/report; gives its path."""
    folder = out / "report"
    folder.mkdir(exist_ok=True)
    quality = json.loads((out / "quality.json").read_text())
    events, found = days(out / "events"), days(out / "composites")
    collected = days(out / "collected") if (out / "collected").is_dir() else None
    by_month = [
        (name, str(month), count)
        for name, own in found.items()
        for month, count in counted(own.astype("datetime64[M]"))
    ]
    lines = ["type,month,count", *(",".join(map(str, row)) for row in by_month)]
    (folder / "months.csv").write_text("\n".join(lines) + "\n")
    plots = ""
    if has_matplotlib():
        plot(events, "Events a day", np.timedelta64(1, "D"), folder / "events.png")
        plot(found, "Composite events a week", WEEK, folder / "found.png")
        plots = "![Events a day](events.png)\n\n![Composite events a week](found.png)\n"
    text = "\n".join(
        [
            "# The flights out of New York in 2013\n",
            table(("events", "made", "rows set aside, and why"), of_quality(quality)),
            table(("composite events", "in the recording", "by a broker"), both(found, collected)),
            plots,
        ]
    )
    place = folder / "report.md"
    place.write_text(text)
    return place


# --- what there is -------------------------------------------------------------------------------


def days(folder: Path) -> dict[str, Days]:
    """By type, the date (UTC) of each event in a folder of folders of types, in order."""
    return {place.name: _days(place) for place in sorted(folder.iterdir()) if place.is_dir()}


def _days(folder: Path) -> Days:
    times = ds.dataset(folder, format="parquet").to_table(columns=["time"]).column("time")
    dates: Days = np.sort(pc.floor_temporal(times, unit="day").cast(pa.date32()).to_numpy())
    return dates


def counted(values: Days) -> list[tuple[np.datetime64, int]]:
    """How often each of them is there."""
    found, counts = np.unique(values, return_counts=True)
    return list(zip(found, counts.tolist(), strict=True))


# --- text ----------------------------------------------------------------------------------------


def of_quality(quality: Mapping[str, Mapping[str, object]]) -> Iterable[Sequence[object]]:
    """Rows of a table: the events of each type, and why rows are none."""
    for name, own in quality.items():
        reasons = own["rejected"]
        told = [f"{count:,}: {why}" for why, count in sorted(reasons.items())]
        yield name, f"{own['events']:,}", "; ".join(told) or "none"


def both(
    found: Mapping[str, Days], collected: Mapping[str, Days] | None
) -> Iterable[Sequence[object]]:
    """Rows of a table: how many of each type were found, and how many a broker gave out."""
    for name, own in found.items():
        theirs = "" if collected is None else f"{len(collected.get(name, ())):,}"
        yield name, f"{len(own):,}", theirs


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


# --- plots ---------------------------------------------------------------------------------------


def has_matplotlib() -> bool:
    """Whether there can be plots."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def plot(of_types: Mapping[str, Days], title: str, width: np.timedelta64, place: Path) -> None:
    """A panel for each type: how many there are in every day or week of the time of all."""
    from matplotlib.dates import ConciseDateFormatter, MonthLocator
    from matplotlib.figure import Figure

    some = [own for own in of_types.values() if len(own)]
    if not some:
        return
    begin, end = min(own[0] for own in some), max(own[-1] for own in some)
    edges = np.arange(begin, end + width + width, width)
    columns = 1 if len(of_types) <= 4 else 3
    rows = -(-len(of_types) // columns)
    figure = Figure(figsize=(10, 1.0 + 1.7 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, sharex=True, squeeze=False).flat
    for panel, (name, own) in zip(panels, of_types.items(), strict=False):
        counts, _ = np.histogram(own.astype(np.int64), edges.astype(np.int64))
        panel.bar(edges[:-1], counts, width=width, align="edge")
        panel.set_title(f"{name}: {len(own):,}", fontsize="medium", loc="left")
        panel.spines[["top", "right"]].set_visible(False)
        panel.xaxis.set_major_locator(MonthLocator((1, 4, 7, 10)))
        panel.xaxis.set_major_formatter(ConciseDateFormatter(MonthLocator((1, 4, 7, 10))))
    for panel in panels:  # those that are left over
        panel.set_axis_off()
    figure.suptitle(title)
    figure.savefig(place, dpi=120)
