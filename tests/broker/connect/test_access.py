"""Who a connector is, and who the server has to be: with real servers, and with one that nobody
trusts.
"""

import asyncio
import socket
import ssl
import threading
from contextlib import contextmanager, suppress

import pytest
from certificates import made, needs_openssl
from connectors import confirmed
from servers import needs

from benchmarks import servers
from broker.connect import amqp, kafka, mqtt, nats, redis, webhook
from broker.connect.access import Access
from broker.connect.systems import Outgoing, SystemLost
from broker.connect.templates import Template
from broker.errors import ConfigurationError

SECRET = "s3cret"
SHOWN = {"ca_file": "ca.pem", "cert_file": "client.pem", "key_file": "client.key"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = made(tmp_path_factory.mktemp("certificates"))
    (folder / "password").write_text(f"{SECRET}\n")
    return folder


def mosquitto(folder):
    own = "allow_anonymous true", "require_certificate true", f"cafile {folder}/ca.pem"
    return servers.mosquitto(
        folder, *own, f"certfile {folder}/server.pem", f"keyfile {folder}/server.key"
    )


def nats_server(folder):
    files = f'cert_file: "{folder}/server.pem", key_file: "{folder}/server.key"'
    tls = f'tls {{ {files}, ca_file: "{folder}/ca.pem", verify: true }}'
    return servers.nats(folder, tls, f'authorization {{ user: "plant", password: "{SECRET}" }}')


def redis_server(folder):
    words = "--port", "0", "--tls-port", "PORT", "--requirepass", SECRET
    for option, name in (("ca-cert", "ca.pem"), ("cert", "server.pem"), ("key", "server.key")):
        words += f"--tls-{option}-file", f"{folder}/{name}"
    return servers.redis(folder, *words)


SYSTEMS = [
    pytest.param(mqtt, mosquitto, "mqtts", {}, "t/a", marks=needs("mosquitto", "mosquitto")),
    pytest.param(
        nats,
        nats_server,
        "tls",
        {"username": "plant", "password_file": "password"},
        "t",
        marks=needs("nats-server", "nats-server"),
    ),
    pytest.param(
        redis,
        redis_server,
        "rediss",
        {"password_env": "PLANT_PASSWORD"},
        "t",
        marks=needs("redis-server", "redis-server"),
    ),
]


@needs_openssl
@pytest.mark.parametrize(("module", "server", "scheme", "who", "topic"), SYSTEMS)
def test_both_sides_show_a_certificate(folder, monkeypatch, module, server, scheme, who, topic):
    monkeypatch.setenv("PLANT_PASSWORD", SECRET)

    async def pass_a_message(url):
        settings = module.Settings(url=url, **SHOWN, **who)
        source = module.Source("in", settings, folder, Template(topic), 10)
        sink = module.Sink("out", settings, folder, 10)
        await source.open()
        await sink.open()
        receiving = asyncio.create_task(source.receive())
        await asyncio.sleep(0.2)  # core NATS keeps nothing for who comes later
        await confirmed(sink, Outgoing(topic, b"warm", "1", "text/plain"))
        messages = await asyncio.wait_for(receiving, 30)
        await source.close()
        await sink.close()
        return [message.body for message in messages]

    with server(folder) as started:
        url = f"{scheme}://127.0.0.1:{started.port}"
        assert asyncio.run(pass_a_message(url)) == [b"warm"]
        stranger = module.Settings(url=url, ca_file="ca.pem", **who)  # it shows none
        with pytest.raises(SystemLost, match=url):
            asyncio.run(module.Sink("out", stranger, folder, 10).open())


@contextmanager
def listening(folder, greeting):
    """The port of a server with the certificate of server.pem, which says this before alone."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")

    def serve(server):
        with suppress(OSError):
            while True:
                threading.Thread(target=greet, args=(server.accept()[0],), daemon=True).start()

    def greet(link):
        link.sendall(greeting)
        with suppress(OSError), context.wrap_socket(link, server_side=True) as secured:
            secured.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@needs_openssl
@pytest.mark.parametrize(
    ("module", "said"),
    [
        (mqtt, {"url": "mqtts://127.0.0.1:PORT"}),
        (nats, {"url": "tls://127.0.0.1:PORT"}),
        (redis, {"url": "rediss://127.0.0.1:PORT"}),
        (kafka, {"servers": "127.0.0.1:PORT"}),
        (amqp, {"url": "amqps://127.0.0.1:PORT"}),
        (webhook, {"url": "https://127.0.0.1:PORT", "origin": "plant"}),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_server_that_nobody_vouches_for_is_refused_by_the_file(folder, monkeypatch, module, said):
    for system in (nats, kafka):
        monkeypatch.setattr(system, "CONNECT_S", 3.0)
    info = b'INFO {"server_id": "s", "tls_required": true, "max_payload": 1000}\r\n'
    with listening(folder, info if module is nats else b"") as port:
        ((key, place), *rest) = said.items()
        own = {key: place.replace("PORT", str(port)), **dict(rest), "ca_file": "other.pem"}
        sink = module.Sink("out", module.Settings(**own), folder, 10)
        with pytest.raises(SystemLost) as error:
            asyncio.run(sink.open())
    assert str(error.value).startswith(own[key])
    assert "the server's certificate is not verified by ca_file other.pem: " in str(error.value)


@needs_openssl
@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"ca_file": "none.pem"}, "ca_file: .*none.pem: No such file"),
        ({"ca_file": "password"}, "ca_file: .*password: expected certificates"),
        ({"key_file": "client.key"}, "key_file: expected with cert_file"),
        ({"cert_file": "none.pem"}, "cert_file: .*none.pem: No such file"),
        ({"cert_file": "client.pem", "key_file": "ca.key"}, "key_file: .*ca.key: expected a cert"),
    ],
)
def test_files_that_are_none_are_refused_by_their_place(folder, said, reason):
    with pytest.raises(ConfigurationError, match=reason):
        Access(**said).tls(folder)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"password_env": "NOBODY_SETS_IT"}, "password_env: NOBODY_SETS_IT is not in the env"),
        ({"password_env": "X", "password_file": "x"}, "password_env: expected this or password_f"),
        ({"username": "", "password_file": "x"}, "password_file: expected with username"),
    ],
)
def test_passwords_that_are_none_are_refused_in_words(tmp_path, said, reason):
    with pytest.raises(ConfigurationError, match=reason):
        Access(**{"username": "plant", **said}).password(tmp_path)


def test_a_url_has_no_password_and_none_is_told():
    with pytest.raises(ValueError, match="url: expected none with a user") as error:
        mqtt.Settings(url=f"mqtt://plant:{SECRET}@127.0.0.1")
    assert SECRET not in str(error.value)


def test_a_webhook_is_told_who_posts(tmp_path):
    (tmp_path / "token").write_text("t0ken\n")
    url = "http://127.0.0.1:1"
    for said, header in (
        ({"password_file": "token"}, "Bearer t0ken"),
        ({"username": "plant", "password_file": "token"}, "Basic cGxhbnQ6dDBrZW4="),
    ):
        sink = webhook.Sink("out", webhook.Settings(url=url, **said), tmp_path, 1)
        request = sink._request(Outgoing("", b"", "1", "text/plain"))
        assert request.get_header("Authorization") == header
