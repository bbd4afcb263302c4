"""A broker's part in the evaluation of divided rules (thesis 7.3.5, 7.3.6; brokers.md section 5).

A ``station`` has the engine and the fragments of one tree (``duties``: what a division asks of it;
``progress``: how far types and rules are, ``said``: by the words of sources and children,
``standing``: what is known of one type or rule, ``missing``: of which types nobody says anything,
``lagging``: which rules wait while others run ahead;
``arrival``: where events are stamped as they come). ``divided`` gives it what it needs on the
single tree (``publishers``: who publishes here, and has promised what), ``processing`` on that of
one broker with sinks, ``detecting`` on all of them (``grove``: which of these have news);
``relaying`` brings results, and the marks that they wait for, to who wants them, and ``overview``
tells of it all (``origins``: who may hold what a broker below forwards).
"""
