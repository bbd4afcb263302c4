"""A broker with a page, and a source for it."""

import http.client
import json
import threading
from contextlib import contextmanager
from subprocess import DEVNULL, PIPE

from forked import started
from pages import get

from broker import Publisher
from matcher.model import EventType

TEMP = EventType.of("Temp", area="string", value="float")
RULES = """
event Temp(area: string, value: float)
event Rain(area: string)
rule hot: define Hot(area: string) from Temp(value > 45) as t where area = t.area
rule wet: define Wet(area: string) from Rain() as r where area = r.area
"""
TOKEN = "a-token-that-is-long"


@contextmanager
def paged(*flags, name="b1"):
    """A broker with a page: its endpoint, and the address of the page."""
    words = ["broker", "--engine", "naive", "--name", name, *flags]
    listen = ["--listen", "tcp://127.0.0.1:*", "--http", "127.0.0.1:0"]
    with started(*words, *listen, stdout=PIPE, stderr=DEVNULL) as process:
        try:
            endpoint = process.stdout.readline().split()[-1]
            url = process.stdout.readline().split()[-1].removesuffix("/metrics")
            get(f"{url}/healthz")
            yield endpoint, url
        finally:
            process.kill()


def asked(url, path, content=None, **headers):
    """The status, the headers and the JSON that a request of the page is answered."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    body = None if content is None else json.dumps(content)
    kind = {} if content is None else {"Content-Type": "application/json"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET" if content is None else "POST", f"/api/{path}", body, kind | named)
    found = connection.getresponse()
    return found.status, found.headers, json.loads(found.read() or "null")


@contextmanager
def hot(endpoint):
    """A source of a hot reading every now and then."""
    stop = threading.Event()

    def publish():
        with Publisher(endpoint, name="p1", types=[TEMP], increasing=True) as source:
            while not stop.wait(0.1):
                source.publish("Temp", area="hall", value=50.0)

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
