"""From checked rule to plain tables, which engines run without knowing a rule (thesis 5.4, 5.6).

``planner`` makes a ``plan``: conditions divided (``bounds``), expressions as a ``program``,
``variants`` for ``all ... within``. ``sequences`` are what incremental processing keeps of a rule.
Conditions on one event are evaluated a batch at a time (``columnar``) or a row (``rowwise``);
``sketch`` is what content-based matching can say of them.
"""
