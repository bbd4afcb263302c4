"""A server of MQTT, Mosquitto, in a process of its own."""

import shutil
import socket
import subprocess
import threading
import time
from contextlib import contextmanager

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

needs_mosquitto = pytest.mark.skipif(
    shutil.which("mosquitto") is None and shutil.which("/usr/sbin/mosquitto") is None,
    reason="there is no mosquitto: apt-get install it",
)


@contextmanager
def mosquitto(folder):
    """The port of a server that keeps all that it is given in memory."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    file = folder / "mosquitto.conf"
    file.write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\nlog_type none\n"
    )
    program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
    process = subprocess.Popen([program, "-c", str(file)], stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield port
    finally:
        process.kill()
        process.wait()


@contextmanager
def client(port, topic=None):
    """A client of the server, and what it has had of a topic, as pairs of topic and body."""
    had, news, subscribed = [], threading.Condition(), threading.Event()

    def take(_client, _userdata, message):
        with news:
            had.append((message.topic, bytes(message.payload)))
            news.notify_all()

    made = paho.Client(CallbackAPIVersion.VERSION2)
    made.max_inflight_messages_set(20)
    made.on_message = take
    made.on_subscribe = lambda *_: subscribed.set()
    made.connect("127.0.0.1", port)
    made.loop_start()
    if topic is not None:
        made.subscribe(topic, 1)
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
