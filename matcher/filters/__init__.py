"""Filters and constraints of content-based matching, as values and as arrays (thesis 4.2).

A ``constraint`` and the filters made of them; which ``covering`` another, and two as one by
``merging``. For kernels, filters are packed in a ``table`` and events are ``mixed`` rows, then
``encoded``: words numbered by a ``vocabulary`` (``numbering``), which keeps the ``texts`` seen.
"""
