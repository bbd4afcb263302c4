"""How recorded events can be cut, so that rules over the pieces find what they find over all.

``keys`` are attributes in which all events of a rule agree, ``reach`` is how far back it looks,
``looks`` which attributes it reads; ``splitting`` decides from them.
"""
