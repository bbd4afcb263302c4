"""Identity of peers: keys, and which of them are users and brokers.

Law 1: a broker with a key lets nobody in without one. ZeroMQ's CURVE encrypts every connection, of
clients and of brokers, and proves both ends' keys, before a byte of what a peer says is read: a
stranger at the port of ``b1`` is refused, and the log says ``key refused``.

Law 2: one file says whose keys they are (``access``). A user is not taken for a broker, nor a
broker for another one, by what it says: the key decides.

Law 3: the same file says what each user may do. The protocol core asks the rights of a link's user
(``routing.permission``), which it has from the host; what keys are, it does not know.

Law 4: a secret is read by its owner alone. A file of a secret key that others may read is refused.

Modules: ``keys`` makes and reads key files, ``access`` reads who has which key and may do what
(``grants`` a line of it, ``tables`` where it stands), ``gate`` asks both while a broker runs.
"""
