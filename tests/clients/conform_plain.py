"""The plain client for ``rexmq conformance --one-link``: conform_plain.py ROLE ENDPOINT."""

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "plain"))
plain = importlib.import_module("client")
role, endpoint = sys.argv[1:]
host, port = endpoint.removeprefix("tcp://").split(":")
client = plain.Client(host, int(port), "conforming")
if role == "source":
    schema = ["Temp", "area", "string", "value", "float"]
    client.ask(plain.ADVERTISE, [schema])
    for number in range(12):
        data = {"area": "a1", "value": number + 0.5}
        client.publish(schema, {"type": "Temp", "id": str(number), "time": number, "data": data})
else:
    client.ask(plain.SUBSCRIBE, 1, "All", "block", plain.QUEUE, False, "")
    client.say(plain.CREDIT, 10)
    while len(client.delivered) < 20:
        client.listen()
client.close()
