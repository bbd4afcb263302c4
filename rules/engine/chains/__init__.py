"""Engines for chains of states: AIP as published, and hybrid parallelism, which stands on it.

They stay together, in the product: ``auto`` takes ``hybrid`` for recorded events where it pays, and
its kernels advance the automata of ``published``. So nothing else imports the second but to have a
reference (docs/decisions/0026).
"""
