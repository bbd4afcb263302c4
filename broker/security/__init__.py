"""Identity of peers: keys, and which of them are users and brokers.

Law 1: a broker with a key lets nobody in without one. ZeroMQ's CURVE encrypts every connection, of
clients and of brokers, and proves both ends' keys, before a byte of what a peer says is read: a
stranger at the port of ``b1`` is refused, and the log says ``key refused``.

Law 2: one file says whose keys they are (``access``). A user is not taken for a broker, nor a
broker for another one, by what it says: the key decides.

Law 3: a secret is read by its owner alone. A file of a secret key that others may read is refused.

Modules: ``keys`` makes and reads key files, ``access`` reads who has which key, ``gate`` asks both
while a broker runs.
"""
