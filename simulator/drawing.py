"""A picture of a simulated network: overlay, tree, where rules are evaluated, traffic (``--draw``).

Grey lines are links of the overlay, blue ones those that the tree uses: the wider, the more bytes
went over them in both directions. Brokers are dots, the root of the tree a square; orange ones
evaluate rules, as many as the number below their name says, ringed ones forward fragments of
rules. Small letters say whose clients are there: sources and sinks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from routing.network.strategy import WHOLE
from simulator.experiment import Experiment, Outcome

WIDTH_MAX, WIDTH_MAX_MANY = 9.0, 4.0
"""Of the line with the most traffic, in points; and with more than MANY brokers."""
MANY = 25
NAMES_MAX = 60
"""With more brokers than that only those that evaluate rules are named."""
SPRUNG_MAX = 400
"""With more brokers than that they are left where scaling puts them."""
FORMS = (".png", ".svg", ".pdf")
LINK, TREE, PLAIN, EVALUATES, FORWARDS = "#c4c4c4", "#3b78b5", "#f4f4f4", "#f2a33c", "#a0457a"


class DrawingError(ValueError):
    """There is nothing to draw with, or on."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """What is drawn.

    ``traffic``: bytes in both directions, by link; ``tree``: links that it uses; ``evaluated``:
    how many rules, by broker; ``forwarding``: brokers with fragments.
    """

    traffic: Mapping[tuple[str, str], int]
    tree: frozenset[tuple[str, str]]
    root: str | None
    evaluated: Mapping[str, int]
    forwarding: frozenset[str]
    clients: Mapping[str, str]
    title: str


def sketch_of(outcome: Outcome) -> Sketch:
    """What there is to be drawn of a run, as it is at its end."""
    experiment = outcome.experiment
    traffic = {
        _pair(*link): sum(lane.bytes for lane in lanes) for link, lanes in experiment.lanes.items()
    }
    fathers = dict(_fathers(experiment))
    evaluated, forwarding = _rules(experiment)
    kilobytes = sum(traffic.values()) / 1e3
    return Sketch(
        traffic,
        frozenset(_pair(name, father) for name, father in fathers.items() if father is not None),
        next((name for name, father in fathers.items() if father is None), None),
        evaluated,
        frozenset(forwarding),
        _clients(experiment),
        f"{experiment.scenario.strategy}, {len(experiment.brokers)} brokers, {kilobytes:,.0f} kB",
    )


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)


def _fathers(experiment: Experiment) -> Iterable[tuple[str, str | None]]:
    for name, host in experiment.brokers.items():
        tree = host.broker.overlay.single_tree if host.is_running else None
        if tree is not None and not tree.orphan:
            yield name, tree.father


def _rules(experiment: Experiment) -> tuple[dict[str, int], set[str]]:
    """How many rules each broker evaluates, and which forward fragments."""
    evaluated: dict[str, int] = {}
    forwarding = set()
    now = experiment.simulation.now
    for name, host in experiment.brokers.items():
        if not host.is_running:
            continue
        facts = host.broker.status(now)
        own = facts.get("evaluates")
        if own is None:  # without a division, all of them are where the root is
            own = facts["rules"] if host.broker.overlay.part.centre == name else ()
        if own:
            evaluated[name] = len(own)
        if set(facts.get("forwards", ())) - {WHOLE}:
            forwarding.add(name)
    return evaluated, forwarding


def _clients(experiment: Experiment) -> dict[str, str]:
    """Such as ``2 so, 1 si``: how many sources and sinks each broker has."""
    sources = Counter(source.broker.name for source in experiment.sources)
    sinks = Counter(sink.broker.name for sink in experiment.sinks.values())
    return {
        name: ", ".join(
            f"{count} {what}"
            for count, what in ((sources[name], "so"), (sinks[name], "si"))
            if count
        )
        for name in experiment.brokers
    }


def refuse_picture(file: Path) -> None:
    """Raise DrawingError for a file that :func:`draw` could not write a picture to."""
    if file.suffix not in FORMS:
        raise DrawingError(f"{file}: expected a name that ends in {', '.join(FORMS)}")
    if not file.parent.is_dir():
        raise DrawingError(f"{file}: there is no folder {file.parent}")
    if find_spec("matplotlib") is None:
        raise DrawingError("drawing needs matplotlib: install rexmq[plots]")


def draw(sketch: Sketch, delays: nx.Graph, file: Path) -> None:
    """Draw it to ``file``, whose ending says the form; DrawingError as of refuse_picture.

    ``delays``: the network, whose edges have ``delay_s``; near brokers lie near each other.
    """
    refuse_picture(file)
    from matplotlib.figure import Figure

    places = _places(delays)
    side = 6.0 + min(6.0, len(places) / 20)
    figure = Figure((side * 1.25, side), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(sketch.title)
    axes.set_axis_off()
    axes.margins(0.08)
    _draw_links(axes, sketch, delays, places)
    _draw_brokers(axes, sketch, places)
    _draw_key(axes, sketch, _widest(places))
    figure.savefig(file, dpi=110, metadata={"Software": None} if file.suffix == ".png" else None)


def _places(delays: nx.Graph) -> Mapping[str, Any]:
    """The same for the same network: as far apart as their delays say, as well as a plane can
    (classical scaling), then moved a little, so that brokers do not hide one another.
    """
    names = list(delays)
    if len(names) < 3:
        return dict(nx.circular_layout(delays))
    lengths = dict(nx.all_pairs_dijkstra_path_length(delays, weight="delay_s"))
    squares = np.array([[lengths[one][other] for other in names] for one in names]) ** 2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()
    values, vectors = np.linalg.eigh(-centred / 2)
    flat = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0))
    flat /= np.abs(flat).max() or 1.0
    flat += np.random.default_rng(1).normal(0, 1e-3, flat.shape)  # equals are to be parted
    found = dict(zip(names, flat, strict=True))
    if len(names) >= SPRUNG_MAX:
        return found
    return dict(nx.spring_layout(delays, pos=found, weight=None, iterations=25, seed=1))


def _draw_links(axes: Any, sketch: Sketch, delays: nx.Graph, places: Mapping[str, Any]) -> None:
    most = max(sketch.traffic.values(), default=0) or 1
    widest = _widest(places)
    for is_tree in (False, True):  # the tree lies above the rest
        for one, other in delays.edges:
            link = _pair(one, other)
            if (link in sketch.tree) is not is_tree:
                continue
            width = 0.6 + widest * sketch.traffic.get(link, 0) / most
            (x, y), (to_x, to_y) = places[one], places[other]
            axes.plot(
                (x, to_x),
                (y, to_y),
                color=TREE if is_tree else LINK,
                linewidth=width,
                solid_capstyle="round",
                zorder=1 + is_tree,
            )


def _widest(places: Mapping[str, Any]) -> float:
    return WIDTH_MAX if len(places) <= MANY else WIDTH_MAX_MANY


def _draw_brokers(axes: Any, sketch: Sketch, places: Mapping[str, Any]) -> None:
    size = 520 if len(places) <= MANY else 160 if len(places) <= NAMES_MAX else 25
    for name, (x, y) in places.items():
        count = sketch.evaluated.get(name, 0)
        axes.scatter(
            [x],
            [y],
            s=max(1.4 * size, 140) if name == sketch.root else size,
            marker="s" if name == sketch.root else "o",
            color=EVALUATES if count else PLAIN,
            edgecolors=FORWARDS if name in sketch.forwarding else "#606060",
            linewidths=2.5 if name in sketch.forwarding else 1.0,
            zorder=3,
        )
        if len(places) > NAMES_MAX and not count:
            continue
        label = f"{name}\n{count}" if count else name
        axes.text(x, y, label, ha="center", va="center", fontsize=7, zorder=4)
        told = sketch.clients.get(name, "")
        if told and len(places) <= NAMES_MAX:
            axes.annotate(
                told,
                (x, y),
                (0, -18 if size > 200 else -12),
                textcoords="offset points",
                ha="center",
                va="center",
                fontsize=6,
                color="#303030",
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.5},
                zorder=4,
            )


def _draw_key(axes: Any, sketch: Sketch, widest: float) -> None:
    from matplotlib import lines

    line: Any = lines.Line2D
    most = max(sketch.traffic.values(), default=0)
    dot: dict[str, Any] = {"linestyle": "", "markersize": 8, "markeredgecolor": "#606060"}
    axes.legend(
        handles=[
            line([], [], color=LINK, linewidth=2, label="link"),
            line([], [], color=TREE, linewidth=2, label="link of the tree"),
            line([], [], color=TREE, linewidth=widest, label=f"{most / 1e3:,.0f} kB over it"),
            line([], [], marker="s", markerfacecolor=PLAIN, **dot, label="root of the tree"),
            line(
                [],
                [],
                marker="o",
                markerfacecolor=EVALUATES,
                **dot,
                label="evaluates so many rules",
            ),
            line(
                [],
                [],
                marker="o",
                markerfacecolor=PLAIN,
                **(dot | {"markeredgecolor": FORWARDS}),
                markeredgewidth=2.5,
                label="forwards fragments",
            ),
        ],
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        fontsize=7,
        frameon=False,
        title="so: sources, si: sinks",
        title_fontsize=7,
    )
