"""Connectors: messages of other systems to events, and events to messages (docs/connect.md).

``configuration`` reads a file of sources and sinks. A source's messages become events by a
``reading``, and a ``pump`` publishes these; a sink's events become messages by a ``writing``.
``templates`` are topics with attributes in them. Each system has a module of its name, with
``Settings``, a ``Source`` and a ``Sink``, and ``systems`` is what they have in common.
``dead_letters`` keep what cannot be read.

A message is acknowledged to its system when the broker has acknowledged the event, or when it was
put among the dead letters. An event is acknowledged to the broker when the other system has
confirmed the message. So a kill at any moment loses nothing. No queue is without a bound: a broker
that takes nothing more has the source wait, and a system that takes nothing more has the durable
subscription wait.
"""
