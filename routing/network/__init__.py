"""Brokers that work together: one of many, over the processing trees of the overlay.

From the bottom up, each package imports what stands before it: ``strategy`` says where rules are
evaluated, one class a strategy (thesis 7.3); ``recovery`` keeps what must not be lost when the tree
changes; ``agreement`` is what the brokers of a tree agree on, ``tables`` how events and marks cross
its links; ``ways`` says where each rule goes, ``evaluation`` has a broker's part of the rules,
and ``brokers`` put it together, of parts. A broker that works alone is the root of a tree of one.
"""
