"""Scenario files with small inputs."""

from collections.abc import Callable
from pathlib import Path

import pytest
from simulator_text import EVENTS, RULES, SMALL


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Writes a scenario beside the small rules and events; gives its path."""

    def write(text: str = SMALL, rules: str = RULES, **files: str) -> Path:
        given = {"rules.tesla": rules, "s1.jsonl": EVENTS.lstrip(), "scenario.toml": text}
        for name, content in (given | files).items():
            (tmp_path / name).write_text(content)
        return tmp_path / "scenario.toml"

    return write
