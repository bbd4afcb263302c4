"""Evaluation of rules at one broker, in one tree, be it of one broker or of many (thesis 7.3.6).

A ``tree_evaluator`` has the engine and the fragments of one tree (``duties``: what a division asks
of it; ``tree_progress``: how far rules are, and types with them, by the watermarks; ``skew``: which
rules wait while others run ahead; ``arrival``: where events are stamped as they come; ``outbox``:
what is about to go up; ``replay``: what goes up once more; ``blocks``: how it is kept for that).
``publishers`` are who publishes at the broker, and what they have promised. It knows who is below
it and above it by name, and nobody else.
"""
