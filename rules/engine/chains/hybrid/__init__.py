"""Hybrid parallelism within one rule: many threads, by state and by data (see ``engine``)."""
