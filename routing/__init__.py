"""The protocols of the network, sans-IO: messages in, effects out, time as an argument.

A :class:`routing.node.Node` is the broker's side and a :class:`routing.session.Session` the
client's side of every conversation; hosts (``broker/`` over ZeroMQ, ``simulator/`` under simpy)
only move bytes and time. The overlay, processing trees, rule deployment and push/pull forwarding
of thesis chapter 7 will live here too.
"""
