"""Two rules over the same events, of which a device takes one, and events as a file of lines."""

FIRE = """
event Smoke(area: string)
event Temp(area: string, value: float)
rule fire: define Fire(area: string, value: float)
from Smoke(area = $a) and last Temp(area = $a, value > 45) within 5 min from Smoke
where area = $a, value = Temp.value
rule once: define Once(area: string)
from Smoke(area = $a) and last Temp(area = $a) within 5 min from Smoke
where area = $a consuming Temp
"""
EVENTS = """\
{"type": "Temp", "time": 10, "data": {"area": "a1", "value": 46.5}}
{"type": "Smoke", "time": 12, "data": {"area": "a1"}}
{"type": "Smoke", "time": 13, "data": {"area": "a1"}}
"""
