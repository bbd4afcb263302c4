"""The values that a broker has its store keep.

``records`` are these values, ``former`` are those of earlier versions, ``state_table`` has rules'
states, ``sink_homes`` the brokers of durable sinks. The parts of a broker that write them and go on
from them are ``routing.network.brokers.journal``, ``restart`` and their neighbours; durable sinks
are ``routing.delivery.durable``; the changes that a store understands, ``routing.storage``.
"""
