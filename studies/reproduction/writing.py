"""How what an experiment gave is written: CSV, a picture, and a section of a page.

Law: a page holds one section for each experiment, in the registry's order; running some again
replaces their sections and leaves the others as they are.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from matcher.formats.outputs import replaced, write_text
from studies.reproduction import provenance
from studies.reproduction.experiment import Chart, Claim, Experiment, Figure, Outcome, Table
from studies.reproduction.provenance import Provenance
from studies.reproduction.verdicts import Verdict

DECIDED, VERDICT = "decided by", "verdict"
"""What stands over the ratios that decide, and over verdicts."""
INCHES = (5.2, 3.6)
"""Width and height of one chart."""
NAMES_MAX = 60
"""So many characters fit below one chart in a row."""
BARS_MAX = 12
"""Groups of bars for which there is room in the usual width."""
ACROSS = 2
"""So many charts stand side by side."""
BARS = "Bars at points and on columns: 95 % intervals, by Student's t over seeds."
NO_BARS = "No bars: what is drawn was run once, or counted."
COLORS = 10
"""So many lines have a colour each; more share one by twos, the second dashed."""
STROKES = ("-", "--", ":")
"""Lines of the same kind in several cases: solid, dashed, dotted."""
LEGEND_ACROSS, LEGEND_WIDTH = 3, 75
"""Names side by side in a legend, and how many characters fit below a chart."""
NARROW = 20
"""An axis of powers of ten whose ends are less than this apart has numbers between them."""
COLUMNS_MAX = 15
"""A table with more columns is left to its file and its picture."""
RUNS = "seeds"
"""The folder of tables of what was measured seed by seed."""
WAY = 3
"""Cells of one way of judging a sentence: what was measured, what decides, the verdict."""


def write(
    experiment: Experiment, outcome: Outcome, folder: Path, made: Provenance | None = None
) -> list[Path]:
    """Write ``STEM.csv``, ``STEM.svg`` where matplotlib is, and the section of the page.

    Returns the files written. ``made`` says how the table was made; None: as is kept of it. Of
    what was not measured there is the section alone.
    """
    folder.mkdir(parents=True, exist_ok=True)
    table, picture = folder / f"{experiment.stem}.csv", folder / f"{experiment.stem}.svg"
    known = provenance.read(folder).get(experiment.stem, Provenance())
    made = known if made is None else made
    changed = provenance.has_changed(experiment.page, made.commit)
    if changed is not None:
        made = replace(made, is_stale=changed)
    is_measured = bool(outcome.table.rows)
    drawn = is_measured and bool(outcome.charts) and draw(experiment.title, outcome, picture)
    if is_measured:
        write_text(table, csv_of(outcome.table))
        provenance.keep(folder, experiment.stem, made)
    if outcome.table.runs is not None:
        (folder / RUNS).mkdir(exist_ok=True)
        write_text(folder / RUNS / table.name, csv_of(outcome.table.runs))
    page = folder / f"{experiment.page}.md"
    sections = sections_of(page.read_text()) if page.is_file() else {}
    sections[experiment.name] = section(experiment, outcome, str(made), drawn)
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
        from matplotlib import rc_context
        from matplotlib.figure import Figure as Picture
    except ImportError:
        return False
    width, height = INCHES
    drawn = outcome.drawn
    if _has_bars(drawn) and len(drawn.rows) > BARS_MAX:  # names need room
        width, height = width * len(drawn.rows) / BARS_MAX, 1.4 * height
    across = min(len(outcome.charts), ACROSS)
    down = -(-len(outcome.charts) // across)
    picture = Picture((width * across, height * down), layout="constrained")
    picture.suptitle(title)
    for place, chart in enumerate(outcome.charts):
        _draw_one(picture.add_subplot(down, across, place + 1), drawn, chart)
    has_bars = any(_has_intervals(drawn, chart) for chart in outcome.charts)
    picture.supxlabel(BARS if has_bars else NO_BARS, fontsize="x-small", color="0.3")
    with rc_context({"svg.hashsalt": "studies", "svg.fonttype": "none"}), replaced(file) as sink:
        picture.savefig(sink, format="svg", metadata={"Date": None, "Creator": None})
    return True


def _has_intervals(table: Table, chart: Chart) -> bool:
    return any(half is not None for name in chart.intervals for half in table.column(name))


def section(experiment: Experiment, outcome: Outcome, made: str, drawn: bool) -> str:
    """A section of a page: setting, claims beside measurements, figures."""
    parts = [f"## {experiment.name}: {experiment.title}", experiment.setting]
    if outcome.claims:
        parts.append(_judged(experiment, outcome.claims))
    if len(outcome.table.columns) <= COLUMNS_MAX:
        rows = [[_short(figure) for figure in row] for row in outcome.table.rows]
        parts.append(_markdown(outcome.table.columns, rows))
    if drawn:
        parts.append(f"![{experiment.title}]({experiment.stem}.svg)")
    if outcome.table.rows:
        parts.append(f"[{experiment.stem}.csv]({experiment.stem}.csv): {made}")
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
                color, dashes = _style(chart, number)
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
    _draw_legend(axes, chart.lines, is_above=_has_bars(table))


def _draw_legend(axes, lines: Sequence[str], *, is_above: bool) -> None:  # type: ignore[no-untyped-def]
    """Below the axis and its title, or above: on no line, and on no name of a column."""
    across = max(1, min(LEGEND_ACROSS, len(lines), LEGEND_WIDTH // max(map(len, lines))))
    place = ("lower center", (0.5, 1.0)) if is_above else ("upper center", (0.5, -0.2))
    axes.legend(fontsize="x-small", loc=place[0], bbox_to_anchor=place[1], ncols=across)


def _style(chart: Chart, number: int) -> tuple[str, str]:
    """Colour and stroke of a line: by its kind and case, if there are several cases."""
    kinds = chart.kinds
    if kinds:
        return f"C{number % kinds}", STROKES[number // kinds % len(STROKES)]
    in_pairs = len(chart.lines) > COLORS
    return f"C{number // 2 if in_pairs else number}", "--" if in_pairs and number % 2 else "-"


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
