"""Why a rule fired, or did not (docs/explain.md).

``explainer`` tells one terminator clause by clause, ``survey`` how far all of a recording got.
They stand on a ``recording`` and what a rule sees of it (``sight``), look at candidates one by one
(``finder``, ``consideration``, ``appraisal``) and say which ``ways`` were taken. An
``explanation`` is a value; ``telling`` makes text of it, ``document`` JSON, ``rewording`` words.
"""
