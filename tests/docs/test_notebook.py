"""The notebook runs from top to bottom, and its cells show what they are about."""

import ast
import json
from pathlib import Path

import matplotlib as mpl

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook" / "fires.ipynb"
mpl.use("agg")


def shown_by(source: str, names: dict[str, object]) -> str:
    """Run a cell; what a notebook shows of its last value."""
    *before, last = ast.parse(source).body
    is_value = isinstance(last, ast.Expr)
    exec(compile(ast.Module([*before, *([] if is_value else [last])], []), "cell", "exec"), names)
    if not isinstance(last, ast.Expr):
        return ""
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return value._repr_html_()


def test_the_notebook_runs_and_shows_what_it_says() -> None:
    names: dict[str, object] = {}
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    _, table, frame, reason, attic, engine = [shown_by(source, names) for source in sources]
    assert "<td>hall</td><td>46.5</td><td>2024-05-01T10:00:00Z</td>" in table
    assert "2024-05-01 10:00:00+00:00" in frame
    assert "It fires: 1 match." in reason
    assert "It does not fire." in attic
    assert "<td>hall</td>" in engine


def test_it_is_kept_without_outputs() -> None:
    for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"]:
        assert not cell.get("outputs")
