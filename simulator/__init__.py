"""The simulated host of the protocol core: simpy and a simulated clock (thesis 7.4).

It drives the very same :class:`routing.network.brokers.broker.Broker` and
:class:`routing.session.Session` as live brokers and clients do, through real bytes. ``simulation``
is clock, chance and trace; ``lanes`` carry bytes; ``hosts`` drive the protocols and ``clients``
what uses them; ``processing`` is what messages cost them; ``topology`` and ``faults`` (``mishaps``
draws some) are what is done to them; ``scenario`` is the file that says so, ``network`` what it
says, built, and ``experiment`` runs it. ``oracle`` and ``checkers`` say whether the results are
right, for which ``dues``, ``losses``, ``closings`` and ``endings`` say what a sink may lack;
``watch`` and ``agreement`` whether brokers are as they must be meanwhile; ``report``,
``figures`` and ``picture`` tell of it.
"""
