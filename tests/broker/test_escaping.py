"""What comes from outside prints as it is read: nothing hides in it, wherever it is shown."""

import json
import threading

import pytest
from lone import hear, lone
from prometheus_client.exposition import generate_latest

from broker import Publisher
from broker.cli import main, status, top, trace
from broker.escaping import escaped, escaped_in
from broker.log import FORMS
from broker.monitoring.gathered import Look
from broker.monitoring.metrics import registry_of
from matcher.model import EventType
from routing import wire
from routing.effects import Send
from routing.errors import WireError
from routing.messages import (
    VERSION,
    Advertise,
    Code,
    Deploy,
    Hello,
    Refused,
    Subscribe,
    Unadvertise,
)
from routing.names import is_printable

JSON = ("--format", "json")
HIDDEN = (
    "\x1b[8m",
    "\rroot",
    "a\x85b",
    "x\u2028y",
    "\u202egnp",
    "\u2066z",
    "zero\u200bwidth",
    "\x7f",
)


def shown_nothing(text: str) -> bool:
    """Whether a text has nothing that cannot be printed, but for the ends of its lines."""
    return all(is_printable(line) for line in text.split("\n"))


@pytest.mark.parametrize("text", HIDDEN)
def test_it_is_seen_in_every_form_of_a_line(text: str) -> None:
    assert escaped(escaped(text)) == escaped(text) != text
    for write in FORMS.values():
        line = write({"message": "link refused", "neighbour": text, "exception": f"x\n{text}"})
        assert shown_nothing(line)
    assert json.loads(FORMS["json"]({"a": text})) == {"a": text}
    assert escaped_in({text: [text, 1, None, (text,)]}) == {
        escaped(text): [escaped(text), 1, None, [escaped(text)]]
    }


@pytest.mark.parametrize("text", ["plain", "Zürich", "日本", "a b", "🙂", "no\u00a0break"])
def test_what_can_be_printed_stays_as_it_is(text: str) -> None:
    assert escaped(text) == text


@pytest.mark.parametrize("text", HIDDEN)
def test_pages_and_metrics_of_a_status_with_it(text: str) -> None:
    broker = lone()
    hear(broker, b"k", Hello(VERSION, "k", 60.0))
    hear(broker, b"k", Subscribe(1, 1, "Gas()"))
    facts = json.loads(json.dumps(broker.status(1.0)))
    facts["sinks"][0] |= {"name": text, "subscriptions": [{"filter": text, "paused": None}]}
    facts["clients"][0]["name"] = text
    assert shown_nothing(status.page(facts))
    look = Look(escaped_in(facts), escaped_in(facts), 1.0)
    assert shown_nothing(top.frame({"b1": look}, 0))
    assert shown_nothing(generate_latest(registry_of(facts, 1)).decode())
    assert shown_nothing(trace.page(*escaped_in([text, [], [text], [text]])))


@pytest.mark.parametrize("text", HIDDEN)
def test_commands_print_events_with_it_as_json_that_says_the_same(text, tmp_path, capfd) -> None:
    events, rules, filters = (tmp_path / name for name in (f"e{text}.jsonl", "r.tesla", "f.jsonl"))
    event = {"type": "Gas", "source": "s", "id": text, "time": 1, "data": {"tank": text}}
    before = event | {"id": "0", "time": "1970-01-01T00:00:00"}
    bad = {"type": text, "time": "x", "data": {}}
    rules.write_text(
        "event Gas(tank: string) define Low(tank: string) from Gas() as g where tank = g.tank"
    )
    events.write_text("".join(f"{json.dumps(one)}\n" for one in (event, before, bad)))
    filters.write_text('{"filter": 1, "interface": 1, "type": "Gas", "constraints": []}\n')
    reading = ("--events", str(events), "--skip-bad")
    commands = [
        ["detect", "--rules", str(rules), *reading, "--cause", "full", "--explain-input"],
        ["explain", "--rules", str(rules), *reading, "--rule", "Low", "--event", text],
        ["explain", "--rules", str(rules), *reading, "--rule", "Low", "--event", text, *JSON],
    ]
    printed = []
    for words in commands:
        assert main(words) == 0
        out, err = capfd.readouterr()
        assert shown_nothing(out + err), words
        printed.append(out)
    events.write_text(json.dumps(event))
    assert main(["match", "--filters", str(filters), "--events", str(events)]) == 0
    assert shown_nothing(capfd.readouterr().out)
    _, found = [json.loads(line) for line in printed[0].splitlines()]
    assert found["data"] == {"tank": text}
    assert json.loads(printed[2])["event"]["data"] == {"tank": text}


@pytest.mark.parametrize("text", HIDDEN)
def test_no_message_brings_a_name_with_it(text: str) -> None:
    for message in (
        Advertise(1, (EventType.of(text, v="int"),)),
        Advertise(1, (EventType.of("Gas", **{text: "int"}),)),
        Unadvertise(1, (text,)),
        Subscribe(1, 1, "Gas()", durable=text),
    ):
        with pytest.raises(WireError):
            wire.decode(wire.encode(message))


@pytest.mark.parametrize(
    "name", ["rule `{0}`: define A() from B()", "rule a: define `{0}`() from B()"]
)
@pytest.mark.parametrize("text", ["\x1b[8m", "\u202egnp"])
def test_no_rule_has_such_a_name(name: str, text: str) -> None:
    broker = lone()
    hear(broker, b"m", Hello(VERSION, "", 60.0))
    hear(broker, b"m", Deploy(1, f"event B() {name.format(text)}"))
    answers = [one.message for one in broker.take_effects() if isinstance(one, Send)]
    (refused,) = [one for one in answers if isinstance(one, Refused)]
    assert refused.code in (Code.BAD_NAME, Code.BAD_RULES)
    assert not broker.status(0.0)["rules"]


def test_sub_prints_it_so(endpoint, capfd) -> None:
    with Publisher(endpoint, name="meter", types=[EventType.of("Note", text="string")]) as source:
        over = threading.Event()

        def publish() -> None:
            while not over.wait(0.05):
                source.publish("Note", text="".join(HIDDEN))

        publishing = threading.Thread(target=publish)
        publishing.start()
        try:
            assert main(["sub", "Note()", "--count", "1", "--broker", endpoint]) == 0
        finally:
            over.set()
            publishing.join()
    out = capfd.readouterr().out
    assert shown_nothing(out)
    assert json.loads(out)["data"] == {"text": "".join(HIDDEN)}
