"""The values that a broker has its store keep.

``records`` are these values, ``former`` are those of earlier versions, ``state_table`` has rules'
states, ``sink_homes`` the brokers of durable sinks. Parts of ``routing.network.brokers`` write
them and go on from them; what a store understands is in ``routing.storage``.
"""
