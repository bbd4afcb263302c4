"""Kernels from Python to machine code. :mod:`compiled` compiles them and :mod:`cache` keeps them;
:mod:`pipeline` and :mod:`fragments` are steps and parts of numba that are replaced; :mod:`awaited`
tells whoever waits.
"""
