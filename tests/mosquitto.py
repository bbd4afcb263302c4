"""A server of MQTT, Mosquitto, in a process of its own."""

import threading
from contextlib import contextmanager

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from servers import needs

from benchmarks import servers

needs_mosquitto = needs("mosquitto", "mosquitto")


@contextmanager
def mosquitto(folder, *lines):
    """The port of a server that keeps all that it is given in memory; it lets everybody in, or is
    as these lines of its file say.
    """
    with servers.mosquitto(folder, *lines) as server:
        yield server.port


@contextmanager
def client(port, topic=None, qos=1, version=4):
    """A client of the server, and what it has had of a topic, as pairs of topic and body; in all it
    is in ``messages``.
    """
    had, news, subscribed = [], threading.Condition(), threading.Event()

    def take(_client, _userdata, message):
        with news:
            had.append((message.topic, bytes(message.payload)))
            made.messages.append(message)
            news.notify_all()

    made = paho.Client(CallbackAPIVersion.VERSION2, protocol=version)
    made.messages = []
    made.max_inflight_messages_set(20)
    made.on_message = take
    made.on_subscribe = lambda *_: subscribed.set()
    made.connect("127.0.0.1", port)
    made.loop_start()
    if topic is not None:
        made.subscribe(topic, qos)
        assert subscribed.wait(20)

    def wait_for(holds):
        with news:
            assert news.wait_for(lambda: holds(had), 60), had[-5:]
        return had

    try:
        yield made, wait_for
    finally:
        made.disconnect()
        made.loop_stop()
