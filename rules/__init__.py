"""TESLA: text, syntax tree, checked rule, plan; and the engines that detect composite events.

The pipeline is ``parser -> ast -> checker -> pattern -> plan -> engine``; each stage takes one
type and gives one type. Time is in the events: nothing here reads a clock.
"""
