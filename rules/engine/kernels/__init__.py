"""Compiled kernels of the CDP engine: free functions over flat arrays, rules being data to them.

``layout`` names every record and word; ``memory`` keeps the arena, the lists and the hash table;
``expressions`` runs programs; ``aggregates`` computes over windows, and ``runs`` over the runs of
iterations; ``detection`` walks the steps of one rule for one terminator; ``instants`` drives whole
instants, and ``ahead`` asks memory for what the next ones will touch. What few rules need is
compiled apart and called by its address (``late``). They are compiled once and cached, never per
rule.
"""
