"""Kafka, by confluent-kafka (``pip install 'rexmq[kafka]'``)."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec
from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Message as Record,
    Producer,
    TopicPartition,
)

from broker.connect.access import Access
from broker.connect.systems import (
    CLOSE_S,
    CONNECT_S,
    PAUSE_MIN_S,
    UNFIT,
    Message,
    Pending,
    SystemLost,
)
from broker.connect.templates import Template
from broker.errors import BrokerError
from broker.log import log
from matcher.errors import BadEvent

LEVEL = "."
WAIT_S = 0.5
"""For so long a thread waits for messages, or for confirmations."""
WINDOW = 16_384
"""Messages of a source that are under way: the server keeps none of them for it."""
LOT = 1_024
"""Messages that are read at once, while the broker has others."""
_FILES = "ssl.ca.location", "ssl.certificate.location", "ssl.key.location"
PURGED = KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT
"""Errors of messages of a transaction that was aborted."""
KEY = "$key"
"""The header that is the key of a message."""


class Settings(Access, frozen=True, kw_only=True):
    """The table ``kafka`` of a source or a sink."""

    servers: str = "127.0.0.1:9092"
    group: str = ""
    start: Literal["earliest", "latest"] = "earliest"
    transactions: bool = False
    options: dict[str, str | int | float | bool] = msgspec.field(default_factory=dict)

    def common(self, name: str, folder: Path, faults: deque[str]) -> dict[str, Any]:
        """The options of librdkafka that sources and sinks have in common; it adds its errors to
        ``faults``. Raises ConfigurationError.
        """
        common: dict[str, Any] = {
            "bootstrap.servers": self.servers,
            "client.id": name,
            "error_cb": partial(self._on_error, faults),
            "log_level": 2,  # what is worth a line comes as an error
        }
        password = self.password(folder)
        files = self.files(folder, *_FILES)
        common |= {option: file for option, file in files.items() if file is not None}
        if self.username:
            common |= {"sasl.username": self.username, "sasl.mechanisms": "PLAIN"}
            common |= {"sasl.password": password or ""}
        if any(files.values()) or self.username:
            words = "sasl_" * bool(self.username) + ("ssl" if any(files.values()) else "plaintext")
            common |= {"security.protocol": words}
        return common

    def _on_error(self, faults: deque[str], error: KafkaError) -> None:
        verified = "certificate verify failed" not in error.str()
        faults.append(error.str() if verified else f"{self.verifier}: {error.str()}")
        fields = {"servers": self.servers, "reason": error.str()}
        log("warning", "error of another system", fields, "connect")


class Source:
    """Messages of topics, as a member of a group."""

    def __init__(
        self, name: str, settings: Settings, folder: Path, topic: Template, window: int
    ) -> None:
        self._settings, self._window = settings, window
        self._faults = deque[str](maxlen=1)
        escaped = topic.regex.replace(r"\-", "-")  # librdkafka knows no such escape
        self._topic = f"^{escaped}$" if topic.names else topic.filled({})
        with _known_options():
            self._consumer = Consumer(
                settings.common(name, folder, self._faults)
                | {
                    "group.id": settings.group or name,
                    "group.instance.id": name,  # one that is back has its partitions at once
                    "auto.offset.reset": settings.start,
                    "enable.auto.commit": True,  # of offsets that were stored
                    "enable.auto.offset.store": False,
                    "auto.commit.interval.ms": 1_000,
                    "max.poll.interval.ms": 3_600_000,
                }
                | settings.options
            )
        self._turn = threading.Lock()

    async def open(self) -> None:
        """Connect. Raises SystemLost."""
        await asyncio.to_thread(self._open)

    async def receive(self) -> Sequence[Message]:
        """The next messages."""
        while True:
            records = await asyncio.to_thread(self._poll)
            if messages := [self._message(record) for record in records if not record.error()]:
                return messages

    async def close(self) -> None:
        """Commit, and leave the group; what was not acknowledged comes again."""
        await asyncio.to_thread(self._close)

    async def acknowledge(self, messages: Sequence[Message]) -> None:
        """Have the offsets behind messages committed soon. An offset is committed behind the
        acknowledgements of all messages before it in its partition. What was not committed comes
        again, to whoever has the partition then.
        """
        last = {message.place[:2]: message.place[2] for message in messages}
        await asyncio.to_thread(self._store, last)

    def _open(self) -> None:
        _reach(self._consumer, self._settings, self._faults)
        self._consumer.subscribe([self._topic])

    def _poll(self) -> Sequence[Record]:
        """Messages that are there; of those that are not the first that comes in time."""
        with self._turn:
            first = self._consumer.poll(WAIT_S)
            if first is None:
                return ()
            return [first, *self._consumer.consume(min(LOT, self._window), 0)]

    def _store(self, last: Mapping[tuple[str, int], int]) -> None:
        for (topic, partition), offset in last.items():
            with suppress(KafkaException):  # the partition is another member's by now
                self._consumer.store_offsets(offsets=[TopicPartition(topic, partition, offset + 1)])

    def _close(self) -> None:
        with self._turn:
            self._consumer.close()

    def _message(self, record: Record) -> Message:
        topic, partition, offset = record.topic() or "", record.partition(), record.offset()
        kind, time_ms = record.timestamp()
        pairs: Any = record.headers()
        headers = {name: _text(value) for name, value in pairs} if pairs else {}
        key = record.key()
        if key is not None:
            headers[KEY] = _text(key)
        return Message(
            topic,
            record.value() or b"",
            (topic, partition or 0, offset or 0),
            headers,
            f"{topic}/{partition}/{offset}@{time_ms}",
            None if kind == TIMESTAMP_NOT_AVAILABLE else time_ms * 1_000,
        )


class Sink:
    """Messages to topics, each confirmed by all replicas that are in step; with ``transactions``
    what leaves together is seen together, and of two connectors of a name the older one ends.
    """

    def __init__(self, name: str, settings: Settings, folder: Path, window: int) -> None:
        self._settings = settings
        self._faults = deque[str](maxlen=1)
        own: dict[str, Any] = {"enable.idempotence": True, "linger.ms": 2, "message.timeout.ms": 0}
        if settings.transactions:
            del own["message.timeout.ms"]  # a transaction ends by its own time
            own["transactional.id"] = name
        with _known_options():
            common = settings.common(name, folder, self._faults)
            self._producer = Producer(common | own | settings.options)
        self._polling: asyncio.Task[None] | None = None
        self._confirmed: list[tuple[Pending, BadEvent | None]] = []
        """Of these librdkafka has told a thread, and the loop tells the pump."""

    async def open(self) -> None:
        """Connect. Raises SystemLost."""
        await asyncio.to_thread(_reach, self._producer, self._settings, self._faults)
        if self._settings.transactions:
            await self._step(self._producer.init_transactions, CONNECT_S)
        self._polling = asyncio.create_task(self._poll())

    async def send(self, lot: Sequence[Pending]) -> None:
        """Produce messages. Raises SystemLost after a transaction that was aborted."""
        if self._settings.transactions:
            await self._step(self._producer.begin_transaction)
        for pending in lot:
            try:
                while not self._has_produced(pending):
                    await asyncio.sleep(PAUSE_MIN_S)
            except KafkaException as error:
                pending.tell(_fault(error.args[0]))
            except UNFIT as error:
                pending.tell(error)
        if self._settings.transactions:
            await self._step(self._producer.commit_transaction)
            for pending in lot:
                pending.tell()

    async def _step(self, step: Callable[..., None], *arguments: float) -> None:
        """Take a step of transactions. Raises SystemLost if all of this one are to be sent anew,
        and BrokerError if there are to be no more.
        """
        while True:
            try:
                return await asyncio.to_thread(step, *arguments)
            except KafkaException as error:
                fault = error.args[0]
            reason = f"{self._settings.servers}: {fault.str()}"
            if fault.fatal():
                raise BrokerError(f"{reason} (has another connector this name?)")
            if fault.txn_requires_abort():
                await self._step(self._producer.abort_transaction)
            if not fault.retriable():
                raise SystemLost(reason)
            await asyncio.sleep(PAUSE_MIN_S)

    def _has_produced(self, pending: Pending) -> bool:
        """Produce a message, unless too many are unconfirmed."""

        def told(error: KafkaError | None, _record: Record) -> None:
            if error is None and self._settings.transactions:
                return  # it is once the transaction is committed
            if error is None or not (error.fatal() or error.code() in PURGED):
                self._confirmed.append((pending, None if error is None else _fault(error)))

        message = pending.message
        headers = {"id": message.id, "content-type": message.content_type}
        try:
            self._producer.produce(
                message.topic,
                message.body,
                message.key,
                headers=[*(headers | message.all_headers("ce_")).items()],
                on_delivery=told,
            )
        except BufferError:
            return False
        return True

    async def close(self) -> None:
        """Hang up."""
        if self._polling is not None:
            self._polling.cancel()
        await asyncio.to_thread(self._producer.flush, CLOSE_S)

    async def _poll(self) -> None:
        while True:
            await asyncio.to_thread(self._producer.poll, WAIT_S)
            confirmed, self._confirmed = self._confirmed, []
            for pending, error in confirmed:
                pending.tell(error)


@contextmanager
def _known_options() -> Iterator[None]:
    """A client's options that librdkafka does not know, as ValueErrors."""
    try:
        yield
    except KafkaException as error:
        raise ValueError(f"options: {error.args[0].str()}") from None


def _reach(client: Consumer | Producer, settings: Settings, faults: deque[str]) -> None:
    try:
        client.list_topics(timeout=CONNECT_S)
    except KafkaException as error:
        client.poll(0)  # which has it tell its errors
        reason = faults[-1] if faults else error.args[0].str()
        raise SystemLost(f"{settings.servers}: {reason}") from None


def _fault(error: KafkaError) -> BadEvent:
    return BadEvent(f"Kafka refuses it: {error.str()}")


def _text(value: str | bytes | None) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value or ""
