"""A client that gets things wrong, one at a time: conform_badly.py FAULT ENDPOINT."""

import sys

import msgspec
import zmq

HEAD = b"RX\x01"
fault, endpoint = sys.argv[1:]
HELLO, ADVERTISE, PUBLISH, SUBSCRIBE, DEALT_WITH, CREDIT, GOODBYE = 1, 2, 4, 6, 26, 32, 34
SCHEMA = ["Temp", "value", "float"]


def say(kind, *fields, columns=None):
    first = HEAD + bytes([kind]) + msgspec.msgpack.encode(fields)
    link.send_multipart([first] if columns is None else [first, columns])


def publish(*numbers):
    count = len(numbers)
    columns = b"".join(n.to_bytes(8, "little") for n in (*[1] * count, *numbers, *[0] * count))
    say(PUBLISH, [[SCHEMA, count, ["bad"], None, False, [], None]], None, "broker", columns=columns)


link = zmq.Context.instance().socket(zmq.DEALER)
link.connect(endpoint)
if fault == "no hello":
    say(CREDIT, 1)
else:
    say(HELLO, 2 if fault == "version" else 1, "bad", 2.0, 7, False)
    link.recv_multipart()
if fault == "bytes":
    link.send_multipart([b"hello"])
if fault == "credit":
    say(ADVERTISE, 1, [SCHEMA])
    publish(*range(1, 1_002))
if fault == "number":
    say(ADVERTISE, 1, [SCHEMA])
    publish(2)
    publish(1)
if fault == "unadvertised":
    publish(1)
if fault == "early":
    say(CREDIT, 1)
if fault == "not given":
    say(SUBSCRIBE, 1, 1, "All", "block", 10, False, "bad")
    say(DEALT_WITH, 1, 3)
if fault != "left":
    say(GOODBYE, "", "closing")
link.close(2_000)
zmq.Context.instance().term()
