"""MQTT to rules to a webhook: python examples/fridges/start.py

Starts Mosquitto, a broker with the rule of fridges.tesla, the connectors of fridges.toml, and a
receiver that prints what is posted to it; then publishes readings of two fridges, until Ctrl-C.
It needs `pip install 'rexmq[mqtt]'` and `apt-get install mosquitto`.
"""

import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

from broker import RuleManager

HERE = Path(__file__).parent
MQTT_PORT, BROKER, HOOK_PORT = 1883, "tcp://127.0.0.1:7461", 8080
REXMQ = sys.executable, "-m", "broker"


class Receiver(BaseHTTPRequestHandler):
    """Prints what is posted."""

    def do_POST(self) -> None:
        print(self.rfile.read(int(self.headers["Content-Length"])).decode(), flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing else."""


def main() -> None:
    with ExitStack() as stack:

        def start(*words: str) -> None:
            stack.callback(stack.enter_context(subprocess.Popen(words)).terminate)

        start("mosquitto", "-p", str(MQTT_PORT))
        start(*REXMQ, "broker", "--listen", BROKER)
        with RuleManager(BROKER, connect_timeout_s=60) as manager:
            manager.add((HERE / "fridges.tesla").read_text())
        start(*REXMQ, "connect", str(HERE / "fridges.toml"))
        receiver = HTTPServer(("127.0.0.1", HOOK_PORT), Receiver)
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        client = Client(CallbackAPIVersion.VERSION2)
        client.connect("127.0.0.1", MQTT_PORT)
        client.loop_start()
        celsius = 4.0
        while True:
            client.publish("fridges/cellar/temp", f'{{"celsius": {celsius}}}', 1)
            client.publish("fridges/kitchen/temp", '{"celsius": 5.0}', 1)
            celsius += 1.0
            time.sleep(1)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(0)
