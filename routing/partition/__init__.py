"""Where rules are evaluated in a processing tree, and what is forwarded to them (thesis 7.3.5).

``places`` is a division of the rules as a value.
"""
