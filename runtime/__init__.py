"""Everything that runs kernels: their :mod:`compiling` and its cache, the :mod:`instructions` that
numba lacks, :mod:`memory` of arrays and how it grows by :mod:`pages`, and the process around them
(:mod:`collector`, :mod:`ageing`, :mod:`library_pages`, :mod:`large_pages`).
"""
