"""The options of the data source ``rexmq``, checked before anything is connected.

Spark gives options as text and does not mind their case. :data:`TABLE` is what the documentation
shows; an option that is not in it is refused, for a misspelt one would be silently left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from broker.client.address import Address, address_of
from broker.client.endpoint import endpoint_or_default
from broker.client.start import start_time
from matcher.formats.layout import PLAIN, Layout, columns_of
from matcher.formats.timeform import TimeForm
from matcher.identity import hash_128, printed
from matcher.model import TIME_MIN
from matcher.times import UNITS
from rules.errors import did_you_mean

TABLE: Mapping[str, tuple[str, str]] = {
    "broker": ("REXMQ_BROKER", "endpoints, separated by commas: the first that answers is used"),
    "source": ("", "the source of the events, whose ids are unique in it; else spark/TYPE"),
    "type": ("", "the event type of the rows; needed to write, with typeColumn a list"),
    "typecolumn": ("", "a column that names the type of each row, one of those of option type"),
    "time": ("time", "the column of the event time: timestamps, RFC 3339 text or seconds"),
    "timezone": ("", "the time zone of times that bear none, such as Europe/Rome"),
    "timeformat": ("", "how texts of times are written, in the codes of strptime"),
    "timeunit": ("s", "what numbers count: s, ms, us or ns"),
    "timecut": ("false", "true: digits finer than a microsecond are cut"),
    "columns": ("", "attributes whose columns are called otherwise: temp=Sea Temp,side=from"),
    "id": ("", "columns that name a row, separated by commas; else all columns do"),
    "order": ("held", "held: rules wait for the commit; time: rows are sorted; none: no promises"),
    "disorder": ("", "streams: how much older than the latest a later batch's events may be"),
    "onbad": ("refuse", "refuse or drop rows that are no events"),
    "acks": ("broker", "broker: sent again until the broker has them; none: sent once"),
    "batch": ("4096", "events in one message, at most"),
    "speed": ("", "order time: so many seconds of event time a second; else at full speed"),
    "writer": ("arrow", "arrow: columns at once; rows: Spark's row writers, which are slower"),
    "metrics": (
        "",
        "a file on the driver, to which each batch adds its numbers as JSON",
    ),
    "replay": ("false", "true: recorded rows, which may be ahead of the broker's clock"),
    "key": ("REXMQ_KEY", "the file of the client's secret key, where tasks run"),
    "serverkey": (
        "REXMQ_SERVER_KEY",
        "the broker's public key or the file of it; of several brokers theirs, by commas",
    ),
    "timeout": ("30 s", "how long without a broker until the next is tried"),
    "subscribe": ("", "filters such as Fire(value > 45), separated by ;. Needed to read"),
    "for": ("", "how long to collect events; needed to read, but for a stream"),
    "start": ("earliest", "logs: where a query begins, earliest, new or a time"),
    "end": ("new", "logs: where a read ends, new (what there is by now) or a time, not included"),
    "maxeventspertrigger": ("", "streams: how many events a micro-batch has, by and large"),
    "minpartitions": ("", "logs: how many tasks read them at least, as far as there are entries"),
    "failondataloss": ("true", "logs: false: go on where entries that were to be read are gone"),
    "form": ("", "for publish() alone"),
    "origin": ("", "for publish() alone"),
}
"""Names, defaults and meanings."""
SYNONYMS: Mapping[str, str] = {
    "startingoffsets": "start",
    "startingtimestamp": "start",
    "endingoffsets": "end",
    "endingtimestamp": "end",
    "maxoffsetspertrigger": "maxeventspertrigger",
}
"""Names of options that users of Kafka's source know. Its times count milliseconds."""
_LATEST = "latest"
"""The word of Kafka's source for ``new``."""
ORDERS = ("held", "time", "none")
WRITERS = ("arrow", "rows")
_SOURCE_MAX = 200
"""Characters of a default source: the name of a part is longer, and bounded (routing.names)."""
_SPARKS_OWN = frozenset({"path", "checkpointlocation", "queryname"})
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0}
_FILTER = re.compile(r'(?:[^;"`]|"(?:[^"\\]|\\.)*"?|`[^`]*`?)+')
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|sec|min|h)\s*")


@dataclass(frozen=True)
class Keys:
    """The client's key, and those of brokers by their endpoints; where one is not said, that of the
    environment counts. They are files, as a rule, which are read where a task runs.
    """

    key: str = ""
    servers: tuple[tuple[str, str], ...] = ()

    def address(self, endpoint: str) -> Address:
        """The address of a broker; ConfigurationError for keys that are none."""
        server = dict(self.servers).get(endpoint, "")
        return address_of(endpoint, self.key or None, server or None)


NO_KEYS = Keys()


@dataclass(frozen=True)
class WriteOptions:
    """How rows are published. ``disorder_s`` and ``timeout_s`` in seconds, ``speed`` in seconds of
    event time a second (None: as fast as it goes); ``origin`` as ``pacing`` has it; ``layout``: the
    columns of attributes, and how times are written.
    """

    brokers: tuple[str, ...]
    source: str
    types: tuple[str, ...]
    type_column: str
    time: str
    ids: tuple[str, ...]
    order: str
    disorder_s: float | None
    on_bad: str
    acks: str
    batch_events: int
    timeout_s: float
    speed: float | None
    writer: str
    metrics: str
    form: str
    origin: str
    replay: bool = False
    layout: Layout = PLAIN
    keys: Keys = NO_KEYS

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> WriteOptions:
        """From Spark's; ValueError names the option that makes no sense."""
        given = _checked(options)
        types = _names(given["type"])
        if not types and not given["form"]:
            raise ValueError("option type is missing: the event type of the rows")
        if len(types) > 1 and not given["typecolumn"]:
            raise ValueError(
                f"option type names {len(types)} types: option typeColumn says which column tells "
                f"them apart"
            )
        batch = given["batch"]
        if not batch.isdecimal() or int(batch) < 1:
            raise ValueError(f"option batch is a number of events, not {batch!r}")
        disorder = given["disorder"]
        order = _one_of("order", given["order"], ORDERS)
        return cls(
            _brokers(given["broker"]),
            given["source"] or default_source(types),
            types,
            given["typecolumn"],
            given["time"],
            _names(given["id"]),
            order,
            seconds("disorder", disorder) if disorder else None,
            _one_of("onBad", given["onbad"], ("refuse", "drop")),
            _one_of("acks", given["acks"], ("broker", "none")),
            int(batch),
            seconds("timeout", given["timeout"]),
            _speed(given["speed"], order),
            _one_of("writer", given["writer"], WRITERS),
            given["metrics"],
            given["form"],
            given["origin"],
            _is_true("replay", given["replay"]),
            _layout(given),
            _keys(given),
        )


@dataclass(frozen=True)
class ReadOptions:
    """Options of reading: the ``filters``, of which any counts, and for how long in seconds."""

    brokers: tuple[str, ...]
    filters: tuple[str, ...]
    duration_s: float
    timeout_s: float
    keys: Keys = NO_KEYS

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> ReadOptions:
        """From Spark's; ValueError names the option that makes no sense."""
        given = _checked(options)
        filters = _filters(given["subscribe"])
        if not given["for"].strip():
            raise ValueError(f"option for is missing: {TABLE['for'][1]}")
        return cls(
            _brokers(given["broker"]),
            filters,
            seconds("for", given["for"]),
            seconds("timeout", given["timeout"]),
            _keys(given),
        )

    @property
    def types(self) -> tuple[str, ...]:
        """The types that the filters name, each once."""
        return _types_in(self.filters)


@dataclass(frozen=True)
class StreamOptions:
    """Options of reading the logs of a network: ``filters`` as in ReadOptions, ``start`` as
    ``Subscriber`` has it, and the events of a micro-batch (None: all there are). ``before``: a time
    in microseconds; ``parts_min`` tasks at least; ``fails_on_loss`` where entries are gone.
    """

    brokers: tuple[str, ...]
    filters: tuple[str, ...]
    start: str
    events_max: int | None
    timeout_s: float
    keys: Keys = NO_KEYS
    before: int | None = None
    parts_min: int = 1
    fails_on_loss: bool = True

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> StreamOptions:
        """From Spark's; ValueError names the option that makes no sense."""
        given = _checked(options)
        if given["for"]:
            raise ValueError("option for belongs to spark.read: a stream ends when it is stopped")
        start_time(given["start"])
        return cls(
            _brokers(given["broker"]),
            _filters(given["subscribe"]),
            given["start"],
            _count("maxEventsPerTrigger", "events", given["maxeventspertrigger"]),
            seconds("timeout", given["timeout"]),
            _keys(given),
            _end(given["end"]),
            _count("minPartitions", "tasks", given["minpartitions"]) or 1,
            _is_true("failOnDataLoss", given["failondataloss"]),
        )

    @property
    def types(self) -> tuple[str, ...]:
        """The types that the filters name, each once."""
        return _types_in(self.filters)


def _end(text: str) -> int | None:
    """The time before which a read of logs ends, None for all that there is; ValueError."""
    try:
        end = start_time(text)
    except ValueError:
        end = TIME_MIN
    if end == TIME_MIN:
        raise ValueError(f"option end is 'new' or a time, not {text!r}")
    return end


def _count(name: str, of: str, text: str) -> int | None:
    """A number of at least one, None where none is given; ValueError."""
    if text and not (text.isdecimal() and int(text)):
        raise ValueError(f"option {name} is a number of {of}, not {text!r}")
    return int(text) if text else None


def _is_true(name: str, text: str) -> bool:
    return _one_of(name, text.lower(), ("true", "false")) == "true"


def _filters(text: str) -> tuple[str, ...]:
    """The filters of option subscribe; ValueError for none."""
    filters = tuple(one.strip() for one in _FILTER.findall(text) if one.strip())
    if not filters:
        raise ValueError(f"option subscribe is missing: {TABLE['subscribe'][1]}")
    return filters


def _types_in(filters: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.split("(")[0].strip() for one in filters))


def default_source(types: Iterable[str]) -> str:
    """The source of rows of these types where none is named: another one for other types, so that
    tables of different types may give ids that are the same; the same one when they come again.
    """
    name = f"spark/{'+'.join(types)}"
    return name if len(name) <= _SOURCE_MAX else f"spark/{printed(hash_128(name))}"


def seconds(name: str, text: str) -> float:
    """A duration such as ``30 s``, in seconds; ValueError for anything else."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"option {name} is a duration such as 30 s, not {text!r}")
    return float(found[1]) * _UNITS[found[2]]


def _layout(given: Mapping[str, str]) -> Layout:
    """The columns of the attributes, and the form of the times; ValueError."""
    cuts = _is_true("timeCut", given["timecut"])
    unit = _one_of("timeUnit", given["timeunit"], tuple(UNITS))
    form = TimeForm(unit, given["timezone"] or None, given["timeformat"] or None, cuts)
    return Layout(time=given["time"], columns=columns_of(given["columns"]), times=form)


def _checked(options: Mapping[str, Any]) -> dict[str, str]:
    lowered = {name.lower(): str(value) for name, value in options.items()}
    known = {*TABLE, *SYNONYMS}
    unknown = sorted(set(lowered) - known - _SPARKS_OWN)
    if unknown:
        hint = did_you_mean(unknown[0], known) or f"there are {', '.join(TABLE)}"
        raise ValueError(f"no option is called {unknown[0]!r}; {hint}")
    for name in sorted(SYNONYMS.keys() & lowered):
        if SYNONYMS[name] in lowered:
            raise ValueError(f"options {SYNONYMS[name]} and {name} say the same: give one")
        lowered[SYNONYMS[name]] = _as_ours(name, lowered.pop(name))
    defaults = {name: default for name, (default, _) in TABLE.items()}
    return {**defaults, "broker": "", "key": "", "serverkey": "", **lowered}


def _as_ours(name: str, value: str) -> str:
    """The value of an option of Kafka's source as ours has it."""
    if value == _LATEST:
        return "new"
    is_time = name.endswith("timestamp") and value.isdecimal()
    return f"{value[:-3] or 0}.{value[-3:]:0>3}" if is_time else value


def _keys(given: Mapping[str, str]) -> Keys:
    """The keys for the brokers; ValueError unless each broker has one, or none has."""
    brokers, servers = _brokers(given["broker"]), _names(given["serverkey"])
    if servers and len(servers) != len(brokers):
        raise ValueError(
            f"option serverKey has {len(servers)} keys, for {len(brokers)} brokers; expected one "
            f"of each"
        )
    return Keys(given["key"], tuple(zip(brokers, servers, strict=False)))


def _brokers(text: str) -> tuple[str, ...]:
    return _names(text) or (endpoint_or_default(None),)


def _names(text: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in text.split(",") if one.strip())


def _speed(text: str, order: str) -> float | None:
    if not text:
        return None
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0.0 < speed < float("inf"):
        raise ValueError(f"option speed is a positive number such as 60, not {text!r}")
    if order != "time":
        raise ValueError("option speed needs option order 'time': else rows come in any order")
    return speed


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError(f"option {name} is {' or '.join(allowed)}, not {value!r}")
    return value
