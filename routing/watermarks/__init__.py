"""Watermarks of types, at one broker, by the words of those who bring their events.

One computation for a broker that works alone and for one of a network: to it a source of the
broker's own and a child in a tree are both somebody who says up to where a type has come.
``input_watermarks``: the words of each; ``watermarks``: what follows for the engine; ``ends``:
which types and rules nothing more can come of; ``missing_types``: the types that rules wait for
since nobody ever published them; ``output_watermarks``: up to where it is certain that a rule will
find nothing more; ``type_progress``: all that is known of one type, in one record.
"""
