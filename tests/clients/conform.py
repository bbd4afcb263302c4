"""What ``rexmq conformance`` examines: conform.py source|sink|durable ENDPOINT."""

import sys

from broker import Publisher, Subscriber
from matcher.model import EventType

TEMP = EventType.of("Temp", area="string", value="float")


def source(endpoint):
    with Publisher(endpoint, name="conforming", types=[TEMP]) as publisher:
        for number in range(12):
            publisher.publish("Temp", area="a1", value=number + 0.5)


def sink(endpoint, name=""):
    with Subscriber(endpoint, "All", name=name, durable=bool(name), credit=10) as subscriber:
        for _ in range(20):
            subscriber.receive(timeout_s=30)


def durable(endpoint):
    sink(endpoint, "conforming")


globals()[sys.argv[1]](sys.argv[2])
