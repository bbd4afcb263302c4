"""The loops of matching, compiled once: filters are data to them.

``layout`` names what is where; ``encoding`` brings events into a vocabulary's numbers;
``relations`` compares; ``hashing`` and ``segments`` are what tables and lists are made of; the
others are the matchers, one each: ``pcm``, ``counting``,
``index``.
"""
