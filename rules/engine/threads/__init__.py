"""Rules spread over several engines, each in a thread: one ``part``, and all ``parts`` together."""
