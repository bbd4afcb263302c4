"""Durability of a broker: what it asks its store to keep, and how it goes on from what was kept.

``records`` are the values in the store, ``journal`` says what has changed and holds back what must
not be said before that is kept, ``restart`` fills a new broker's tables. ``giver`` and ``taker``
bring durable sinks from one broker's store to another's, along the way of ``addressed``. Durable
sinks themselves are ``routing.delivery.durable``; the changes that a store understands,
``routing.storage``.
"""
