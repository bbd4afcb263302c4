"""Who may read a store: its owner alone, unless that has given more; and who only may, can."""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import command
import pytest
from others import as_another, shared_folder
from stored import entry, said

from broker.store import Append, Reader, Store
from broker.store.damage import check, repair
from broker.store.folder import open_to_others


def modes(folder: Path) -> dict[str, str]:
    files = [folder, *folder.iterdir()]
    return {file.name: oct(stat.S_IMODE(file.stat().st_mode)) for file in files}


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def fill(folder: Path) -> Store:
    """A store that has three entries, and is open."""
    store = Store.open(folder)
    assert store.wait(store.write([Append(entry(n)) for n in (1, 2, 3)]), 30)
    return store


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_store_is_its_owners_alone_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    folder = tmp_path / "b1"
    with umask(mask), fill(folder):
        files = "broker.db", "broker.db-wal", "broker.db-shm", "broker.lock"
        assert modes(folder) == {"b1": "0o700", **dict.fromkeys(files, "0o600")}


def test_so_it_is_after_a_repair(tmp_path: Path) -> None:
    folder = tmp_path / "b1"
    with umask(0):
        fill(folder).close()
        file = folder / "broker.db"
        file.write_bytes(bytes(16_384) + file.read_bytes()[16_384:])
        assert repair(folder).aside is not None
    assert set(modes(folder).values()) == {"0o700", "0o600"}


def test_an_old_store_that_others_may_read_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "b1"
    fill(folder).close()
    words = "broker", "--check", "--data", folder
    assert command.run(*words).stderr == ""
    (folder / "broker.db").chmod(0o644)
    assert open_to_others(folder) == []  # nobody else may enter
    folder.chmod(0o755)
    named = f"{folder}, {folder / 'broker.db'}"
    done = command.run(*words)
    assert done.returncode == 0
    assert done.stderr == (
        f"rexmq: data: others may read the store ({named}): chmod -R go= {folder}\n"
    )


# --- reading alone ---


def test_a_store_can_be_read_by_who_may_only_read_it() -> None:
    """One that is open, one that was killed, with and without the file for its memory, and one
    that was closed.
    """
    with shared_folder() as shared:
        store = fill(shared / "open")
        for name in ("killed", "bare"):
            shutil.copytree(shared / "open", shared / name)
        (shared / "bare" / "broker.db-shm").unlink()
        fill(shared / "closed").close()
        for folder in shared.iterdir():
            folder.chmod(0o755)
            for file in folder.iterdir():
                file.chmod(0o644)
        for folder in shared.iterdir():
            before = {file.name: file.read_bytes() for file in folder.glob("*.db*")}
            assert as_another(lambda at=folder: read(at)) == [entry(n) for n in (1, 2, 3)]
            report = as_another(lambda at=folder: check(at))
            assert (report.entries, report.problems) == (3, [])
            if folder.name != "open":
                assert {file.name: file.read_bytes() for file in folder.glob("*.db*")} == before
        assert isinstance(as_another(lambda: Store.open(shared / "closed")), PermissionError)
        store.close()


def read(folder: Path) -> list[object]:
    with Reader.open(folder) as reader:
        return list(said(reader.entries()))
