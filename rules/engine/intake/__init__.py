"""Events from batches into the rows that kernels read.

``rows`` translates both ways; ``pending`` holds events until they arrive; ``duplicates`` takes a
(source, id) once, by ``blocks`` of numbers, by a ``journal`` of explicit ones, or by ``naming``;
``clock`` and ``ticking`` add the ticks of Timers; ``deferred`` are terminators that came before the
marks of their rules.
"""
