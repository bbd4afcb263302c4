"""A simulated multicore: one heavy rule on up to 64 cores, where two are at hand.

``chains`` says which pairs of events and sequences a rule makes of a stream, whoever tries them;
``costs`` how long the real kernels take for each step, ``measured.toml`` what they took once;
``machine`` has workers try the pairs, each on a core of its own, in simulated time; ``runs`` shares
the stream out instead (RIP). Roles, shares of threads and slices are not modelled: the machine
calls the functions of :mod:`rules.engine.chains.hybrid` for them.
"""
