"""The loops of matching, compiled once: filters are data to them.

``layout`` names what is where; ``encoding`` brings events into a vocabulary's numbers;
``relations`` compares; ``hashing``, ``segments``, ``buckets``, ``signatures`` and ``bits`` are what
tables and lists are made of, ``atomics`` what threads share. ``pcm``, ``ocm`` and ``counting`` are
matchers; of the index filters are entered by ``entering``, groups chosen by ``grouping``, built by
``building`` and matched by ``groups``, and events looked up by ``index``, which finds the arrays
through ``views``.
"""
