"""Composite events out of the engine, as batches.

``outlets`` are the columns that kernels write, ``pool`` lends their memory, ``taken`` makes batches
of them when somebody asks, ``merged`` brings those of several engines together.
"""
