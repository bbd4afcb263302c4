"""Parts of a broker of a network: each with one responsibility, and state of its own.

``broker`` is what hosts drive; it says in which order the parts are asked, and ``parts`` which of
them there are. From the bottom up, each knowing only what stands before it:

``context`` is what all share, ``agreed`` what the tree has agreed on, ``update_timer`` when news
are told. ``root_requests`` go up to the root, which knows all sources (``registry``).
``subscription_sync`` tells what is wanted of neighbours, ``catalog_sync`` what the root knows;
``requests`` takes what clients ask to it; ``pulling`` asks for what waits for masters (7.3.7);
``single_tree_traffic`` takes events along the tree (thesis 7.3.5), ``resending`` what is kept.
Where brokers with sinks have ``trees`` of their own (7.3.2), ``sink_tree_traffic`` takes events
along these; where the root goes by what is published it is taking ``measurements`` of that, and
chooses masters and strategies (7.3.8). ``report_collector``
takes questions down the tree and reports up. ``checkpoints`` find what nobody needs any more,
events as well as rules that end; ``back_pressure`` tells whose sources are to wait since something
is full. ``inputs`` says when the root closes what nobody speaks for; the ``planner`` makes plans,
the ``plan_follower`` does what they say; ``pauses`` see to it that all brokers of a tree do so at
one instant.

With a store, the ``journal`` says what has changed and holds back what must not be said before,
``commits`` says what follows from an event, ``restart`` fills a new broker's tables. ``giver`` and
``taker`` hand durable sinks over, by ``addressed`` requests; the ``log_reader`` reads logs.
"""
