"""The documentation as a site with search: all pages, and a reference of the public classes.

    make site            # build/site/index.html; an error for a link that leads nowhere

Pages and what they link to stand in ``build/pages`` as they do in the repository, so that their
links hold there. The reference has an entry for each name that ``rexmq`` gives, made from its
signature and its docstring by mkdocstrings.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "build" / "pages"
LINK = re.compile(r"\]\(([^)\s#]+)[^)\s]*\)")
GROUPS = {
    "Detection": ("Engine", "detect", "Found", "Tables", "Table", "explain", "load", "summarise"),
    "Events and files": ("Event", "EventBatch", "EventType", "Layout", "TimeForm", "batch_of"),
    "Clients of brokers": ("Publisher", "Receipt", "Subscriber", "RuleManager"),
    "Clients for asyncio": (
        "AsyncPublisher",
        "AsyncReceipt",
        "AsyncSubscriber",
        "AsyncRuleManager",
    ),
}
"""Names of the reference by its pages; all others are exceptions, on a page of their own."""


def main() -> int:
    """Stage the pages and build the site; the exit status of mkdocs."""
    shutil.rmtree(PAGES, ignore_errors=True)
    stage()
    (PAGES / "reference").mkdir()
    for title, text in reference().items():
        (PAGES / "reference" / file_name(title)).write_text(text)
    return subprocess.call(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"], cwd=ROOT
    )


def file_name(title: str) -> str:
    """The name of the file of a page of the reference."""
    return f"{title.lower().replace(' ', '-')}.md"


def stage() -> None:
    """Copy the pages, and all files that they link to, to their places below PAGES."""
    waiting = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")]
    staged = set[Path]()
    while waiting:
        file = waiting.pop().resolve()
        if file in staged or not file.is_file():
            continue
        staged.add(file)
        copy = PAGES / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
        if file.suffix == ".md":
            links = LINK.findall(file.read_text())
            waiting += [file.parent / link for link in links if ":" not in link]


def reference() -> dict[str, str]:
    """The pages of the reference by their titles."""
    import rexmq

    grouped = {name for names in GROUPS.values() for name in names}
    groups = GROUPS | {"Errors": tuple(name for name in rexmq.__all__ if name not in grouped)}
    pages = {}
    for title, names in groups.items():
        entries = []
        for name in names:
            home = getattr(rexmq, name).__module__
            entries.append(f"## rexmq.{name}\n\n::: {home}.{name}\n")
        pages[title] = "\n".join((f"# {title}\n", *entries))
    return pages


if __name__ == "__main__":
    raise SystemExit(main())
