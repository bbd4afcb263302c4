"""The simulated host of the protocol core, to come: simpy and a simulated clock.

It will drive the very same :class:`routing.node.Node` and :class:`routing.session.Session` as the
live brokers do, through real bytes, over generated topologies, workloads and faults, and check
the results against the centralised oracle (thesis 7.4).
"""
