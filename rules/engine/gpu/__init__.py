"""CDP on a GPU (thesis, chapter 6).

A rule gives the same composite events here as on the processor, in the same order; a rule whose
meaning a device does not compute is left to the processor, by name and reason
(:mod:`rules.engine.gpu.eligible`). Nothing is compiled for a rule: rules are data.
"""
