"""Every counter has a place of its own."""

from pathlib import Path

from rules.engine.kernels import layout


def test_no_two_counters_share_a_place():
    text = Path(layout.__file__).read_text()
    counters = text[text.index("# --- counters") : text.index("COUNTERS = ")]
    lines = [line.split(" = ") for line in counters.splitlines() if " = " in line]
    places = {name: getattr(layout, name) for name, _ in lines}
    assert len(set(places.values())) == len(places) > 25
    assert max(places.values()) < layout.COUNTERS
