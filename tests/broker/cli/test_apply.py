"""A folder of rules applied to a broker, and what operators of keys look at."""

import pytest
from secured import KEYS, broker, keys, make_keys, secured

from broker import RuleManager
from broker.cli import main
from broker.cli.applying import texts_in
from broker.errors import RefusedError

EVENT = "event Gas(tank: string, level: float)\n"
LOW = "rule low: define Low(tank: string) from Gas(level < {}) as g where tank = g.tank\n"
HIGH = "rule high: define High(tank: string) from Gas(level > 90) as g where tank = g.tank\n"


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    with broker("--name", "b1") as (_, found):
        yield found


@pytest.fixture
def folder(tmp_path, endpoint):
    (tmp_path / "deep").mkdir()
    (tmp_path / "low.tesla").write_text(EVENT + LOW.format(5))
    (tmp_path / "deep" / "high.tesla").write_text(EVENT + HIGH)
    yield tmp_path
    with RuleManager(endpoint) as manager:
        for rule in manager.list():
            manager.remove(rule["name"])


def applied(endpoint, folder, *flags):
    return main(["rule", "apply", str(folder), *flags, "--broker", endpoint])


def versions(endpoint):
    with RuleManager(endpoint) as manager:
        return {rule["name"]: rule["version"] for rule in manager.list()}


def test_a_folder_is_what_is_deployed(endpoint, folder, capsys):
    assert applied(endpoint, folder, "--dry-run") == 0
    assert versions(endpoint) == {}
    assert applied(endpoint, folder) == 0
    shown = "+ high\n+ low\n2 added, 0 replaced, 0 removed, 0 as they were\n"
    assert capsys.readouterr().out == shown * 2
    first = versions(endpoint)
    (folder / "low.tesla").write_text(f"// lower\n{EVENT}{LOW.format(3)}")
    (folder / "deep" / "high.tesla").unlink()
    assert applied(endpoint, folder) == 0
    assert capsys.readouterr().out == "~ low\n0 added, 1 replaced, 0 removed, 0 as they were\n"
    assert applied(endpoint, folder, "--prune", "--dry-run") == 0
    assert versions(endpoint) == {"high": first["high"], "low": first["low"] + 1}
    assert applied(endpoint, folder, "--prune") == 0
    assert capsys.readouterr().out == "- high\n0 added, 0 replaced, 1 removed, 1 as they were\n" * 2
    assert versions(endpoint) == {"low": first["low"] + 1}


def test_a_folder_as_kubernetes_mounts_it_has_each_file_once(tmp_path):
    (tmp_path / "..2026").mkdir()
    (tmp_path / "..2026" / "low.tesla").write_text(EVENT)
    (tmp_path / "..data").symlink_to("..2026")
    (tmp_path / "low.tesla").symlink_to("..data/low.tesla")
    assert texts_in(tmp_path) == [(str(tmp_path / "low.tesla"), EVENT)]


def test_nothing_is_done_where_anything_is_refused(endpoint, folder, capsys):
    assert applied(endpoint, folder) == 0
    before = versions(endpoint)
    (folder / "low.tesla").write_text(EVENT + LOW.format(4))
    (folder / "new.tesla").write_text("rule new: define New() from Gas(pressure > 3)\n")
    (folder / "deep" / "high.tesla").unlink()
    assert applied(endpoint, folder, "--prune") == 1
    assert "pressure" in capsys.readouterr().err
    assert versions(endpoint) == before
    with RuleManager(endpoint) as manager:
        for removed, reason in (("none", "no rule is named none"), ("low", "is to be removed")):
            with pytest.raises(RefusedError, match=reason):
                manager.replace(EVENT + LOW.format(1), remove=["high", removed])
    assert versions(endpoint) == before


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "expected a folder with files *.tesla"),
        (EVENT + LOW.format(1) + LOW.format(2), "rule low stands in the folder twice"),
        ("rule low define", "expected"),
    ],
)
def test_bad_folders(endpoint, tmp_path, text, reason, capsys):
    if text is not None:
        (tmp_path / "a.tesla").write_text(text)
    assert applied(endpoint, tmp_path) in (1, 2)
    assert reason in capsys.readouterr().err


def test_removing_needs_the_right_to(tmp_path):
    folder = make_keys(tmp_path)
    text = KEYS.replace(
        'key = "alice.key"\n',
        'key = "alice.key"\ndefine = ["*"]\ndeploy = ["*"]\nreplace = ["*"]\nsubscribe = ["*"]\n'
        'remove = ["low"]\ncommands = ["*"]\n',
    )
    (folder / "access.toml").write_text(text)
    with (
        broker("--name", "b1", *secured(folder, "b1")) as (_, endpoint),
        RuleManager(endpoint, **keys(folder, "alice")) as manager,
    ):
        manager.add(EVENT + LOW.format(5) + HIGH)
        with pytest.raises(RefusedError, match="user 'alice' may not remove 'high'"):
            manager.replace(EVENT + LOW.format(4), remove=["high"])
        manager.replace("", remove=["low"])
        assert [rule["name"] for rule in manager.list()] == ["high"]


# --- keys and the access file ---


def test_several_pairs_or_none(tmp_path, capsys):
    assert main(["keys", "new", "ada", "ben", "--dir", str(tmp_path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    for names in (["cy", "ada"], ["cy", "no/name"]):
        assert main(["keys", "new", *names, "--dir", str(tmp_path)]) == 1
    assert {one.stem for one in tmp_path.iterdir()} == {"ada", "ben"}


def test_an_access_file_is_checked_and_shown(tmp_path, capsys):
    folder = make_keys(tmp_path)
    file = folder / "access.toml"
    words = "--access", str(file)
    assert main(["access", "check", *words]) == 0
    assert "2 users, 2 brokers: ok; each user may do everything" in capsys.readouterr().out
    assert main(["access", "show", "bob", *words]) == 0
    assert "may do everything" in capsys.readouterr().out
    rights = 'publish = ["Gas", \'Temp(area = "a1")\']\nsources = ["s*"]\nrules_max = 3\n'
    file.write_text(KEYS.replace('key = "alice.key"\n', f'key = "alice.key"\n{rights}'))
    assert main(["access", "show", "alice", *words]) == 0
    shown = capsys.readouterr().out
    assert "[user.alice] (line 1): 1 keys" in shown
    assert "sources: s*\nrules_max: 3\n" in shown
    assert 'publish  Temp  Temp(area = "a1")  3' in shown
    assert main(["access", "show", "bob", *words]) == 0
    assert "may do nothing" in capsys.readouterr().out
    assert main(["access", "show", "cy", *words]) == 1
    assert "there is no user 'cy'; expected one of alice, bob" in capsys.readouterr().err
    file.write_text("[user.alice]\nkey = 7\n")
    assert main(["access", "check", *words]) == 1
    assert "line 2: [user.alice] key: expected a text" in capsys.readouterr().err
