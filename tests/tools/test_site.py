"""The site has all pages, with what they link to, and all public classes."""

import re
from pathlib import Path

import rexmq
from tools import site


def test_every_public_name_is_in_the_reference_with_its_home():
    text = "\n".join(site.reference().values())
    assert sorted(re.findall(r"^## rexmq\.(\w+)$", text, re.MULTILINE)) == sorted(rexmq.__all__)
    assert "::: broker.client.publisher.Publisher\n" in text
    assert "::: rules.local.Engine\n" in text


def test_what_pages_link_to_stands_where_they_look_for_it(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(site, "PAGES", tmp_path)
    site.stage()
    staged = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert {"README.md", "docs/tesla.md", "docs/decisions/0030-studies.md"} <= staged
    assert {"examples/plain/client.py", "examples/pipeline/README.md"} <= staged
    for page in site.ROOT.joinpath("docs").rglob("*.md"):
        assert str(page.relative_to(site.ROOT)) in staged


def test_pages_of_the_navigation_are_there(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(site, "PAGES", tmp_path)
    site.stage()
    named = re.findall(r": ([\w/-]+\.md)$", (site.ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    pages = {f"reference/{site.file_name(title)}" for title in site.reference()}
    assert len(named) > 30
    assert pages <= set(named)
    assert all((tmp_path / name).is_file() for name in set(named) - pages)
