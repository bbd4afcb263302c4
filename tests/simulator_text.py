"""A small scenario: its rules, its events and its file."""

import json
from collections.abc import Mapping

RULES = """
event Temp(area: string, value: float)
event Smoke(area: string)
rule fire:
define Fire(area: string, temp: float)
from Smoke(area=$a) and last Temp(area=$a and value>45) within 5 min from Smoke
where area=Smoke.area, temp=Temp.value
"""
EVENTS = """
{"type": "Temp", "time": 10, "id": "t1", "data": {"area": "a", "value": 50.5}}
{"type": "Temp", "time": 11, "data": {"area": "a", "value": 60}}
{"type": "Smoke", "time": 12, "data": {"area": "a"}}
{"type": "Smoke", "time": 12.5, "data": {"area": "b"}}
"""
SMALL = """
seed = 7
engine = "naive"
rules = "rules.tesla"
[[broker]]
name = "b1"
[[broker]]
name = "b2"
[[link]]
between = ["b1", "b2"]
[[source]]
name = "s1"
broker = "b1"
events = "s1.jsonl"
[[sink]]
name = "k1"
broker = "b1"
subscribe = ["Fire(temp > 45)", "Temp()"]
"""
TWO = SMALL.replace(
    "[[sink]]", '[[source]]\nname = "s2"\nbroker = "b2"\nevents = "s2.jsonl"\n[[sink]]'
)
"""The same with another source, at the other broker."""


def overlay(links: Mapping[str, float]) -> str:
    """The brokers and links of a scenario; by the two names of a link, its delay in ms."""
    names = sorted({name for link in links for name in link.split()})
    text = "".join(f'[[broker]]\nname = "{name}"\n' for name in names)
    for link, delay in links.items():
        one, other = link.split()
        text += f'[[link]]\nbetween = ["{one}", "{other}"]\ndelay_ms = {delay}\n'
    return text


def events(type_name: str, *times: float) -> str:
    """Lines of such a file: events of one type."""
    data = {"area": "a"} | ({"value": 50.0} if type_name == "Temp" else {})
    return "".join(
        json.dumps({"type": type_name, "time": time, "data": data}) + "\n" for time in times
    )


HEAD = """
strategy = "{name}"
rules = "rules.tesla"
[protocol]
heartbeat_s = 2.0
lead_s = 60.0
"""


def lines(source: str, type_name: str, *times: float) -> str:
    """A file of events."""
    event = {"type": type_name, "source": source, "data": {"n": 1}}
    return "".join(json.dumps(event | {"time": time}) + "\n" for time in times)


def at(kind: str, name: str, broker: str, does: str) -> str:
    return f'[[{kind}]]\nname = "{name}"\nbroker = "{broker}"\n{does}\n'
