"""A broker's configuration from file, environment and flags."""

import dataclasses
import json
import tomllib
from pathlib import Path

import pytest

from broker import keys
from broker.configuration import load
from broker.documents import parsed
from broker.errors import ConfigurationError
from broker.keys import KEYS, LATE, STRATEGIES
from broker.sockets import CONNECTED_MISSED_MAX
from routing.config import Late, NodeConfig, SessionConfig
from routing.messages import values
from routing.network import strategy


def written(tmp_path, text):
    file = tmp_path / "broker.toml"
    file.write_text(text)
    return file


def test_the_defaults_are_the_protocol_cores_own_but_for_silence_on_a_connection_that_stands():
    assert load(None, {}, {}).node == NodeConfig(heartbeats_missed_max=CONNECTED_MISSED_MAX)


def test_every_choice_of_the_node_that_is_not_the_hosts_own_has_a_key():
    fields = {field.name for field in dataclasses.fields(NodeConfig)}
    # The host has a wall clock: that is no choice, nor who may have it drain, nor when it asks what
    # is needed. How it matches is told by two keys.
    hosts = {"wall_clock", "matching", "drainable", "unasked_events_max"}
    assert fields - {key.name for key in KEYS} == hosts
    assert {"matcher", "device"} <= {key.name for key in KEYS}
    assert set(LATE) == {late.value for late in Late}
    assert set(STRATEGIES) <= set(strategy.names())


def test_the_page_on_the_command_line_lists_every_key_with_its_default():
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    values = tomllib.loads(load(None, {}, {}).toml())
    for key in KEYS:
        default = json.dumps(values[key.table][key.name])
        assert f"| `{key.name}` | `{default}` |" in page


def test_flags_win_over_the_environment_over_the_file(tmp_path):
    file = written(
        tmp_path, '[broker]\nname = "file"\n[promises]\nlate = "deliver"\nlead_max_s = 1\n'
    )
    configuration = load(
        file, {"REXMQ_NAME": "environment", "REXMQ_LEAD_MAX_S": "2"}, {"lead_max_s": "3"}
    )
    node = configuration.node
    assert (node.name, node.late, node.lead_max_s) == ("environment", Late.DELIVER, 3.0)


def test_what_is_printed_gives_the_same_configuration(tmp_path):
    flags = {"listen": ["tcp://127.0.0.1:1", "ipc:///x"], "source_silence_max_s": "2.5"}
    configuration = load(None, {}, flags)
    assert load(written(tmp_path, configuration.toml()), {}, {}) == configuration
    assert load(written(tmp_path, load(None, {}, {}).toml()), {}, {}) == load(None, {}, {})


def test_a_broker_may_be_linked_to_several_others_or_none(tmp_path):
    file = written(tmp_path, "[network]\nlink = ['tcp://a:1', 'ipc:///b']\n")
    assert load(file, {}, {}).links == ("tcp://a:1", "ipc:///b")
    assert load(file, {"REXMQ_LINK": "tcp://c:1"}, {}).links == ("tcp://c:1",)
    assert load(None, {}, {"link": ("tcp://c:1", "tcp://c:1")}).links == ("tcp://c:1",)
    assert load(None, {}, {}).links == ()
    assert load(None, {"REXMQ_LINK": ""}, {}).links == ()


def test_an_endpoint_list_in_the_environment_is_separated_by_commas():
    assert load(None, {"REXMQ_LISTEN": "tcp://a:1, ipc:///b"}, {}).listen == (
        "tcp://a:1",
        "ipc:///b",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[broker\n", "broker.toml: Expected ']'"),
        ("[broker]\nname = " + "[" * 3000, "broker.toml: maximum recursion depth exceeded"),
        ("[brokers]\n", "unknown table or key 'brokers'; expected [broker], [limits]"),
        ("name = 'b'\n", "unknown table or key 'name'"),
        ("[broker]\nnmae = 'b'\n", "[broker] has no key 'nmae'; expected one of name, listen"),
        ("[broker]\nlead_max_s = 1\n", "[broker] has no key 'lead_max_s'"),
        (
            "[broker]\nname = 7\n",
            "[broker] name: expected a text of at most 255 characters that can be printed, found 7",
        ),
        (f"[broker]\nname = '{'b' * 256}'\n", "name: expected a text of at most 255 characters"),
        ("[links]\nheartbeat_s = 0\n", "heartbeat_s: expected seconds above 0, at most 86400, fou"),
        ("[links]\nheartbeat_s = 1e6\n", "heartbeat_s: expected seconds above 0, at most 86400"),
        ("[broker]\nlisten = []\n", "[broker] listen: expected endpoints such as tcp://"),
        ("[network]\nlink = ['b2']\n", "[network] link: expected endpoints such as tcp://"),
        ("[network]\nstrategy = 'best'\n", "expected one of centralized, distributed-st"),
        ("[limits]\nclients_max = 0\n", "expected a whole number from 1 to 10^15, found 0"),
        ("[limits]\npublish_credit = 9223372036854775808\n", "from 1 to 10^15, found 92233720"),
        ("[limits]\ntypes_max = 50001\n", "expected a whole number from 1 to 50000, found 50001"),
        ("[limits]\nclients_max = true\n", "expected a whole number from 1 to 10^15, found true"),
        ("[promises]\nlead_max_s = -1\n", "expected a number of seconds, found -1"),
        ("[promises]\nlead_max_s = nan\n", "expected a number of seconds, found nan"),
        ("[promises]\nlead_max_s = 1e308\n", "expected a number of seconds, found 1e+308"),
        ("[promises]\nlead_max_s = 0\n", "lead_max_s must be positive"),
        ("[promises]\nlate = 'never'\n", "expected one of refuse, deliver, found 'never'"),
    ],
)
def test_a_bad_file_is_refused_whole_with_place_and_expectation(tmp_path, text, message):
    with pytest.raises(ConfigurationError) as caught:
        load(written(tmp_path, text), {}, {})
    assert message in str(caught.value)


def test_what_the_wire_has_room_for_is_what_it_says() -> None:
    for name in ("NAME_MAX", "HEARTBEAT_MAX_S", "TYPES_MAX"):
        assert getattr(keys, name) == getattr(values, name)
    for config in (NodeConfig, SessionConfig):
        with pytest.raises(ValueError, match="at most 255 characters"):
            config(name="b" * 256)
        with pytest.raises(ValueError, match="heartbeat_s must be at most 86400"):
            config(heartbeat_s=86_401.0)


def test_a_bad_variable_and_a_bad_flag_are_named():
    with pytest.raises(ConfigurationError, match="REXMQ_CLIENTS_MAX: expected a whole number"):
        load(None, {"REXMQ_CLIENTS_MAX": "many"}, {})
    with pytest.raises(ConfigurationError, match="--clients-max: expected a whole number"):
        load(None, {}, {"clients_max": "many"})


def test_dots_that_part_no_keys_are_any_number():
    text = f'# {"." * 99}\nx = [{"1.5, " * 99}]\ny = "{"a." * 99}" # {"a." * 99}\n'
    assert parsed(text, Path("f"))["x"] == [1.5] * 99
