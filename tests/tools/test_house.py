"""What the house rules measure, on a small package."""

from pathlib import Path

import pytest

from tools import house
from tools.calls import calls_of_an_event
from tools.house import Bound, Found

MODULES = {
    "one": (
        '"""A module.\n\nLaw 1: nothing.\n\nLawful: no law.\n"""\n\n'
        "from inner import two\n\nFAR = 1\n"
    ),
    "two": (
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from inner.one import FAR\n\n\n"
        'class Link:\n    """Law: everything."""\n\n\ndef _own() -> None: ...\n'
    ),
    "three": "FAR: float = 0.1\n\n\ndef Link() -> None: ...\n\n\ndef _own() -> None: ...\n",
    "__init__": '"""A package, which is no part of a circle."""\n\nfrom inner.three import FAR\n',
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "inner"
    folder.mkdir()
    for name, text in MODULES.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def test_lines_and_laws_of_all_modules_are_counted(package: Path) -> None:
    assert house.lines_of(package) == sum(text.count("\n") for text in MODULES.values())
    assert house.laws_of(package) == 2


def test_names_that_several_modules_define_are_found_but_for_private_ones(package: Path) -> None:
    assert house.shared_names(package) == [
        "FAR: inner.one, inner.three",
        "Link: inner.three, inner.two",
    ]


def test_docstrings_that_begin_with_a_pronoun_are_found_with_their_places(tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    text = '"""What is here."""\n\nA = 1\n"""Those: two."""\nB = "What"\n"""Whether B."""\n'
    (folder / "four.py").write_text(text)
    assert house.pronouns(tmp_path, ["inner"]) == [
        "inner/four.py:1: What is here.",
        "inner/four.py:4: Those: two.",
    ]


def test_folders_that_import_each_other_are_found_but_not_a_folder_and_one_within_it(
    tmp_path: Path,
) -> None:
    texts = {
        "all/a/one.py": "from all.b.inner import two\n",
        "all/b/three.py": "from all.a import one\nfrom all.b.inner import two\n",
        "all/b/inner/two.py": "from all.b import three\n",
        "all/c/four.py": "import all.a.one\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert house.mutual_folders(tmp_path, ("all",)) == ["all/a and all/b"]


def test_importers_of_a_package_are_found_in_functions_too(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a.py").write_text("def f():\n    from studies.device import streams\n")
    (tmp_path / "inner" / "b.py").write_text("import studies_of_others\n")
    assert house.importers_of(tmp_path, "studies", ["inner"]) == ["inner/a.py"]


def test_files_that_nothing_names_are_found(tmp_path: Path) -> None:
    files = {
        "README.md": b"See [guide](pages/guide.md) and a.png; a store has a broker.db.",
        "pages/guide.md": b"Run tool.sh. README.md",
        "pages/a.png": b"\x89PNG\xff",
        "pages/lost.md": b"guide",
        "tool.sh": b"",
        "folder/broker.db": b"SQLite\xff",
        "kept/data.bin": b"\xff",
        "tests/testdata/one.txt": b"",
        "code.py": b"OPENS = 'kept/data.bin'",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert house.unnamed(tmp_path, [*files]) == ["pages/lost.md", "folder/broker.db"]


def test_words_of_pages_are_those_of_no_folder_of_docs(tmp_path: Path) -> None:
    pages = tmp_path / "docs"
    (pages / "spec").mkdir(parents=True)
    (tmp_path / "README.md").write_text("Two words")
    (pages / "a.md").write_text("| a | b |\n")
    (pages / "spec" / "b.md").write_text("not these")
    assert house.words_of_pages(tmp_path) == 7


def test_an_import_for_annotations_alone_closes_a_circle(package: Path) -> None:
    assert house.cycles_in(package.parent, ("inner",)) == ["inner.one, inner.two"]


def test_what_passes_its_bound_is_told_with_places(monkeypatch, capsys) -> None:
    found = [("a", Found(3, ["x", "y"])), ("b", Found(7, list("1234567")))]
    monkeypatch.setattr(house, "measured", lambda: iter(found))
    monkeypatch.setattr(house, "BOUNDS", {"a": Bound(3, 0), "b": Bound(6, 6)})
    assert house.main() == 1
    first, second, *places = capsys.readouterr().out.splitlines()
    assert first == "      3  a: 3 at most; goal 0"
    assert second == "      7  b: 6 at most; goal 6: TOO MANY"
    assert [one.strip() for one in places] == ["1", "2", "3", "4", "5", "and 2 more"]


def test_calls_are_counted_from_the_frame_to_the_delivery() -> None:
    first, *_, last = calls_of_an_event(house.PACKAGES)
    assert first == "routing/network/brokers/broker.py: Broker.receive_frames"
    assert last == "routing/wire/singles.py: SingleForm.encode"
