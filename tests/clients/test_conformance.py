"""What ``rexmq conformance`` says of the clients that there are, and of one that gets it wrong."""

import shutil
import sys
from pathlib import Path

import pytest

from broker.cli import main
from broker.conformance import examine

HERE = Path(__file__).parent
PYTHON, PLAIN, BAD = (
    [sys.executable, HERE / f"conform{one}.py"] for one in ("", "_plain", "_badly")
)
NODE = ["node", HERE / "conform.mjs"]
WITHOUT_NODE = not (HERE.parents[1] / "clients" / "javascript" / "node_modules" / "zeromq").exists()
needs_node = pytest.mark.skipif(
    WITHOUT_NODE or shutil.which("node") is None,
    reason="there is no node with the client's packages: tests/clients/test_javascript.py has them",
)


def faults(program, role, what=None, cuts=True):
    words = [*map(str, program), what or role, "{endpoint}"]
    return examine(role, words, cuts, 120)


@pytest.mark.parametrize(("role", "what"), [("source", ""), ("sink", ""), ("sink", "durable")])
def test_the_client_in_python_has_no_fault(role, what):
    assert faults(PYTHON, role, what) == []


@needs_node
@pytest.mark.parametrize("role", ["source", "sink"])
def test_the_client_in_javascript_has_no_fault(role):
    assert faults(NODE, role) == []


@pytest.mark.parametrize("role", ["source", "sink"])
def test_the_plain_client_has_no_fault_on_its_link(role):
    assert faults(PLAIN, role, cuts=False) == []


@pytest.mark.parametrize(
    ("role", "what", "text"),
    [
        ("source", "no hello", "a link begins with Hello, not Credit"),
        ("source", "version", "Hello: version is 1, not 2"),
        ("source", "bytes", "bytes that are no message"),
        ("source", "credit", "Publish: more events than credit"),
        ("source", "number", "Publish: number 1 does not rise above 2"),
        ("source", "unadvertised", "Publish: Temp is not advertised so on this link"),
        ("source", "left", "it ended without Goodbye, code closing"),
        ("sink", "early", "Credit: it is out of place before a subscription is confirmed"),
        ("sink", "not given", "DealtWith: 1 to 3 were not given"),
        ("sink", "nothing", "Credit: 0 of 20 events could be delivered"),
    ],
)
def test_what_a_client_gets_wrong_is_said(role, what, text):
    assert text in "\n".join(faults(BAD, role, what, cuts=False))


def test_a_client_that_does_not_come_back_is_told(capsys):
    words = [*map(str, BAD), "nothing", "{endpoint}"]
    assert main(["conformance", "source", "--", *words]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert "it did not come back when its link was ended" in printed
