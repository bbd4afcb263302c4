"""Connections that are hung up on: the one that was meant, or none."""

import os
import socket

import pytest

from broker.connections import Connection


@pytest.fixture
def ends():
    """Both ends of a TCP connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        far = socket.create_connection(server.getsockname())
        near, _ = server.accept()
    with near, far:
        yield near, far


def test_the_other_end_finds_that_it_is_over(ends):
    near, far = ends
    connection = Connection.of(near.fileno())
    assert connection == (near.fileno(), far.getsockname())
    connection.hang_up()
    far.settimeout(10)
    assert far.recv(1) == b""
    connection.hang_up()  # it is over already


def test_what_has_taken_the_descriptor_stays(ends):
    near, far = ends
    connection = Connection.of(near.fileno())
    with socket.create_server(("127.0.0.1", 0)) as server:
        other = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
    with other, accepted:
        os.dup2(other.fileno(), connection.descriptor)
        connection.hang_up()
        other.sendall(b"x")
        assert accepted.recv(1) == b"x"
    far.settimeout(10)
    assert far.recv(1) == b""  # dup2 has closed the other end


def test_no_other_kinds():
    one, other = socket.socketpair()
    with one, other, open(os.devnull) as file:
        assert Connection.of(one.fileno()) is None
        assert Connection.of(file.fileno()) is None
    before = len(os.listdir("/proc/self/fd"))
    assert Connection.of(10_000) is None
    assert len(os.listdir("/proc/self/fd")) == before
