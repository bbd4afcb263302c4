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


def of_service(prefix, port):
    """The variables that Kubernetes sets for a service."""
    own = f"{prefix}_PORT_{port}_TCP"
    address = f"tcp://10.0.0.5:{port}"
    return {
        f"{prefix}_SERVICE_HOST": "10.0.0.5",
        f"{prefix}_SERVICE_PORT": str(port),
        f"{prefix}_SERVICE_PORT_CLIENTS": str(port),
        f"{prefix}_PORT": address,
        own: address,
        f"{own}_PROTO": "tcp",
        f"{own}_PORT": str(port),
        f"{own}_ADDR": "10.0.0.5",
    }


@pytest.mark.parametrize("prefix", ["REXMQ", "REXMQ_EDGE_1"])
def test_those_of_a_service_of_kubernetes_are_nobodys_mistake(prefix):
    assert list(unknown(of_service(prefix, 7461))) == []


def test_what_looks_like_them_and_is_a_mistake_is_named():
    found = list(unknown({"REXMQ_PORT": "7461", "REXMQ_PORTS": "tcp://10.0.0.5:7461"}))
    assert [one.partition(" is ")[0] for one in found] == ["REXMQ_PORT", "REXMQ_PORTS"]


def test_every_command_says_so_and_goes_on():
    for arguments in (["broker", "--check"], ["--version"]):
        done = command.run(*arguments, REXMQ_LEAD_MAX="5")
        assert done.returncode == 0
        warning = "rexmq: REXMQ_LEAD_MAX is no setting: did you mean REXMQ_LEAD_MAX_S?\n"
        assert done.stderr == warning
