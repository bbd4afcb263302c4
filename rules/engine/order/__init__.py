"""In which order rules run, and up to which instant each has.

``standings`` ranks the types that rules define and use; ``catalogue`` has the deployed rules in
that order, ``groups`` their marks, which ``raising`` raises; ``intervals`` ends a rule at an
instant and begins another there; ``timers`` says when Timers tick; ``last_words`` names the rules
that a process was evaluating when a signal ended it.
"""
