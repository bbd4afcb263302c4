"""Other systems for tests of connectors: each with its server, and a bare client."""

import asyncio

import servers


class Nats:
    """JetStream: a stream for what comes in, and one for what goes out."""

    source = 'topic = "sensors.{area}"\nnats = { url = "URL", stream = "IN", ack_wait_s = 2 }'
    sink = 'topic = "alerts.{area}"\nnats = { url = "URL", stream = "OUT" }'
    can_restart = True

    def __init__(self, folder):
        self.server = servers.nats(folder)
        self.url = f"nats://127.0.0.1:{self.server.port}"

    def prepare(self):
        async def make(context):
            await context.add_stream(name="IN", subjects=["sensors.*"])
            await context.add_stream(name="OUT", subjects=["alerts.*"])

        self._run(make)

    def publish(self, messages):
        async def send(context):
            for area, body in messages:
                await context.publish(f"sensors.{area}", body)

        self._run(send)

    def sent(self):
        """Topic, body and headers of all messages that went out."""
        had = []

        async def read(context):
            count = (await context.stream_info("OUT")).state.messages
            for number in range(1, count + 1):
                message = await context.get_msg("OUT", number)
                had.append((message.subject, message.data, message.headers or {}))

        self._run(read)
        return had

    def _run(self, call):
        from nats import connect

        async def run():
            client = await connect(self.url)
            await call(client.jetstream())
            await client.close()

        asyncio.run(run())


class Redis:
    """Streams of Redis, with all that is written on the disk."""

    source = 'topic = "sensors"\nredis = { url = "URL" }'
    sink = 'topic = "alerts:{area}"\nredis = { url = "URL" }'
    can_restart = True

    def __init__(self, folder):
        self.server = servers.redis(folder)
        self.url = f"redis://127.0.0.1:{self.server.port}"

    def prepare(self):
        pass

    def publish(self, messages):
        for area, body in messages:
            self._client().xadd("sensors", {"body": body, "area": area})

    def sent(self):
        return [
            (key.decode(), fields.pop(b"body"), fields)
            for key in self._client().keys("alerts:*")
            for _, fields in self._client().xrange(key)
        ]

    def _client(self):
        from redis import Redis as Client

        return Client.from_url(self.url)


class Kafka:
    """The cluster that librdkafka plays."""

    source = """topic = "sensors.{area}"
kafka.servers = "URL"
kafka.options = { "session.timeout.ms" = 3000, "heartbeat.interval.ms" = 500 }"""
    sink = 'topic = "alerts"\nkey = "{area}"\nkafka = { servers = "URL" }'
    can_restart = False

    def __init__(self, folder):
        from confluent_kafka import Producer

        self.server = self
        self._producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none"})
        ((broker,),) = [self._producer.list_topics(timeout=10).brokers.values()]
        self.url = f"{broker.host}:{broker.port}"

    def start(self):
        """It runs in this process, and ends with it."""

    kill = start

    def prepare(self):
        self._producer.list_topics("sensors.a1", timeout=10)
        self._producer.list_topics("alerts", timeout=10)

    def publish(self, messages):
        for area, body in messages:
            self._producer.produce(f"sensors.{area}", body)
        assert self._producer.flush(20) == 0

    def sent(self):
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        reader = Consumer({"bootstrap.servers": self.url, "group.id": "r"})
        partitions = reader.list_topics("alerts", 10).topics["alerts"].partitions
        reader.assign([TopicPartition("alerts", n, OFFSET_BEGINNING) for n in partitions])
        had = []
        while record := reader.poll(2):
            had.append((record.topic(), record.value(), dict(record.headers())))
        reader.close()
        return had


class Amqp:
    """RabbitMQ: queues that are bound to an exchange."""

    source = 'topic = "sensors.{area}"\namqp = { url = "URL", exchange = "amq.topic" }'
    sink = 'topic = "alerts.{area}"\namqp = { url = "URL", exchange = "amq.topic" }'
    can_restart = False

    def __init__(self, folder):
        self.server = servers.rabbitmq(folder)
        self.url = f"amqp://127.0.0.1:{self.server.port}"

    def prepare(self):
        async def make(channel):
            for name, topic in (("plant", "sensors.*"), ("out", "alerts.*")):
                queue = await channel.declare_queue(
                    name, durable=True, arguments={"x-queue-type": "quorum"}
                )
                await queue.bind("amq.topic", topic)

        self._run(make)

    def publish(self, messages):
        from aio_pika import Message

        async def send(channel):
            exchange = await channel.get_exchange("amq.topic")
            for area, body in messages:
                own = Message(body, message_id=f"{area} {body}", delivery_mode=2)
                await exchange.publish(own, f"sensors.{area}")

        self._run(send)

    def sent(self):
        had = []

        async def read(channel):
            queue = await channel.get_queue("out")
            while message := await queue.get(fail=False):
                headers = {**message.headers, "id": message.message_id}
                had.append((message.routing_key, message.body, headers))

        self._run(read)
        return had

    def _run(self, call):
        from aio_pika import connect

        async def run():
            async with await connect(self.url) as connection:
                await call(await connection.channel())

        asyncio.run(run())
