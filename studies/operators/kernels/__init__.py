"""The kernels of operators: bodies, which do the work of one thread, and the loops of a processor.

A body is written once (:mod:`studies.operators.kernels.bodies`). The processor runs it in a loop
over all threads (:mod:`studies.operators.kernels.loops`), a device as a grid of them
(:mod:`studies.operators.gpu.kernels`): so both compute the same. They are compiled when an operator
first runs, and kept on disk like all kernels.
"""
