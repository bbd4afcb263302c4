"""The loops of matching, compiled once: filters are data to them.

``layout`` names what is where; ``encoding`` brings events into a vocabulary's numbers;
``relations`` compares; ``hashing``, ``segments``, ``buckets`` and ``signatures`` are what tables
and lists are made of. ``pcm`` and ``counting`` are matchers; of the index filters are entered by
``entering``, groups built by ``grouping`` and matched by ``groups``, and events looked up by
``index``.
"""
