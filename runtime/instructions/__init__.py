"""Instructions of the processor that numba has no name for, as functions that any kernel may call.
All kernels are stamped with these sources (:mod:`runtime.compiling.cache`).
"""
