"""What one user's filters may take of each event, and how long a filter may be."""

import subprocess
import sys

import pytest

from matcher.model import EventType
from routing.config import NodeConfig
from routing.delivery.sinks import WORK_MAX, Sinks
from routing.deployment import Deployments
from routing.errors import Refusal
from routing.messages import Rights, Subscribe
from rules.subscription import WORDS_MAX, work_of
from rules.syntax.parser import parse_filter
from rules.syntax.words import is_longer

TEMP = EventType.of("Temp", area="string", value="float")
SCHEMAS = {"Temp": TEMP}
PATTERNS = " or ".join(f'area matches "^a{n}[0-9]{{9}}$"' for n in range(100))
HEAVY = f"Temp(({PATTERNS}))"


@pytest.fixture
def sinks():
    config = NodeConfig()
    return Sinks(config, Deployments(config))


def subscribe(sinks, peer, number, text, user, schemas=SCHEMAS, **more):
    asked = Subscribe(1, number, text, **more)
    return sinks.subscribe(peer, "", asked, schemas, Rights(user))


def test_all_filters_of_a_user_have_one_share(sinks):
    assert WORK_MAX / 2 < work_of(parse_filter(HEAVY)) < WORK_MAX
    subscribe(sinks, b"b1", 1, HEAVY, "bob")
    with pytest.raises(Refusal, match=r"filters of user 'bob' .* more than 100,000"):
        subscribe(sinks, b"b2", 1, HEAVY, "bob")
    subscribe(sinks, b"a", 1, HEAVY, "alice")
    subscribe(sinks, b"b2", 2, 'Temp(area = "a1" and value > 3)', "bob")
    sinks.unsubscribe(b"b1", 1)
    subscribe(sinks, b"b2", 1, HEAVY, "bob")


def test_without_users_each_client_has_a_share(sinks):
    subscribe(sinks, b"1", 1, HEAVY, "")
    subscribe(sinks, b"2", 1, HEAVY, "")
    with pytest.raises(Refusal, match="filters of a client"):
        subscribe(sinks, b"1", 2, HEAVY, "")


def test_a_filter_counts_before_its_type_is_known(sinks):
    subscribe(sinks, b"b", 1, HEAVY, "bob", {})
    sinks.check(SCHEMAS)
    with pytest.raises(Refusal, match="more than 100,000"):
        subscribe(sinks, b"b", 2, HEAVY, "bob")


def test_comparisons_with_constants_take_nothing_once_their_type_is_known(sinks):
    text = 'Temp(area = "a" and value > 3)'
    assert subscribe(sinks, b"b", 1, text, "bob", {}).work == work_of(parse_filter(text))
    sinks.check(SCHEMAS)
    (sink,) = sinks
    assert sink.interests.work == 0


def test_what_was_in_force_on_a_link_that_was_just_lost_goes_on_and_no_more(sinks):
    subscribe(sinks, b"lost", 1, HEAVY, "bob")
    for number in (1, 2):
        subscribe(sinks, b"new", number, HEAVY, "bob", again=True)
    with pytest.raises(Refusal, match="more than 200,000"):
        subscribe(sinks, b"new", 3, HEAVY, "bob", again=True)


@pytest.mark.parametrize("more", [0, 1])
def test_a_long_filter_is_refused_unread(sinks, more):
    count = (WORDS_MAX - 6 + more * 2) // 2
    text = f"Temp(value in ({', '.join('1' for _ in range(count))}))"
    assert is_longer(text, WORDS_MAX) is bool(more)
    reason = f"more than {WORDS_MAX:,} words" if more else "more than 1000 values"
    with pytest.raises(Refusal, match=reason):
        subscribe(sinks, b"b", 1, text, "bob")


def test_the_first_pattern_imports_no_pandas():
    """Nobody would be served for the seconds that it takes."""
    program = (
        "import sys; from rules.texts import problem_of, results_of; "
        "from rules.terms import TextFunction as F; "
        "print(problem_of('a+'), results_of(F('a'), ['b', 'a', 'a' * 10_001]), "
        "'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "None [False, True, None] False\n"
