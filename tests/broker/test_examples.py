"""The examples in the clients' docstrings and in docs/clients.md run against a real broker."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

import broker
from broker import Publisher
from matcher.model import EventType

MODULES = ("publisher", "async_publisher", "subscriber", "manager")
PAGE = Path(__file__).parents[2] / "docs" / "clients.md"


@pytest.fixture
def names(endpoint):
    """What the examples take for granted: a broker's endpoint, and a source named ``sensor``."""
    temp = EventType.of("Temp", area="string", value="float")
    with Publisher(endpoint, name="sensor", types=[temp], increasing=True) as sensor:
        everything = {name: getattr(broker, name) for name in broker.__all__}
        yield {**everything, "endpoint": endpoint, "sensor": sensor}


def run(example):
    output = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(example, out=output.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(output)
    assert runner.tries > 0


def examples_of(module):
    found = doctest.DocTestFinder(exclude_empty=True).find(module)
    return [example for example in found if example.examples]


@pytest.mark.parametrize("name", MODULES)
def test_every_client_has_an_example_that_runs(names, name):
    module = importlib.import_module(f"broker.client.{name}")
    examples = examples_of(module)
    assert examples
    for example in examples:
        example.globs.update(names)
        run(example)


def test_the_page_on_clients_runs_from_top_to_bottom(names):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) > 5
    text = "\n".join(blocks)
    run(doctest.DocTestParser().get_doctest(text, names, "docs/clients.md", str(PAGE), 0))
