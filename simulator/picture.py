"""A picture of a simulated network (``--draw``): overlay, trees, traffic, where rules run.

Grey lines are links of the overlay, blue ones those that the single tree uses: the wider, the more
bytes went over them in both directions. Trees of sinks are drawn as far as something comes along
them: a few as thin lines beside the links, each in a colour of its own, and a diamond at the root;
with more of them each link that some use bears their number, and is green where the single tree
does not use it. Brokers are dots, the root of the single tree a square; orange ones evaluate
rules, as many as the number below their name says, ringed ones forward fragments of rules. Small
letters say whose clients are there, sources and sinks, and for how many rules it forwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import networkx as nx
import numpy as np

from matcher.formats.outputs import replaced
from routing.network.strategy import WHOLE
from simulator.experiment import Experiment, Outcome

WIDTH_MAX, WIDTH_MAX_MANY = 9.0, 4.0
"""Of the line with the most traffic, in points; and with more than MANY brokers."""
MANY = 25
NAMES_MAX = 60
"""With more brokers than that only those that evaluate rules are named; links bear no numbers."""
SPRUNG_MAX = 400
"""With more brokers than that they are left where scaling puts them."""
FORMS = (".png", ".svg", ".pdf")
LINK, TREE, PLAIN, EVALUATES, FORWARDS = "#c4c4c4", "#3b78b5", "#f4f4f4", "#f2a33c", "#a0457a"
SINKS = "#4f9d69"
TREES = ("#2ca02c", "#d62728", "#12a5b5", "#8f8f00", "#e377c2", "#8c564b", "#6a3fb5", "#222222")
"""Of trees of sinks; with more of them they are counted."""

Link: TypeAlias = tuple[str, str]


class DrawingError(ValueError):
    """There is nothing to draw with, or on."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """A drawing's content.

    ``traffic``: bytes in both directions, by link; ``tree``: links that the single tree uses;
    ``sink_trees``: those over which something comes for a broker's sinks, by that broker;
    ``evaluated``: how many rules, by broker; ``forwarding``: for how many there are fragments.
    """

    traffic: Mapping[Link, int]
    tree: frozenset[Link]
    sink_trees: Mapping[str, frozenset[Link]]
    root: str | None
    evaluated: Mapping[str, int]
    forwarding: Mapping[str, int]
    clients: Mapping[str, str]
    title: str


def sketch_of(outcome: Outcome) -> Sketch:
    """The sketch of a run, as it is at its end."""
    experiment = outcome.experiment
    traffic = {
        _pair(*link): sum(lane.bytes for lane in lanes) for link, lanes in experiment.lanes.items()
    }
    fathers = dict(_fathers(experiment))
    facts = _facts(experiment)
    kilobytes = sum(traffic.values()) / 1e3
    return Sketch(
        traffic,
        frozenset(_pair(name, father) for name, father in fathers.items() if father is not None),
        _sink_trees(facts),
        next((name for name, father in fathers.items() if father is None), None),
        {name: len(own) for name, told in facts.items() if (own := told["evaluates"])},
        {name: count for name, told in facts.items() if (count := _forwarding(told))},
        _clients(experiment),
        f"{experiment.scenario.strategy}, {len(experiment.brokers)} brokers, {kilobytes:,.0f} kB",
    )


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)


def _fathers(experiment: Experiment) -> Iterable[tuple[str, str | None]]:
    for name, host in experiment.brokers.items():
        tree = host.broker.overlay.topology.single_tree if host.is_running else None
        if tree is not None and not tree.orphan:
            yield name, tree.father


def _facts(experiment: Experiment) -> dict[str, Mapping[str, Any]]:
    """The status of each broker that runs, by its name."""
    now = experiment.simulation.now
    return {
        name: host.broker.status(now)
        for name, host in experiment.brokers.items()
        if host.is_running
    }


def _forwarding(told: Mapping[str, Any]) -> int:
    """For how many rules a broker has fragments, on whichever trees."""
    rules = set(told["forwards"]).union(*told.get("forwards_for", {}).values())
    return len(rules - {WHOLE})


def _sink_trees(facts: Mapping[str, Mapping[str, Any]]) -> dict[str, frozenset[Link]]:
    """The ways of what comes along each tree of sinks: from the brokers up to its root that forward
    something there or find it.
    """
    fathers: dict[str, dict[str, str]] = {}
    senders: dict[str, set[str]] = {}
    for name, told in facts.items():
        for tree in told["network"].get("sink_trees", ()):
            root = tree["root"]
            senders.setdefault(root, set()).update(tree["fragments"], tree["places"].values())
            if tree["father"] is not None:
                fathers.setdefault(root, {})[name] = tree["father"]
    return {
        root: frozenset(_ways(of, fathers.get(root, {}))) for root, of in sorted(senders.items())
    }


def _ways(senders: Iterable[str], fathers: Mapping[str, str]) -> Iterable[Link]:
    for name in senders:
        while name in fathers:
            yield _pair(name, fathers[name])
            name = fathers[name]


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
    axes.set_aspect("equal", "datalim")  # so that what lies beside a link does so in the picture
    _draw_links(axes, sketch, delays, places)
    _draw_sink_trees(axes, sketch, places)
    _draw_brokers(axes, sketch, places)
    _draw_key(axes, sketch, places)
    metadata = {"Software": None} if file.suffix == ".png" else None
    with replaced(file) as sink:
        figure.savefig(sink, format=file.suffix[1:], dpi=110, metadata=metadata)


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
    for one, other in delays.edges:
        link = _pair(one, other)
        colour = _colour(sketch, link)
        (x, y), (to_x, to_y) = places[one], places[other]
        axes.plot(
            (x, to_x),
            (y, to_y),
            color=colour,
            linewidth=_width(sketch, link, places),
            solid_capstyle="round",
            zorder=1 + (colour != LINK),  # trees lie above the rest
        )


def _colour(sketch: Sketch, link: Link) -> str:
    if link in sketch.tree:
        return TREE
    is_used = not _is_each_drawn(sketch) and any(link in one for one in sketch.sink_trees.values())
    return SINKS if is_used else LINK


def _is_each_drawn(sketch: Sketch) -> bool:
    """Whether there are so few trees of sinks that each has lines of its own."""
    return len(sketch.sink_trees) <= len(TREES)


def _width(sketch: Sketch, link: Link, places: Mapping[str, Any]) -> float:
    most = max(sketch.traffic.values(), default=0) or 1
    return 0.6 + _widest(places) * sketch.traffic.get(link, 0) / most


def _draw_sink_trees(axes: Any, sketch: Sketch, places: Mapping[str, Any]) -> None:
    if not _is_each_drawn(sketch):
        if len(places) <= NAMES_MAX:
            _draw_counts(axes, sketch, places)
        return
    beside: Counter[Link] = Counter()
    for colour, (root, links) in zip(TREES, sketch.sink_trees.items(), strict=False):
        for link in sorted(links):
            _draw_beside(axes, sketch, places, link, beside[link], colour)
            beside[link] += 1
        if len(places) <= NAMES_MAX:
            _draw_root(axes, places[root], colour, len(places))


def _draw_beside(
    axes: Any, sketch: Sketch, places: Mapping[str, Any], link: Link, number: int, colour: str
) -> None:
    """A thin line along a link; the first ones lie next to it, on either side."""
    from matplotlib.transforms import ScaledTranslation

    (x, y), (to_x, to_y) = places[link[0]], places[link[1]]
    length = float(np.hypot(to_x - x, to_y - y)) or 1.0
    points = _width(sketch, link, places) / 2 + 2.0 + 2.4 * (number // 2)
    shift = (points if number % 2 else -points) / 72 / length
    moved = ScaledTranslation((y - to_y) * shift, (to_x - x) * shift, axes.figure.dpi_scale_trans)
    axes.plot(
        (x, to_x),
        (y, to_y),
        color=colour,
        linewidth=1.3,
        transform=axes.transData + moved,
        zorder=2.5,
    )


def _draw_root(axes: Any, place: Any, colour: str, brokers: int) -> None:
    from matplotlib.transforms import ScaledTranslation

    reach = (11 if brokers <= MANY else 7) / 72
    moved = ScaledTranslation(reach, reach, axes.figure.dpi_scale_trans)
    x, y = place
    axes.plot([x], [y], "D", color=colour, markersize=5, transform=axes.transData + moved, zorder=4)


def _draw_counts(axes: Any, sketch: Sketch, places: Mapping[str, Any]) -> None:
    counts = Counter(link for links in sketch.sink_trees.values() for link in links)
    for (one, other), count in sorted(counts.items()):
        x, y = (places[one] + places[other]) / 2
        box = {"facecolor": "white", "edgecolor": SINKS, "pad": 1.0, "linewidth": 0.8}
        axes.text(x, y, count, ha="center", va="center", fontsize=6, bbox=box, zorder=2.5)


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
        forwards = f"{sketch.forwarding[name]} fr" if name in sketch.forwarding else ""
        told = ", ".join(filter(None, (sketch.clients.get(name), forwards)))
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


def _draw_key(axes: Any, sketch: Sketch, places: Mapping[str, Any]) -> None:
    from matplotlib import lines

    line: Any = lines.Line2D
    most = max(sketch.traffic.values(), default=0)
    dot: dict[str, Any] = {"linestyle": "", "markersize": 8, "markeredgecolor": "#606060"}
    axes.legend(
        handles=[
            line([], [], color=LINK, linewidth=2, label="link"),
            line([], [], color=TREE, linewidth=2, label="link of the single tree"),
            line(
                [], [], color=TREE, linewidth=_widest(places), label=f"{most / 1e3:,.0f} kB over it"
            ),
            line([], [], marker="s", markerfacecolor=PLAIN, **dot, label="root of the single tree"),
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
            *_sink_tree_keys(sketch, line, has_numbers=len(places) <= NAMES_MAX),
        ],
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        fontsize=7,
        frameon=False,
        title="so: sources, si: sinks, fr: rules forwarded for",
        alignment="left",
        title_fontsize=7,
    )


def _sink_tree_keys(sketch: Sketch, line: Any, *, has_numbers: bool) -> list[Any]:
    if _is_each_drawn(sketch):
        return [
            line(
                [],
                [],
                color=colour,
                linewidth=1.3,
                marker="D",
                markersize=5,
                label=f"tree of sinks at {root}",
            )
            for colour, root in zip(TREES, sketch.sink_trees, strict=False)
        ]
    keys = [line([], [], color=SINKS, linewidth=2, label="link of trees of sinks alone")]
    if has_numbers:
        square: dict[str, Any] = {"linestyle": "", "marker": "s", "markersize": 8}
        square |= {"markerfacecolor": "white", "markeredgecolor": SINKS}
        keys.append(line([], [], **square, label="number: so many trees of sinks use it"))
    return keys
