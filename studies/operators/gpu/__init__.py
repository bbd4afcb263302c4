"""Operators on a GPU: the bodies of :mod:`studies.operators.kernels` as grids of threads.

Law: nothing of this package is imported unless a device is asked for.
"""
