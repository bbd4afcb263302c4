"""Identity of peers: keys, and which of them are users and brokers.

A broker with a key lets nobody in without one. ZeroMQ's CURVE encrypts every connection, of clients
and of brokers, and proves both ends' keys, before a byte of what a peer says is read. One file says
whose keys they are, and what each user may do (``access``): a user is not taken for a broker, nor a
broker for another one, by what it says. The protocol core asks the rights of a link's user
(``routing.permission``), which it has from the host; what keys are, it does not know.

Modules: ``keys`` makes and reads key files, ``access`` reads who has which key and may do what
(``grants`` a line of it, ``tables`` where it stands), ``gate`` asks both while a broker runs.
"""
