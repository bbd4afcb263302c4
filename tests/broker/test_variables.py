"""Variables of the environment that look like settings."""

import command
import pytest

from broker.variables import VARIABLES, unknown


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("REXMQ_LEAD_MAX", "REXMQ_LEAD_MAX_S"),
        ("REXMQ_BROKERS", "REXMQ_BROKER"),
        ("REXMQ_LINKS", "REXMQ_LINK"),
        ("REXMQ_loglevel", "REXMQ_LOG_LEVEL"),
        ("REXMQ_COST", "REXMQ_COSTS"),
        ("REXMQ_", None),
    ],
)
def test_one_that_is_no_setting_is_named_with_the_nearest(name, nearest):
    hint = f": did you mean {nearest}?" if nearest else ""
    assert list(unknown({name: "1", "PATH": "/"})) == [f"{name} is no setting{hint}"]


def test_settings_are_not():
    assert list(unknown(dict.fromkeys(VARIABLES, "1"))) == []


def test_every_command_says_so_and_goes_on():
    for arguments in (["broker", "--check"], ["--version"]):
        done = command.run(*arguments, REXMQ_LEAD_MAX="5")
        assert done.returncode == 0
        warning = "rexmq: REXMQ_LEAD_MAX is no setting: did you mean REXMQ_LEAD_MAX_S?\n"
        assert done.stderr == warning
