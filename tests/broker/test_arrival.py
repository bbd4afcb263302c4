"""``ordering = "arrival"`` over real sockets: an event's own time is of no account to rules."""

from broker import Publisher, RuleManager, Subscriber
from broker.process import BrokerProcess
from matcher.model import EventType

SEEN = EventType.of("Seen", number="int")
RULE = """
event Seen(number: int)
rule pair: define Pair(first: int, second: int)
from Seen() as Now and last Seen() as Before within 1 min from Now
where first = Before.number, second = Now.number
"""


def test_a_source_that_joins_may_publish_what_is_older_than_all_that_was_evaluated():
    with BrokerProcess("--ordering", "arrival", "--engine", "naive") as broker:
        with RuleManager(broker.endpoint) as manager:
            manager.add(RULE)
        with Subscriber(broker.endpoint, "Pair()") as subscriber:
            for number in range(3):
                with Publisher(broker.endpoint, name=f"s{number}", types=[SEEN]) as publisher:
                    publisher.publish("Seen", number=number, at=10**6 * (100 - number))
            pairs = [subscriber.receive(timeout_s=30).data for _ in range(2)]
    assert pairs == [{"first": 0, "second": 1}, {"first": 1, "second": 2}]
