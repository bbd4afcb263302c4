"""The protocols of the network, sans-IO: messages in, effects out, time as an argument.

A :class:`routing.node.Node` is the broker's side and a :class:`routing.session.Session` the
client's side of every conversation; hosts (``broker/`` over ZeroMQ, ``simulator/`` under simpy)
only move bytes and time (docs/protocol.md). What they say is in ``messages``, how it is written in
``wire`` and ``columns``, what they want done in ``effects``. Each state of a node has one owner:
``link`` (who is connected), ``sources`` and ``advertisements`` (who publishes what, and promises),
``deployment``, ``watermark`` and ``detection`` (rules, marks, engine), ``sinks`` with
``subscriptions``, ``parcel``, ``joining`` and ``holdback`` (who gets what, in which order),
``credit`` (who may send). How brokers are joined into a network is in :mod:`routing.overlay`, what
they do there together in :mod:`routing.network`. Push and pull of thesis chapter 7 will live here
too.
"""
