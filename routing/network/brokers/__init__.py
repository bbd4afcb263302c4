"""What a broker of a network does, one class on top of another, each with one thing more.

``broker`` links a Node with an overlay and takes events along its tree; ``telling`` tells what the
root knows and what each broker wants; ``planning`` sees that all brokers of a tree do the same, and
``surveying`` how far they are; ``awaiting`` leaves silent sources out. ``dividing`` divides the
rules over the tree (thesis 7.3.5); ``measuring`` and ``adapting`` move masters after the rates
(7.3.8), ``many`` has a tree for each broker with sinks (7.3.2), ``adaptive`` chooses between all.
"""
