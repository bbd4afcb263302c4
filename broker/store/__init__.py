"""The store of a broker: what it must still know after it was killed, in one SQLite file.

Two things are in it. **The log**: entries, each with the frames of some events of one source, in
the order in which the broker took them in; their positions are 1, 2, 3 ... without a gap. **The
state**: small values by kind and key, such as ``("source", "sensor-7")``. The store knows files
and bytes, and nothing of brokers: what entries and values mean is its user's business
(:mod:`broker.store.entries` has events as entries, and back).

::

    store = Store.open(Path("b1"), on_stored=wake, retain_s=7 * 86_400)
    ticket = store.write([Append(entry), Put("source", "sensor-7", last_number)])
    ...                                # wake(ticket) is called once both survive a power cut
    for entry in store.entries(after=41):
        ...
    store.trim(40)                     # no rule needs what is before position 40
    store.close()

Law 1: of what a ``write`` says all is stored or nothing, and nothing before all that earlier
writes said. After ``kill -9`` with tickets 1 to 7 under way a store holds those of 1 to n, for some
n that is not below the last ticket that ``on_stored`` was told.

Law 2: ``write`` never waits for the disk. One thread writes; all that came while it was busy
becomes one transaction, so the slower a disk is, the more it stores at a time. Whoever writes asks
``is_full`` and, where it is, writes nothing more until it hears that something is stored.

Law 3: a disk without room costs nothing that was written: ``is_out_of_room`` is true, it is tried
again every second, and what waits is stored as soon as there is room.

Law 4: what is read is what was written: each entry and value has a checksum, and one that fails it
raises StoreDamaged.

====================  ============================================================
`schema`              the tables, their versions, how the file is opened
`migration`           values of an older form
`values`              entries, and the changes that a write is made of
`folder`              the files of a store, and that one process has it
`reading`             reads it, in its own process or beside it (``rexmq log``)
`writer`              the thread that writes
`retention`           which entries may go, some at a time
`store`               all of this for a broker
`checking`            what is damaged, and keeping what is sound
`recording`           events as entries of a log, and back
`extracting`          parts of the log for who reads it over a link
`ordered`             the events of a log in the order of their times
`trimming`            letting entries go by hand
====================  ============================================================
"""

from broker.store.reader import Reader
from broker.store.store import Store
from broker.store.values import Append, Change, Entry, Sync
from routing.storage import Clear, Delete, Put

__all__ = ["Append", "Change", "Clear", "Delete", "Entry", "Put", "Reader", "Store", "Sync"]
