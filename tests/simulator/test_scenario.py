"""Scenario files: what they say, and how bad ones are refused (docs/scenarios.md)."""

from pathlib import Path

import pytest
from simulator_text import SMALL

from simulator import scenario
from simulator.scenario import ScenarioError


def test_the_explicit_form_is_read_as_the_contract_says(written) -> None:
    text = SMALL.replace('rules = "rules.tesla"', 'rules = "rules.tesla"\nduration_s = 120')
    read = scenario.read(written(text.replace("[[source]]", "delay_ms = 2.5\n[[source]]")))
    assert (read.seed, read.strategy, read.ordering) == (7, "centralized", "watermark")
    assert read.rules is not None
    assert read.rules.name == "rules.tesla"
    assert read.duration_s == 120
    assert read.brokers == ("b1", "b2")
    (link,) = read.links
    assert (link.between, link.quality.delay_s) == (("b1", "b2"), 0.0025)
    assert [(one.name, one.broker, one.events.name) for one in read.sources] == [
        ("s1", "b1", "s1.jsonl")
    ]
    assert read.sinks[0].subscribe == ("Fire(temp > 45)", "Temp()")


def test_generated_and_explicit_forms_mix(written) -> None:
    text = SMALL.replace('name = "b1"\n[[broker]]\nname = "b2"', 'name = "x"')
    text = text.replace('["b1", "b2"]', '["x", "b2"]')
    text += '\n[topology]\nkind = "ring"\nbrokers = 4\ndelay_ms = 3.0\n'
    read = scenario.read(written(text))
    assert set(read.brokers) == {"b1", "b2", "b3", "b4", "x"}
    assert len(read.links) == 5
    assert {one.quality.delay_s for one in read.links} == {0.003, 0.005}


def test_generated_links_have_a_bandwidth_and_lose_messages(written) -> None:
    text = SMALL.replace("[[link]]", "[[link]]\nbandwidth_mbps = 2.0", 1)
    text += '\n[topology]\nkind = "line"\nbrokers = 3\nbandwidth_mbps = 8.0\nloss = 0.25\n'
    text = text.replace('name = "b1"\n[[broker]]\nname = "b2"', 'name = "x"')
    read = scenario.read(written(text.replace('["b1", "b2"]', '["x", "b2"]')))
    found = {link.between: (link.quality.bandwidth, link.quality.loss) for link in read.links}
    generated = (1_000_000.0, 0.25)
    assert found == {
        ("b1", "b2"): generated,
        ("b2", "b3"): generated,
        ("x", "b2"): (250_000.0, 0.0),
    }


def test_a_seed_of_the_command_goes_first(written) -> None:
    assert scenario.read(written(), 9).seed == 9


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed = 7", "seed = ", "Invalid value (at line 2, column"),
        ("seed = 7", 'seed = "x"', "seed: expected `int`, got `str`"),
        ("seed = 7", "sede = 7", "object contains unknown field `sede`"),
        ('name = "b2"', "name = 2", "broker[2].name: expected `str`, got `int`"),
        ('name = "b2"', 'name = "b1"', "broker[2].name: there are two of the name 'b1'"),
        ('name = "b2"', 'name = ""', "broker[2].name: expected a name that can be printed"),
        ('["b1", "b2"]', '["b1", "b3"]', "link[1].between: there is no broker 'b3'"),
        ('["b1", "b2"]', '["b1"]', "link[1].between: expected `array` of length 2, got 1"),
        ('["b1", "b2"]', '["b1", "b1"]', "link[1].between: a broker is not linked to itself"),
        ('["b1", "b2"]', '["b1", "b2"]\nloss = 2.0', "link[1]: loss must be from 0 to 1, not 2.0"),
        ('["b1", "b2"]', '["b1", "b2"]\ndelay_ms = -1.0', "link[1].delay_ms: expected 0 or more"),
        (
            "[[source]]",
            "[protocol]\nsource_silence_max_s = 0.0\n[[source]]",
            "protocol.source_silence_max_s: expected a positive number, found 0.0",
        ),
        (
            "[[source]]",
            "[protocol]\nsource_lead_max_s = -1.0\n[[source]]",
            "protocol.source_lead_max_s: expected a positive number, found -1.0",
        ),
        (
            "[[source]]",
            "[protocol]\npublish_credit = 0\n[[source]]",
            "protocol.publish_credit: expected a positive number, found 0",
        ),
        (
            "[[source]]",
            "[protocol]\nbuffer_max = 0\n[[source]]",
            "protocol.buffer_max: expected a positive number, found 0",
        ),
        (
            "[[source]]",
            "[protocol]\nbuffer_max = 100\n[[source]]",
            "protocol: buffer_max (100) must hold a window (1024)",
        ),
        (
            '["b1", "b2"]',
            '["b1", "b2"]\ndelay_ms = nan',
            "link[1].delay_ms: expected a finite numb",
        ),
        (
            '["b1", "b2"]',
            '["b1", "b2"]\nbandwidth_mbps = 0.0',
            "link[1].bandwidth_mbps: expected a",
        ),
        ('[[link]]\nbetween = ["b1", "b2"]\n', "", "no link joins b1 and b2"),
        ('broker = "b1"\nevents', 'broker = "b9"\nevents', "source[1].broker: there is no broker"),
        ('broker = "b1"\nsub', 'broker = "b9"\nsub', "sink[1].broker: there is no broker 'b9'"),
        ('subscribe = ["Fire', 'subscripe = ["Fire', "sink[1]: object "),
        ("seed = 7", 'strategy = "best"', "strategy: expected one of centralized, distributed-st"),
        ("seed = 7", 'ordering = "none"', "ordering: expected one of watermark, arrival"),
        (
            "[[broker]]",
            "[protocol]\nbyte_cost_ns = -1.0\n[[broker]]",
            "protocol.byte_cost_ns: expe",
        ),
        ("seed = 7", "checks = []", "checks: expected one or more of results, network, tables, "),
        ("seed = 7", 'checks = "marks"', "checks: expected `array | null`, got `str`"),
        (
            "seed = 7",
            'checks = ["marks", "law"]',
            "checks[2]: expected one of results, network, tables, trees, buffers, marks, found 'la",
        ),
        ("seed = 7", "duration_s = inf", "duration_s: expected a finite number, found inf"),
        ("seed = 7", "duration_s = -1.0", "duration_s: expected a positive number, found -1"),
        ("seed = 7", "duration_s = 1e300", "duration_s: expected at most 1e+08 seconds, found 1e"),
        ("[[source]]", "[[source]]\nat_s = 1e17", "source[1].at_s: expected at most 1e+08 sec"),
        (
            "[[source]]",
            '[[source]]\nmoves = [{ at_s = 1.0, broker = "b9" }]',
            "source[1].moves[1].broker: there is no broker 'b9'",
        ),
        (
            "[[source]]",
            '[[source]]\nmoves = [{ at_s = 2, broker = "b1" }, { at_s = 1, broker = "b1" }]',
            "source[1].moves[2].at_s: expected at least 2, found 1",
        ),
        (
            "[[source]]",
            '[[source]]\nmoves = [{ at_s = 2, broker = "b1", away_s = -1 }]',
            "source[1].moves[1].away_s: expected 0 or more, found -1",
        ),
        (
            "[[sink]]",
            '[[source]]\nname = "s1"\nbroker = "b2"\nevents = "s1.jsonl"\n[[sink]]',
            "source[2].name: there are two of the name 's1'",
        ),
        (
            "[[source]]",
            '[[link]]\nbetween = ["b1", "b2"]\ndelay_ms = 1e9\n[[source]]',
            "link[2].between: b1 and b2 are linked already",
        ),
        (
            '["b1", "b2"]',
            '["b1", "b2"]\ndelay_ms = 1e9',
            "link[1].delay_ms: expected 8.64e+07 at m",
        ),
        (
            "[[sink]]",
            "[[sink]]\nat_s = 3.0\nthen = [{ at_s = 2.0 }]",
            "sink[1].then[1].at_s: expected at least 3, found 2",
        ),
        (
            "[[sink]]",
            "[[sink]]\nat_s = 3.0\nfor_s = 1.0\nthen = [{ at_s = 4.5 }]",
            "sink[1].then[1].at_s: expected 4 at most, found 4.5",
        ),
        (
            "[[sink]]",
            '[[sink]]\nthen = [{ at_s = 2.0, unsubscribe = ["Smoke()"] }]',
            "sink[1].then[1].unsubscribe: it has not subscribed to 'Smoke()'",
        ),
        ("[[broker]]", "[faults]\nspan_s = [0, 1e17]\n[[broker]]", "faults.span_s[2]: expected at"),
        (
            'engine = "naive"',
            'engine = "foo"',
            "engine: expected one of auto, cdp, aip, aip-published, naive, found 'foo'",
        ),
        ('name = "b2"', f'name = "{"b" * 256}"', "broker[2].name: expected at most 255 characters"),
        (
            "[[broker]]",
            "[protocol]\nheartbeat_s = 86401\n[[broker]]",
            "protocol.heartbeat_s: expected 86400 at most, found 86401",
        ),
    ],
)
def test_a_bad_file_is_refused_with_its_place(written, old: str, new: str, message: str) -> None:
    assert old in SMALL
    path = written(SMALL.replace(old, new, 1))
    with pytest.raises(ScenarioError) as caught:
        scenario.read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('kind = "ring"', "topology.kind: expected one of waxman, "),
        ('kind = "graphml"', "topology.file: a network of kind graphml has one"),
        ('kind = "ring"\nbrokers = 0', "topology.brokers: at least 1, not 0"),
        ('kind = "ring"\ndelay_ms = 0.0', "topology.delay_ms must be positive"),
        ('kind = "waxman"\ndegree = 1.0', "topology.degree: at least 2"),
        ('kind = "ring"\nbandwidth_mbps = 0.0', "topology.bandwidth_mbps: expected a positive"),
        ('kind = "ring"\nloss = 2.0', "topology: loss must be from 0 to 1, not 2.0"),
        ('kind = "ring"\nbrokers = 100001', "topology.brokers: at most 100,000, not 100,001"),
    ],
)
def test_a_bad_topology_is_refused(written, table: str, message: str) -> None:
    table = table.replace('"ring"', '"rings"') if "expected one of" in message else table
    with pytest.raises(ScenarioError) as caught:
        scenario.read(written(f"{SMALL}\n[topology]\n{table}\n"))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('kind = "quake"', "fault[1]: kind: expected one of cut, loss"),
        ('kind = "loss"', "fault[1]: value: for a fault of kind loss expected a share"),
        ('kind = "loss"\nvalue = 2.0', "fault[1]: value: expected a share of the messages"),
        ('kind = "cut"\nvalue = 2.0', "fault[1]: value: for a fault of kind cut there is none"),
        ('kind = "cut"\nlinks = [["b1", "b9"]]', "fault[1].links: there is no link between"),
        ('kind = "cut"\nbrokers = ["b1"]', "fault[1]: brokers: a fault of kind cut is on links"),
        ('kind = "crash"\nbrokers = ["b9"]', "fault[1].brokers: there is no broker 'b9'"),
        ('kind = "crash"\nfor_s = 0.0', "fault[1]: for_s must be positive"),
    ],
)
def test_a_bad_fault_is_refused(written, table: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario.read(written(f"{SMALL}\n[[fault]]\nat_s = 1.0\n{table}\n"))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("every_s = 1e-9", "faults: every_s: at most 10,000 faults, not 60,000,000,000"),
        ("count = 10001", "faults: count: at most 10,000 faults, not 10,001"),
    ],
)
def test_so_many_faults_are_not_drawn(written, table: str, message: str) -> None:
    text = f'{SMALL}\n[faults]\nkinds = ["cut"]\nspan_s = [0.0, 60.0]\n{table}\n'
    with pytest.raises(ScenarioError) as caught:
        scenario.read(written(text))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("values = 1000000001", "workload: values: at most 1,000,000,000, not 1,000,000,001"),
        ("rates = [1.0, 1e300]", "workload: rates: expected two that rise, above 0, up to 1,000,0"),
    ],
)
def test_a_workload_beyond_all_that_can_be_run_is_refused(
    written, table: str, message: str
) -> None:
    text = f"{SMALL}\n[workload]\nhorizon_s = 1.0\n{table}\n"
    with pytest.raises(ScenarioError) as caught:
        scenario.read(written(text))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("first", "second", "refused"),
    [
        ("at_s = 1.0\nfor_s = 20.0", "at_s = 5.0\nfor_s = 1.0", True),
        ("at_s = 5.0\nfor_s = 1.0", "at_s = 1.0\nfor_s = 20.0", True),
        ("at_s = 1.0\nfor_s = 4.0", "at_s = 5.0\nfor_s = 1.0", True),  # in one instant
        ("at_s = 1.0", "at_s = 50.0\nfor_s = 1.0", True),  # the first lasts to the end
        ("at_s = 1.0\nfor_s = 4.0", "at_s = 5.001\nfor_s = 1.0", False),
    ],
)
def test_of_a_kind_one_fault_strikes_a_place_at_a_time(
    written, first: str, second: str, refused: bool
) -> None:
    """An end puts back what it was before: the other's would be gone."""
    cut = '[[fault]]\nkind = "cut"\n'
    text = f'{SMALL}\n{cut}links = [["b2", "b1"]]\n{first}\n{cut}{second}\n'
    if not refused:
        assert len(scenario.read(written(text)).faults) == 2
        return
    with pytest.raises(ScenarioError, match=r"fault\[2\]: begins or ends while fault\[1\] of"):
        scenario.read(written(text))


def test_faults_of_two_kinds_or_in_two_places_may_be_at_one_time(written) -> None:
    crash, loss = '[[fault]]\nkind = "crash"\n', '[[fault]]\nkind = "loss"\nvalue = 0.1\n'
    times = "at_s = 1.0\nfor_s = 20.0\n"
    text = "".join(
        (crash, times, 'brokers = ["b1"]\n', crash, times, 'brokers = ["b2"]\n', loss, times)
    )
    assert len(scenario.read(written(f"{SMALL}\n{text}")).faults) == 3


@pytest.mark.parametrize(
    ("delay", "message"),
    [("foo", "the delay_ms of 'a' to 'b' must be a positive number, not 'foo'"), ("-1", "not")],
)
def test_a_delay_of_a_graph_is_a_positive_number(written, delay: str, message: str) -> None:
    path = written(f'{SMALL}\n[topology]\nkind = "graphml"\nfile = "g.graphml"\n')
    head = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    key = '<key id="d" for="edge" attr.name="delay_ms" attr.type="string"/>'
    edge = f'<edge source="a" target="b"><data key="d">{delay}</data></edge>'
    graph = f'<graph edgedefault="undirected"><node id="a"/><node id="b"/>{edge}</graph>'
    path.with_name("g.graphml").write_text(f"{head}{key}{graph}</graphml>")
    with pytest.raises(ScenarioError) as caught:
        scenario.read(path)
    assert str(caught.value).startswith(f"{path}: topology.file: ")
    assert message in str(caught.value)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_every_number_is_a_finite_one(written, value: str) -> None:
    workload = f"types = 3\nhorizon_s = 1.0\nselection = {{ last = 1.0, each = {value} }}"
    path = written(f"{SMALL}\n[workload]\n{workload}\n")
    with pytest.raises(ScenarioError, match=r"workload\.selection\.each: expected a finite number"):
        scenario.read(path)
    path = written(f"{SMALL}\n[workload]\ntypes = 3\nhorizon_s = 1.0\nrates = [1.0, {value}]\n")
    with pytest.raises(ScenarioError, match=r"workload\.rates\[2\]: expected a finite number"):
        scenario.read(path)


def test_a_mark_of_the_order_of_bytes_and_any_ends_of_lines_may_stand_in_a_file(written) -> None:
    plain = scenario.read(written(SMALL))
    path = written(SMALL)
    path.write_bytes(b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())
    assert scenario.read(path) == plain


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(b"seed = \xff")
    with pytest.raises(ScenarioError, match="not UTF-8"):
        scenario.read(path)
