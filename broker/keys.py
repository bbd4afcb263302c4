"""The table of what can be configured in a broker, and how each kind of value is read.

It imports nothing of the protocol core, so that the command line can make its options of it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from broker.errors import ConfigurationError

ENGINES = ("auto", "cdp", "aip", "aip-published", "naive")
MATCHERS = ("auto", "pcm", "counting", "signature", "index", "naive", "ccm", "batched")
DEVICES = ("cpu", "gpu", "auto")
STRATEGIES = (
    "centralized",
    "distributed-st",
    "distributed-mt",
    "push-pull-st",
    "push-pull-mt",
    "adaptive",
)
ORDERINGS = ("watermark", "arrival")
LOG_FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")
PARTS = ("broker", "routing", "security", "monitoring", "client")
"""Parts that lines of the log come of: the process and its sockets; clients, sources, rules and
neighbours; keys; pages; and clients in a program of one's own."""
LATE = ("refuse", "deliver")
SYNCS = ("full", "normal")
COUNT_MAX = 10**15
"""More than any count, or bytes, of a configuration: messages bear numbers of 64 bits."""
SECONDS_MAX = 1e10
"""Three hundred years, of which 64 bits count the microseconds."""
NAME_MAX, HEARTBEAT_MAX_S, TYPES_MAX = 255, 86_400.0, 50_000
"""Bounds of the wire (routing.messages.values)."""
FORGET_MAX_S = 1e8
"""Some years."""
NEVER = "never"
NONE = "none"
AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value: how it is called, and how a text or a TOML value becomes one."""

    metavar: str
    expected: str
    parse: Callable[[Any], Any]
    none: str = ""
    """How a value of None is called."""
    text: Callable[[Any], Any] = lambda value: list(value) if isinstance(value, tuple) else value
    """The value as TOML has it."""


@dataclass(frozen=True, slots=True)
class Key:
    """One thing that can be configured."""

    name: str
    table: str
    kind: Kind
    help: str

    def parse(self, value: Any, place: str) -> Any:
        """A text or a TOML value as this key's; ConfigurationError names ``place``."""
        try:
            return self.kind.parse(value)
        except ValueError:
            expected = self.kind.expected
            found = str(value).lower() if isinstance(value, bool) else repr(value)
            raise ConfigurationError(f"{place}: expected {expected}, found {found}") from None

    @property
    def flag(self) -> str:
        """As on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """As in the environment."""
        return "REXMQ_" + self.name.upper()


def _address(value: Any) -> tuple[str, int] | None:
    if value is None or value == NONE:
        return None
    host, colon, port = _text(value).rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) < 2**16):
        raise ValueError
    return host.removeprefix("[").removesuffix("]"), int(port)


def _flag(value: Any) -> bool:
    texts = {"true": True, "false": False}
    found = texts.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise ValueError
    return found


def _file(value: Any) -> str | None:
    return None if value is None or value == NONE else _text(value)


def _amount(units: Mapping[str, float]) -> Callable[[Any], float | None]:
    """A reader of numbers with a unit behind them, None for none."""

    def read(value: Any) -> float | None:
        if value is None or value == NONE:
            return None
        found = AMOUNT.fullmatch(_text(value))
        if found is None or found[2].lower() not in units:
            raise ValueError
        amount = float(found[1]) * units[found[2].lower()]
        if not 0 < amount <= COUNT_MAX:
            raise ValueError
        return amount

    return read


def _said(units: Mapping[str, float]) -> Callable[[float], str]:
    """An amount in the greatest unit that says it in whole numbers."""

    def text(amount: float) -> str:
        for name, size in sorted(units.items(), key=lambda one: -one[1]):
            if amount % size == 0:
                return f"{amount / size:g}{name}"
        least = min(units, key=lambda name: units[name])
        return f"{amount / units[least]:g}{least}"

    return text


AMOUNT = re.compile(r"(\d+(?:\.\d+)?) ?([A-Za-z]+)")
AGES = {"s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}
SIZES = {"b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value


def _name(value: Any) -> str:
    if len(name := _text(value)) > NAME_MAX or not name.isprintable():
        raise ValueError
    return name


def _endpoints(value: Any) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, Sequence) or not parts:
        raise ValueError
    return tuple(_text(part).strip() for part in parts)


def _links(value: Any) -> tuple[str, ...]:
    found = _endpoints(value) if value else ()
    if not all(LINK.fullmatch(endpoint) for endpoint in found):
        raise ValueError
    return found


def _hosts(value: Any) -> tuple[str, ...]:
    found = _endpoints(value) if value else ()
    if not all(HOST.fullmatch(name) for name in found):
        raise ValueError
    return found


def _proxies(value: Any) -> tuple[str, ...]:
    found = _endpoints(value) if value else ()
    return tuple(str(ipaddress.ip_network(one)) if "/" in one else _number(one) for one in found)


def _number(text: str) -> str:
    return str(ipaddress.ip_address(text))


def _count(value: Any) -> int:
    number = int(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= COUNT_MAX:
        raise ValueError
    return number


def _count_or_none(value: Any) -> int | None:
    return None if value is None or value == NONE else _count(value)


def _count_or_zero(value: Any) -> int:
    return 0 if value in (0, "0") and not isinstance(value, bool) else _count(value)


def _types(value: Any) -> int:
    number = _count(value)
    if number > TYPES_MAX:
        raise ValueError
    return number


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError
    number = float(value)
    if not 0 <= number <= SECONDS_MAX:
        raise ValueError
    return number


def _heartbeat(value: Any) -> float:
    number = _seconds(value)
    if not 0 < number <= HEARTBEAT_MAX_S:
        raise ValueError
    return number


def _forgetting(value: Any) -> float:
    number = _seconds(value)
    if not 0 < number <= FORGET_MAX_S:
        raise ValueError
    return number


def _seconds_or_never(value: Any) -> float | None:
    return None if value == NEVER or value is None else _seconds(value)


def _waits(value: Any) -> tuple[tuple[str, float], ...]:
    """Seconds by type: ``Temp=30``, several of them, or a table."""
    parts = value.split(",") if isinstance(value, str) else value
    if isinstance(value, dict):
        parts = list(value.items())
    if not isinstance(parts, Sequence) or not all(isinstance(part, str | tuple) for part in parts):
        raise ValueError
    pairs = [part.split("=") if isinstance(part, str) else [*part] for part in parts if part]
    found = {_text(name).strip(): _seconds(most) for name, most in pairs}
    if len(found) < len(pairs) or not all(found.values()):
        raise ValueError
    return tuple(sorted(found.items()))


def _levels(value: Any) -> str:
    """A level, and those of parts that have others, as a text or a table."""
    if isinstance(value, dict):
        rest = dict(value)
        value = ",".join([str(rest.pop("all", "info")), *(f"{one}={rest[one]}" for one in rest)])
    general, *others = _text(value).replace(" ", "").split(",")
    if general.partition("=")[0] in PARTS:
        general, others = "info", [general, *others]
    own = [tuple(pair.split("=")) for pair in others]
    if general not in LEVELS or not all(_is_level(*pair) for pair in own):
        raise ValueError
    return ",".join([general, *("=".join(pair) for pair in own)])


def _is_level(part: str, *level: str) -> bool:
    return part in PARTS and len(level) == 1 and level[0] in LEVELS


def _one_of(choices: Sequence[str]) -> Kind:
    def choose(value: Any) -> str:
        if value not in choices:
            raise ValueError
        return str(value)

    return Kind("|".join(choices), f"one of {', '.join(choices)}", choose)


LINK = re.compile(r"tcp://.+:\d+|ipc://.+")
"""An endpoint that can be linked to."""


HOST = re.compile(r"[\w.-]+")
"""The name of a host, without a port."""


"""The address of another broker's pages."""


def is_strategy(name: Any) -> bool:
    """Whether a strategy is called that: one of STRATEGIES, or one that a package brings."""
    if name in STRATEGIES:
        return True
    from routing.installed import installed  # it takes a while, and is seldom asked

    return name in installed()


def _strategy(value: Any) -> str | None:
    if value is None or value == AUTO:
        return None
    if not is_strategy(value):
        raise ValueError
    return str(value)


def strategies_expected(*more: str) -> str:
    """The names that a strategy may have, in words for an error."""
    return f"one of {', '.join((*STRATEGIES, *more))}, or one that a package brings"


NAME = Kind("TEXT", f"a text of at most {NAME_MAX} characters that can be printed", _name)
ENDPOINTS = Kind("ENDPOINT", "endpoints such as tcp://127.0.0.1:7461", _endpoints)
LINKS = Kind("ENDPOINT", "endpoints such as tcp://127.0.0.1:7461, or none", _links)
HOSTS = Kind("NAME", "names such as page.example, or none", _hosts)
PROXIES = Kind("ADDRESS", "addresses or networks such as 127.0.0.1 or 10.0.0.0/8", _proxies)
COUNT = Kind("COUNT", "a whole number from 1 to 10^15", _count)
COUNT_OR_NONE = Kind("COUNT|none", "a whole number from 1 to 10^15, or none", _count_or_none, NONE)
TYPES = Kind("COUNT", f"a whole number from 1 to {TYPES_MAX}", _types)
SECONDS = Kind("SECONDS", "a number of seconds", _seconds)
HEARTBEAT = Kind("SECONDS", f"seconds above 0, at most {HEARTBEAT_MAX_S:g}", _heartbeat)
FORGET = Kind("SECONDS", f"seconds above 0, at most {FORGET_MAX_S:g}", _forgetting)
SECONDS_OR_NEVER = Kind(
    "SECONDS|never", 'a number of seconds, or "never"', _seconds_or_never, NEVER
)

WAITS = Kind(
    "TYPE=SECONDS",
    "types with seconds above 0, each once, such as Temp=30",
    _waits,
    text=lambda value: [f"{name}={most:g}" for name, most in value],
)
FILE = Kind("FILE", "a file, or none", _file, NONE)
DIRECTORY = Kind("DIR", "a folder, or none", _file, NONE)
AGE = Kind("AGE", "a time such as 7d, 12h or 90min, or none", _amount(AGES), NONE, _said(AGES))
SIZE = Kind("SIZE", "a size such as 20GB or 500MB, or none", _amount(SIZES), NONE, _said(SIZES))
FLAG = Kind("true|false", "true or false", _flag)
COUNT_OR_ZERO = Kind("COUNT", "a whole number", _count_or_zero)
ADDRESS = Kind(
    "HOST:PORT",
    "a host and a port such as 127.0.0.1:9464, or none",
    _address,
    NONE,
    lambda address: f"{f'[{address[0]}]' if ':' in address[0] else address[0]}:{address[1]}",
)

KEYS = (
    Key("name", "broker", NAME, "the broker's name"),
    Key("listen", "broker", ENDPOINTS, "where it listens, tcp or ipc; may be several"),
    Key(
        "engine",
        "broker",
        _one_of(ENGINES),
        "what detects composite events; auto is cdp or aip, rule by rule",
    ),
    Key("threads", "broker", COUNT, "threads that detect at once; rules are spread over them"),
    Key(
        "matcher",
        "broker",
        _one_of(MATCHERS),
        "what matches subscriptions where they are many; ccm and batched need a GPU",
    ),
    Key("device", "broker", _one_of(DEVICES), "where it computes; auto: where that costs less"),
    Key("log_format", "broker", _one_of(LOG_FORMATS), "how lines of the log are written"),
    Key(
        "log_level",
        "broker",
        Kind(
            "LEVEL[,PART=LEVEL...]",
            f"a level ({', '.join(LEVELS)}), and perhaps those of parts ({', '.join(PARTS)}) such "
            "as info,routing=warning",
            _levels,
        ),
        "the least level of the log, and of parts of it",
    ),
    Key("http", "broker", ADDRESS, "where it shows a page, metrics, health and status over HTTP"),
    Key("http_token", "broker", FILE, "the file of the token that is asked for there"),
    Key("http_names", "broker", HOSTS, "names by which the page is asked for; may be several"),
    Key("http_proxies", "broker", PROXIES, "proxies whose X-Forwarded-For is believed"),
    Key("link", "network", LINKS, "other brokers that it is linked to; may be several"),
    Key(
        "strategy",
        "network",
        Kind("|".join((*STRATEGIES, AUTO)), strategies_expected(AUTO), _strategy, AUTO),
        "where a network evaluates rules; auto: centralized with a link, without one alone",
    ),
    Key(
        "ordering",
        "network",
        _one_of(ORDERINGS),
        "what an event's time is to rules: its own, or when it arrived where they are evaluated",
    ),
    Key(
        "forget_s",
        "network",
        FORGET,
        "when inputs of brokers out of reach are closed, and rules go on without; as strategy is",
    ),
    Key("heartbeat_s", "links", HEARTBEAT, "how often clients and neighbours hear from the broker"),
    Key("heartbeats_missed_max", "links", COUNT, "intervals of silence after which one is lost"),
    Key("secret_key", "security", FILE, "the file of its secret key; nobody comes in without one"),
    Key("access", "security", FILE, "the file that says whose the keys of users and brokers are"),
    Key("insecure", "security", FLAG, "without a key: whether other machines may reach it"),
    Key("data", "store", DIRECTORY, "where it keeps what it must not lose; none: in memory alone"),
    Key("sync", "store", _one_of(SYNCS), "what that survives: full a power cut, normal a kill"),
    Key("retain", "store", AGE, "how long events are kept that no rule needs any more"),
    Key("retain_bytes", "store", SIZE, "and how much of them at most"),
    Key("durable_bytes_max", "store", SIZE, "bytes that may wait for a durable subscription"),
    Key("durable_age_max_s", "store", AGE, "how long an event may wait for one"),
    Key("late", "promises", _one_of(LATE), "what becomes of late events"),
    Key("source_silence_max_s", "promises", SECONDS_OR_NEVER, "when a lost source stalls no more"),
    Key("wait_at_most", "promises", WAITS, "how long for a source of a type that lives and lags"),
    Key("lead_max_s", "promises", SECONDS, "how far a source may run ahead of the slowest"),
    Key("ahead_max_s", "promises", SECONDS, "how far live sources may be ahead of the clock"),
    Key("waiting_events_max", "promises", COUNT, "events kept for rules over unadvertised types"),
    Key("retained_events_max", "promises", COUNT, "events kept for brokers that may need them"),
    Key("timer_slack_s", "promises", SECONDS, "how far Timer stays behind the clock"),
    Key("publish_credit", "limits", COUNT, "events that a source may have under way"),
    Key("delivery_events_max", "limits", COUNT, "events in one delivery"),
    Key("queue_events_max", "limits", COUNT, "the longest queue that a sink may ask for"),
    Key("clients_max", "limits", COUNT, "clients at a time"),
    Key("sources_max", "limits", COUNT, "sources whose sequence numbers are remembered"),
    Key("repeat_ids_max", "limits", COUNT, "ids remembered: of a source in parts, of all others"),
    Key("types_max", "limits", TYPES, "event types at a time"),
    Key("trace_events_max", "limits", COUNT_OR_ZERO, "events of which the path is kept; 0: none"),
    Key("rules_max", "limits", COUNT, "rules at a time"),
    Key("subscriptions_max", "limits", COUNT, "subscriptions of one sink"),
    Key(
        "composites_per_instant_max",
        "limits",
        COUNT,
        "composite events of a rule at one instant; one that has more ends there",
    ),
    *(
        Key(name, "users", COUNT_OR_NONE, f"of a user whom the access file gives no other: {what}")
        for name, what in (
            ("connections_max", "connections at a time"),
            ("user_subscriptions_max", "subscriptions of all its connections"),
            ("user_rules_max", "rules that it owns in the network"),
            ("rule_bytes_max", "bytes that a rule of it may keep, as estimated when deployed"),
            ("batch_events_max", "events in one batch, and of one source under way"),
            ("message_bytes_max", "bytes in one message"),
            ("events_per_second_max", "events that it may publish in a second"),
        )
    ),
)
BY_NAME = {key.name: key for key in KEYS}
