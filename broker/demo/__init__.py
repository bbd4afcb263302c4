"""The main job on real data, from start to end, on one machine (docs/cli.md, ``rexmq demo``).

``flights`` prepares a year of flights and weather as events, ``live`` publishes them to a real
broker and takes what it detects, ``account`` keeps the figures, ``pages`` puts them in words.
"""
