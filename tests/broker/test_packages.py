"""The seven packages are this distribution's own (docs/decisions/0001-package-names.md)."""

import subprocess
import sys
from pathlib import Path

import pytest

from broker.packages import PACKAGES, verify_packages

ROOT = Path(__file__).parents[2]


def test_our_own_packages_pass():
    verify_packages()


@pytest.mark.parametrize("name", [name for name in PACKAGES if name != "broker"])
def test_an_intruder_is_named_with_its_path(tmp_path, name):
    # `python -c` puts the current folder first on the path, as `python -m broker` does.
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("raise RuntimeError('it was imported')\n")
    script = (
        f"import sys; sys.path.append({str(ROOT)!r}); from broker.cli import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"package '{name}' would be imported from {tmp_path / name}" in done.stderr
    assert "Traceback" not in done.stderr
