"""The clients: publishers, subscribers and rule managers, synchronous and for asyncio.

One :class:`routing.session.Session` stands inside each. ``connection`` carries out its effects,
``threaded`` and ``looped`` drive that from a thread or an event loop, and the clients' two forms
differ in nothing but how they wait.
"""
