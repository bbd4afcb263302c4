"""The stories of testdata/*.txt: what crosses between a Node and its Sessions."""

from pathlib import Path

import pytest
from conversation import Conversation
from datadriven import parse, printed, run
from engines import NAMES

SCRIPTS = sorted(Path(__file__).with_name("testdata").glob("*.txt"))


@pytest.mark.parametrize("engine", NAMES)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_story(script: Path, engine: str, rewrite: bool) -> None:
    run(script, Conversation(engine).perform, rewrite=rewrite)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_rewriting_a_script_keeps_all_but_the_transcripts(script: Path) -> None:
    text = script.read_text()
    assert printed(parse(text)) == text
