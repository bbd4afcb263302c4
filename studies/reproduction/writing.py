"""How what an experiment gave is written: CSV, a picture, and a section of a page.

Law: a page holds one section for each experiment, in the registry's order; running some again
replaces their sections and leaves the others as they are.
"""

from __future__ import annotations

import csv
import io
import os
import platform
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from matcher.formats.outputs import replaced, write_text
from studies.reproduction.experiment import Chart, Claim, Experiment, Figure, Outcome, Table
from studies.reproduction.verdicts import Verdict

DECIDED, VERDICT = "decided by", "verdict"
"""What stands over the ratios that decide, and over verdicts."""
INCHES = (5.2, 3.6)
"""Width and height of one chart."""
NAMES_MAX = 60
"""So many characters fit below one chart in a row."""
BARS_MAX = 12
"""Groups of bars for which there is room in the usual width."""
LINES_INSIDE, COLORS = 6, 10
"""So many lines have their legend inside, more have it below; and so many have a colour each, more
share one by twos, the second dashed."""
NARROW = 20
"""An axis of powers of ten whose ends are less than this apart has numbers between them."""
COLUMNS_MAX = 14
"""A table with more columns is left to its file and its picture."""
WAY = 3
"""Cells of one way of judging a sentence: what was measured, what decides, the verdict."""


def write(experiment: Experiment, outcome: Outcome, folder: Path, machine: str) -> list[Path]:
    """Write ``STEM.csv``, ``STEM.png`` where matplotlib is, and the section of the page.

    Returns the files written. ``machine`` says on what it was measured. Of what was not measured
    there is the section alone.
    """
    folder.mkdir(parents=True, exist_ok=True)
    table, picture = folder / f"{experiment.stem}.csv", folder / f"{experiment.stem}.png"
    is_measured = bool(outcome.table.rows)
    drawn = is_measured and bool(outcome.charts) and draw(experiment.title, outcome, picture)
    if is_measured:
        write_text(table, csv_of(outcome.table))
    page = folder / f"{experiment.page}.md"
    sections = sections_of(page.read_text()) if page.is_file() else {}
    sections[experiment.name] = section(experiment, outcome, machine, drawn)
    write_text(page, page_of(experiment.page, sections))
    return [*([table] if is_measured else []), *([picture] if drawn else []), page]


def csv_of(table: Table) -> str:
    """A table as CSV; what was not measured is empty."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([[_plain(figure) for figure in row] for row in table.rows])
    return stream.getvalue()


def draw(title: str, outcome: Outcome, file: Path) -> bool:
    """Draw the charts side by side; False, and nothing is written, without matplotlib."""
    try:
        from matplotlib.figure import Figure as Picture
    except ImportError:
        return False
    width, height = INCHES
    drawn = outcome.drawn
    if _has_bars(drawn) and len(drawn.rows) > BARS_MAX:  # names need room
        width, height = width * len(drawn.rows) / BARS_MAX, 1.4 * height
    picture = Picture((width * len(outcome.charts), height), layout="constrained")
    picture.suptitle(title)
    for place, chart in enumerate(outcome.charts):
        _draw_one(picture.add_subplot(1, len(outcome.charts), place + 1), drawn, chart)
    with replaced(file) as sink:
        picture.savefig(sink, format=file.suffix[1:], dpi=90, metadata={"Software": None})
    return True


def section(experiment: Experiment, outcome: Outcome, machine: str, drawn: bool) -> str:
    """A section of a page: setting, claims beside measurements, figures."""
    parts = [f"## {experiment.name}: {experiment.title}", experiment.setting]
    if outcome.claims:
        parts.append(_judged(experiment, outcome.claims))
    if len(outcome.table.columns) <= COLUMNS_MAX:
        rows = [[_short(figure) for figure in row] for row in outcome.table.rows]
        parts.append(_markdown(outcome.table.columns, rows))
    if drawn:
        parts.append(f"![{experiment.title}]({experiment.stem}.png)")
    if outcome.table.rows:
        parts.append(f"[{experiment.stem}.csv]({experiment.stem}.csv), measured on {machine}.")
    return "\n\n".join(parts)


def _judged(experiment: Experiment, claims: Sequence[Claim]) -> str:
    """Claims beside what was measured, and beside what was in the paper's own way."""
    columns = [experiment.says, "measured here", DECIDED, VERDICT]
    rows = [[one.published, *_cells_of(one)] for one in claims]
    if any(one.otherwise for one in claims):
        columns += [experiment.other_way, DECIDED, VERDICT]
        for row, one in zip(rows, claims, strict=True):
            row += [""] * 3 if one.otherwise is None else _cells_of(one.otherwise)
    return _markdown(columns, rows)


def _cells_of(claim: Claim) -> list[str]:
    return [claim.measured, claim.decided, claim.verdict]


def page_of(page: str, sections: Mapping[str, str]) -> str:
    """The page with its sections in order."""
    from studies.reproduction.registry import EXPERIMENTS, PAGES

    ordered = [sections[name] for name in EXPERIMENTS if name in sections]
    return "\n\n".join([PAGES[page].strip(), *tally(ordered), *ordered]) + "\n"


def tally(sections: Iterable[str]) -> list[str]:
    """How many sentences stand how, in words: of each who says them, in each way of judging."""
    counted: dict[tuple[str, str], Counter[str]] = {}
    for section in sections:
        ways: list[tuple[str, str]] = []
        for line in section.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if VERDICT in cells:
                ways = [(cells[0], one) for one in cells[1::WAY]]
            elif not line.startswith("|"):
                ways = []
            elif ways and len(cells) > WAY and cells[WAY] in set(Verdict):
                for way, cell in zip(ways, cells[WAY::WAY], strict=True):
                    if cell:  # not every sentence is judged in every way
                        counted.setdefault(way, Counter())[cell] += 1
    return [
        f"**The count** of what {says}, {way}: "
        + ", ".join(f"{one[verdict]} *{verdict}*" for verdict in Verdict if one[verdict])
        + f", of {sum(one.values())}."
        for (says, way), one in counted.items()
    ]


def sections_of(text: str) -> dict[str, str]:
    """The sections of a page by the names of their experiments."""
    _, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    return {part.split(":", 1)[0]: f"## {part.strip()}" for part in parts}


def machine() -> str:
    """What this is run on, in words, for figures that do not depend on what else runs there."""
    return f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"


def machine_of_now() -> str:
    """The same for figures of time: how busy it is, too."""
    cores, load = os.cpu_count(), os.getloadavg()[0]
    busy = f"with {load:.0f} programs running at once" if load >= 2 else "otherwise idle"
    return f"{cores} cores ({platform.machine()}), {busy}, Python {platform.python_version()}"


def _draw_one(axes, table: Table, chart: Chart) -> None:  # type: ignore[no-untyped-def]
    first = table.columns[0]
    places = table.column(first)
    if _has_bars(table):
        _draw_bars(axes, table, chart)
    else:
        for number, (line, interval) in enumerate(zip_longest(chart.lines, chart.intervals)):
            halves = table.column(interval) if interval else [None] * len(places)
            rows = zip(places, table.column(line), halves, strict=True)
            known = [(x, y, half or 0.0) for x, y, half in rows if y is not None]
            if known:
                x, y, half = zip(*known, strict=True)
                in_pairs = len(chart.lines) > COLORS
                dashes = "--" if in_pairs and number % 2 else "-"
                color = f"C{number // 2 if in_pairs else number}"
                axes.errorbar(
                    x,
                    y,
                    half,
                    marker="o",
                    markersize=3,
                    capsize=2,
                    label=line,
                    color=color,
                    ls=dashes,
                )
        if chart.logarithmic[0]:
            axes.set_xscale("log")
        elif all(isinstance(place, int) for place in places):
            axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel(first)
    if chart.logarithmic[1]:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        if high < NARROW * low:  # else hardly a power of ten would be named
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter("{x:g}")
    else:
        axes.set_ylim(bottom=0)
    axes.set_ylabel(chart.y_label)
    axes.grid(alpha=0.3)
    if len(chart.lines) > LINES_INSIDE:  # else the legend would cover them
        axes.legend(fontsize="x-small", loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3)
    else:
        axes.legend(fontsize="small")


def _has_bars(table: Table) -> bool:
    """Whether what varies has names, or there is one place alone."""
    places = table.column(table.columns[0])
    return len(places) == 1 or any(isinstance(place, str) for place in places)


def _draw_bars(axes, table: Table, chart: Chart) -> None:  # type: ignore[no-untyped-def]
    names = [str(name) for name in table.column(table.columns[0])]
    width = 0.8 / len(chart.lines)
    for number, line in enumerate(chart.lines):
        heights = [0.0 if figure is None else figure for figure in table.column(line)]
        middles = [place + number * width for place in range(len(names))]
        halves = table.column(chart.intervals[number]) if chart.intervals else [None] * len(names)
        known = [0.0 if half is None else half for half in halves]
        axes.bar(middles, heights, width, yerr=known if any(known) else None, capsize=2)
        axes.containers[-1].set_label(line)
    middle = 0.4 - width / 2
    axes.set_xticks([place + middle for place in range(len(names))], names, fontsize="small")
    if sum(map(len, names)) > NAMES_MAX:  # side by side they would cover one another
        axes.tick_params(axis="x", labelrotation=30 if len(names) <= BARS_MAX else 60)
        for name in axes.get_xticklabels():
            name.set_horizontalalignment("right")


def _markdown(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [tuple(columns), *map(tuple, rows)]
    lines.insert(1, ("---",) * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _plain(figure: Figure) -> str:
    return "" if figure is None else f"{figure:.6g}" if isinstance(figure, float) else str(figure)


def _short(figure: Figure) -> str:
    return "" if figure is None else f"{figure:,.3g}" if isinstance(figure, float) else str(figure)
