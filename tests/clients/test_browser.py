"""The client in JavaScript over WebSockets: by node, and in Debian's Chromium without a head."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from paged import TEMP, TOKEN, paged

from broker import Publisher, Subscriber

CLIENT = Path(__file__).parents[2] / "clients" / "javascript"
TALK = Path(__file__).with_name("talk.mjs")
CHROMIUM = shutil.which("chromium")
IMPORTS = {"imports": {"@msgpack/msgpack": "/app/node_modules/@msgpack/msgpack/dist.esm/index.mjs"}}
APP = f'<!doctype html><script type="importmap">{json.dumps(IMPORTS)}</script>'
# Documents that a test fulfils are of no network that Chromium knows, and so not of this machine.
BLOCKED = "LocalNetworkAccessChecks,LocalNetworkAccessChecksWebSockets"
FLAGS = ["--no-sandbox", f"--disable-features={BLOCKED}"]
KINDS = {".js": "text/javascript", ".mjs": "text/javascript"}
TALKS = """
async ({ endpoint, count }) => {
  const { Publisher, Subscriber } = await import("/app/src/index.js");
  const subscriber = new Subscriber(endpoint, "Temp(value > 45)", { credit: 20 });
  await subscriber.ready;
  const types = { Temp: { area: "string", value: "float" } };
  const publisher = new Publisher(endpoint, { name: "browser", types });
  await publisher.ready;
  const events = Array.from({ length: count }, (_, n) => ({
    type: "Temp", data: { area: `küche ${n}`, value: n % 2 ? 50.5 : 20 },
  }));
  await publisher.publishBatch(events);
  const had = [];
  for (let n = 0; n < count / 2; n += 1) had.push((await subscriber.next()).data.area);
  await publisher.close();
  await subscriber.close();
  return had;
}
"""
ASKS = """
async ({ endpoint }) => {
  const { Subscriber } = await import("/app/src/index.js");
  const subscriber = new Subscriber(endpoint, "Temp");
  const said = await Promise.race([
    subscriber.ready.then(() => "came in"),
    new Promise((resolve) => setTimeout(() => resolve("kept out"), 2000)),
  ]);
  await subscriber.close();
  return said;
}
"""
SIGNS_IN = """
async ({ token }) => (await fetch("/api/sign-in", {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }),
})).status
"""

pytestmark = pytest.mark.skipif(
    not (CLIENT / "node_modules" / "@msgpack").exists(),
    reason="there are no packages of npm: tests/clients/test_javascript.py has them",
)


@pytest.fixture(scope="module")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no chromium: apt-get install it")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()


def app(chromium, url):
    """A page of the broker's own address, with the client as files beside it."""

    def answer(route):
        path = route.request.url.removeprefix(f"{url}/app/")
        if not path:
            route.fulfill(body=APP, content_type="text/html")
        else:
            file = CLIENT / path
            route.fulfill(body=file.read_text(), content_type=KINDS[file.suffix])

    page = chromium.new_context().new_page()
    page.route(f"{url}/app/**", answer)
    page.goto(f"{url}/app/")
    return page


def web_socket(url):
    return f"{url.replace('http', 'ws', 1)}/ws"


@pytest.fixture(scope="module")
def served():
    with paged() as found:
        yield found


def test_a_browser_publishes_and_subscribes(chromium, served):
    endpoint, url = served
    with Subscriber(endpoint, "Temp") as other:
        had = app(chromium, url).evaluate(TALKS, {"endpoint": web_socket(url), "count": 200})
        assert had == [f"küche {n}" for n in range(1, 200, 2)]
        found = [other.receive(60) for _ in range(200)]
    assert [one.data["area"] for one in found] == [f"küche {n}" for n in range(200)]
    assert {one.source for one in found} == {"browser"}


def test_the_scripts_of_another_site_are_kept_out(chromium, served):
    asked = {"endpoint": web_socket(served[1])}
    assert app(chromium, served[1]).evaluate(ASKS, asked) == "came in"
    assert app(chromium, "http://127.0.0.1:9").evaluate(ASKS, asked) == "kept out"


def test_a_browser_comes_in_once_its_user_has_signed_in(chromium, tmp_path):
    file = tmp_path / "token"
    file.touch(0o600)
    file.write_text(TOKEN)
    with paged("--http-token", str(file)) as (_, url):
        asked = {"endpoint": web_socket(url), "token": TOKEN}
        page = app(chromium, url)
        assert page.evaluate(ASKS, asked) == "kept out"
        assert page.evaluate(SIGNS_IN, asked) == 200
        assert page.evaluate(ASKS, asked) == "came in"


def test_node_speaks_it_over_a_web_socket_too(served):
    node = ["node", "--experimental-websocket"]
    if (
        subprocess.run([*node, "-e", "new WebSocket"], capture_output=True).stderr.find(
            b"1 argument"
        )
        < 0
    ):
        pytest.skip("this node has no WebSocket: 22 has, and 20.10 with a flag")
    endpoint, url = served
    words = [*node, TALK, "subscribe", web_socket(url), "5", "", "Temp"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        with Publisher(endpoint, name="python", types=[TEMP]) as source:
            for n in range(5):
                source.publish("Temp", area="hall", value=float(n))
        lines = process.communicate(timeout=60)[0].splitlines()
        assert process.returncode == 0
    assert [json.loads(line)["data"]["value"] for line in lines] == [0, 1, 2, 3, 4]
