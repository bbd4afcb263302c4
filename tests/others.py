"""What another user of the machine gets: a call in a fork that is not root's."""

import os
import pickle
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

NOBODY = 65_534


@contextmanager
def shared_folder() -> Iterator[Path]:
    """A folder that other users may enter, as those of pytest may not be."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        rmtree(folder)


def as_another(call: Callable[[], Any]) -> Any:
    """The result of a call by a user to whom nothing belongs; an error is given, not raised. The
    test is skipped unless root runs it.
    """
    if os.geteuid():
        pytest.skip("only root can be another user")
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        try:
            result = call()
        except Exception as error:
            result = error
        os.write(writing, pickle.dumps(result))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as result_of:
        content = result_of.read()
    os.waitpid(child, 0)
    return pickle.loads(content)
