"""The protocols of the network, sans-IO: messages in, effects out, time as an argument.

A :class:`routing.network.brokers.broker.Broker` is the broker's side of every conversation and a
:class:`routing.session.Session` the client's; hosts (``broker/`` over ZeroMQ, ``simulator/`` under
simpy) only move bytes and time (docs/protocol.md). What they say is in ``messages``, how it is
written in ``wire``, what sources may be called in ``names``, what they want done in ``effects``.
Who is connected is in ``node``, what is done for them in ``serving``, how events come to sinks in
``delivery``; each state has one owner there. How one broker evaluates rules is in ``evaluation``,
how brokers are joined into a network in ``overlay``, how rules are divided, pushed and pulled in
``partition`` (thesis 7.3.5 to 7.3.8), and what brokers do together in ``network``. Strategies of
other packages are loaded by ``installed``.
"""
