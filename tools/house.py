"""House rules as numbers: how large the packages are, and what makes code hard to follow.

Prints one line a measure, and ends with status 1 where a bound is passed. A bound is what was
reached when it was written: whoever makes a measure smaller lowers its bound with it, and nobody
raises one. The goal stands beside it.

Law 1: a law is a paragraph of a docstring that begins with ``Law:`` or ``Law 3:``.

Law 2: a name counts as defined where a class, a function or a variable of a module bears it; names
that begin with an underscore are a module's own business.

Law 3: the first word of a docstring is a noun or a verb, of those that stand behind a variable
too; of a docstring that begins with another word the reader does not know what it speaks of.

Law 4: an import counts wherever it stands in a module, under TYPE_CHECKING and in functions, too.
An import of a package's module is none of the package.

::

    python tools/house.py
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import networkx

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("runtime", "matcher", "rules", "routing", "broker", "simulator", "rexmq")
STUDIES = "studies"
"""What nothing of the packages and their tests imports (docs/decisions/0030)."""
PRONOUNS = frozenset(
    ["he", "it", "she", "that", "these", "they", "this", "those", "what", "which", "who", "whose"]
)
"""First words of docstrings that leave open what is spoken of (Law 3)."""
FOUND_BY_CONVENTION = frozenset(
    [".gitignore", ".github", ".pre-commit-config.yaml", "SECURITY.md", "testdata", "results"]
)
"""Names of files that programs look for, and of folders whose files are read by a pattern."""
PICTURES = frozenset([".png", ".svg"])
SHOWN_MAX = 5
"""Places that are named of what passes a bound."""


Names = tuple[str, ...]
"""The folders of a path, the outermost first."""


class Bound(NamedTuple):
    """How much there may be of something, and how much there is to be."""

    most: int
    goal: int


BOUNDS: Mapping[str, Bound] = {
    "lines of routing": Bound(34_889, 30_000),
    "lines of rules/engine": Bound(24_694, 22_000),
    "laws of the packages": Bound(253, 350),
    "names of several modules of routing": Bound(0, 0),
    "docstrings that begin with a pronoun": Bound(0, 0),
    "modules in import cycles": Bound(0, 0),
    "folders that import each other": Bound(0, 0),
    "modules of packages and tests that import studies": Bound(0, 0),
    "files that nothing names": Bound(0, 0),
    "words of pages for users": Bound(76_672, 60_000),
    "calls from the frame that comes in to the delivery that leaves": Bound(43, 60),
}


class Found(NamedTuple):
    """A measure, and the places that it counts, where these help."""

    value: int
    places: Sequence[str] = ()


def modules_of(folder: Path) -> Iterator[Path]:
    """The Python files of a folder."""
    return iter(sorted(folder.rglob("*.py")))


# --- sizes ---


def lines_of(folder: Path) -> int:
    """Lines of all modules together."""
    return sum(len(path.read_text("utf-8").splitlines()) for path in modules_of(folder))


def laws_of(folder: Path) -> int:
    """Laws in all docstrings together (Law 1)."""
    return sum(_laws_in(path.read_text("utf-8")) for path in modules_of(folder))


def _laws_in(text: str) -> int:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = (node for node in ast.walk(ast.parse(text)) if isinstance(node, documented))
    lines = [line for node in found for line in (ast.get_docstring(node) or "").splitlines()]
    return sum(_is_law(line) for line in lines)


def _is_law(line: str) -> bool:
    head, colon, _ = line.partition(":")
    word, _, number = head.partition(" ")
    return bool(colon) and word == "Law" and (not number or number.isdigit())


# --- names (Law 2) ---


def shared_names(folder: Path) -> list[str]:
    """The names that several modules define, each with these."""
    found = defaultdict(list)
    for path in modules_of(folder):
        module = _name_of(path, folder.parent)
        for name in sorted(set(_defined(ast.parse(path.read_text("utf-8"))))):
            found[name].append(module)
    shared = {name: modules for name, modules in found.items() if len(modules) > 1}
    return [f"{name}: {', '.join(modules)}" for name, modules in sorted(shared.items())]


def _defined(module: ast.Module) -> Iterator[str]:
    for node in module.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [one.id for one in targets if isinstance(one, ast.Name)]
        else:
            continue
        yield from (name for name in names if not name.startswith("_"))


# --- docstrings (Law 3) ---


def pronouns(root: Path, packages: Sequence[str] = PACKAGES) -> list[str]:
    """The places of docstrings that begin with a pronoun, each with its first words."""
    return [
        f"{path.relative_to(root)}:{line}: {' '.join(words[:6])}"
        for package in packages
        for path in modules_of(root / package)
        for line, words in _docstrings(ast.parse(path.read_text("utf-8")))
        if words and words[0].rstrip(",:").lower() in PRONOUNS
    ]


def _docstrings(module: ast.Module) -> Iterator[tuple[int, list[str]]]:
    """Line and words of every string that stands alone, as a statement."""
    for node in ast.walk(module):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text.split()


# --- imports (Law 4) ---


def cycles_in(root: Path, packages: Sequence[str] = PACKAGES) -> list[str]:
    """Modules that import one another by whatever way, a line for each such circle."""
    trees = _trees(root, packages)
    graph = networkx.DiGraph()
    for name, tree in trees.items():
        graph.add_edges_from((name, other) for other in _imported(tree, trees) if other != name)
    circles = [sorted(one) for one in networkx.strongly_connected_components(graph) if len(one) > 1]
    return [", ".join(one) for one in sorted(circles)]


def mutual_folders(root: Path, packages: Sequence[str] = PACKAGES) -> list[str]:
    """Pairs of folders that stand in one folder and import each other, a line each."""
    trees = _trees(root, packages)
    folders = {name: _folder_of(name, root) for name in trees}
    ways = {
        _parted(folders[name], folders[other])
        for name, tree in trees.items()
        for other in _imported(tree, trees)
    }
    return sorted(
        f"{'/'.join(folder)} and {'/'.join(other)}"
        for folder, other in ways
        if folder < other and (other, folder) in ways
    )


def _parted(folder: Names, other: Names) -> tuple[Names, Names]:
    """The two folders where their paths part; the same two of a folder and one within it."""
    length = min(len(folder), len(other))
    same = next((at for at in range(length) if folder[at] != other[at]), length)
    return (folder[: same + 1], other[: same + 1]) if same < length else (folder, folder)


def importers_of(root: Path, name: str, folders: Sequence[str]) -> list[str]:
    """The files of these folders that import that package."""
    return [
        str(path.relative_to(root))
        for folder in folders
        for path in modules_of(root / folder)
        if any(
            module.partition(".")[0] == name
            for module in _modules_in(ast.parse(path.read_text("utf-8")))
        )
    ]


def _modules_in(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


@cache
def _trees(root: Path, packages: Sequence[str]) -> Mapping[str, ast.Module]:
    """The modules of packages by their names, read once."""
    paths = (path for package in packages for path in modules_of(root / package))
    return {_name_of(path, root): ast.parse(path.read_text("utf-8")) for path in paths}


def _folder_of(name: str, root: Path) -> Names:
    parts = tuple(name.split("."))
    return parts if root.joinpath(*parts).is_dir() else parts[:-1]


def _imported(tree: ast.Module, known: Mapping[str, ast.Module]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for one in node.names:
                inner = f"{node.module}.{one.name}"
                if inner in known:
                    yield inner
                elif node.module in known:
                    yield node.module


def _name_of(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# --- files ---


def unnamed(root: Path, files: Sequence[str]) -> list[str]:
    """Of these files those that no other one names, and no convention (FOUND_BY_CONVENTION).

    A text or a picture is named by its name, with or without what follows the last dot; any other
    file by its folder's name and its own: ``broker.db`` is what every store is called.
    """
    texts = {file: text for file in files if (text := _text_of(root / file)) is not None}
    whole = "\n".join(texts.values())
    texts |= {file: "" for file in files if (root / file).is_symlink()}
    return [file for file in files if not _is_named(Path(file), whole, is_text=file in texts)]


def _is_named(file: Path, whole: str, *, is_text: bool) -> bool:
    if file.suffix == ".py" or FOUND_BY_CONVENTION & {file.name, *file.parts[:-1]}:
        return True
    if is_text or file.suffix in PICTURES:
        return file.name in whole or file.stem in whole
    return f"{file.parent.name}/{file.name}" in whole


def _text_of(path: Path) -> str | None:
    if path.is_symlink() or path.suffix in PICTURES:
        return None
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        return None


def tracked(root: Path) -> list[str]:
    """The files of a checkout, as git knows them."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True
    )
    return [file for file in listed.stdout.split("\0") if file and (root / file).exists()]


# --- pages ---


def words_of_pages(root: Path) -> int:
    """Words of README.md and of the pages of docs, without those of its folders."""
    pages = [root / "README.md", *root.glob("docs/*.md")]
    return sum(len(page.read_text("utf-8").split()) for page in pages)


# --- all of them ---


def measured() -> Iterator[tuple[str, Found]]:
    """Every measure of this checkout, by its name in ``BOUNDS``."""
    cycles, mutual = cycles_in(ROOT), mutual_folders(ROOT)
    importers = importers_of(ROOT, STUDIES, (*PACKAGES, "tests"))
    lost = unnamed(ROOT, tracked(ROOT))
    laws = sum(laws_of(ROOT / package) for package in PACKAGES)
    names, calls = shared_names(ROOT / "routing"), calls_of_an_event()
    begun = pronouns(ROOT)
    found: Sequence[Callable[[], Found]] = (
        lambda: Found(lines_of(ROOT / "routing")),
        lambda: Found(lines_of(ROOT / "rules" / "engine")),
        lambda: Found(laws),
        lambda: Found(len(names), names),
        lambda: Found(len(begun), begun),
        lambda: Found(sum(len(one.split(", ")) for one in cycles), cycles),
        lambda: Found(len(mutual), mutual),
        lambda: Found(len(importers), importers),
        lambda: Found(len(lost), lost),
        lambda: Found(words_of_pages(ROOT)),
        lambda: Found(len(calls), calls),
    )
    yield from ((name, measure()) for name, measure in zip(BOUNDS, found, strict=True))


def calls_of_an_event() -> Sequence[str]:
    """The calls by which a broker takes in an event, and delivers it."""
    sys.path.insert(0, str(ROOT))
    from tools.calls import calls_of_an_event

    return calls_of_an_event(PACKAGES)


def told(name: str, found: Found, bound: Bound) -> str:
    """A line for a measure, and what passes its bound."""
    line = f"{found.value:>7,}  {name}: {bound.most:,} at most; goal {bound.goal:,}"
    if found.value <= bound.most:
        return line
    shown = [f"         {place}" for place in found.places[:SHOWN_MAX]]
    more = len(found.places) - len(shown)
    return "\n".join(
        [f"{line}: TOO MANY", *shown, *([f"         and {more} more"] if more > 0 else [])]
    )


def main() -> int:
    """Print all measures; 1 where one passes its bound."""
    status = 0
    for name, found in measured():
        print(told(name, found, BOUNDS[name]))
        status |= found.value > BOUNDS[name].most
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
